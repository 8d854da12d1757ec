"""How often one of many topic-partitions is asked where it ends. No clock: the time is an argument, in seconds."""

from __future__ import annotations

import random
from typing import Final

__all__ = ["PollPace"]

_STRETCH_MAX: Final = 8
_REST_SECONDS_MAX: Final = 300.0
"""After a rest as long as this it is asked all the same; they are spread over half of it."""


class PollPace:
    """Asked at every poll while it grows, then less and less, then only after the broker told that something came."""

    def __init__(self, interval: float) -> None:
        """``interval``: of polls while the topic-partition grows."""
        self._interval = interval
        self._stretch = 1
        self._end: object = None
        self._due_at = 0.0
        self._rung = False

    def is_due(self, now: float) -> bool:
        return now >= self._due_at

    def note(self, end: object, now: float) -> bool:
        """It ended there when it was asked now. True: it was so for a while, and it may rest."""
        calm = end == self._end and self._stretch >= _STRETCH_MAX
        self._stretch = min(self._stretch * 2, _STRETCH_MAX) if end == self._end else 1
        self._end = end
        self._due_at = now + self._interval * self._stretch
        return calm

    def settle(self) -> None:
        """It is not asked until it rests, or until :meth:`ring`."""
        self._rung = False
        self._due_at = float("inf")

    def rest(self, now: float) -> None:
        if not self._rung:
            self._due_at = now + random.uniform(_REST_SECONDS_MAX / 2, _REST_SECONDS_MAX)

    def ring(self) -> None:
        """Something came, or nothing would be told any more."""
        self._rung = True
        self._stretch = 1
        self._due_at = 0.0
