"""Listening sockets of the binary protocol, and the first moments of a connection: CONNECT decides its use."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

from interpulse import __version__
from interpulse.authentication.authentication import BadCredentials
from interpulse.authentication.certificates import peer_certificate
from interpulse.client.config import ClientConfig
from interpulse.client.credentials import Credentials
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import NotAllowed, PulsarError, ServiceNotReady
from interpulse.proxy.access import (
    AuthenticatedClient,
    ProxyAccess,
    broker_connect,
    broker_connect_for,
    forwarded_credentials,
)
from interpulse.proxy.brokers import Brokers
from interpulse.proxy.dialer import Dialer, TargetRefused, TargetRules, TargetUnreachable
from interpulse.proxy.lookup.lookup_session import Answers, LookupSession
from interpulse.proxy.lookup.questions import Questions
from interpulse.proxy.meter import ProxyMeter
from interpulse.proxy.proxy_config import ProxyConfig
from interpulse.proxy.relay import Relay
from interpulse.serving.tls import ListeningSockets
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import Frame
from interpulse.wire.protocols import ServerProtocol

_logger = logging.getLogger(__name__)

_SERVER_VERSION: Final = f"Pulsar Server interpulse-{__version__}"
_FLAGS: Final = pb.FeatureFlags(
    supports_get_partitioned_metadata_without_auto_creation=True, supports_batch_lookup=True
)
"""Flags of connections for lookups. Topic watchers need a broker, so clients behind a proxy ask for lists instead."""
_OPERATION_TIMEOUT_MS: Final = 30_000
_CLOSING_SECONDS: Final = 1.0
_TARGET_LENGTH_MAX: Final = 200
"""The most characters of a client's target in the log."""
_CONNECT_BYTES_MAX: Final = 128 * 1024
"""Enough for large tokens, for clients that have not authenticated yet."""

_REJECTIONS_LOGGED_EVERY: Final = 1000


