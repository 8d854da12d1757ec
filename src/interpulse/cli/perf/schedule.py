"""Due times of the messages of a load. Pure.

The load is open: the number of a message determines its due time, which does not move when the cluster is slow.
Measuring from that time avoids coordinated omission: a message that waits because the previous one hangs counts as
late.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

_ENDLESS: Final = 2**63


@dataclass(frozen=True, slots=True)
class Schedule:
    """Evenly spaced events: ``rate`` per second from ``start`` on, in seconds of some clock.

    A rate of 0 has no due times.
    """

    rate: float
    start: float
    count_max: int = 0
    """Total number of events; 0 means no limit."""

    duration_s: float = 0
    """Length in seconds; 0 means no limit."""

    def due(self, now: float) -> int:
        """Return how many events are due by then; the first is due at the start. Without due times, return all."""
        came = math.floor((now - self.start) * self.rate) + 1 if self.rate else _ENDLESS
        return min(max(0, came), self._count)

    def intended(self, index: int, now: float) -> float:
        """Return the due time of an event, counted from 0; without due times, the current time."""
        return self.start + index / self.rate if self.rate else now

    def is_over(self, index: int, now: float) -> bool:
        """Return True once enough events have started or the time is up."""
        return index >= self._count or (bool(self.duration_s) and now >= self.start + self.duration_s)

    def missed(self, index: int, now: float) -> int:
        """Return how many due events did not start when ``index`` of them did."""
        return max(0, self.due(now) - index) if self.rate else 0

    @property
    def _count(self) -> int:
        limits = [self.count_max] if self.count_max else []
        if self.rate and self.duration_s:
            limits.append(math.ceil(self.duration_s * self.rate))
        return min(limits, default=_ENDLESS)
