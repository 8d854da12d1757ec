"""Statistics of partitions, summed."""

from __future__ import annotations

import pytest

from interpulse.rules.topic_stats import summed


def test_numbers_are_added_and_lists_joined() -> None:
    left = {"msgInCounter": 2, "msgRateIn": 0.5, "publishers": [{"producerName": "a"}], "type": "Shared"}
    right = {"msgInCounter": 3, "msgRateIn": 1.5, "publishers": [{"producerName": "b"}], "type": "Shared"}
    assert summed([left, right]) == {
        "msgInCounter": 5,
        "msgRateIn": 2.0,
        "publishers": [{"producerName": "a"}, {"producerName": "b"}],
        "type": "Shared",
    }


def test_subscriptions_are_merged_by_name() -> None:
    left = {"subscriptions": {"s": {"msgBacklog": 1, "blocked": False}}}
    right = {"subscriptions": {"s": {"msgBacklog": 2, "blocked": True}, "t": {"msgBacklog": 7}}}
    assert summed([left, right]) == {"subscriptions": {"s": {"msgBacklog": 3, "blocked": True}, "t": {"msgBacklog": 7}}}


def test_times_take_the_latest() -> None:
    assert summed([{"lastPublishTimeStamp": 5}, {"lastPublishTimeStamp": 9}]) == {"lastPublishTimeStamp": 9}


@pytest.mark.parametrize(("parts", "first"), [((9, 5), 5), ((9, 1), 1), ((0, 9), 9), ((9, -1), 9), ((-1, -1), -1)])
def test_the_oldest_message_that_waits_is_the_oldest_of_all(parts: tuple[int, int], first: int) -> None:
    key = "earliestMsgPublishTimeInBacklog"
    assert summed({key: each} for each in parts) == {key: first}


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        (5, None, 5),
        (None, 5, None),
        ([1], None, [1]),
        (None, [1], None),
        ({"a": 1}, None, {"a": 1}),
        (None, {"a": 1}, None),
        (False, None, False),
        (None, True, True),
        ("x", "y", "x"),
    ],
)
def test_what_one_part_has_no_value_of_is_the_value_of_the_first(left: object, right: object, total: object) -> None:
    assert summed([{"key": left}, {"key": right}]) == {"key": total}


def test_the_parts_are_left_alone() -> None:
    part = {"publishers": [1], "subscriptions": {"s": {"msgBacklog": 1}}}
    summed([part, {"publishers": [2], "subscriptions": {"s": {"msgBacklog": 1}}}])
    total = summed([part])
    total["publishers"].append(2)
    total["subscriptions"]["s"]["msgBacklog"] = 2
    assert part == {"publishers": [1], "subscriptions": {"s": {"msgBacklog": 1}}}


def test_no_partitions_give_nothing() -> None:
    assert summed([]) == {}
