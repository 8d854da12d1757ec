"""The broker's end of a connection, without the socket.

Bytes in, frames out. States: the first frame must be CONNECT; until the broker accepts it, what follows is held back;
then everything is handed on except PING and PONG. Time comes in through :meth:`ServerProtocol.tick`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import LocalProtocolError, RemoteProtocolError
from interpulse.wire.frames import FRAME_OVERHEAD, MESSAGE_BYTES_MAX, PROTOCOL_VERSION, Frame, FrameDecoder

__all__ = ["ServerProtocol"]

_HELD_FRAMES_MAX: Final = 1000
_REFRESHABLE_SINCE: Final = 14
_CLOSABLE_SINCE: Final = 5


class _State(Enum):
    GREETING = auto()
    DECIDING = auto()
    CONNECTED = auto()
    REFUSED = auto()


class ServerProtocol:
    """One client, seen from the broker.

    ``server_version`` must not be empty; Pulsar's clients show it. ``feature_flags`` must name only what the broker
    does. ``keep_alive_interval`` and every ``now`` are seconds of one monotonic clock.
    """

    __slots__ = (
        "_connect",
        "_decoder",
        "_flags",
        "_heard",
        "_held",
        "_keep_alive_interval",
        "_message_bytes_max",
        "_next_tick",
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
    ) -> None:
        self._server_version = server_version
        self._flags = feature_flags
        self._keep_alive_interval = keep_alive_interval
        self._message_bytes_max = message_bytes_max
        self._decoder = FrameDecoder(message_bytes_max + FRAME_OVERHEAD)
        self._state = _State.GREETING
        self._connect: pb.CommandConnect | None = None
        self._held: list[Frame] = []
        self._outgoing: list[bytes] = []
        self._heard = False
        self._next_tick = now + keep_alive_interval

    @property
    def connect(self) -> pb.CommandConnect:
        """What the client said about itself."""
        if self._connect is None:
            raise LocalProtocolError("the client has not introduced itself yet")
        return self._connect

    @property
    def protocol_version(self) -> int:
        """The version both sides speak."""
        return min(self.connect.protocol_version, PROTOCOL_VERSION)

    @property
    def peer_flags(self) -> pb.FeatureFlags:
        return self.connect.feature_flags

    @property
    def accepts_closing(self) -> bool:
        """Whether the client knows CLOSE_PRODUCER and CLOSE_CONSUMER from a broker; if not, drop its connection."""
        return self.protocol_version >= _CLOSABLE_SINCE

    @property
    def accepts_auth_challenge(self) -> bool:
        return self.protocol_version >= _REFRESHABLE_SINCE and self.peer_flags.supports_auth_refresh

    def receive_data(self, data: bytes) -> list[Frame]:
        """The frames to act on, in order. Raises RemoteProtocolError: send what is left, then close.

        The first is CONNECT; answer it with :meth:`accept` or :meth:`refuse`. Frames that came behind it are handed
        out by the next call, which may be ``receive_data(b"")``.
        """
        self._heard = True
        frames = self._decoder.feed(data)
        for frame in frames:
            if frame.command.type in _OWN_BUSINESS:
                break
        else:
            if self._state is _State.CONNECTED and not self._held:
                return frames
        return self._sift(frames)

    def _sift(self, frames: list[Frame]) -> list[Frame]:
        """The slow path: greeting, keep-alive, and what has to wait for the greeting."""
        handed_out: list[Frame] = []
        if self._state is _State.CONNECTED and self._held:
            frames, self._held = self._held + frames, []
        for frame in frames:
            kind = frame.command.type
            if kind == pb.BaseCommand.PING and self._state is not _State.GREETING:
                self._outgoing.append(commands.PONG)
            elif kind == pb.BaseCommand.PONG and self._state is not _State.GREETING:
                continue
            elif kind == pb.BaseCommand.CONNECT or self._state is _State.GREETING:
                handed_out.append(self._greeted(frame))
            elif self._state is _State.CONNECTED or kind == pb.BaseCommand.AUTH_RESPONSE:
                handed_out.append(frame)
            elif self._state is _State.DECIDING:
                self._hold(frame)
        return handed_out

    def _greeted(self, frame: Frame) -> Frame:
        if self._state is not _State.GREETING:
            raise RemoteProtocolError("a second CONNECT")
        if frame.command.type != pb.BaseCommand.CONNECT:
            raise RemoteProtocolError(f"the first command is not CONNECT but {frame.command.type}")
        self._connect = frame.command.connect
        self._state = _State.DECIDING
        return frame

    def _hold(self, frame: Frame) -> None:
        if len(self._held) >= _HELD_FRAMES_MAX:
            raise RemoteProtocolError("too many commands before the connection was accepted")
        self._held.append(frame)

    def accept(self) -> None:
        """Let the client in: CONNECTED goes out."""
        if self._state is not _State.DECIDING:
            raise LocalProtocolError("no CONNECT waits for an answer")
        self._state = _State.CONNECTED
        self._outgoing.append(
            commands.connected(
                server_version=self._server_version,
                protocol_version=self.protocol_version,
                message_bytes_max=self._message_bytes_max,
                feature_flags=self._flags,
            )
        )

    def refuse(self, code: int, message: str) -> None:
        """Turn the client away: ERROR goes out; close the connection after sending it."""
        if self._state is not _State.DECIDING:
            raise LocalProtocolError("no CONNECT waits for an answer")
        self._state = _State.REFUSED
        self._held.clear()
        self._outgoing.append(commands.error(-1, code, message))

    def challenge(self, auth_method: str, auth_data: bytes = b"PulsarAuthRefresh") -> None:
        """Ask for new credentials; the answer comes as AUTH_RESPONSE."""
        if not self.accepts_auth_challenge:
            raise LocalProtocolError("the client did not announce supports_auth_refresh")
        self._outgoing.append(
            commands.auth_challenge(
                server_version=self._server_version,
                protocol_version=self.protocol_version,
                auth_method=auth_method,
                auth_data=auth_data,
            )
        )

    def data_to_send(self) -> bytes:
        """What the protocol itself has to say, once: CONNECTED, ERROR, PING, PONG. Call it after every other call."""
        if not self._outgoing:
            return b""
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        return data

    @property
    def next_tick(self) -> float:
        """When :meth:`tick` wants to be called."""
        return self._next_tick

    def ping(self) -> None:
        """Find out soon whether the client lives: :attr:`heard` turns true with its next bytes."""
        self._heard = False
        self._outgoing.append(commands.PING)

    @property
    def heard(self) -> bool:
        """Whether anything came since the last PING."""
        return self._heard

    def tick(self, now: float, *, reading: bool = True) -> None:
        """Keep-alive. Raises RemoteProtocolError if the client is silent, or has not greeted within one interval.

        ``reading`` False: we ourselves do not read from this client now, so its silence means nothing.
        """
        if now < self._next_tick:
            return
        self._next_tick = now + self._keep_alive_interval
        if self._state is not _State.CONNECTED:
            raise RemoteProtocolError("no complete greeting within the keep-alive interval")
        if not self._heard and reading:
            raise RemoteProtocolError(f"nothing heard for {self._keep_alive_interval:g} s")
        self.ping()


_OWN_BUSINESS: Final = frozenset({pb.BaseCommand.CONNECT, pb.BaseCommand.PING, pb.BaseCommand.PONG})
