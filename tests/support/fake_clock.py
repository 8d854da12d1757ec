"""A clock and timers that stand still until a test moves them."""

from __future__ import annotations

from collections.abc import Callable


class FakeClock:
    """A clock in seconds when called, and in milliseconds as `interpulse.clock.Clock`."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def now_ms(self) -> int:
        return self.time_ms

    @property
    def time_ms(self) -> int:
        return round(self.now * 1000)

    @time_ms.setter
    def time_ms(self, value: int) -> None:
        self.now = value / 1000


class FakeTimer:
    """A pending call."""

    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self.seconds = seconds
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeTimers:
    """Timers that fire when a test runs them."""

    def __init__(self) -> None:
        self.waiting: list[FakeTimer] = []

    def later(self, seconds: float, call: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(seconds, call)
        self.waiting.append(timer)
        return timer

    def run(self) -> list[float]:
        """Fire the timers that wait now. Return the delay of each, in seconds."""
        due, self.waiting = self.waiting, []
        for timer in due:
            if not timer.cancelled:
                timer.call()
        return [timer.seconds for timer in due]
