"""The client's end of a connection, without the socket: greeting, request ids, credentials on demand, keep-alive."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from interpulse.model.errors import PulsarError
from interpulse.model.received_errors import error_for_wire_code
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import LocalProtocolError, RemoteProtocolError
from interpulse.wire.frames import FRAME_OVERHEAD, MESSAGE_BYTES_MAX, PROTOCOL_VERSION, Frame, FrameDecoder

__all__ = ["ClientProtocol"]


class _State(Enum):
    GREETING = auto()
    CONNECTED = auto()
    FAILED = auto()


class ClientProtocol:
    """One broker, seen from a client.

    ``credentials`` is called for CONNECT and again whenever the broker asks. ``proxy_to_broker_url`` names the broker
    (host:port) behind the address that was connected to. Times are seconds of one monotonic clock.
    """

    def __init__(
        self,
        *,
        client_version: str,
        now: float,
        auth_method: str = "none",
        credentials: Callable[[], bytes] = bytes,
        proxy_to_broker_url: str | None = None,
        keep_alive_interval: float = 30.0,
    ) -> None:
        self._client_version = client_version
        self._auth_method = auth_method
        self._credentials = credentials
        self._keep_alive_interval = keep_alive_interval
        self._next_tick = now + keep_alive_interval
        self._heard = False
        self._request_id = -1
        self._state = _State.GREETING
        self._decoder = FrameDecoder()
        self._connected: pb.CommandConnected | None = None
        greeting = commands.connect(
            client_version=client_version,
            protocol_version=PROTOCOL_VERSION,
            feature_flags=pb.FeatureFlags(supports_auth_refresh=True, supports_broker_entry_metadata=True),
            auth_method=auth_method,
            auth_data=credentials(),
            proxy_to_broker_url=proxy_to_broker_url,
        )
        self._outgoing = [greeting]

    @property
    def is_connected(self) -> bool:
        return self._state is _State.CONNECTED

    @property
    def connected(self) -> pb.CommandConnected:
        """What the broker said about itself."""
        if self._connected is None:
            raise LocalProtocolError("the broker has not answered yet")
        return self._connected

    @property
    def peer_flags(self) -> pb.FeatureFlags:
        return self.connected.feature_flags

    @property
    def protocol_version(self) -> int:
        """The version both sides speak."""
        return self.connected.protocol_version

    @property
    def message_bytes_max(self) -> int:
        """The largest message this broker takes."""
        return self.connected.max_message_size or MESSAGE_BYTES_MAX

    def next_request_id(self) -> int:
        """A number that no other request of this connection has."""
        self._request_id += 1
        return self._request_id

    def receive_data(self, data: bytes) -> list[Frame]:
        """The frames to act on, in order; CONNECTED, PING, PONG and AUTH_CHALLENGE are dealt with here.

        Raises RemoteProtocolError, or during the greeting the error that the broker refused it with. Close after that.
        """
        self._heard = True
        frames = self._decoder.feed(data)
        if self._state is _State.CONNECTED and not any(frame.command.type in _OWN_BUSINESS for frame in frames):
            return frames
        return [frame for frame in frames if not self._consume(frame.command)]

    def _consume(self, command: pb.BaseCommand) -> bool:
        """Whether the command was for the protocol itself."""
        kind = command.type
        if kind == pb.BaseCommand.PING:
            self._outgoing.append(commands.PONG)
        elif kind == pb.BaseCommand.AUTH_CHALLENGE:
            self._answer_challenge()
        elif self._state is _State.GREETING:
            self._greet(command)
        elif kind == pb.BaseCommand.CONNECTED:
            raise RemoteProtocolError("a second CONNECTED")
        else:
            return kind == pb.BaseCommand.PONG
        return True

    def _greet(self, command: pb.BaseCommand) -> None:
        if command.type == pb.BaseCommand.ERROR:
            self._state = _State.FAILED
            raise _refusal(command.error)
        if command.type != pb.BaseCommand.CONNECTED:
            self._state = _State.FAILED
            raise RemoteProtocolError(f"the first command is not CONNECTED but {command.type}")
        self._connected = command.connected
        self._state = _State.CONNECTED
        self._decoder.raise_limit(self.message_bytes_max + FRAME_OVERHEAD)

    def _answer_challenge(self) -> None:
        self._outgoing.append(
            commands.auth_response(
                client_version=self._client_version,
                protocol_version=PROTOCOL_VERSION,
                auth_method=self._auth_method,
                auth_data=self._credentials(),
            )
        )

    def data_to_send(self) -> bytes:
        """What the protocol itself has to say, once: CONNECT first. Call it after every other call."""
        if not self._outgoing:
            return b""
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        return data

    @property
    def next_tick(self) -> float:
        """When :meth:`tick` wants to be called."""
        return self._next_tick

    def tick(self, now: float) -> None:
        """Keep-alive. Raises RemoteProtocolError if nothing at all came since the last PING."""
        if now < self._next_tick:
            return
        self._next_tick = now + self._keep_alive_interval
        if not self._heard:
            raise RemoteProtocolError(f"nothing heard for {self._keep_alive_interval:g} s")
        self._heard = False
        if self._state is _State.CONNECTED:
            self._outgoing.append(commands.PING)


def _refusal(error: pb.CommandError) -> PulsarError:
    return error_for_wire_code(error.error, error.message)


_OWN_BUSINESS: Final = frozenset(
    {pb.BaseCommand.PING, pb.BaseCommand.PONG, pb.BaseCommand.AUTH_CHALLENGE, pb.BaseCommand.CONNECTED}
)
