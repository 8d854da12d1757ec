"""Whose keys are whose, while consumers come and go."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.broker.live.api import KeyRange, KeySharing, SubscribeRequest, SubType
from interpulse.broker.live.dispatch import sticky_keys as sticky_keys_module
from interpulse.broker.live.dispatch.sticky_keys import (
    HashRing,
    SeenSlots,
    StickyKeys,
    check_ranges,
    within,
)
from interpulse.model.errors import ConsumerAssignError
from interpulse.model.ids import Position
from interpulse.wire.hashing import STICKY_SLOTS


def owner(ring: HashRing, slot: int) -> str | None:
    return next(owner for end, owner in ring.arcs() if slot <= end)


def test_hash_ring_when_a_consumer_joins_then_it_only_takes_keys() -> None:
    before, after = HashRing(["a", "b"], {}), HashRing(["a", "b", "c"], {})
    moved = [slot for slot in range(0, 65536, 97) if owner(before, slot) != owner(after, slot)]
    assert moved
    assert all(owner(after, slot) == "c" for slot in moved)
    assert owner(HashRing([], {}), 5) is None


def test_hash_ring_with_sticky_ranges_leaves_the_rest_without_a_consumer() -> None:
    ring = HashRing([], {"a": [KeyRange(1, 99)], "b": [KeyRange(100, 199), KeyRange(300, 65535)]})
    slots = (0, 1, 99, 100, 199, 200, 299, 300, 65535)
    assert [owner(ring, slot) for slot in slots] == [None, "a", "a", "b", "b", None, None, "b", "b"]


def test_hash_ring_whoever_is_asked_for_then_arcs_and_ranges_agree() -> None:
    ring = HashRing(["a", "b", "c"], {})
    for name in "abc":
        assert {owner(ring, slot) for each in ring.ranges_by_owner[name] for slot in each} == {name}
    assert sum(each.end - each.start + 1 for name in "abc" for each in ring.ranges_by_owner[name]) == 65535
    assert "d" not in ring.ranges_by_owner


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ([(10, 20)], "Range conflict with consumer a: [10,20] overlaps with [10,20]"),
        ([(0, 10)], "Range conflict with consumer a: [0,10] overlaps with [10,20]"),
        ([(20, 99)], "[20,99] overlaps with [10,20]"),
        ([(12, 13)], "[12,13] overlaps with [10,20]"),
        ([(30, 40), (35, 36)], "Consumer's own ranges conflict: [30,40] overlaps with [35,36]"),
        ([(5, 4)], "Fixed hash range start > end for range: [5,4]"),
        ([(-1, 3)], "Fixed hash range [-1,3] is not within [0,65535]"),
        ([(65000, 65536)], "Fixed hash range [65000,65536] is not within [0,65535]"),
    ],
)
def test_check_ranges_when_taken_or_invalid_then_refused(wanted: list[tuple[int, int]], words: str) -> None:
    with pytest.raises(ConsumerAssignError) as refused:
        check_ranges([KeyRange(*each) for each in wanted], {"a": [KeyRange(10, 20)]})
    assert words in str(refused.value)


def test_check_ranges_when_free_then_accepted() -> None:
    check_ranges([KeyRange(0, 8), KeyRange(9, 9), KeyRange(21, 65535)], {"a": [KeyRange(10, 20)]})


def test_within_includes_both_ends() -> None:
    ranges = [KeyRange(3, 5), KeyRange(9, 9)]
    assert [slot for slot in range(12) if within(ranges, slot)] == [3, 4, 5, 9]


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
    with patch.object(sticky_keys_module, "PAGES_MAX", 2):
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
    with patch.object(sticky_keys_module, "PAGES_MAX", 2):
        slots = SeenSlots()
        slots.note(run(0, 8 * PAGE), [1] * 8 * PAGE)
        slots.keep_only(run(0, 8 * PAGE))
        assert not slots.full
        slots.clear()
        assert (slots.of(Position(1, 0)), slots.full) == (0, False)
        slots.note(run(0, 3 * PAGE), [1] * 3 * PAGE)
        assert slots.full


class StickyConsumer:
    def __init__(self, name: str, *ranges: KeyRange) -> None:
        self.name = name
        self.request = SubscribeRequest(1, "s", SubType.KEY_SHARED, name, key_sharing=KeySharing(ranges))


def sticky_consumer(name: str, *arguments: Any, **options: Any) -> Any:
    return StickyConsumer(name, *arguments, **options)


def sticky_keys(*consumers: Any) -> StickyKeys:
    made = StickyKeys()
    for consumer in consumers:
        made.join(consumer)
    return made


def test_consumers_of_one_name_all_get_keys() -> None:
    consumers = [sticky_consumer("same") for _ in range(3)]
    made = sticky_keys(*consumers)
    assert {id(made.owner(slot)) for slot in range(1, 65536, 50)} == set(map(id, consumers))
    assert consumers[0] in made


def test_ranges_when_asked_for_before_any_owner_then_they_are_there() -> None:
    alone: Any = sticky_consumer("a")
    assert sticky_keys(alone).ranges_of(alone) == [KeyRange(1, 65535)]


def test_what_was_remembered_is_looked_up_again_when_a_consumer_leaves() -> None:
    first, second = sticky_consumer("a"), sticky_consumer("b")
    made = sticky_keys(first, second)
    [slot] = [each for each in range(1, 200) if made.owner(each) is second][:1]
    made.leave(second)
    assert (made.owner(slot) is first) is True
    made.leave(first)
    assert (made.owner(slot), first in made) == (None, False)


def test_consumer_that_was_refused_owns_nothing() -> None:
    first, refused = sticky_consumer("a", KeyRange(0, 9)), sticky_consumer("b", KeyRange(5, 20))
    made = sticky_keys(first)
    with pytest.raises(ConsumerAssignError, match=r"Range conflict with consumer a: \[5,20\] overlaps with \[0,9\]"):
        made.join(refused)
    assert (made.owner(15), made.owner(5), made.mode) == (None, first, "STICKY")
    assert made.ranges_of(first) == [KeyRange(0, 9)]
