"""The first frame, cut off whatever way it comes."""

from __future__ import annotations

import pytest

from interpulse.proxy.first_frame import FirstFrame
from interpulse.wire import commands
from interpulse.wire.errors import RemoteProtocolError

FRAME = commands.PING


@pytest.mark.parametrize("rest", [b"", b"x", commands.PONG])
def test_first_frame_when_it_comes_byte_by_byte_then_whole_with_what_is_behind_it(rest: bytes) -> None:
    cut = FirstFrame()
    *before, last = (FRAME[index : index + 1] for index in range(len(FRAME)))
    assert [cut.feed(each) for each in before] == [None] * len(before)
    assert cut.feed(last + rest) == (FRAME, rest)


def test_first_frame_when_it_is_too_large_then_refused_by_its_size() -> None:
    with pytest.raises(RemoteProtocolError, match="the limit is"):
        FirstFrame().feed((128 * 1024).to_bytes(4, "big"))
