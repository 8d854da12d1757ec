"""The slots of a Key_Shared subscription, and the ranges that consumers may ask for."""

from __future__ import annotations

import pytest

from interpulse.broker.live.dispatch.hash_ring import HashRing, check_ranges, sticky_sharing, within
from interpulse.broker.live.requests import KeyRange, KeySharing
from interpulse.model.errors import ConsumerAssignError


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
        assert {owner(ring, slot) for each in ring.ranges_of(name) for slot in each} == {name}
    assert sum(each.end - each.start + 1 for name in "abc" for each in ring.ranges_of(name)) == 65535
    assert ring.ranges_of("d") == []


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


def test_sticky_sharing_when_no_range_is_named_then_refused() -> None:
    with pytest.raises(ConsumerAssignError, match="must not be empty"):
        sticky_sharing((), False)
    assert sticky_sharing((KeyRange(1, 2),), True) == KeySharing((KeyRange(1, 2),), True)
    assert sticky_sharing((KeyRange(1, 2),), True).mode == "STICKY"


def test_within_includes_both_ends() -> None:
    ranges = [KeyRange(3, 5), KeyRange(9, 9)]
    assert [slot for slot in range(12) if within(ranges, slot)] == [3, 4, 5, 9]
