"""Slots are found again whatever entries they came with, and those that are not needed leave."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.broker.live.dispatch import seen_slots
from interpulse.broker.live.dispatch.seen_slots import SeenSlots
from interpulse.model.ids import Position
from interpulse.wire.hashing import STICKY_SLOTS

PAGE = 256
numbers = st.one_of(st.integers(0, 3 * PAGE), st.integers(2**40, 2**40 + PAGE))
runs = st.builds(
    lambda ledger, first, count: [Position(ledger, entry) for entry in range(first, first + count)],
    st.integers(1, 2),
    numbers,
    st.integers(0, 2 * PAGE + 1),
)
scattered = st.builds(sorted, st.sets(st.builds(Position, st.integers(1, 2), numbers), max_size=20))


def run(first: int, count: int, *, ledger: int = 1) -> list[Position]:
    return [Position(ledger, entry) for entry in range(first, first + count)]


@given(st.lists(st.one_of(runs, scattered), max_size=5))
def test_whatever_is_noted_then_the_last_slot_of_each_entry_is_found(batches: list[list[Position]]) -> None:
    slots = SeenSlots()
    expected: dict[Position, int] = {}
    for number, batch in enumerate(batches):
        noted = {each: 1 + (each.entry * 31 + number) % (STICKY_SLOTS - 1) for each in batch}
        slots.note(batch, list(noted.values()))
        expected.update(noted)
    assert slots.of_all(expected) == list(expected.values())
    for ledger, entry in expected:
        for near in (Position(ledger, entry - 1), Position(ledger, entry + 1), Position(ledger + 2, entry)):
            assert slots.of(near) == expected.get(near, 0)


@pytest.mark.parametrize("slot", [1, STICKY_SLOTS - 1])
def test_lowest_and_highest_slot_are_found(slot: int) -> None:
    slots = SeenSlots()
    slots.note(run(7, 1), [slot])
    assert slots.of(Position(1, 7)) == slot


def test_entry_that_no_ledger_has_then_it_was_not_seen() -> None:
    slots = SeenSlots()
    slots.note(run(0, PAGE), [1] * PAGE)
    assert [slots.of(Position(1, -1)), slots.of(Position(1, PAGE)), slots.of(Position(-1, -1))] == [0, 0, 0]


def test_pages_without_an_entry_that_is_needed_leave() -> None:
    slots = SeenSlots()
    slots.note(run(0, 3 * PAGE), [1] * 3 * PAGE)
    slots.note(run(0, 1, ledger=2), [2])
    slots.keep_only([Position(1, PAGE), Position(1, 2 * PAGE - 1)])
    assert [slots.of(Position(1, each)) for each in (PAGE - 1, PAGE, 2 * PAGE - 1, 2 * PAGE)] == [0, 1, 1, 0]
    assert slots.of(Position(2, 0)) == 0


def test_pages_are_looked_through_when_they_are_twice_as_many_as_were_needed() -> None:
    with patch.object(seen_slots, "PAGES_MAX", 2):
        slots, seen = SeenSlots(), []
        for number in range(10):
            slots.note(run(number * PAGE, 1), [1])
            seen.append(slots.full)
            if slots.full:
                slots.keep_only(run(0, (number + 1) * PAGE))
        assert seen == [False, False, True, False, False, False, True, False, False, False]
        slots.keep_only([])
        slots.note(run(0, 2 * PAGE), [1] * 2 * PAGE)
        assert not slots.full
        slots.note(run(2 * PAGE, 1), [1])
        assert slots.full


def test_cleared_then_nothing_was_seen_and_few_pages_are_many_again() -> None:
    with patch.object(seen_slots, "PAGES_MAX", 2):
        slots = SeenSlots()
        slots.note(run(0, 8 * PAGE), [1] * 8 * PAGE)
        slots.keep_only(run(0, 8 * PAGE))
        assert not slots.full
        slots.clear()
        assert (slots.of(Position(1, 0)), slots.full) == (0, False)
        slots.note(run(0, 3 * PAGE), [1] * 3 * PAGE)
        assert slots.full
