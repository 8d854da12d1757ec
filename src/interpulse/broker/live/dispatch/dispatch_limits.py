"""The dispatch rates of a topic and its subscriptions, as a gate before the deliveries of one subscription.

A closed gate calls its subscription again when the rates allow more; one call is scheduled at a time. Subscriptions
that share the rate of their topic take turns; otherwise the first to be called would use all tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch.consumer_choice import message_total
from interpulse.broker.live.rate_limits import PAUSE_MS_MIN, RateLimit
from interpulse.model.policies.policy_records import DispatchRate

NOT_THROTTLED: Final = {
    f"dispatchThrottled{kind}EventsBy{owner}Limit": 0
    for owner in ("Subscription", "Topic")
    for kind in ("Msg", "Bytes")
}
"""Pulsar's names for throttling, by rate and kind of token."""


class DispatchLimit:
    """One dispatch rate in its effective form: a rate relative to the producers follows theirs."""

    def __init__(self, rate: DispatchRate, now_ms: int) -> None:
        self.rate = rate
        self.limit = RateLimit(rate.messages, rate.bytes, rate.period_seconds, now_ms)
        self._turns: dict[DispatchGate, None] = {}
        """Subscriptions that wait for this limit alone, in the order of their calls."""

    def is_turn_of(self, gate: DispatchGate) -> bool:
        """Return True if no other subscription has waited longer."""
        return next(iter(self._turns), gate) is gate

    def await_turn(self, gate: DispatchGate) -> None:
        """Queue this subscription behind the waiting ones."""
        self._turns.setdefault(gate)

    def end_turn(self, gate: DispatchGate) -> None:
        """Remove this subscription: it had its turn, or needs it no more."""
        self._turns.pop(gate, None)

    def follow(self, publish_messages: float, publish_bytes: float, now_ms: int) -> None:
        """Follow the publish rates per second."""
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
        self._throttled = dict(NOT_THROTTLED)

    def room(self) -> int:
        """Return the number of entries that may be sent now at most; 0 = none until the callback."""
        now = self._now_ms()
        wait_ms = max(limit.limit.wait_ms(now) for _, limit in self._limits)
        if not wait_ms and self.topic_limit is not None and not self.topic_limit.is_turn_of(self):
            wait_ms = PAUSE_MS_MIN
        if wait_ms:
            self._count_throttled(now)
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
            self.topic_limit.end_turn(self)

    def stats(self) -> Mapping[str, int]:
        """Return the number of blocked dispatches, by rate."""
        return self._throttled

    def _count_throttled(self, now: int) -> None:
        for owner, limit in self._limits:
            for kind, short in zip(("Msg", "Bytes"), limit.limit.short_of(now), strict=True):
                self._throttled[f"dispatchThrottled{kind}EventsBy{owner}Limit"] += short

    def _wait(self, wait_ms: int, now: int) -> None:
        if self._waiting:
            return
        self._waiting = True
        self._call_later(max(wait_ms, PAUSE_MS_MIN), self._look_again)
        own = self.own_limit
        if self.topic_limit is not None and (own is None or not own.limit.wait_ms(now)):
            self.topic_limit.await_turn(self)

    def _look_again(self) -> None:
        self._waiting = False
        self._wake()
        if not self._waiting and self.topic_limit is not None:
            self.topic_limit.end_turn(self)
