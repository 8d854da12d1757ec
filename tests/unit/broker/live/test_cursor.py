"""The cursor against a naive model that keeps a set of acknowledged entries."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpulse.broker.live.cursor import Cursor, CursorRecord, EntryNumbers
from interpulse.model.ids import EARLIEST, Position

SIZES = {3: 6, 5: 1, 8: 7}
ENTRIES = [Position(ledger, entry) for ledger, size in SIZES.items() for entry in range(size)]
LAST = ENTRIES[-1]


class FixedLedgers:
    """Ledgers 3, 5 and 8, all durable."""

    def next_position(self, after: Position) -> Position | None:
        return next((each for each in ENTRIES if each > after), None)

    def entries_between(self, after: Position, upto: Position) -> int:
        return sum(1 for each in ENTRIES if after < each <= upto)


def new_cursor(mark_delete: Position = EARLIEST) -> Cursor:
    return Cursor(FixedLedgers(), mark_delete)


class Model:
    def __init__(self) -> None:
        self.acknowledged: set[Position] = set()
        self.masks: dict[Position, int] = {}

    def acknowledge(self, position: Position) -> None:
        self.acknowledged.add(position)
        self.masks.pop(position, None)

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
steps = st.lists(
    st.one_of(
        st.tuples(st.just("acknowledge"), positions),
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
    raw = cursor.record({"a": "b"}, replicate_state=True).dump()
    record = CursorRecord.load(raw)
    assert record.properties == {"a": "b"}
    assert record.replicate_state
    assert_same(Cursor.restore(FixedLedgers(), record), model)


@given(st.lists(st.tuples(st.sampled_from(["add", "remove"]), st.integers(0, 30))))
def test_entry_numbers_whatever_is_added_and_removed_then_they_agree_with_a_set(walk: list[tuple[str, int]]) -> None:
    numbers, model = EntryNumbers(), set()
    for name, value in walk:
        if name == "add":
            assert numbers.add(value) == (value not in model)
            model.add(value)
        else:
            assert numbers.remove_through(value) == sum(1 for each in model if each <= value)
            model = {each for each in model if each > value}
        assert {each for each in range(32) if each in numbers} == model
        assert numbers.count() == len(model)
        assert bool(numbers) == bool(model)
        assert all(end + 1 < start for end, start in zip(numbers.ends, numbers.starts[1:], strict=False))


def test_cursor_when_an_acknowledged_entry_is_acknowledged_again_then_nothing_changes() -> None:
    cursor = new_cursor()
    assert cursor.acknowledge(Position(3, 2))
    changes = cursor.changes
    assert not cursor.acknowledge(Position(3, 2))
    assert not cursor.acknowledge_upto(EARLIEST)
    assert not cursor.acknowledge(Position(3, -1))
    assert not cursor.acknowledge_part(Position(3, 2), 1)
    assert cursor.changes == changes


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
    assert Cursor.restore(FixedLedgers(), CursorRecord.load(CursorRecord().dump())).backlog(LAST) == len(ENTRIES)


@pytest.mark.parametrize(
    "raw", [b"{}", b"[]", b"null", b"x", b'{"markDeletePosition":"3"}', b'{"markDeletePosition":3}']
)
def test_record_when_it_is_none_then_loading_fails(raw: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        CursorRecord.load(raw)


def test_cursor_when_something_is_acknowledged_then_only_what_follows_it_is_untouched() -> None:
    cursor = new_cursor()
    assert cursor.untouched_from(Position(3, 0))
    cursor.acknowledge(Position(3, 1))
    cursor.acknowledge_part(Position(3, 3), 0b10)
    assert [cursor.untouched_from(Position(3, entry)) for entry in range(5)] == [False] * 4 + [True]
    cursor.reset(Position(3, 0))
    assert [cursor.untouched_from(Position(3, entry)) for entry in range(2)] == [False, True]


@pytest.mark.parametrize("order", [*permutations([Position(1, 3), Position(1, 7), Position(3, 0), Position(3, 1)])])
def test_cursor_when_all_is_acknowledged_that_only_compaction_has_then_it_goes_on_to_the_log(
    order: tuple[Position, ...],
) -> None:
    cursor = new_cursor(Position(1, 2))
    cursor.begin(compacted=True)
    cursor.hand_out_compacted([Position(1, 3), Position(1, 7)])
    cursor.compacted_read()
    for position in order:
        cursor.acknowledge(position)
    assert (cursor.mark_delete, list(cursor.ranges())) == (Position(3, 1), [])
