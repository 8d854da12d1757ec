"""Both ends of a connection, without the socket. Bytes in, frames out."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from interpulse.model.errors import error_for_wire_code
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import LocalProtocolError, RemoteProtocolError
from interpulse.wire.frames import FRAME_OVERHEAD, MESSAGE_BYTES_MAX, PROTOCOL_VERSION, Frame, FrameDecoder, Received

_TYPES: Final = pb.BaseCommand
_HANDLED_BY_CLIENT: Final = frozenset((_TYPES.CONNECTED, _TYPES.PING, _TYPES.PONG, _TYPES.AUTH_CHALLENGE))
"""The commands that the protocol handles itself once the broker has answered."""
_HANDLED_BY_SERVER: Final = frozenset((_TYPES.CONNECT, _TYPES.PING, _TYPES.PONG))
"""The commands that the protocol handles itself once the client is connected."""
_HELD_FRAMES_MAX: Final = 1000
_REFRESHABLE_SINCE: Final = 14
_CLOSABLE_SINCE: Final = 5
_REDIRECTABLE_SINCE: Final = 20


class KeepAlive:
    """The intervals of a connection, used by both ends in their ``tick``.

    ``interval`` and every ``now`` are seconds of one monotonic clock.
    """

    __slots__ = ("_interval", "heard", "next_tick")

    def __init__(self, interval: float, now: float) -> None:
        self._interval = interval
        self.next_tick = now + interval
        """The end of the interval."""
        self.heard = False
        """True if the peer has sent anything since the last PING. The owner of the connection sets it."""

    def elapsed(self, now: float) -> bool:
        """Return True if the interval has ended, and begin the next one."""
        if now < self.next_tick:
            return False
        self.next_tick = now + self._interval
        return True

    def check_heard(self) -> None:
        """Raise RemoteProtocolError if the peer was silent in the past interval."""
        if not self.heard:
            raise RemoteProtocolError(f"nothing heard for {self._interval:g} s")

    def ping(self) -> bytes:
        """Return a PING. The peer must answer it, or send anything else, within the interval."""
        self.heard = False
        return commands.PING


def _take(outgoing: list[bytes]) -> bytes:
    """Return the collected frames and empty the list."""
    if not outgoing:
        return b""
    taken = b"".join(outgoing)
    outgoing.clear()
    return taken


class _State(Enum):
    GREETING = auto()
    """CONNECT is not answered yet, or at the broker, not received."""
    DECIDING = auto()
    """CONNECT was returned; `ServerProtocol.accept` leads to CONNECTED, `ServerProtocol.refuse` to REFUSED."""
    CONNECTED = auto()
    REFUSED = auto()
    """The broker refused the greeting, or answered with something else."""


class ClientProtocol:
    """The client's side of one connection to a broker.

    ``auth_data`` are the credentials of CONNECT; for later ones see :attr:`wants_credentials`. ``proxy_to_broker_url``
    is host:port of the broker behind a proxy; ``original`` is the client that a proxy speaks for. Times are seconds of
    one monotonic clock.
    """

    def __init__(
        self,
        *,
        client_version: str,
        now: float,
        auth_method: str = "none",
        auth_data: bytes = b"",
        proxy_to_broker_url: str | None = None,
        original: commands.OriginalClient | None = None,
        keep_alive_interval: float = 30.0,
    ) -> None:
        self._client_version = client_version
        self._auth_method = auth_method
        self.wants_credentials = False
        """True if the broker has asked for new credentials: call :meth:`answer_challenge`."""
        self._keep_alive = KeepAlive(keep_alive_interval, now)
        self._request_id = -1
        self._state = _State.GREETING
        self._decoder = FrameDecoder()
        self._connected: pb.CommandConnected | None = None
        greeting = pb.CommandConnect(
            client_version=client_version,
            protocol_version=PROTOCOL_VERSION,
            auth_method_name=auth_method,
            auth_data=auth_data or None,
            feature_flags=pb.FeatureFlags(supports_auth_refresh=True, supports_broker_entry_metadata=True),
            proxy_to_broker_url=proxy_to_broker_url,
        )
        if original is not None:
            original.write(greeting)
        self._outgoing = [commands.encode(greeting)]

    @property
    def is_connected(self) -> bool:
        return self._state is _State.CONNECTED

    @property
    def connected(self) -> pb.CommandConnected:
        """CONNECTED, as the broker sent it."""
        if self._connected is None:
            raise LocalProtocolError("the broker has not answered yet")
        return self._connected

    @property
    def peer_flags(self) -> pb.FeatureFlags:
        return self.connected.feature_flags

    @property
    def protocol_version(self) -> int:
        """The protocol version that both sides support."""
        return self.connected.protocol_version

    @property
    def message_bytes_max(self) -> int:
        """The size of the largest message that this broker accepts."""
        return self.connected.max_message_size or MESSAGE_BYTES_MAX

    def next_request_id(self) -> int:
        """Return a request id that is unique on this connection."""
        self._request_id += 1
        return self._request_id

    def receive_data(self, data: bytes) -> list[Received]:
        """Return the frames and runs to act on, in order. CONNECTED, PING, PONG and AUTH_CHALLENGE are handled here.

        Raise RemoteProtocolError, or during the greeting the error with which the broker refused it. Close the
        connection after that.
        """
        self._keep_alive.heard = True
        received = self._decoder.feed_runs(data)
        if self._state is _State.CONNECTED and not any(map(_is_for_the_protocol, received)):
            return received
        return [event for event in received if not isinstance(event, Frame) or self._is_handed_out(event.command)]

    def _is_handed_out(self, command: pb.BaseCommand) -> bool:
        """Handle a command of the protocol itself. Return True if the caller must act on the command."""
        kind = command.type
        if self._state is _State.REFUSED:
            return False
        if kind == _TYPES.PING:
            self._outgoing.append(commands.PONG)
        elif kind == _TYPES.AUTH_CHALLENGE:
            self.wants_credentials = True
        elif self._state is _State.GREETING:
            self._read_greeting(command)
        elif kind == _TYPES.CONNECTED:
            raise RemoteProtocolError("a second CONNECTED")
        return kind not in _HANDLED_BY_CLIENT

    def _read_greeting(self, command: pb.BaseCommand) -> None:
        if command.type != _TYPES.CONNECTED:
            self._state = _State.REFUSED
            if command.type == _TYPES.ERROR:
                raise error_for_wire_code(command.error.error, command.error.message)
            raise RemoteProtocolError(f"the first command is not CONNECTED but {_TYPES.Type.Name(command.type)}")
        self._connected = command.connected
        self._state = _State.CONNECTED
        self._decoder.raise_limit(self.message_bytes_max + FRAME_OVERHEAD)
        self._decoder.gather_runs(from_broker=True)

    def answer_challenge(self, auth_data: bytes, auth_method: str | None = None) -> None:
        """Send AUTH_RESPONSE. ``auth_method`` None is the method of the greeting."""
        self.wants_credentials = False
        self._outgoing.append(
            commands.encode(
                pb.CommandAuthResponse(
                    client_version=self._client_version,
                    protocol_version=PROTOCOL_VERSION,
                    response=pb.AuthData(auth_method_name=auth_method or self._auth_method, auth_data=auth_data),
                )
            )
        )

    def data_to_send(self) -> bytes:
        """Return the frames of the protocol itself, once: CONNECT first. Call it after every other method."""
        return _take(self._outgoing)

    @property
    def next_tick(self) -> float:
        """The time of the next call of :meth:`tick`."""
        return self._keep_alive.next_tick

    def tick(self, now: float) -> None:
        """Send a PING if it is due. Raise RemoteProtocolError if nothing came since the last one."""
        if not self._keep_alive.elapsed(now):
            return
        self._keep_alive.check_heard()
        ping = self._keep_alive.ping()
        if self._state is _State.CONNECTED:
            self._outgoing.append(ping)


def _is_for_the_protocol(received: Received) -> bool:
    return isinstance(received, Frame) and received.command.type in _HANDLED_BY_CLIENT


class ServerProtocol:
    """The broker's side of one connection to a client.

    ``server_version`` must not be empty, since Pulsar's clients show it. ``feature_flags`` must name only supported
    features. ``keep_alive_interval`` and every ``now`` are seconds of one monotonic clock.
    """

    __slots__ = (
        "_connect",
        "_decoder",
        "_flags",
        "_gathers_runs",
        "_held",
        "_keep_alive",
        "_message_bytes_announced",
        "_outgoing",
        "_server_version",
        "_state",
    )

    def __init__(
        self,
        *,
        server_version: str,
        feature_flags: pb.FeatureFlags,
        now: float,
        keep_alive_interval: float = 30.0,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        message_limit_announced: bool = True,
        gathers_runs: bool = False,
    ) -> None:
        """``gathers_runs``: once the client is accepted, its plain SENDs, ACKs and FLOWs arrive as runs.

        ``message_limit_announced`` False: CONNECTED omits ``message_bytes_max``, because the client will learn it from
        another broker.
        """
        self._server_version = server_version
        self._flags = feature_flags
        self._message_bytes_announced = message_bytes_max if message_limit_announced else None
        self._gathers_runs = gathers_runs
        self._decoder = FrameDecoder(message_bytes_max + FRAME_OVERHEAD)
        self._state = _State.GREETING
        self._connect: pb.CommandConnect | None = None
        self._held: list[Frame] = []
        self._outgoing: list[bytes] = []
        self._keep_alive = KeepAlive(keep_alive_interval, now)

    @property
    def connect(self) -> pb.CommandConnect:
        """CONNECT, as the client sent it."""
        if self._connect is None:
            raise LocalProtocolError("the client has not sent CONNECT yet")
        return self._connect

    @property
    def protocol_version(self) -> int:
        """The protocol version that both sides support."""
        return min(self.connect.protocol_version, PROTOCOL_VERSION)

    @property
    def peer_flags(self) -> pb.FeatureFlags:
        return self.connect.feature_flags

    @property
    def accepts_closing(self) -> bool:
        """True if the client accepts CLOSE_PRODUCER and CLOSE_CONSUMER from a broker. If not, drop its connection."""
        return self.protocol_version >= _CLOSABLE_SINCE

    @property
    def accepts_redirect(self) -> bool:
        """True if the client understands TOPIC_MIGRATED, which version 20 of the protocol added."""
        return self.protocol_version >= _REDIRECTABLE_SINCE

    @property
    def accepts_auth_challenge(self) -> bool:
        return self.protocol_version >= _REFRESHABLE_SINCE and self.peer_flags.supports_auth_refresh

    def receive_data(self, data: bytes) -> list[Received]:
        """Return the frames to act on, in order. Raise RemoteProtocolError: then send the rest and close.

        The first is CONNECT; answer it with :meth:`accept` or :meth:`refuse`. Frames behind it are returned by the next
        call, which may be ``receive_data(b"")``.
        """
        self._keep_alive.heard = True
        frames = self._decoder.feed_runs(data)
        for frame in frames:
            if type(frame) is Frame and frame.command.type in _HANDLED_BY_SERVER:
                break
        else:
            if self._state is _State.CONNECTED and not self._held:
                return frames
        if self._state is _State.CONNECTED and self._held:
            frames, self._held = [*self._held, *frames], []
        # Only a connected client has runs.
        return [frame for frame in frames if type(frame) is not Frame or self._is_handed_out(frame)]

    def _is_handed_out(self, frame: Frame) -> bool:
        """Handle a command of the protocol itself, or hold it. Return True if the caller must act on the command."""
        kind = frame.command.type
        if self._state is _State.REFUSED:
            return False
        if self._state is _State.GREETING:
            if kind != _TYPES.CONNECT:
                raise RemoteProtocolError(f"the first command is not CONNECT but {_TYPES.Type.Name(kind)}")
            self._connect = frame.command.connect
            self._state = _State.DECIDING
            return True
        if kind == _TYPES.CONNECT:
            raise RemoteProtocolError("a second CONNECT")
        if kind == _TYPES.PING:
            self._outgoing.append(commands.PONG)
        elif self._state is _State.DECIDING and kind not in (_TYPES.PONG, _TYPES.AUTH_RESPONSE):
            if len(self._held) >= _HELD_FRAMES_MAX:
                raise RemoteProtocolError("too many commands before the connection was accepted")
            self._held.append(frame)
            return False
        return kind not in _HANDLED_BY_SERVER

    def accept(self) -> None:
        """Accept the client by sending CONNECTED."""
        if self._state is not _State.DECIDING:
            raise LocalProtocolError("no CONNECT waits for an answer")
        self._state = _State.CONNECTED
        if self._gathers_runs:
            self._decoder.gather_runs()
        self._outgoing.append(
            commands.encode(
                pb.CommandConnected(
                    server_version=self._server_version,
                    protocol_version=self.protocol_version,
                    max_message_size=self._message_bytes_announced,
                    feature_flags=self._flags,
                )
            )
        )

    def refuse(self, code: int, message: str) -> None:
        """Refuse the client by sending ERROR. Close the connection after that."""
        if self._state is not _State.DECIDING:
            raise LocalProtocolError("no CONNECT waits for an answer")
        self._state = _State.REFUSED
        self._held.clear()
        self._outgoing.append(commands.error(-1, code, message))

    def challenge(self, auth_method: str, auth_data: bytes = b"PulsarAuthRefresh") -> None:
        """Ask for new credentials, which come as AUTH_RESPONSE."""
        if not self.accepts_auth_challenge:
            raise LocalProtocolError("the client did not announce supports_auth_refresh")
        self._outgoing.append(
            commands.encode(
                pb.CommandAuthChallenge(
                    server_version=self._server_version,
                    protocol_version=self.protocol_version,
                    challenge=pb.AuthData(auth_method_name=auth_method, auth_data=auth_data),
                )
            )
        )

    def data_to_send(self) -> bytes:
        """Return the protocol's own frames, once: CONNECTED, ERROR, PING, PONG. Call it after every other method."""
        return _take(self._outgoing)

    @property
    def next_tick(self) -> float:
        """The time of the next call of :meth:`tick`."""
        return self._keep_alive.next_tick

    def ping(self) -> None:
        """Send a PING, which the client must answer."""
        self._outgoing.append(self._keep_alive.ping())

    def tick(self, now: float, *, reading: bool = True) -> None:
        """Send a PING if it is due. Raise RemoteProtocolError after an interval of silence, or without a greeting.

        ``reading`` False: the broker does not read from this client now, so its silence means nothing.
        """
        if not self._keep_alive.elapsed(now):
            return
        if self._state is not _State.CONNECTED:
            raise RemoteProtocolError("no complete greeting within the keep-alive interval")
        if reading:
            self._keep_alive.check_heard()
        self.ping()
