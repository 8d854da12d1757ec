"""Blocked at the limit, until about half of it is acknowledged."""

from __future__ import annotations

import pytest

from interpulse.rules.unacked import consumer_blocked, subscription_blocked


@pytest.mark.parametrize(
    ("limit", "blocked_from", "consumer_until", "subscription_until"),
    [(1, 1, 1, 1), (2, 2, 2, 1), (3, 3, 2, 1), (4, 4, 3, 2), (5, 5, 3, 2), (50_000, 50_000, 25_001, 25_000)],
)
def test_blocked(limit: int, blocked_from: int, consumer_until: int, subscription_until: int) -> None:
    """``..._until``: the fewest unacknowledged messages with which it stays blocked."""
    for blocked in (consumer_blocked, subscription_blocked):
        assert blocked(blocked_from, limit, before=False)
        assert not blocked(blocked_from - 1, limit, before=False)
        assert not blocked(0, limit, before=True)
    assert consumer_blocked(consumer_until, limit, before=True)
    assert not consumer_blocked(consumer_until - 1, limit, before=True)
    assert subscription_blocked(subscription_until, limit, before=True)
    assert not subscription_blocked(subscription_until - 1, limit, before=True)
