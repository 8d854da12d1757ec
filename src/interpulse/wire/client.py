"""The client's end of a connection, without the socket: greeting, request ids, credentials, keep-alive."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from interpulse.model.errors import error_for_wire_code
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import LocalProtocolError, RemoteProtocolError
from interpulse.wire.frames import FRAME_OVERHEAD, MESSAGE_BYTES_MAX, PROTOCOL_VERSION, Frame, FrameDecoder, Received
from interpulse.wire.keep_alive import KeepAlive


class _State(Enum):
    GREETING = auto()
    """CONNECT is sent, and the broker has not answered yet."""
    CONNECTED = auto()
    FAILED = auto()
    """The broker refused the greeting, or answered with something else."""


_TYPES: Final = pb.BaseCommand
_NOT_HANDED_OUT: Final = frozenset((_TYPES.CONNECTED, _TYPES.PING, _TYPES.PONG, _TYPES.AUTH_CHALLENGE))
"""The commands that the protocol handles itself once the broker has answered."""


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
        self._wants_credentials = False
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
        if self._state is _State.FAILED:
            return False
        if kind == _TYPES.PING:
            self._outgoing.append(commands.PONG)
        elif kind == _TYPES.AUTH_CHALLENGE:
            self._wants_credentials = True
        elif self._state is _State.GREETING:
            self._read_greeting(command)
        elif kind == _TYPES.CONNECTED:
            raise RemoteProtocolError("a second CONNECTED")
        return kind not in _NOT_HANDED_OUT

    def _read_greeting(self, command: pb.BaseCommand) -> None:
        if command.type != _TYPES.CONNECTED:
            self._state = _State.FAILED
            if command.type == _TYPES.ERROR:
                raise error_for_wire_code(command.error.error, command.error.message)
            raise RemoteProtocolError(f"the first command is not CONNECTED but {_TYPES.Type.Name(command.type)}")
        self._connected = command.connected
        self._state = _State.CONNECTED
        self._decoder.raise_limit(self.message_bytes_max + FRAME_OVERHEAD)
        self._decoder.gather_runs(from_broker=True)

    @property
    def wants_credentials(self) -> bool:
        """True if the broker has asked for new credentials: call :meth:`answer_challenge`."""
        return self._wants_credentials

    def answer_challenge(self, auth_data: bytes, auth_method: str | None = None) -> None:
        """Send AUTH_RESPONSE. ``auth_method`` None is the method of the greeting."""
        self._wants_credentials = False
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
        if not self._outgoing:
            return b""
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        return data

    @property
    def next_tick(self) -> float:
        """The time of the next call of :meth:`tick`."""
        return self._keep_alive.next_tick

    def tick(self, now: float) -> None:
        """Send a PING if it is due. Raise RemoteProtocolError if nothing came since the last one."""
        if not self._keep_alive.elapsed(now):
            return
        self._keep_alive.check_heard()
        self._keep_alive.heard = False
        if self._state is _State.CONNECTED:
            self._outgoing.append(commands.PING)


def _is_for_the_protocol(received: Received) -> bool:
    return isinstance(received, Frame) and received.command.type in _NOT_HANDED_OUT
