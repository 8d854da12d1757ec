"""Present state of a pipeline's two clusters: the selected topics, and how far they are copied."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.closing import AsyncCloses
from interpulse.client.consuming.copied_entries import TAILS, CopiedEntry
from interpulse.client.session import Session
from interpulse.in_turns import concurrently
from interpulse.model.errors import NotFound, PulsarError
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.spark.job.copied_entries import last_copied
from interpulse.spark.job.pipeline_config import PipelineConfig, check_cluster_name
from interpulse.spark.job.routes.route import Route
from interpulse.spark.job.selection import RemoteSelection, cursor_name, select
from interpulse.spark.job.source_backlog import Backlog, SourceBacklog, cursor_position, last_entry
from interpulse.spark.job.start import first_message
from interpulse.spark.offsets import StreamOffset

_TARGET_S: Final = 10.0


class Standing(NamedTuple):
    """Progress of a topic-partition: copied up to ``done``, with the backlog behind it.

    ``written`` is the source position of the target's last entry, if that entry is one of this pipeline.
    """

    name: str
    done: Position
    backlog: Backlog
    written: Position | None = None
    target_problem: str | None = None


class Inspection(AsyncCloses):
    """Access to the clusters of a pipeline for one inspection. Close it afterwards."""

    def __init__(self, config: PipelineConfig) -> None:
        self.config = config
        self.source: AdminClient = config.source.admin()
        self._backlog = SourceBacklog(config.source)
        self._targets: dict[str, Session] = {}
        self._closing = AsyncExitStack()
        self._closing.push_async_callback(self.source.close)
        self._closing.push_async_callback(self._backlog.close)

    async def selected(self) -> dict[str, RemoteSelection]:
        """Return the present selection by remote cluster. Raise PipelineConfigError for a source of another name."""
        await check_cluster_name("source", self.config.source, self.source)
        return await select(self.config, self.source)

    async def route(self, selection: RemoteSelection) -> Route:
        """Return the route to a cluster whose record can be used."""
        assert selection.address is not None
        cursor = await cursor_name(self.source, self.config, selection.address.cluster)
        return Route(self.config, selection.address, cursor)

    async def standings(self, route: Route, names: Iterable[str]) -> list[Standing]:
        """Return how far topic-partitions are copied, without those that are gone."""
        committed, held = committed_positions(route.checkpoint), route.files.held()
        copied = route.files.copied()

        async def standing(name: str) -> Standing | None:
            done = committed.get(name)
            if done is not None:
                done = min(done, held[name].after) if name in held else max(done, copied.get(name, EARLIEST))
            try:
                return await self._standing(route, name, done)
            except NotFound:
                return None

        return [place for place in await concurrently(standing, names) if place is not None]

    async def _standing(self, route: Route, name: str, done: Position | None) -> Standing:
        """Return the further of checkpoint and cursor: a stream follows its cursor, and moves it from time to time."""
        stats = await self.source.topics.internal_stats(name)
        cursor = cursor_position(stats, route.cursor)
        if done is None and cursor is None:
            done = await self._begin_of(name, stats)
        done = max(position for position in (done, cursor) if position is not None)
        backlog = await self._backlog.behind(name, done, stats)
        if not backlog.entries:
            return Standing(name, done, backlog)
        try:
            async with asyncio.timeout(_TARGET_S):
                written = await self._written(route, name)
        except NotFound:
            return Standing(name, done, backlog)
        except (PulsarError, TimeoutError) as problem:
            return Standing(name, done, backlog, target_problem=str(problem) or "it gives no answer")
        if written is not None and written > done:
            return Standing(name, written, await self._backlog.behind(name, written, stats), written)
        return Standing(name, done, backlog, written)

    async def _begin_of(self, name: str, stats: Mapping[str, Any]) -> Position:
        first = await first_message(self.source, name, self.config.start.of(name))
        if first is None:
            return last_entry(stats)
        return Position(first.ledger, first.entry - 1) if first.position > EARLIEST else EARLIEST

    async def _written(self, route: Route, name: str) -> Position | None:
        """Return the last written entry. A job that ended within a batch has written more than its checkpoint says."""
        lane = route.lane_of(name)
        return await self._last_copied(route, name, lambda entry: entry.producer == lane, tails=(1,))

    async def copied_by_any(self, route: Route, name: str) -> Position | None:
        """Return the last source entry that its target holds, from this pipeline or another replicator.

        If several topics are written to one, an entry of another replicator does not identify its topic.
        """
        lane, source = route.lane_of(name), self.config.source.cluster
        is_merging = self.config.map.merge
        return await self._last_copied(
            route, name, lambda entry: entry.producer == lane or (not is_merging and entry.origin == source)
        )

    async def _last_copied(
        self, route: Route, name: str, is_wanted: Callable[[CopiedEntry], bool], *, tails: Sequence[int | None] = TAILS
    ) -> Position | None:
        session = self._targets.get(route.remote)
        if session is None:
            session = self._targets[route.remote] = route.target.session()
            self._closing.push_async_callback(session.close)
        return await last_copied(session, route.target_name(TopicName.parse(name)), is_wanted, tails=tails)

    async def close(self) -> None:
        await self._closing.aclose()


class Finding(IntEnum):
    """Exit codes of commands that inspect without copying, from good to bad."""

    SAME = 0
    """Nothing to do."""
    DIFFERS = 1
    """Something is behind, held, or would be created on the target."""
    UNKNOWN = 2
    """A cluster does not answer."""


def committed_positions(checkpoint: Path) -> Mapping[str, Position]:
    """Return the end of the newest completed micro-batch by topic-partition; empty if there is none.

    Raises ValueError for a checkpoint of another kind.
    """
    done = [int(path.name) for path in (checkpoint / "commits").glob("[0-9]*") if path.name.isdigit()]
    if not done:
        return {}
    path = checkpoint / "offsets" / str(max(done))
    try:
        _, _, offset = path.read_text(encoding="utf-8").split("\n", 2)
        return StreamOffset.from_json(json.loads(offset)).positions
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"{path} is not an offset of a stream of ours: {problem}") from problem
