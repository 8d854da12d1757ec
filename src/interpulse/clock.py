"""The wall clock, in milliseconds since 1970 as in message metadata; rooms without IO take the time as an argument."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def now_ms() -> int:
    """Return the machine's time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def iso_time(time_ms: int) -> str:
    """Return a time in UTC (RFC 3339), such as ``2026-11-21T08:18:27.372Z``.

    Times beyond the calendar become its first or last moment.
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        moment = (datetime.max if time_ms > 0 else datetime.min).replace(tzinfo=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Clock(Protocol):
    """Source of the time. Tests pass their own."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return now_ms()
