"""Who came too often is known, of a bounded number of consumers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interpulse.broker.live.requests import SubscribeRequest
from interpulse.broker.live.topic import subscribe_limits
from interpulse.broker.live.topic.subscribe_limits import SubscribeLimits
from interpulse.model.errors import NotAllowed
from interpulse.model.policies.policy_records import SubscribeRate

NOW = 1_000


@pytest.fixture
def is_refused() -> Callable[[SubscribeLimits, int, int], bool]:
    def ask(limits: SubscribeLimits, consumer_id: int, now_ms: int) -> bool:
        try:
            limits.check(SubscribeRequest(consumer_id, "s", address="/[::1]:70"), now_ms)
        except NotAllowed:
            return True
        return False

    return ask


def test_at_the_limit_and_one_beyond(is_refused: Callable[..., bool]) -> None:
    limits = SubscribeLimits(SubscribeRate(2, 10))
    assert [is_refused(limits, 1, NOW) for _ in range(3)] == [False, False, True]
    assert is_refused(limits, 1, NOW + 4_999)
    assert [is_refused(limits, 1, NOW + 5_000) for _ in range(2)] == [False, True]


def test_many_consumers_are_forgotten_when_they_did_not_come_for_a_period_else_the_first_ones(
    is_refused: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribe_limits, "_REMEMBERED_MAX", 4)
    limits = SubscribeLimits(SubscribeRate(1, 10))
    for consumer_id in range(4):
        assert not is_refused(limits, consumer_id, NOW)
    assert not is_refused(limits, 4, NOW + 10_000)  # the others may come again anyway
    assert len(limits._buckets) == 1
    for consumer_id in range(5, 9):
        assert not is_refused(limits, consumer_id, NOW + 10_000)
    assert is_refused(limits, 8, NOW + 10_000)
    assert len(limits._buckets) <= 4
