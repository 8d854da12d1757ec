"""One write per turn: small pieces joined, large ones untouched, order kept."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.broker.binary.transport.output import Output


class Pipe(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[list[bytes]] = []
        self.closing = False

    def write(self, data: Any) -> None:
        self.writes.append([data])

    def writelines(self, list_of_data: Any) -> None:
        self.writes.append(list(list_of_data))

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return 7


@pytest.fixture
async def pipe() -> Pipe:
    return Pipe()


@pytest.fixture
async def output(pipe: Pipe) -> Output:
    return Output(asyncio.get_running_loop(), pipe)


async def test_frames_when_sent_in_one_turn_then_written_once(output: Output, pipe: Pipe) -> None:
    output.send(b"a")
    output.send_pieces([b"b", b"c"], 2)
    assert pipe.writes == []
    assert (output.bytes_collected, output.bytes_waiting) == (3, 10)
    await asyncio.sleep(0)
    assert pipe.writes == [[b"abc"]]
    assert output.bytes_collected == 0


async def test_frames_when_some_are_large_then_only_small_ones_are_joined(output: Output, pipe: Pipe) -> None:
    large = bytes(200_000)
    for frame in (b"a", b"b", large, large, b"c"):
        output.send(frame)
    output.flush()
    assert pipe.writes == [[b"ab", large, large, b"c"]]
    assert pipe.writes[0][1] is large


async def test_frames_when_transport_is_closing_then_dropped(output: Output, pipe: Pipe) -> None:
    pipe.closing = True
    output.send(b"a")
    output.flush()
    output.flush()
    assert pipe.writes == []
