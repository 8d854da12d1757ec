"""Clients of the other clusters' admin API: one for each, used sparingly, new when a cluster's record changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from interpulse.broker.tenancy.clusters import Clusters
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import NotFound, RemoteClusterUnavailable
from interpulse.replication.connect import connect as connect_to

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

T = TypeVar("T")
Connect = Callable[[str, ClusterData], "AdminClient"]

QUESTIONS_MAX: Final = 16
"""Calls at a time to one cluster: background work must leave room for the cluster's own clients."""
_BEGUN_PER_SECOND: Final = 200.0
"""Calls that may start per second without a delay, so that a starting broker does not flood a cluster."""


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
