"""A blocking socket that speaks frames: what tests use to say things no client would."""

from __future__ import annotations

import select
import socket
from types import TracebackType
from typing import Any, Self

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry
from interpulse.wire.frames import Frame, FrameDecoder
from tests.support import commands

SECONDS_MAX = 60


class RawClient:
    """One connection to the binary port."""

    def __init__(self, service_url: str, *, greet: bool = True) -> None:
        host, _, port = service_url.removeprefix("pulsar://").rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=SECONDS_MAX)
        self._decoder = FrameDecoder()
        self._frames: list[Frame] = []
        if greet:
            self.send(commands.connect(client_version="raw", protocol_version=21, feature_flags=pb.FeatureFlags()))
            assert self.receive().command.connected.server_version.startswith("Pulsar Server")

    def send(self, *frames: bytes) -> None:
        self._socket.sendall(b"".join(frames))

    def receive(self) -> Frame:
        """The next frame; EOFError if the broker closed the connection."""
        while not self._frames:
            data = self._socket.recv(65536)
            if not data:
                raise EOFError
            self._frames = self._decoder.feed(data)
        return self._frames.pop(0)

    def wait(self, seconds: float) -> bool:
        """Whether something to receive is there, or comes within that time."""
        return bool(self._frames or select.select([self._socket], [], [], seconds)[0])

    def ask(self, frame: bytes) -> Any:
        """Send one request and give the content of the next answer."""
        self.send(frame)
        return self.answer().command.ListFields()[1][1]

    def answer(self) -> Frame:
        """The next frame that does not ask whether we are here; such questions are answered."""
        while (frame := self.receive()).command.type == pb.BaseCommand.PING:
            self.send(commands.PONG)
        return frame

    def closed_by_broker(self) -> bool:
        """Whether the broker hangs up, without saying anything before."""
        try:
            self.receive()
        except (EOFError, ConnectionResetError):
            return True
        return False

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def entry(payload: bytes = b"x", **metadata: Any) -> bytes:
    """A stored entry with one message."""
    values = {"producer_name": "raw", "sequence_id": 0, "publish_time": 1, **metadata}
    return build_entry(pb.MessageMetadata(**values).SerializeToString(), payload)
