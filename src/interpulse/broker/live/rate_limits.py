"""Limits for the rates of publishing and delivery. Pure: the time is an argument, integers only.

Tokens flow in evenly, up to the number of one period. One token is enough to proceed, at any cost: a negative balance
is filled first, so the rate holds on average, and after a pause at most one period's worth comes at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from interpulse.broker.live.api import Delivery

PAUSE_MS_MIN = 10
"""The shortest wait for tokens. None of them is lost, and fast rates need few timers."""

ENTRIES_MAX = 2**31 - 1
"""A number of entries above all requests."""

_MS_PER_SECOND = 1000


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
        """Return the wait for a token; 0 = there is one."""
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
        """Return the wait; 0 = none."""
        return max((bucket.wait_ms(now_ms) for bucket in self._buckets()), default=0)

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
        """Change the rates of the limit."""
        if self._messages is not None:
            self._messages.set_rate(messages, now_ms)
        if self._bytes is not None:
            self._bytes.set_rate(size, now_ms)

    def _buckets(self) -> Iterable[TokenBucket]:
        return (bucket for bucket in (self._messages, self._bytes) if bucket is not None)
