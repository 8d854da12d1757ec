"""The broker's wall clock, as an argument."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Tells the time; tests bring their own."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, as in message metadata."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
