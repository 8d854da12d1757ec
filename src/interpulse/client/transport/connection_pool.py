"""Connection pool: one connection per broker address, opened when needed and again after a loss."""

from __future__ import annotations

import asyncio

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.transport.connection import Connection, SpokenFor
from interpulse.client.transport.issued_tokens import IssuedTokens
from interpulse.model.errors import AlreadyClosed, NotConnected, PulsarError


class ConnectionPool:
    """Connections shared by all producers, consumers and lookups of one client."""

    def __init__(
        self, config: ClientConfig, issued: IssuedTokens | None = None, spoken_for: SpokenFor | None = None
    ) -> None:
        """Create an empty pool.

        ``issued`` provides tokens of an issuer that several pools share. ``spoken_for`` is the client of a proxy.
        """
        self._config = config
        self._issued = issued or IssuedTokens.of(config.credentials, config.tls)
        self._spoken_for = spoken_for
        self._opening: dict[BrokerAddress, asyncio.Task[Connection]] = {}
        self._logged_faults: set[BrokerAddress] = set()
        self._closed = False
        self._left: PulsarError | None = None

    async def get(self, address: BrokerAddress) -> Connection:
        """Return an open connection. Concurrent callers wait for the same one. Raise NotConnected."""
        if self._left is not None:  # also if it is closed meanwhile: the client has another pool
            raise NotConnected(str(self._left))
        if self._closed:
            raise AlreadyClosed("the client is closed")
        task = self._opening.get(address)
        if task is None or (task.done() and not _is_usable(task)):
            opening = Connection.open(address, self._config, self._issued, self._spoken_for, self._logged_faults)
            task = asyncio.get_running_loop().create_task(opening)
            task.add_done_callback(_mark_seen)
            self._opening[address] = task
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self._left is None or (caller is not None and caller.cancelling()):
                raise
            raise NotConnected(str(self._left)) from None

    def leave(self, reason: PulsarError) -> None:
        """Close all connections and open no others: :meth:`get` raises NotConnected. :meth:`close` is still needed.

        Consumers may send what they have collected, such as acknowledgements.
        """
        self._left = reason
        for task in self._opening.values():
            if not task.done():
                task.cancel()
            elif _is_usable(task):
                for consumer in task.result().consumers:
                    consumer.on_leaving()
                task.result().close(reason)

    async def close(self) -> None:
        """Drop all connections."""
        self._closed = True
        tasks, self._opening = list(self._opening.values()), {}
        for task in tasks:
            task.cancel()
        for opened in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(opened, Connection):
                opened.close()
                await opened.closed()


def _is_usable(task: asyncio.Task[Connection]) -> bool:
    return not task.cancelled() and task.exception() is None and task.result().is_open


def _mark_seen(task: asyncio.Task[Connection]) -> None:
    """Retrieve a failure without waiters, so that the event loop does not warn about it."""
    if not task.cancelled():
        task.exception()
