"""The cursor against a naive model that keeps a set of acknowledged entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpulse.broker.live.cursor import Cursor
from interpulse.model.ids import EARLIEST, Position
from interpulse.storage.cursors import JSON_CURSORS, CursorRecord

SIZES = {3: 6, 5: 1, 8: 7}
ENTRIES = [Position(ledger, entry) for ledger, size in SIZES.items() for entry in range(size)]
LAST = ENTRIES[-1]


class FixedLedgers:
    """Ledgers 3, 5 and 8, all durable."""

    def next_position(self, after: Position) -> Position | None:
        return next((each for each in ENTRIES if each > after), None)

    def entries_between(self, after: Position, upto: Position) -> int:
        return sum(1 for each in ENTRIES if after < each <= upto)


LOG: Any = FixedLedgers()


def new_cursor(mark_delete: Position = EARLIEST) -> Cursor:
    return Cursor(LOG, mark_delete)


class Model:
    def __init__(self) -> None:
        self.acknowledged: set[Position] = set()
        self.masks: dict[Position, int] = {}

    def acknowledge(self, position: Position) -> None:
        self.acknowledged.add(position)
        self.masks.pop(position, None)

    def acknowledge_all(self, positions: Iterable[Position]) -> None:
        for each in positions:
            if each in ENTRIES:
                self.acknowledge(each)

    def acknowledge_ranges(self, ranges: Iterable[tuple[int, int, int]]) -> None:
        for ledger, first, last in ranges:
            self.acknowledge_all(Position(ledger, entry) for entry in range(first, last + 1))

    def acknowledge_part(self, position: Position, mask: int) -> None:
        if position not in self.acknowledged:
            self.masks[position] = self.masks.get(position, mask) & mask
            if not self.masks[position]:
                self.acknowledge(position)

    def acknowledge_upto(self, position: Position) -> None:
        for each in ENTRIES:
            if each <= position:
                self.acknowledge(each)

    def reset(self, position: Position) -> None:
        self.acknowledged = {each for each in ENTRIES if each <= position}
        self.masks = {}


positions = st.sampled_from(ENTRIES)
ranges = st.builds(
    lambda first, last: (first.ledger, first.entry, min(last, SIZES[first.ledger] - 1)), positions, st.integers(0, 6)
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("acknowledge"), positions),
        st.tuples(st.just("acknowledge_all"), st.lists(st.one_of(positions, st.just(Position(3, -1))))),
        st.tuples(st.just("acknowledge_ranges"), st.lists(ranges, max_size=4)),
        st.tuples(st.just("acknowledge_part"), positions, st.integers(0, 7)),
        st.tuples(st.just("acknowledge_upto"), positions),
        st.tuples(st.just("reset"), st.sampled_from([EARLIEST, Position(3, -1), Position(5, -1), *ENTRIES])),
    ),
    max_size=40,
)


def assert_same(cursor: Cursor, model: Model) -> None:
    for each in ENTRIES:
        assert cursor.is_acknowledged(each) == (each in model.acknowledged), each
        assert cursor.waiting_mask(each) == model.masks.get(each, 0)
    assert cursor.backlog(LAST) == len(ENTRIES) - len(model.acknowledged)
    for start in range(len(ENTRIES) + 1):
        left = [each for each in ENTRIES[start:] if each not in model.acknowledged]
        assert list(cursor.unacknowledged_of(ENTRIES[start:])) == left
    assert cursor.has_parts == bool(model.masks)
    following = next((each for each in ENTRIES if each > cursor.mark_delete), None)
    assert following not in model.acknowledged
    touched = max(model.acknowledged | set(model.masks), default=EARLIEST)
    assert not any(cursor.untouched_from(each) for each in ENTRIES if each <= touched)


@given(steps)
@settings(max_examples=300)
def test_cursor_whatever_is_acknowledged_then_it_agrees_with_a_set(walk: list[tuple[str, ...]]) -> None:
    cursor, model = new_cursor(), Model()
    for name, *arguments in walk:
        getattr(cursor, name)(*arguments)
        getattr(model, name)(*arguments)
    assert_same(cursor, model)


@given(steps)
@settings(max_examples=150)
def test_cursor_when_stored_and_restored_then_nothing_is_forgotten(walk: list[tuple[str, ...]]) -> None:
    cursor, model = new_cursor(), Model()
    for name, *arguments in walk:
        getattr(cursor, name)(*arguments)
        getattr(model, name)(*arguments)
    raw = JSON_CURSORS.encode("sub", cursor.record(properties={"a": "b"}, replicate_state=True))
    record = JSON_CURSORS.decode("sub", raw)
    assert record.properties == {"a": "b"}
    assert record.replicate_state
    assert record.resets == Cursor.restore(LOG, record).resets == sum(name == "reset" for name, *_ in walk)
    assert_same(Cursor.restore(LOG, record), model)


def test_cursor_when_an_acknowledged_entry_is_acknowledged_again_then_nothing_changes() -> None:
    cursor = new_cursor()
    assert cursor.acknowledge(Position(3, 2))
    changes = cursor.changes
    assert not cursor.acknowledge(Position(3, 2))
    assert not cursor.acknowledge_upto(EARLIEST)
    assert not cursor.acknowledge(Position(3, -1))
    assert not cursor.acknowledge_part(Position(3, 2), 1)
    assert cursor.changes == changes


def test_cursor_when_ranges_are_acknowledged_again_then_nothing_changes() -> None:
    cursor = new_cursor()
    cursor.acknowledge_ranges([(3, 0, 1), (3, 4, 5), (8, 2, 6)])
    assert (cursor.mark_delete, list(cursor.ranges())) == (Position(3, 1), [(3, 4, 5), (8, 2, 6)])
    changes = cursor.changes
    cursor.acknowledge_ranges([(3, 0, 1), (8, 3, 3), (3, 5, 4), (1, 0, 9)])
    assert cursor.changes == changes


def test_cursor_when_a_range_covers_many_parts_of_batches_then_no_part_is_left() -> None:
    cursor = new_cursor(Position(3, -1))
    for position in ENTRIES:
        cursor.acknowledge_part(position, 0b10)
    cursor.acknowledge_ranges([(3, 1, 4), (8, 0, 6)])
    assert [position for position, _ in cursor.batches()] == [Position(3, 0), Position(3, 5), Position(5, 0)]


def test_cursor_when_the_last_compacted_entries_are_acknowledged_as_a_range_then_it_moves_on() -> None:
    cursor = new_cursor()
    cursor.begin(compacted=True)
    cursor.hand_out_compacted([Position(1, 4), Position(1, 7)])
    cursor.compacted_read()
    cursor.acknowledge_ranges([(1, 4, 4), (3, 0, 5)])
    assert cursor.mark_delete == EARLIEST
    cursor.acknowledge_ranges([(1, 0, 9)])
    assert cursor.mark_delete == Position(3, 5)


def test_cursor_when_the_last_message_of_a_batch_is_acknowledged_then_the_entry_is() -> None:
    cursor = new_cursor()
    assert not cursor.acknowledge_part(Position(3, 0), 0b110)
    assert cursor.acknowledge_part(Position(3, 0), 0b001)
    assert cursor.mark_delete == Position(3, 0)


def test_cursor_when_entries_that_never_existed_were_acknowledged_then_it_still_moves_on() -> None:
    cursor = new_cursor()
    cursor.acknowledge(Position(5, 7))
    cursor.acknowledge_upto(Position(3, 5))
    cursor.acknowledge(Position(5, 0))
    cursor.acknowledge(Position(8, 0))
    assert cursor.mark_delete == Position(8, 0)
    assert cursor.backlog(LAST) == SIZES[8] - 1


def test_record_by_default_stands_before_every_entry() -> None:
    assert Cursor.restore(LOG, JSON_CURSORS.decode("sub", JSON_CURSORS.encode("sub", CursorRecord()))).backlog(
        LAST
    ) == len(ENTRIES)


@pytest.mark.parametrize(
    "raw", [b"{}", b"[]", b"null", b"x", b'{"markDeletePosition":"3"}', b'{"markDeletePosition":3}']
)
def test_record_when_it_is_none_then_loading_fails(raw: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        JSON_CURSORS.decode("sub", raw)


def test_cursor_when_something_is_acknowledged_then_only_what_follows_it_is_untouched() -> None:
    cursor = new_cursor()
    assert cursor.untouched_from(Position(3, 0))
    cursor.acknowledge(Position(3, 1))
    cursor.acknowledge_part(Position(3, 3), 0b10)
    assert [cursor.untouched_from(Position(3, entry)) for entry in range(5)] == [False] * 4 + [True]
    cursor.reset(Position(3, 0))
    assert [cursor.untouched_from(Position(3, entry)) for entry in range(2)] == [False, True]


GONE = [Position(1, 3), Position(1, 7)]
"""What only compaction has of a ledger before all of the log."""


def reader_of_compacted(*handed_out: Position, all_of_it: bool = True) -> Cursor:
    cursor = new_cursor(Position(1, 2))
    cursor.begin(compacted=True)
    cursor.hand_out_compacted(handed_out)
    if all_of_it:
        cursor.compacted_read()
    return cursor


def state(cursor: Cursor) -> tuple[Position, list[tuple[int, int, int]], int]:
    return cursor.mark_delete, list(cursor.ranges()), cursor.backlog(LAST)


@pytest.mark.parametrize("order", [*permutations([*GONE, Position(3, 0), Position(3, 1)])])
def test_cursor_when_all_is_acknowledged_that_only_compaction_has_then_it_goes_on_to_the_log(
    order: tuple[Position, ...],
) -> None:
    cursor = reader_of_compacted(*GONE)
    for position in order:
        cursor.acknowledge(position)
    assert state(cursor) == (Position(3, 1), [], len(ENTRIES) - 2)


def test_cursor_when_all_that_only_compaction_has_is_acknowledged_together_then_it_goes_on_to_the_log() -> None:
    cursor = reader_of_compacted(*GONE)
    cursor.acknowledge_all([*GONE, Position(3, 0), Position(3, 1)])
    assert state(cursor) == (Position(3, 1), [], len(ENTRIES) - 2)


@pytest.mark.parametrize(
    ("handed_out", "all_of_it", "acknowledged", "expected"),
    [
        (GONE, True, GONE[0], (GONE[0], [(3, 0, 1)], 12)),
        (GONE, True, GONE[1], (Position(1, 2), [(1, 7, 7), (3, 0, 1)], 12)),
        (GONE[:1], False, GONE[0], (GONE[0], [(3, 0, 1)], 12)),
    ],
    ids=["the second waits", "the first waits", "the second was not handed out yet"],
)
def test_cursor_while_something_waits_that_only_compaction_has_then_the_mark_stays_before_it(
    handed_out: list[Position],
    all_of_it: bool,
    acknowledged: Position,
    expected: tuple[Position, list[tuple[int, int, int]], int],
) -> None:
    cursor = reader_of_compacted(*handed_out, all_of_it=all_of_it)
    for position in [acknowledged, Position(3, 0), Position(3, 1)]:
        assert cursor.acknowledge(position)
    assert state(cursor) == expected


def test_cursor_when_what_was_acknowledged_is_handed_out_from_compaction_then_it_does_not_wait() -> None:
    cursor = reader_of_compacted(all_of_it=False)
    cursor.acknowledge(GONE[1])
    cursor.hand_out_compacted(GONE)
    cursor.compacted_read()
    cursor.acknowledge(Position(3, 0))
    cursor.acknowledge(GONE[0])
    assert state(cursor) == (Position(3, 0), [], len(ENTRIES) - 1)


@pytest.mark.parametrize(("upto", "mark"), [(GONE[0], GONE[0]), (GONE[1], Position(3, 1))])
def test_cursor_when_acknowledged_upto_what_only_compaction_has_then_what_follows_it_still_waits(
    upto: Position, mark: Position
) -> None:
    cursor = reader_of_compacted(*GONE)
    cursor.acknowledge(Position(3, 0))
    cursor.acknowledge(Position(3, 1))
    assert cursor.acknowledge_upto(upto)
    assert cursor.mark_delete == mark


def test_cursor_when_the_next_reader_takes_the_log_as_it_is_then_nothing_waits_for_compaction() -> None:
    cursor = reader_of_compacted(*GONE)
    cursor.acknowledge(Position(3, 0))
    cursor.begin(compacted=False)
    assert cursor.mark_delete == Position(3, 0)
    cursor.hand_out_compacted(GONE)
    cursor.compacted_read()
    cursor.acknowledge(Position(3, 2))
    cursor.acknowledge(Position(3, 1))
    assert cursor.mark_delete == Position(3, 2)


def test_cursor_when_compaction_is_read_again_then_what_it_has_waits_again() -> None:
    cursor = reader_of_compacted(*GONE)
    cursor.begin(compacted=True)
    cursor.hand_out_compacted(GONE[:1])
    cursor.acknowledge(GONE[0])
    cursor.acknowledge(Position(3, 0))
    assert cursor.mark_delete == GONE[0], "the rest is yet to come"


@pytest.mark.parametrize(
    ("compacted_upto", "mark"), [(Position(1, 7), Position(1, 2)), (Position(1, 2), Position(3, 1))]
)
def test_cursor_when_restored_before_what_only_compaction_has_then_the_mark_stays(
    compacted_upto: Position, mark: Position
) -> None:
    record = CursorRecord(Position(1, 2), ranges=((3, 0, 1),))
    assert Cursor.restore(LOG, record, compacted_upto=compacted_upto).mark_delete == mark


def test_cursor_when_restored_ranges_are_not_in_the_log_then_only_those_are_left_out() -> None:
    """A ledger that was trimmed, entries behind the end of a ledger, and a ledger that is not there."""
    ranges = ((1, 3, 7), (3, 2, 3), (3, 6, 9), (8, 1, 1), (9, 0, 4))
    cursor = Cursor.restore(LOG, CursorRecord(Position(3, 0), ranges=ranges))
    assert state(cursor) == (Position(3, 0), [(3, 2, 3), (8, 1, 1)], len(ENTRIES) - 4)


def test_cursor_when_acknowledged_upto_an_entry_then_ranges_of_every_ledger_before_it_are_absorbed() -> None:
    cursor = new_cursor()
    for position in (Position(3, 2), Position(3, 4), Position(5, 0), Position(8, 3), Position(8, 5)):
        cursor.acknowledge(position)
    assert cursor.acknowledge_upto(Position(8, 0))
    assert state(cursor) == (Position(8, 0), [(8, 3, 3), (8, 5, 5)], 4)


def test_cursor_when_asked_for_several_entries_then_those_that_are_not_acknowledged() -> None:
    cursor = new_cursor(Position(3, 1))
    assert cursor.unacknowledged_of(ENTRIES[:4]) == ENTRIES[2:4]
    cursor.acknowledge(Position(3, 4))
    cursor.acknowledge(Position(8, 1))
    assert cursor.unacknowledged_of([]) == []
    assert cursor.unacknowledged_of(ENTRIES[1:6]) == [Position(3, 2), Position(3, 3), Position(3, 5)]
    assert cursor.unacknowledged_of(ENTRIES[2:4]) == ENTRIES[2:4]
    assert cursor.unacknowledged_of(ENTRIES[:2]) == []
    assert cursor.unacknowledged_of(ENTRIES[-2:]) == ENTRIES[-2:]


def test_cursor_with_each_change_counts_on() -> None:
    cursor = new_cursor()
    counts = [cursor.changes]
    for change in (
        lambda: cursor.acknowledge(Position(3, 0)),
        lambda: cursor.acknowledge_part(Position(3, 1), 0b10),
        lambda: cursor.acknowledge_part(Position(3, 1), 0b01),
        lambda: cursor.acknowledge(Position(3, 4)),
        lambda: cursor.acknowledge_upto(Position(3, 2)),
        lambda: cursor.reset(Position(3, 2)),
    ):
        change()
        counts.append(cursor.changes)
    assert all(later > earlier for earlier, later in pairwise(counts)), counts


FULL_RECORD = CursorRecord(
    Position(3, 1),
    ranges=((3, 3, 4), (8, 0, 0)),
    batches=((Position(3, 2), (5,)),),
    properties={"a": "b"},
    replicate_state=True,
    by_policy=True,
    last_active_ms=7,
)


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (CursorRecord(Position(3, 1)), '{"markDeletePosition":"3:1"}'),
        (CursorRecord(Position(3, 1), last_active_ms=0), '{"markDeletePosition":"3:1","lastActive":0}'),
        (
            FULL_RECORD,
            '{"markDeletePosition":"3:1","individuallyDeletedMessages":[[3,3,4],[8,0,0]],'
            '"batchedEntryDeletionIndexInfo":{"3:2":[5]},"cursorProperties":{"a":"b"},'
            '"replicated":true,"openedByPolicy":true,"lastActive":7}',
        ),
    ],
)
def test_record_when_stored_then_bytes_are_as_documented_and_load_again(record: CursorRecord, text: str) -> None:
    assert JSON_CURSORS.encode("sub", record) == text.encode()
    assert JSON_CURSORS.decode("sub", text.encode()) == record


def test_record_of_a_restored_cursor_is_the_one_it_came_from() -> None:
    cursor = Cursor.restore(LOG, FULL_RECORD)
    assert cursor.record(properties={"a": "b"}, replicate_state=True, by_policy=True, last_active_ms=7) == FULL_RECORD
    assert cursor.record() == replace(
        FULL_RECORD, properties={}, replicate_state=False, by_policy=False, last_active_ms=None
    )


def test_record_of_a_new_partition_keeps_what_clients_set_and_nothing_acknowledged() -> None:
    assert FULL_RECORD.of_new_partition(Position(9, -1)) == CursorRecord(
        Position(9, -1), properties={"a": "b"}, replicate_state=True
    )
