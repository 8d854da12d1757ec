"""The rate at which one consumer may subscribe to a topic. Pure: the time is an argument.

A consumer is identified by its host, name and id, so that only one that subscribes again and again is refused.
"""

from __future__ import annotations

from interpulse.broker.live.rate_limits import TokenBucket
from interpulse.broker.live.requests import SubscribeRequest
from interpulse.model.errors import NotAllowed
from interpulse.model.policies.policy_records import SubscribeRate

_REMEMBERED_MAX = 10_000
"""Limit for remembered consumers; above it, idle ones are forgotten, else the first half."""


class SubscribeLimits:
    """The limit of subscriptions per consumer."""

    def __init__(self, rate: SubscribeRate) -> None:
        self.rate = rate
        self._buckets: dict[tuple[str, str, int], TokenBucket] = {}

    def check(self, request: SubscribeRequest, now_ms: int) -> None:
        """Raise NotAllowed if this consumer subscribed too often."""
        rate = self.rate
        host = request.address.rpartition(":")[0]
        consumer = host, request.consumer_name, request.consumer_id
        bucket = self._buckets.get(consumer)
        if bucket is None:
            self._make_room(now_ms)
            bucket = self._buckets[consumer] = TokenBucket(rate.subscribes_per_consumer, rate.period_seconds, now_ms)
        if bucket.available(now_ms) <= 0:
            raise NotAllowed(
                "Subscribe limited by subscribe rate limit per consumer. "
                f"(subscribeRate={rate.subscribes_per_consumer} per {rate.period_seconds} s)"
            )
        bucket.spend(1, now_ms)

    def _make_room(self, now_ms: int) -> None:
        if len(self._buckets) >= _REMEMBERED_MAX:
            full = self.rate.subscribes_per_consumer
            active = [(who, bucket) for who, bucket in self._buckets.items() if bucket.available(now_ms) < full]
            self._buckets = dict(active[-_REMEMBERED_MAX // 2 :])
