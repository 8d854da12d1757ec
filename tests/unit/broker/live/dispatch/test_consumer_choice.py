from __future__ import annotations

from dataclasses import dataclass

import pytest

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch.consumer_choice import (
    choose_active,
    covered_by,
    share_out,
)
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
    shared = shares(50, FakeReceiver("a", 1000), FakeReceiver("b", 1000))
    assert shared == {"a": [*range(20), *range(40, 50)], "b": list(range(20, 40))}


def test_share_out_goes_round_all_receivers() -> None:
    shared = shares(70, *(FakeReceiver(name, 1000) for name in "abc"))
    assert shared == {"a": [*range(20), *range(60, 70)], "b": list(range(20, 40)), "c": list(range(40, 60))}


def test_share_out_begins_with_the_turn() -> None:
    assert shares(5, FakeReceiver("a", 9), FakeReceiver("b", 9), turn=1) == {"b": [0, 1, 2, 3, 4]}


def test_share_out_when_permits_end_then_the_rest_stays() -> None:
    assert shares(9, FakeReceiver("a", 2), FakeReceiver("b", 1)) == {"a": [0, 1], "b": [2]}


@pytest.mark.parametrize(("turn", "first"), [(0, "b"), (1, "b"), (2, "d"), (3, "d"), (4, "b")])
def test_share_out_when_the_one_in_turn_lacks_permits_then_the_next_one_is(turn: int, first: str) -> None:
    receivers = [FakeReceiver("a", 0), FakeReceiver("b", 9), FakeReceiver("c", 0), FakeReceiver("d", 9)]
    assert shares(5, *receivers, turn=turn) == {first: [0, 1, 2, 3, 4]}


def test_share_out_serves_the_lowest_priority_level_first() -> None:
    shared = shares(9, FakeReceiver("low", 100, 1), FakeReceiver("high", 4, 0))
    assert shared == {"high": [0, 1, 2, 3], "low": [4, 5, 6, 7, 8]}


def test_choose_active_hands_partitions_out_in_the_order_of_names() -> None:
    consumers = [FakeReceiver("b"), FakeReceiver("a")]
    chosen = [choose_active(consumers, f"t-partition-{index}", index) for index in range(4)]
    assert [each.name for each in chosen if each] == ["a", "b", "a", "b"]
    first = [choose_active(consumers, f"t{number}-partition-0", 0) for number in range(10)]
    assert [each.name for each in first if each] == ["a"] * 10


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
