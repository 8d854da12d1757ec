"""What a task may send of a topic whose cursor may be moved meanwhile."""

from __future__ import annotations

import pytest

from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.copying.range_copies import CursorMoved, SourceMarks
from interpulse.spark.lanes import pack_sequence
from interpulse.wire.cursor_promise import HELD_S, VALID_S


class Source:
    """A broker whose answers take ``seconds``, and its clock."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.now = 100.0
        self.position = Position(3, 4)
        self.asked = 0
        self._seconds = seconds

    async def position_of(self, topic: str) -> Position:
        self.asked += 1
        self.now += self._seconds
        return self.position

    def marks(self, known: dict[str, Position] | None = None) -> SourceMarks:
        return SourceMarks(known or {}, self.position_of, clock=lambda: self.now)


async def test_promise_when_it_is_over_then_the_source_is_asked_again() -> None:
    source = Source()
    marks = source.marks()
    assert await marks.of("t") == Position(3, 4)
    source.position = Position(3, 9)
    source.now += VALID_S / 2
    assert (await marks.of("t"), source.asked) == (Position(3, 4), 1)
    source.now += VALID_S / 2
    assert (await marks.of("t"), source.asked) == (Position(3, 9), 2)
    assert await marks.of("another") == Position(3, 9)


class Reader:
    """An open reader of the topic."""

    def __init__(self, source: Source) -> None:
        self.resubscribed_count = 0
        self._source = source

    async def promised_position(self) -> Position:
        return await self._source.position_of("t")


async def test_promise_when_the_reader_subscribes_again_then_ends() -> None:
    """Policies may have closed the cursor, and opened another one further on."""
    source = Source()
    marks, reader = source.marks(), Reader(source)
    assert [await marks.of("t", reader) for _ in range(2)] == [Position(3, 4)] * 2
    source.position = Position(3, 7)
    assert (await marks.of("t", reader), source.asked) == (Position(3, 4), 1)
    reader.resubscribed_count += 1
    assert [await marks.of("t", reader) for _ in range(2)] == [Position(3, 7)] * 2
    assert source.asked == 2
    await marks.permit("t", pack_sequence(3, 8))
    assert source.asked == 2


async def test_promise_when_another_reader_is_opened_then_is_asked_for_again() -> None:
    source = Source()
    marks = source.marks()
    await marks.of("t", Reader(source))
    await marks.of("t", Reader(source))
    assert source.asked == 2


async def test_promise_counts_from_the_question_not_from_its_answer() -> None:
    """The broker has counted since it got the question."""
    source = Source(seconds=VALID_S)
    marks = source.marks()
    await marks.of("t")
    await marks.of("t")
    assert source.asked == 2
    assert VALID_S < HELD_S


async def test_entry_when_the_cursor_was_moved_past_it_then_is_kept_back() -> None:
    source = Source()
    marks = source.marks()
    await marks.permit("t", pack_sequence(3, 5))
    with pytest.raises(CursorMoved, match="t: the cursor was moved to 3:4 while 3:4 waited to be sent"):
        await marks.permit("t", pack_sequence(3, 4))


async def test_mark_when_the_broker_promises_nothing_then_is_what_the_driver_knew() -> None:
    marks = SourceMarks({"t": Position(2, 1)}, None)
    assert await marks.of("t") == Position(2, 1)
    assert await marks.of("another") == EARLIEST


async def test_mark_when_the_cursor_was_put_back_then_stays() -> None:
    """What was passed over once in a batch is not sent by it."""
    source = Source()
    marks = source.marks({"t": Position(5, 0)})
    assert await marks.of("t") == Position(5, 0)
