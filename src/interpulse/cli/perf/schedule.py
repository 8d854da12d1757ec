"""When each message of a load is due. Pure.

The load is open: the time of a message is fixed by its number, and does not move when the cluster is slow. What is
measured from that time has no coordinated omission: a message that waits because the one before it hangs is late, and
counts as late.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

__all__ = ["Schedule"]

_ENDLESS: Final = 2**63


@dataclass(frozen=True, slots=True)
class Schedule:
    """``rate`` events per second, evenly, from ``start`` on, in seconds of some clock; a rate of 0 has no times."""

    rate: float
    start: float
    count_max: int = 0
    """So many in total; 0 = without end."""

    duration_s: float = 0
    """So long; 0 = without end."""

    def due(self, now: float) -> int:
        """How many events have come due until then, the first one at the start itself; without times all of them."""
        came = math.floor((now - self.start) * self.rate) + 1 if self.rate else _ENDLESS
        return min(max(0, came), self._count)

    def intended(self, index: int, now: float) -> float:
        """The time of an event, counted from 0; without times that is now."""
        return self.start + index / self.rate if self.rate else now

    def is_over(self, index: int, now: float) -> bool:
        """Whether an event is not wanted any more: there are enough, or the time is up."""
        return index >= self._count or (bool(self.duration_s) and now >= self.start + self.duration_s)

    def missed(self, index: int, now: float) -> int:
        """How many came due and were not made, when ``index`` of them were."""
        return max(0, self.due(now) - index) if self.rate else 0

    @property
    def _count(self) -> int:
        limits = [self.count_max] if self.count_max else []
        if self.rate and self.duration_s:
            limits.append(math.ceil(self.duration_s * self.rate))
        return min(limits, default=_ENDLESS)
