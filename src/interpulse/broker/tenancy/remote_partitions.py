"""The partition count of a topic on remote clusters of its namespace, asked before the topic is created here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from interpulse.broker.tenancy.clusters import Clusters
from interpulse.clock import Clock
from interpulse.model.errors import NotFound, PulsarError
from interpulse.model.names import TopicName
from interpulse.model.topics import TopicKind
from interpulse.replication.connect import connect
from interpulse.replication.provision import partition_metadata

logger = logging.getLogger(__name__)

_FAILURE_REMEMBERED_MS: Final = 10_000


class RemotePartitions(Protocol):
    """Asks remote clusters."""

    async def find(self, name: TopicName, clusters: Sequence[str]) -> int | None:
        """Return the partition count on the first of these clusters that has the topic; None if none has it."""


class AdminRemotePartitions:
    """Asks all clusters at the same time through their admin API, without creating anything there.

    A cluster that does not answer in time counts as lacking the topic, and is not asked again for some seconds.
    """

    def __init__(self, clusters: Clusters, clock: Clock, *, timeout_ms: int) -> None:
        self._clusters = clusters
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._failed_ms: dict[str, int] = {}

    async def find(self, name: TopicName, clusters: Sequence[str]) -> int | None:
        """Return the partition count on these clusters. If they disagree, the first one by name counts."""
        asked = [cluster for cluster in sorted(clusters) if not self._failed_lately(cluster)]
        answers = await asyncio.gather(*(self._ask(cluster, name) for cluster in asked))
        answers_by_cluster = {
            cluster: answer for cluster, answer in zip(asked, answers, strict=True) if answer is not None
        }
        if len(set(answers_by_cluster.values())) > 1:
            logger.warning("clusters disagree about a topic topic=%s answers=%s", name, answers_by_cluster)
        return next(iter(answers_by_cluster.values()), None)

    def _failed_lately(self, cluster: str) -> bool:
        failed_ms = self._failed_ms.get(cluster)
        return failed_ms is not None and self._clock.now_ms() - failed_ms < _FAILURE_REMEMBERED_MS

    async def _ask(self, cluster: str, name: TopicName) -> int | None:
        try:
            return await self._find(cluster, name)
        except NotFound:
            return None
        except PulsarError as error:
            self._failed_ms[cluster] = self._clock.now_ms()
            logger.error("cluster cannot be asked for a topic cluster=%s topic=%s error=%s", cluster, name, error)
            return None

    async def _find(self, cluster: str, name: TopicName) -> int | None:
        data = await self._clusters.get(cluster)
        async with connect(cluster, data, timeout_ms=self._timeout_ms) as admin:
            found = await partition_metadata(admin, name)
        return None if found.kind is TopicKind.ABSENT else found.partitions
