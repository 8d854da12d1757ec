"""Clients of the other clusters' admin API: one for each, used sparingly, new when a cluster's record changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from interpulse.broker.clusters import Clusters
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import NotFound, RemoteClusterUnavailable
from interpulse.replication.connect import connect as connect_to

if TYPE_CHECKING:
    from interpulse.client.admin import AdminClient

__all__ = ["QUESTIONS_MAX", "ClusterLinks", "Connect"]

T = TypeVar("T")
Connect = Callable[[str, ClusterData], "AdminClient"]

QUESTIONS_MAX: Final = 16
"""At once and per cluster: what runs in the background must not crowd out what the cluster is there for."""
_BEGUN_PER_SECOND: Final = 200.0
"""So many that begin in one moment are spread: a broker that starts is no thundering herd."""


class _Link:
    def __init__(self, data: ClusterData, admin: AdminClient) -> None:
        self.data = data
        self.admin = admin
        self.slots = asyncio.Semaphore(QUESTIONS_MAX)


class ClusterLinks:
    """See the module. `close` at the end."""

    def __init__(self, clusters: Clusters, *, connect: Connect = connect_to) -> None:
        self._clusters = clusters
        self._connect = connect
        self._links: dict[str, _Link] = {}
        self._retired: list[AdminClient] = []
        self._next_begin: dict[str, float] = {}

    async def use(self, cluster: str, call: Callable[[AdminClient], Awaitable[T]]) -> T:
        """Raises RemoteClusterUnavailable for a cluster without a usable record, and what the call raises."""
        link = await self._link(cluster)
        async with link.slots:
            return await call(link.admin)

    async def _link(self, cluster: str) -> _Link:
        try:
            data = await self._clusters.get(cluster)
        except NotFound as error:
            raise RemoteClusterUnavailable(f"{error}; register it with clusters create") from error
        known = self._links.get(cluster)
        if known is None or known.data != data:
            if known is not None:
                self._retired.append(known.admin)  # somebody may be in the middle of a question
            known = self._links[cluster] = _Link(data, self._connect(cluster, data))
        return known

    def delay(self, cluster: str) -> float:
        """How many seconds somebody who is about to ask again and again waits first: nothing, if there are few."""
        now = time.monotonic()
        begin = max(now, self._next_begin.get(cluster, now))
        self._next_begin[cluster] = begin + 1 / _BEGUN_PER_SECOND
        return begin - now

    async def close(self) -> None:
        admins = [*self._retired, *(link.admin for link in self._links.values())]
        await asyncio.gather(*(admin.close() for admin in admins))
