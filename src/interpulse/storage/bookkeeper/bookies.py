"""One connection to each bookie, opened on demand, and the bookies that failed recently."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import Final

from interpulse.storage.bookkeeper.connection import BookieConnection, ConnectionConfig
from interpulse.storage.bookkeeper.errors import BookieAway, BookKeeperError, NotEnoughBookies
from interpulse.storage.bookkeeper.metadata_store import LedgerMetadataStore
from interpulse.storage.bookkeeper.records import Address

log = logging.getLogger(__name__)

_AVOIDED_S: Final = 30.0  # after a failure or a late answer, if enough other bookies are available


class Bookies:
    """All bookies of a cluster. The caller closes it."""

    def __init__(self, store: LedgerMetadataStore, config: ConnectionConfig) -> None:
        self._store = store
        self._config = config
        self._connections: dict[str, BookieConnection] = {}
        self._connecting: dict[str, asyncio.Task[BookieConnection]] = {}
        self._addresses: dict[str, Address] = {}
        self._failed_at: dict[str, float] = {}
        self._without_batches: set[str] = set()
        self._closed = False

    def connected(self, bookie_id: str) -> BookieConnection | None:
        """Return the open connection to a bookie, if there is one."""
        connection = self._connections.get(bookie_id)
        return None if connection is None or connection.lost.done() else connection

    async def connect(self, bookie_id: str) -> BookieConnection:
        """Return a connection to the bookie. Raise `BookieAway`."""
        connection = self.connected(bookie_id)
        if connection is not None:
            return connection
        if self._closed:
            raise BookieAway(bookie_id, "this client is closed")
        task = self._connecting.get(bookie_id)
        if task is None:
            task = asyncio.create_task(self._open(bookie_id), name=f"connection to bookie {bookie_id}")
            self._connecting[bookie_id] = task
            task.add_done_callback(partial(self._tried, bookie_id))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise BookieAway(bookie_id, "this client is closed") from None
            raise
        except (OSError, BookKeeperError) as error:
            raise BookieAway(bookie_id, str(error) or type(error).__name__) from None

    def avoid(self, bookie_id: str) -> None:
        """Prefer other bookies for a while."""
        self._failed_at[bookie_id] = asyncio.get_running_loop().time()

    def is_avoided(self, bookie_id: str) -> bool:
        """Return True if the bookie failed, or was late, a short while ago."""
        failed_at = self._failed_at.get(bookie_id)
        return failed_at is not None and asyncio.get_running_loop().time() < failed_at + _AVOIDED_S

    async def writable(self, *, without: Collection[str] = ()) -> list[str]:
        """Return the ids of bookies that accept new entries, in random order, with those that failed recently last."""
        available = [bookie for bookie in await self._store.writable_bookies() if bookie not in without]
        random.shuffle(available)
        available.sort(key=self.is_avoided)
        return available

    async def choose(self, count: int) -> tuple[str, ...]:
        """Return ``count`` bookies that accept new entries. Raise `NotEnoughBookies`."""
        available = await self.writable()
        if len(available) < count:
            raise NotEnoughBookies(count, len(available))
        return tuple(available[:count])

    def reads_batches(self, bookie_id: str) -> bool:
        """Return True if the bookie may be asked for batch reads."""
        return bookie_id not in self._without_batches

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        for task in list(self._connecting.values()):
            task.cancel()
        if self._connecting:
            await asyncio.wait(list(self._connecting.values()))
        for connection in list(self._connections.values()):
            connection.end("the client is closed")

    async def _open(self, bookie_id: str) -> BookieConnection:
        connection: BookieConnection | None = None
        with suppress(OSError):  # the last known address needs no ZooKeeper
            if bookie_id in self._addresses:
                connection = await BookieConnection.open(self._addresses[bookie_id], self._config)
        if connection is None:
            async with asyncio.timeout(self._config.connect_timeout_s):  # ZooKeeper may not answer
                address = await self._store.address(bookie_id)
            connection = await BookieConnection.open(address, self._config)
        self._addresses[bookie_id] = connection.address
        log.debug("bookie connected bookie=%s address=%s", bookie_id, connection.address)
        self._connections[bookie_id] = connection
        connection.lost.add_done_callback(lambda reason: self._lost(bookie_id, connection, reason.result()))
        return connection

    def _tried(self, bookie_id: str, task: asyncio.Task[BookieConnection]) -> None:
        del self._connecting[bookie_id]
        if not task.cancelled():
            task.exception()  # callers get the error, unless they have stopped waiting

    def _lost(self, bookie_id: str, connection: BookieConnection, reason: str) -> None:
        if self._connections.get(bookie_id) is connection:
            del self._connections[bookie_id]
        if connection.ended_at_a_batch:
            self._without_batches.add(bookie_id)
        if not self._closed:
            log.warning("bookie disconnected bookie=%s problem=%s", bookie_id, reason)
