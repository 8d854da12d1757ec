"""Limits for the rates of publishing and delivery, and the gate before the deliveries of one subscription.

Tokens flow in evenly, up to the number of one period. One token is enough to proceed, at any cost: a negative balance
is filled first, so the rate holds on average, and after a pause at most one period's worth comes at once. The time is
an argument, and all numbers are integers.

A closed gate calls its subscription again when the rates allow more; one call is scheduled at a time. Subscriptions
that share the rate of their topic take turns; otherwise the first to be called would use all tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch.consumer import message_total
from interpulse.model.policies.policy_records import DispatchRate

PAUSE_MS_MIN = 10
"""The shortest wait for tokens. None of them is lost, and fast rates need few timers."""

ENTRIES_MAX = 2**31 - 1
"""A number of entries above all requests."""

_MS_PER_SECOND = 1000

NOT_THROTTLED: Final = {
    f"dispatchThrottled{kind}EventsBy{owner}Limit": 0
    for owner in ("Subscription", "Topic")
    for kind in ("Msg", "Bytes")
}
"""Pulsar's names for throttling, by rate and kind of token."""


class TokenBucket:
    """A bucket with ``rate`` tokens per period, and at most that many at once; full at first."""

    __slots__ = ("_filled_ms", "_level", "_period_ms", "_rate")

    def __init__(self, rate: int, period_seconds: int, now_ms: int) -> None:
        self._rate = rate
        self._period_ms = period_seconds * _MS_PER_SECOND
        self._level = rate * self._period_ms
        """Tokens times the period in ms, so that one millisecond adds an integer."""
        self._filled_ms = now_ms

    def available(self, now_ms: int) -> int:
        """Return the whole tokens; below 0 while it is overdrawn."""
        self._fill(now_ms)
        return self._level // self._period_ms

    def spend(self, tokens: int, now_ms: int) -> None:
        """Take tokens, even if it overdraws the bucket."""
        self._fill(now_ms)
        self._level -= tokens * self._period_ms

    def wait_ms(self, now_ms: int) -> int:
        self._fill(now_ms)
        return max(0, -((self._level - self._period_ms) // self._rate))

    def set_rate(self, rate: int, now_ms: int) -> None:
        """Change the rate. The balance stays, within the new bound."""
        self._fill(now_ms)
        self._rate = rate
        self._level = min(self._level, rate * self._period_ms)

    def _fill(self, now_ms: int) -> None:
        passed = now_ms - self._filled_ms
        self._filled_ms = now_ms
        if passed > 0:  # no tokens for a clock that was set back
            self._level = min(self._level + passed * self._rate, self._rate * self._period_ms)


class RateLimit:
    """A limit of messages and bytes per period; 0 or less = no limit."""

    __slots__ = ("_bytes", "_messages", "period_seconds")

    def __init__(self, messages: int, size: int, period_seconds: int, now_ms: int) -> None:
        self.period_seconds = period_seconds
        self._messages = TokenBucket(messages, period_seconds, now_ms) if messages > 0 else None
        self._bytes = TokenBucket(size, period_seconds, now_ms) if size > 0 else None

    def spend(self, messages: int, size: int, now_ms: int) -> None:
        """Charge messages and bytes, even if it overdraws."""
        if self._messages is not None:
            self._messages.spend(messages, now_ms)
        if self._bytes is not None:
            self._bytes.spend(size, now_ms)

    def wait_ms(self, now_ms: int) -> int:
        return max(
            (bucket.wait_ms(now_ms) for bucket in (self._messages, self._bytes) if bucket is not None), default=0
        )

    def room(self, now_ms: int) -> int:
        """Return the number of entries that may proceed at most: each has at least one message."""
        if self.wait_ms(now_ms):
            return 0
        return ENTRIES_MAX if self._messages is None else self._messages.available(now_ms)

    def admitted(self, batch: Sequence[Delivery], now_ms: int) -> int:
        """Return how many entries from the beginning of ``batch`` may proceed now; the last may overdraw."""
        messages = None if self._messages is None else self._messages.available(now_ms)
        size = None if self._bytes is None else self._bytes.available(now_ms)
        for number, delivery in enumerate(batch):
            if (messages is not None and messages <= 0) or (size is not None and size <= 0):
                return number
            if messages is not None:
                messages -= delivery.message_count
            if size is not None:
                size -= len(delivery.entry)
        return len(batch)

    def short_of(self, now_ms: int) -> tuple[bool, bool]:
        """Return whether messages, and whether bytes, are exhausted."""
        return (
            self._messages is not None and self._messages.available(now_ms) <= 0,
            self._bytes is not None and self._bytes.available(now_ms) <= 0,
        )

    def set_rates(self, messages: int, size: int, now_ms: int) -> None:
        if self._messages is not None:
            self._messages.set_rate(messages, now_ms)
        if self._bytes is not None:
            self._bytes.set_rate(size, now_ms)


class DispatchLimit:
    """One dispatch rate in its effective form: a rate relative to the producers follows theirs."""

    def __init__(self, rate: DispatchRate, now_ms: int) -> None:
        self.rate = rate
        self.limit = RateLimit(rate.messages, rate.bytes, rate.period_seconds, now_ms)
        self.turns: dict[DispatchGate, None] = {}
        """Subscriptions that wait for this limit alone, in the order of their calls."""

    def follow(self, publish_messages: float, publish_bytes: float, now_ms: int) -> None:
        rate = self.rate
        if rate.relative_to_publish_rate:
            seconds = rate.period_seconds
            self.limit.set_rates(
                rate.messages + round(publish_messages * seconds), rate.bytes + round(publish_bytes * seconds), now_ms
            )


def limit_of(rate: DispatchRate | None, before: DispatchLimit | None, now_ms: int) -> DispatchLimit | None:
    """Return the limit for a rate, None = no limit. An unchanged rate keeps its tokens."""
    if rate is None or not rate.limited:
        return None
    return before if before is not None and before.rate == rate else DispatchLimit(rate, now_ms)


class DispatchGate:
    """The gate before the deliveries of one subscription."""

    def __init__(
        self,
        topic_limit: DispatchLimit | None,
        own_limit: DispatchLimit | None,
        now_ms: Callable[[], int],
        call_later: Callable[[int, Callable[[], None]], None],
        wake: Callable[[], None],
    ) -> None:
        """Use at least one limit. ``call_later(ms, call)`` is the clock's; ``wake`` tries to send again."""
        self.topic_limit = topic_limit
        self.own_limit = own_limit
        owners = [("Topic", topic_limit), ("Subscription", own_limit)]
        self._limits = [(owner, limit) for owner, limit in owners if limit is not None]
        self._now_ms = now_ms
        self._call_later = call_later
        self._wake = wake
        self._waiting = False
        self.throttled = dict(NOT_THROTTLED)
        """The number of blocked dispatches, by rate and kind of token."""

    def room(self) -> int:
        """Return the number of entries that may be sent now at most; 0 = none until the callback."""
        now = self._now_ms()
        wait_ms = max(limit.limit.wait_ms(now) for _, limit in self._limits)
        if not wait_ms and self.topic_limit is not None and next(iter(self.topic_limit.turns), self) is not self:
            wait_ms = PAUSE_MS_MIN
        if wait_ms:
            for owner, limit in self._limits:
                for kind, short in zip(("Msg", "Bytes"), limit.limit.short_of(now), strict=True):
                    self.throttled[f"dispatchThrottled{kind}EventsBy{owner}Limit"] += short
            self._wait(wait_ms, now)
            return 0
        return min(limit.limit.room(now) for _, limit in self._limits)

    def admitted(self, batch: Sequence[Delivery]) -> int:
        """Return how many entries from the beginning of ``batch`` may be sent now."""
        now = self._now_ms()
        return min(limit.limit.admitted(batch, now) for _, limit in self._limits)

    def sent(self, batch: Sequence[Delivery]) -> None:
        """Charge entries that went to consumers."""
        now, messages, size = self._now_ms(), message_total(batch), sum(len(delivery.entry) for delivery in batch)
        for _, limit in self._limits:
            limit.limit.spend(messages, size, now)
        if self.topic_limit is not None:
            self.topic_limit.turns.pop(self, None)

    def _wait(self, wait_ms: int, now: int) -> None:
        if self._waiting:
            return
        self._waiting = True
        self._call_later(max(wait_ms, PAUSE_MS_MIN), self._look_again)
        own = self.own_limit
        if self.topic_limit is not None and (own is None or not own.limit.wait_ms(now)):
            self.topic_limit.turns.setdefault(self)

    def _look_again(self) -> None:
        self._waiting = False
        self._wake()
        if not self._waiting and self.topic_limit is not None:
            self.topic_limit.turns.pop(self, None)
