"""The listening socket of the binary protocol, and the connections of its clients."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from typing import Final

from interpulse import __version__
from interpulse.broker.binary.handlers import HANDLERS
from interpulse.broker.binary.transport.connection import ClientConnection
from interpulse.broker.binary.transport.context import BinaryContext, ConnectionLimits, Handlers
from interpulse.broker.instruments import ConnectionCounts
from interpulse.model.errors import NotAllowed
from interpulse.model.names import NamespaceName
from interpulse.serving.admission import ConnectionQuota, Full
from interpulse.serving.tls import ListeningSockets, ServerTls
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.codec import codec
from interpulse.wire.protocols import ServerProtocol

_logger = logging.getLogger(__name__)

# Pulsar's clients show the version, and some parse its numbers; the name in front identifies the product.
_SERVER_VERSION: Final = f"Pulsar Server interpulse-{__version__}"
# Clients of a stopping broker have less time to read their last frames.
_CLOSING_SECONDS: Final = 1.0
_REFUSALS_LOGGED_EVERY: Final = 1000
_FULL: Final = {
    Full.TOTAL: "Reached the maximum number of connections",
    Full.PER_ADDRESS: "Reached the maximum number of connections on address{}",
}
"""Refusals in Pulsar's words. The second is completed with the address."""


class BinaryServer:
    """The server for Pulsar's binary protocol on one socket."""

    def __init__(
        self,
        context: BinaryContext,
        limits: ConnectionLimits,
        handlers: Handlers = HANDLERS,
        quota: ConnectionQuota | None = None,
    ) -> None:
        """``quota`` limits the number of clients; None = no limit."""
        codec()  # fail here, not at the first client, if the environment demands a missing codec
        self._context = context
        self._limits = limits
        self._handlers = handlers
        self._quota = quota or ConnectionQuota()
        self._connections: dict[ClientConnection, None] = {}
        """In the order in which they came, which is also the order in which they are closed."""
        self._turned_away: set[ClientConnection] = set()
        self._all_closed = asyncio.Event()
        self._all_closed.set()
        self._closed = False
        self._created = 0
        self._gone: Counter[bool | None] = Counter()  # by admission: accepted, refused or neither
        self.sockets = ListeningSockets(self._new_connection)

    @property
    def connections(self) -> ConnectionCounts:
        made = Counter(connection.let_in for connection in self._connections) + self._gone
        throttled = sum(connection.throttled for connection in self._connections)
        active, dropped = len(self._connections), self._context.dropped.count
        return ConnectionCounts(active, self._created, made[True], made[False], throttled, dropped)

    async def start(self, bound: socket.socket, tls: ServerTls | None = None) -> None:
        """Listen on a bound socket, which the server owns from now on. Raises UnusableTls."""
        await self.sockets.listen(bound, tls)

    async def close(self) -> None:
        """Finish running requests, send the waiting output (clients that do not read lose it), and disconnect."""
        self.sockets.close()
        self._closed = True
        connections = list(self._connections)
        for connection in connections:
            connection.close(_CLOSING_SECONDS)
        await asyncio.gather(*(connection.tasks_done() for connection in connections))
        await self._all_closed.wait()
        self._context.dropped.close()

    def drop_all(self, reason: str) -> int:
        """Disconnect all clients, which may reconnect immediately. Return their number."""
        connections = [connection for connection in self._connections if not connection.lost]
        for connection in connections:
            connection.drop(reason)
        return len(connections)

    def resume_sending(self) -> None:
        for connection in list(self._connections):
            connection.resume_sending()

    async def permissions_changed(self, namespace: NamespaceName | None) -> None:
        """Close what clients may no longer have open in this namespace; None: in any."""
        for connection in list(self._connections):
            if connection.session is not None:
                await connection.session.recheck(namespace)

    def _new_connection(self) -> ClientConnection:
        self._created += 1
        return ClientConnection(
            self._context, self._limits, self._handlers, self._new_protocol, self._on_made, self._on_lost
        )

    def _on_made(self, connection: ClientConnection) -> None:
        self._connections[connection] = None
        self._all_closed.clear()
        full = self._quota.admit(connection.ip)
        if full is not None:
            self._turn_away(connection, full)
        elif self._closed:  # accepted just before
            connection.close(_CLOSING_SECONDS)

    def _turn_away(self, connection: ClientConnection, full: Full) -> None:
        self._turned_away.add(connection)
        if self._quota.refused % _REFUSALS_LOGGED_EVERY == 1:
            remedy = "brokerMaxConnections or brokerMaxConnectionsPerIp, and the limit of open files"
            _logger.warning(
                "connections refused address=%s limit=%s open=%d refused=%d remedy=%s",
                *(connection.ip, full.value, self._quota.open, self._quota.refused, remedy),
            )
        connection.turn_away(NotAllowed(_FULL[full].format(connection.address)))

    def _on_lost(self, connection: ClientConnection) -> None:
        self._connections.pop(connection, None)
        if connection in self._turned_away:
            self._turned_away.discard(connection)
        else:
            self._quota.release(connection.ip)
        self._gone[connection.let_in] += 1
        if not self._connections:
            self._all_closed.set()

    def _new_protocol(self, now: float) -> ServerProtocol:
        watchers = self._limits.topic_watchers_allowed and self._limits.patterns_evaluated
        return ServerProtocol(
            server_version=_SERVER_VERSION,
            feature_flags=pb.FeatureFlags(
                supports_auth_refresh=False,
                supports_broker_entry_metadata=False,
                supports_topic_watchers=watchers,
                supports_topic_watcher_reconcile=watchers,
                supports_get_partitioned_metadata_without_auto_creation=True,
                supports_repl_dedup_by_lid_and_eid=True,
                supports_batch_lookup=self._context.lookups.batches_supported or None,
            ),
            now=now,
            keep_alive_interval=self._limits.keep_alive_seconds,
            message_bytes_max=self._limits.message_bytes_max,
            gathers_runs=True,
        )
