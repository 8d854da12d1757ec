"""The two sides of a comparison: clusters, topics in pairs, and how their contents are matched."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from interpulse.client.partitions import partition_names
from interpulse.clock import now_ms
from interpulse.model.clusters import shown_address
from interpulse.model.errors import TopicNotFound
from interpulse.model.names import TopicName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.spark.job.pipeline_config import FORWARD_ORIGIN, PipelineConfig
from interpulse.spark.job.selection import select
from interpulse.spark.options.connection_options import Access, access_as_options, access_of
from interpulse.spark.processes.process_client import process_portal, session_for

POSITION: Final = "position"
CONTENT: Final = "content"
_TIMEOUT_MS: Final = 30_000


class VerifyError(Exception):
    """Clusters that cannot be compared; the message has the reason and the remedy."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """A cluster that is read: its name, ``pulsar://`` URL, and our access."""

    cluster: str
    service_url: str
    access: Access

    @classmethod
    def of(cls, address: ClusterAddress) -> Side:
        return cls(cluster=address.cluster, service_url=address.service_url, access=access_of(address))

    @property
    def options(self) -> dict[str, str]:
        return {"service.url": self.service_url, **access_as_options(self.access)}

    def partitions(self, topics: Sequence[str]) -> dict[str, list[str]]:
        """Return the names that hold the entries of each topic; none for a topic that does not exist."""
        return process_portal().call(lambda: self._partitions(topics))

    async def _partitions(self, topics: Sequence[str]) -> dict[str, list[str]]:
        session = await session_for(self.service_url, _TIMEOUT_MS, self.access)
        names: dict[str, list[str]] = {topic: [] for topic in topics}
        for topic in topics:
            name = TopicName.parse(topic)
            with suppress(TopicNotFound):
                names[topic] = list(
                    map(str, partition_names(name, await session.lookup.partitions(name, create=False)))
                )
        return names


@dataclass(frozen=True)
class TopicPair:
    """Complete base names of a topic on both sides."""

    source: str
    target: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One run over topics of two clusters.

    ``since_ms``: only entries published from then on. ``forwards``: the source sends on entries of other clusters.
    """

    source: Side
    target: Side
    topics: tuple[TopicPair, ...]
    match: str = POSITION
    forwards: bool = False
    since_ms: int | None = None
    at_ms: int

    def to_json(self) -> dict[str, Any]:
        """Return the options that must be equal for a run to continue, without credentials."""
        return {
            "source": [self.source.cluster, shown_address(self.source.service_url)],
            "target": [self.target.cluster, shown_address(self.target.service_url)],
            "topics": [[pair.source, pair.target] for pair in self.topics],
            "match": self.match,
        }


async def comparisons_of(
    config: PipelineConfig, topics: Sequence[str] = (), *, match: str = POSITION, last_ms: int | None = None
) -> list[Comparison]:
    """Return one comparison for each cluster a pipeline copies to; with ``topics`` of these alone.

    Raises VerifyError for a topic that the pipeline does not copy, or if nothing is left to compare.
    """
    if config.map.merge:
        raise VerifyError("merge = true of [map]: the copies of several topics in one cannot be distinguished")
    async with config.source.admin() as admin:
        selected = await select(config, admin)
    at_ms = now_ms()
    wanted = {str(TopicName.parse(name).base) for name in topics}
    copied = {str(name) for selection in selected.values() for name in selection.topics}
    if absent := sorted(wanted - copied):
        raise VerifyError(f"{', '.join(absent)}: not copied by pipeline {config.name}; see its [select]")
    comparisons = []
    for _, selection in sorted(selected.items()):
        if selection.address is None:
            raise VerifyError(selection.problem)
        names = sorted(str(name) for name in selection.topics if not wanted or str(name) in wanted)
        if names:
            comparisons.append(
                Comparison(
                    source=Side.of(config.source),
                    target=Side.of(selection.address),
                    topics=tuple(TopicPair(name, str(config.map.target(TopicName.parse(name)))) for name in names),
                    match=match,
                    forwards=config.forward == FORWARD_ORIGIN,
                    since_ms=None if last_ms is None else at_ms - last_ms,
                    at_ms=at_ms,
                )
            )
    if not comparisons:
        raise VerifyError(f"pipeline {config.name} copies no topic; see its [select]")
    return comparisons