class _NotConnected(ServiceNotReady):
    """The broker that a client names is not connected; ``detail`` is for the log."""

    def __init__(self, message: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class GreetingContext:
    """The objects that every connection needs."""

    brokers: Brokers
    rules: TargetRules
    dialer: Dialer
    answers: Answers
    meter: ProxyMeter
    config: ProxyConfig
    access: ProxyAccess | None
    """None if clients need not authenticate."""

    def new_protocol(self, now: float) -> ServerProtocol:
        """Return the protocol of a connection that begins now."""
        return ServerProtocol(
            server_version=_SERVER_VERSION,
            feature_flags=_FLAGS,
            now=now,
            keep_alive_interval=self.config.keep_alive_interval_seconds,
            message_limit_announced=False,
        )

    def client_config(self, credentials: Credentials | None) -> ClientConfig:
        """Return settings for connections to brokers. The service URL is unused, since each call names its broker."""
        scheme = "pulsar+ssl" if self.config.tls_enabled_with_broker else "pulsar"
        return ClientConfig(
            service_url=f"{scheme}://localhost",
            credentials=credentials,
            tls=self.config.broker_tls,
            connect_timeout_ms=self.config.broker_proxy_connect_timeout_ms,
            operation_timeout_ms=_OPERATION_TIMEOUT_MS,
            keep_alive_interval_ms=self.config.keep_alive_interval_seconds * 1000,
        )


class FirstFrame:
    """Bytes collected until the first frame is complete."""

    def __init__(self) -> None:
        self._collected = bytearray()

    def feed(self, data: bytes) -> tuple[bytes, bytes] | None:
        """Return the first frame and the bytes behind it; None until it is complete. Raise RemoteProtocolError."""
        self._collected += data
        if len(self._collected) < 4:
            return None
        end = 4 + int.from_bytes(self._collected[:4], "big")
        if end > _CONNECT_BYTES_MAX:
            raise RemoteProtocolError(f"the first frame has {end} bytes, the limit is {_CONNECT_BYTES_MAX}")
        if len(self._collected) < end:
            return None
        return bytes(self._collected[:end]), bytes(self._collected[end:])


class Greeting(asyncio.Protocol):
    """A connection that reads CONNECT and passes its socket to a `Relay` or, without a target, a `LookupSession`."""

    def __init__(
        self, context: GreetingContext, admitted: Callable[[Greeting], bool], on_lost: Callable[[Greeting], None]
    ) -> None:
        """``admitted`` False: the connection is closed immediately. ``on_lost`` is called once in either case."""
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._admitted = admitted
        self._lost = on_lost
        self._first = FirstFrame()
        self._protocol = context.new_protocol(self._loop.time())
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._holder: Relay | LookupSession | None = None
        self._client: AuthenticatedClient | None = None
        # for this client alone, so that its requests cannot cost others a connection
        self._pool: ConnectionPool | None = None
        self.ip = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.ip = peer[0] if peer else ""
        if self._admitted(self):
            self._timer = self._loop.call_at(self._protocol.next_tick, self._give_up)
        else:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._task is not None or self._transport.is_closing():
            return
        try:
            cut = self._first.feed(data)
            if cut is None:
                return
            frame, rest = cut
            (connect,) = cast("list[Frame]", self._protocol.receive_data(frame))
        except RemoteProtocolError as error:
            self._hang_up(str(error))
            return
        self._transport.pause_reading()
        self._task = self._loop.create_task(self._decide(connect.command.connect, rest))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._task is not None:
            self._task.cancel()
        self._gone()

    # The methods of a data connection for the watch of credentials that are not forwarded.

    @property
    def lost(self) -> bool:
        return self._transport.is_closing()

    @property
    def accepts_auth_challenge(self) -> bool:
        return False  # only the broker can send there

    def challenge(self, auth_method: str) -> None:
        raise AssertionError("a data connection is not challenged by the proxy")

    def drop(self, reason: str) -> None:
        """Close the connection. ``reason`` is for the log."""
        if not self._transport.is_closing():
            self._context.meter.dropped.note(self.ip, reason, let_in=self._holder is not None)
        self.close(_CLOSING_SECONDS)

    def close(self, seconds: float) -> None:
        """Send what is pending, for at most ``seconds``, and close, whichever object has the connection now."""
        if self._holder is not None:
            self._holder.close(seconds)
            return
        self._transport.close()
        self._loop.call_later(seconds, self._transport.abort)

    async def release(self) -> None:
        """Close what was opened for this connection alone, after it was lost."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        if self._pool is not None:
            await self._pool.close()

    async def _decide(self, connect: pb.CommandConnect, rest: bytes) -> None:
        try:
            if connect.HasField("proxy_version"):
                raise NotAllowed("Must not provide proxyVersion: clients connect to this proxy, other proxies do not")
            if self._context.access is not None:
                shown = peer_certificate(self._transport)
                self._client = await AuthenticatedClient.of(self._context.access, connect, shown)
            if connect.proxy_to_broker_url:
                await self._relay(connect, rest)
            else:
                await self._answer_questions(connect, rest)
        except (BadCredentials, _NotConnected) as error:
            self._refuse(error, error.detail)
        except PulsarError as error:
            self._refuse(error, str(error))
        except Exception:  # a bug of the proxy ends only this connection
            _logger.exception("connection failed address=%s", self.ip)
            self._hang_up("bug of the proxy")

    async def _broker_greeting(self, connect: pb.CommandConnect) -> bytes:
        access, client = self._context.access, self._client
        if access is None or client is None:
            return broker_connect(connect, credentials_forwarded=self._context.config.forward_authorization_credentials)
        original = await client.original()
        return broker_connect_for(original, connect, access.own.method, await access.own.secret())

    async def _relay(self, connect: pb.CommandConnect, rest: bytes) -> None:
        context, endpoint = self._context, connect.proxy_to_broker_url
        greeting = await self._broker_greeting(connect)
        relay = Relay(context.meter, context.config.broker_proxy_read_timeout_ms / 1000, self._gone)
        try:
            await context.dialer.connect(endpoint, relay.broker)
        except (TargetRefused, TargetUnreachable) as error:
            relay.abandon()
            said = "isn't available" if isinstance(error, TargetUnreachable) else "cannot be validated"
            raise _NotConnected(
                f"Target broker {said}.", f"not connected to {endpoint[:_TARGET_LENGTH_MAX]!r}: {error}"
            ) from error
        except BaseException:
            relay.abandon()
            raise
        if relay.broker.transport is None:
            relay.abandon()
            raise ServiceNotReady("Target broker isn't available.")
        self._hold(relay)
        relay.client.attach(self._transport)
        self._transport.set_protocol(relay.client)
        if self._client is not None and not self._client.credentials_forwarded:
            self._client.watch(self)  # a broker that receives the credentials watches them itself
        self._transport.resume_reading()  # first, since a broker that accepts no more pauses it again
        relay.broker.write(greeting + rest)

    async def _answer_questions(self, connect: pb.CommandConnect, rest: bytes) -> None:
        context, access, client = self._context, self._context.access, self._client
        if access is not None:
            self._pool = ConnectionPool(context.client_config(access.own.credentials), access.own.issued, client)
            credentials = None
        else:
            credentials = forwarded_credentials(connect) if context.config.forward_authorization_credentials else None
            self._pool = ConnectionPool(context.client_config(credentials))
        questions = Questions(context.brokers, context.rules, self._pool, tls=context.config.tls_enabled_with_broker)
        if credentials is not None:
            await questions.connection()  # the broker's verdict on the credentials is the answer to CONNECT
        self._protocol.accept()
        session = LookupSession(
            self._transport, self._protocol, questions, context.answers, self._gone, client, context.meter
        )
        self._hold(session)
        self._transport.set_protocol(session)
        self._transport.resume_reading()
        session.data_received(rest)

    def _hold(self, holder: Relay | LookupSession) -> None:
        self._holder = holder
        if self._timer is not None:
            self._timer.cancel()

    def _gone(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._client is not None:
            self._client.close()
        self._lost(self)

    def _give_up(self) -> None:
        if self._holder is None:
            self._hang_up("no complete greeting within the keep-alive interval")

    def _refuse(self, error: PulsarError, reason: str) -> None:
        self._protocol.refuse(error.wire_code, str(error))
        self._hang_up(reason)

    def _hang_up(self, reason: str) -> None:
        self._transport.write(self._protocol.data_to_send())
        self.drop(reason)


class BinaryServer:
    """A server that accepts clients, up to the limits."""

    def __init__(self, context: GreetingContext) -> None:
        self._context = context
        self._meter = context.meter
        self._connections: dict[Greeting, None] = {}
        """In the order in which they came, which is also the order in which they are closed."""
        self._by_ip: Counter[str] = Counter()
        self._releasing: set[asyncio.Task[None]] = set()
        self.sockets = ListeningSockets(lambda: Greeting(context, self._admit, self._on_lost))
        self._closed = False

    async def close(self) -> None:
        """Accept no more clients, send what is pending (clients that do not read lose it), and disconnect."""
        self._closed = True
        self.sockets.close()
        for connection in list(self._connections):
            connection.close(_CLOSING_SECONDS)
        while self._connections or self._releasing:
            if self._releasing:
                await asyncio.wait(self._releasing)
            else:
                await asyncio.sleep(_CLOSING_SECONDS / 20)
        self._meter.dropped.close()

    def _admit(self, connection: Greeting) -> bool:
        """Count a new connection. Return True if it may stay."""
        config = self._context.config
        per_ip_max = config.max_concurrent_inbound_connections_per_ip
        full = self._meter.active_connections >= config.max_concurrent_inbound_connections
        full |= bool(per_ip_max) and self._by_ip[connection.ip] >= per_ip_max
        self._connections[connection] = None
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
        self._connections.pop(connection, None)
        self._meter.active_connections -= 1
        self._by_ip[connection.ip] -= 1
        if not self._by_ip[connection.ip]:
            del self._by_ip[connection.ip]
        task = asyncio.get_running_loop().create_task(connection.release())
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)
