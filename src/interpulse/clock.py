"""The wall clock, in milliseconds since 1970 as in message metadata; rooms without IO take the time as an argument."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock", "now_ms"]


def now_ms() -> int:
    """The machine's time."""
    return time.time_ns() // 1_000_000


class Clock(Protocol):
    """Tells the time; tests bring their own."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return now_ms()
