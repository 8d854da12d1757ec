from __future__ import annotations

from dataclasses import dataclass

import pytest

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch.consumer_choice import (
    KeyRing,
    check_ranges,
    choose_active,
    covered_by,
    share_out,
    sticky_sharing,
)
from interpulse.broker.live.requests import KeyRange
from interpulse.model.errors import ConsumerAssignError
from interpulse.model.ids import Position


@dataclass
class FakeReceiver:
    name: str
    permits: int = 0
    priority_level: int = 0


def batch(*message_counts: int) -> list[Delivery]:
    return [Delivery(Position(1, entry), b"", 0, (), count) for entry, count in enumerate(message_counts)]


@pytest.mark.parametrize(
    ("counts", "permits", "covered"),
    [((1, 1, 1), 3, 3), ((1, 1, 1), 2, 2), ((1, 1), 0, 0), ((10, 10), 1, 1), ((10, 10), 10, 1), ((10, 10), 11, 2)],
)
def test_covered_by_counts_messages_and_overdraws_by_one_entry(
    counts: tuple[int, ...], permits: int, covered: int
) -> None:
    assert covered_by(batch(*counts), permits) == covered


def shares(entries: int, *receivers: FakeReceiver, turn: int = 0) -> dict[str, list[int]]:
    parts, _ = share_out(batch(*[1] * entries), receivers, [each.permits for each in receivers], turn)
    return {receiver.name: [each.position.entry for each in part] for receiver, part in parts}


def test_share_out_gives_each_receiver_some_entries_in_turn() -> None:
    dealt = shares(50, FakeReceiver("a", 1000), FakeReceiver("b", 1000))
    assert dealt == {"a": [*range(20), *range(40, 50)], "b": list(range(20, 40))}


def test_share_out_begins_with_the_turn() -> None:
    assert shares(5, FakeReceiver("a", 9), FakeReceiver("b", 9), turn=1) == {"b": [0, 1, 2, 3, 4]}


def test_share_out_when_permits_end_then_the_rest_stays() -> None:
    assert shares(9, FakeReceiver("a", 2), FakeReceiver("b", 1)) == {"a": [0, 1], "b": [2]}


def test_share_out_serves_the_lowest_priority_level_first() -> None:
    dealt = shares(9, FakeReceiver("low", 100, 1), FakeReceiver("high", 4, 0))
    assert dealt == {"high": [0, 1, 2, 3], "low": [4, 5, 6, 7, 8]}


def test_choose_active_deals_partitions_out_in_the_order_of_names() -> None:
    consumers = [FakeReceiver("b"), FakeReceiver("a")]
    chosen = [choose_active(consumers, f"t-partition-{index}", index) for index in range(4)]
    assert [each.name for each in chosen if each] == ["a", "b", "a", "b"]


def test_choose_active_prefers_the_lowest_priority_level() -> None:
    consumers = [FakeReceiver("a", priority_level=2), FakeReceiver("b", priority_level=1)]
    for partition in (-1, 0, 1):
        chosen = choose_active(consumers, "t", partition)
        assert chosen is consumers[1]


def test_choose_active_when_another_leaves_then_the_chosen_one_stays() -> None:
    consumers = [FakeReceiver(name) for name in "abcdef"]
    chosen = choose_active(consumers, "topic", -1)
    assert chosen is not None
    for leaving in consumers:
        if leaving is not chosen:
            assert choose_active([each for each in consumers if each is not leaving], "topic", -1) is chosen
    assert choose_active([], "topic", -1) is None


def test_choose_active_spreads_topics_over_consumers() -> None:
    consumers = [FakeReceiver("a"), FakeReceiver("b")]
    chosen = [choose_active(consumers, f"topic-{number}", -1) for number in range(100)]
    assert 20 < sum(each is consumers[0] for each in chosen) < 80


def test_key_ring_when_a_consumer_joins_then_it_only_takes_keys() -> None:
    before, after = KeyRing(["a", "b"], {}), KeyRing(["a", "b", "c"], {})
    moved = [slot for slot in range(0, 65536, 97) if before.owner(slot) != after.owner(slot)]
    assert moved
    assert all(after.owner(slot) == "c" for slot in moved)
    assert KeyRing([], {}).owner(5) is None


def test_key_ring_with_sticky_ranges_leaves_the_rest_to_nobody() -> None:
    ring = KeyRing([], {"a": [KeyRange(0, 99)], "b": [KeyRange(100, 199)]})
    assert [ring.owner(slot) for slot in (0, 99, 100, 199, 200)] == ["a", "a", "b", "b", None]


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
    check_ranges([KeyRange(0, 9), KeyRange(21, 65535)], {"a": [KeyRange(10, 20)]})


def test_sticky_sharing_when_no_range_is_named_then_refused() -> None:
    with pytest.raises(ConsumerAssignError, match="must not be empty"):
        sticky_sharing((), False)
    assert sticky_sharing((KeyRange(1, 2),), True).mode == "STICKY"
