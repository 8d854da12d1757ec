"""The first moments of a client's connection: CONNECT decides its use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

from interpulse.authentication.authentication import BadCredentials
from interpulse.authentication.certificates import peer_certificate
from interpulse.client.config import ClientConfig
from interpulse.client.credentials import Credentials
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import NotAllowed, PulsarError, ServiceNotReady
from interpulse.proxy.access import ProxyAccess
from interpulse.proxy.authenticated_client import AuthenticatedClient
from interpulse.proxy.brokers import Brokers
from interpulse.proxy.dialer import Dialer, TargetRefused, TargetUnreachable
from interpulse.proxy.forwarding import broker_connect, broker_connect_for, forwarded_credentials
from interpulse.proxy.lookup.answers import Answers
from interpulse.proxy.lookup.lookup_session import LookupSession
from interpulse.proxy.lookup.questions import Questions
from interpulse.proxy.meter import ProxyMeter
from interpulse.proxy.relay import Relay
from interpulse.proxy.targets import TargetRules
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import Frame
from interpulse.wire.protocols import ServerProtocol

_logger = logging.getLogger(__name__)

_CLOSING_SECONDS: Final = 1.0
_TARGET_LENGTH_MAX: Final = 200
"""The most characters of a client's target in the log."""
_CONNECT_BYTES_MAX: Final = 128 * 1024
"""Enough for large tokens, for clients that have not authenticated yet."""


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
    new_protocol: Callable[[float], ServerProtocol]
    new_config: Callable[[Credentials | None], ClientConfig]
    """Returns settings for connections to brokers, with these credentials."""
    credentials_forwarded: bool
    """True if the credentials of unauthenticated clients are forwarded."""
    tls_with_brokers: bool
    idle_seconds: float
    access: ProxyAccess | None = None
    """None if clients need not authenticate."""


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
        self,
        context: GreetingContext,
        admitted: Callable[[Greeting], bool],
        on_lost: Callable[[Greeting], None],
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
            await self._authenticate(connect)
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

    async def _authenticate(self, connect: pb.CommandConnect) -> None:
        if self._context.access is not None:
            shown = peer_certificate(self._transport)
            self._client = await AuthenticatedClient.of(self._context.access, connect, shown)

    async def _broker_greeting(self, connect: pb.CommandConnect) -> bytes:
        access, client = self._context.access, self._client
        if access is None or client is None:
            return broker_connect(connect, credentials_forwarded=self._context.credentials_forwarded)
        original = await client.original()
        return broker_connect_for(original, connect, access.own.method, await access.own.secret())

    async def _relay(self, connect: pb.CommandConnect, rest: bytes) -> None:
        context, endpoint = self._context, connect.proxy_to_broker_url
        greeting = await self._broker_greeting(connect)
        relay = Relay(context.meter, context.idle_seconds, self._gone)
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
            self._pool = ConnectionPool(context.new_config(access.own.credentials), access.own.issued, client)
            credentials = None
        else:
            credentials = forwarded_credentials(connect) if context.credentials_forwarded else None
            self._pool = ConnectionPool(context.new_config(credentials))
        questions = Questions(context.brokers, context.rules, self._pool, tls=context.tls_with_brokers)
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
