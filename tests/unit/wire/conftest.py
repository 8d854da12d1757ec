"""Reading back what a constructor wrote."""

from collections.abc import Callable

import pytest

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import FrameDecoder


@pytest.fixture
def read() -> Callable[[bytes], pb.BaseCommand]:
    def read_command(data: bytes) -> pb.BaseCommand:
        (frame,) = FrameDecoder().feed(data)
        return frame.command

    return read_command
