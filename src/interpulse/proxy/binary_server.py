"""Listening sockets of the binary protocol, and the connections of clients."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from typing import Final

from interpulse.proxy.greeting import Greeting, GreetingContext
from interpulse.serving.tls import ServerTls, TlsListener

_logger = logging.getLogger(__name__)

_BACKLOG: Final = 1024
_CLOSING_SECONDS: Final = 1.0
_REJECTIONS_LOGGED_EVERY: Final = 1000


class BinaryServer:
    """A server that accepts clients, up to the limits."""

    def __init__(self, context: GreetingContext, *, connections_max: int, connections_per_ip_max: int) -> None:
        """``connections_per_ip_max`` 0: no limit."""
        self._context = context
        self._meter = context.meter
        self._connections_max = connections_max
        self._per_ip_max = connections_per_ip_max
        self._connections: set[Greeting] = set()
        self._by_ip: Counter[str] = Counter()
        self._releasing: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._encrypted: TlsListener | None = None
        self._closed = False

    async def listen(self, bound: socket.socket) -> None:
        """Listen on a bound socket, which the server owns from now on."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._new, sock=bound, backlog=_BACKLOG)

    async def listen_encrypted(self, bound: socket.socket, tls: ServerTls) -> None:
        """Listen inside TLS on a bound socket, which the server owns from now on. Raise UnusableTls."""
        self._encrypted = TlsListener(tls, bound, self._new, backlog=_BACKLOG)
        await self._encrypted.start()

    async def refresh_certificates(self) -> None:
        """Give new connections the current certificates of the files; see `TlsListener.refresh`."""
        if self._encrypted is not None:
            await self._encrypted.refresh()

    async def close(self) -> None:
        """Accept no more clients, send what is pending (clients that do not read lose it), and disconnect."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        if self._encrypted is not None:
            self._encrypted.close()
        for connection in list(self._connections):
            connection.close(_CLOSING_SECONDS)
        while self._connections or self._releasing:
            if self._releasing:
                await asyncio.wait(self._releasing)
            else:
                await asyncio.sleep(_CLOSING_SECONDS / 20)
        self._meter.dropped.close()

    def _new(self) -> Greeting:
        return Greeting(self._context, self._admit, self._on_lost)

    def _admit(self, connection: Greeting) -> bool:
        """Count a new connection. Return True if it may stay."""
        full = self._meter.active_connections >= self._connections_max
        full |= bool(self._per_ip_max) and self._by_ip[connection.ip] >= self._per_ip_max
        self._connections.add(connection)
        self._meter.active_connections += 1
        self._by_ip[connection.ip] += 1
        if not full:
            self._meter.new_connections += 1
            return not self._closed
        if self._meter.rejected_connections % _REJECTIONS_LOGGED_EVERY == 0:
            _logger.warning(
                "connection rejected address=%s active=%d remedy=%s",
                connection.ip,
                self._meter.active_connections - 1,
                "maxConcurrentInboundConnections or maxConcurrentInboundConnectionsPerIp, or another proxy",
            )
        self._meter.rejected_connections += 1
        return False

    def _on_lost(self, connection: Greeting) -> None:
        self._connections.discard(connection)
        self._meter.active_connections -= 1
        self._by_ip[connection.ip] -= 1
        if not self._by_ip[connection.ip]:
            del self._by_ip[connection.ip]
        task = asyncio.get_running_loop().create_task(connection.release())
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)
