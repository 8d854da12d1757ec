"""Clients of the other clusters' admin API, and the partition count of a topic on remote clusters of its namespace."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from interpulse.broker.tenancy.clusters import Clusters
from interpulse.clock import Clock
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import NotFound, PulsarError, RemoteClusterUnavailable
from interpulse.model.names import TopicName
from interpulse.model.topics import TopicKind
from interpulse.replication.connect import connect
from interpulse.replication.connect import connect as connect_to
from interpulse.replication.provision import partition_metadata

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

T = TypeVar("T")
Connect = Callable[[str, ClusterData], "AdminClient"]

QUESTIONS_MAX: Final = 16
"""Calls at a time to one cluster: background work must leave room for the cluster's own clients."""
_BEGUN_PER_SECOND: Final = 200.0
"""Calls that may start per second without a delay, so that a starting broker does not flood a cluster."""

logger = logging.getLogger(__name__)

_FAILURE_REMEMBERED_MS: Final = 10_000


class _Link:
    def __init__(self, data: ClusterData, admin: AdminClient) -> None:
        self.data = data
        self.admin = admin
        self.slots = asyncio.Semaphore(QUESTIONS_MAX)
        self.users = 0


class ClusterLinks:
    """Admin clients of the other clusters. Call `close` at the end."""

    def __init__(self, clusters: Clusters, *, connect: Connect = connect_to) -> None:
        self._clusters = clusters
        self._connect = connect
        self._links: dict[str, _Link] = {}
        self._replaced: set[_Link] = set()
        """Replaced links that still have a call under way."""
        self._next_begin: dict[str, float] = {}

    async def use(self, cluster: str, call: Callable[[AdminClient], Awaitable[T]]) -> T:
        """Return the result of a call to a cluster.

        Raise RemoteClusterUnavailable if its record is missing or unusable.

        Raises the errors of the call.
        """
        try:
            data = await self._clusters.get(cluster)
        except NotFound as error:
            await self._replace(cluster)
            raise RemoteClusterUnavailable(f"{error}; register it with clusters create") from error
        link = self._links.get(cluster)
        if link is not None and link.data != data:
            await self._replace(cluster)
            link = self._links.get(cluster)  # another caller may have been faster
        if link is None:
            link = self._links[cluster] = _Link(data, self._connect(cluster, data))
        return await self._ask(link, call)

    async def _ask(self, link: _Link, call: Callable[[AdminClient], Awaitable[T]]) -> T:
        link.users += 1
        try:
            async with link.slots:
                return await call(link.admin)
        finally:
            link.users -= 1
            if link in self._replaced and not link.users:
                self._replaced.discard(link)
                await link.admin.close()

    async def _replace(self, cluster: str) -> None:
        """Replace the link to a cluster. The old connections close after their last call."""
        link = self._links.pop(cluster, None)
        if link is None:
            return
        if link.users:
            self._replaced.add(link)
        else:
            await link.admin.close()

    def delay(self, cluster: str) -> float:
        """Return the seconds that a caller with many calls ahead waits first; 0 if few calls started lately."""
        now = time.monotonic()
        begin = max(now, self._next_begin.get(cluster, now))
        self._next_begin[cluster] = begin + 1 / _BEGUN_PER_SECOND
        return begin - now

    async def close(self) -> None:
        await asyncio.gather(*(link.admin.close() for link in (*self._replaced, *self._links.values())))


class RemotePartitions:
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
