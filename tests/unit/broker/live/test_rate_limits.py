"""Tokens flow in evenly, up to one period's worth; what is overdrawn is waited off."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.rate_limits import ENTRIES_MAX, RateLimit, TokenBucket
from interpulse.model.ids import Position

NOW = 1_000


@pytest.mark.parametrize(
    ("rate", "period", "spent", "passed_ms", "available", "wait_ms"),
    [
        pytest.param(10, 1, 0, 0, 10, 0, id="full at first"),
        pytest.param(10, 1, 9, 0, 1, 0, id="one below the limit"),
        pytest.param(10, 1, 10, 0, 0, 100, id="at the limit"),
        pytest.param(10, 1, 11, 0, -1, 200, id="one beyond"),
        pytest.param(10, 1, 10, 99, 0, 1, id="a moment before the next token"),
        pytest.param(10, 1, 10, 100, 1, 0, id="the next token"),
        pytest.param(10, 1, 30, 1000, -10, 1100, id="debts are waited off"),
        pytest.param(10, 1, 5, 60_000, 10, 0, id="no more than one period's worth"),
        pytest.param(3, 1, 3, 333, 0, 1, id="a third of a second is not quite enough"),
        pytest.param(3, 1, 3, 334, 1, 0, id="but this is"),
        pytest.param(10, 60, 10, 6_000, 1, 0, id="a long period"),
        pytest.param(2_000, 1, 2_000, 1, 2, 0, id="several tokens per millisecond"),
    ],
)
def test_bucket(rate: int, period: int, spent: int, passed_ms: int, available: int, wait_ms: int) -> None:
    bucket = TokenBucket(rate, period, NOW)
    bucket.spend(spent, NOW)
    assert (bucket.available(NOW + passed_ms), bucket.wait_ms(NOW + passed_ms)) == (available, wait_ms)


def test_bucket_when_the_clock_is_set_back_gives_nothing_away_and_goes_on() -> None:
    bucket = TokenBucket(10, 1, NOW)
    bucket.spend(10, NOW)
    assert bucket.available(NOW - 500) == 0
    assert bucket.available(NOW - 400) == 1


def test_bucket_never_loses_a_part_of_a_token() -> None:
    bucket = TokenBucket(3, 1, NOW)
    bucket.spend(3, NOW)
    taken = 0
    for millisecond in range(1, 10_001):
        while bucket.available(NOW + millisecond) > 0:
            bucket.spend(1, NOW + millisecond)
            taken += 1
    assert taken == 30


def test_bucket_with_another_rate_keeps_what_is_there_within_the_new_bound() -> None:
    bucket = TokenBucket(10, 1, NOW)
    bucket.set_rate(4, NOW)
    assert bucket.available(NOW) == 4
    bucket.spend(4, NOW)
    bucket.set_rate(100, NOW)
    assert bucket.available(NOW + 50) == 5


def deliveries(*sizes: tuple[int, int]) -> list[Delivery]:
    """(messages, bytes) of each."""
    return [Delivery(Position(0, n), b"x" * size, 0, (), messages) for n, (messages, size) in enumerate(sizes)]


@pytest.mark.parametrize(
    ("messages", "size", "batch", "admitted", "room"),
    [
        pytest.param(-1, -1, [(1, 1)] * 5, 5, ENTRIES_MAX, id="no limit"),
        pytest.param(0, 0, [(1, 1)] * 5, 5, ENTRIES_MAX, id="0 is no limit"),
        pytest.param(3, -1, [(1, 1)] * 5, 3, 3, id="messages"),
        pytest.param(3, -1, [(1, 1)] * 3, 3, 3, id="as many messages as there may be"),
        pytest.param(3, -1, [(2, 1)] * 5, 2, 3, id="the last entry may overdraw"),
        pytest.param(-1, 10, [(1, 4)] * 5, 3, ENTRIES_MAX, id="bytes"),
        pytest.param(100, 8, [(1, 4)] * 5, 2, 100, id="the scarcer counts"),
    ],
)
def test_limit_admits(messages: int, size: int, batch: Any, admitted: int, room: int) -> None:
    limit = RateLimit(messages, size, 1, NOW)
    assert (limit.admitted(deliveries(*batch), NOW), limit.room(NOW)) == (admitted, room)


def test_limit_waits_for_the_scarcer_of_both() -> None:
    limit = RateLimit(10, 100, 1, NOW)
    limit.spend(10, 250, NOW)
    assert limit.wait_ms(NOW) == 1510
    assert limit.short_of(NOW) == (True, True)
    assert limit.short_of(NOW + 200) == (False, True)
    assert (limit.room(NOW + 1509), limit.room(NOW + 1510)) == (0, 10)


def test_limit_with_other_rates_goes_on_counting() -> None:
    limit = RateLimit(10, 100, 1, NOW)
    limit.spend(10, 100, NOW)
    limit.set_rates(20, 200, NOW)
    assert limit.wait_ms(NOW) == 50
