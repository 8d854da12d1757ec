"""Pace at which one of many topic-partitions is asked for its end. No clock: times are arguments, in seconds."""

from __future__ import annotations

import random
from typing import Final

_STRETCH_MAX: Final = 8
_REST_SECONDS_MAX: Final = 300.0
"""Longest rest, after which the topic-partition is asked anyway. Rests are spread over the second half of it."""


class PollPace:
    """Pace of one topic-partition: every poll while it grows, then less often, then only on notice."""

    def __init__(self, interval: float) -> None:
        """Start with the poll ``interval`` of a growing topic-partition."""
        self._interval = interval
        self._stretch = 1
        self._end: object = None
        self._due_at = 0.0
        self._rung = False

    def is_due(self, now: float) -> bool:
        return now >= self._due_at

    def note(self, end: object, now: float) -> bool:
        """Record the end. Return True if it has not moved for a while, so that the topic-partition may rest."""
        calm = end == self._end and self._stretch >= _STRETCH_MAX
        self._stretch = min(self._stretch * 2, _STRETCH_MAX) if end == self._end else 1
        self._end = end
        self._due_at = now + self._interval * self._stretch
        return calm

    def settle(self) -> None:
        """Suspend questions until the topic-partition rests, or until :meth:`ring`."""
        self._rung = False
        self._due_at = float("inf")

    def rest(self, now: float) -> None:
        if not self._rung:
            self._due_at = now + random.uniform(_REST_SECONDS_MAX / 2, _REST_SECONDS_MAX)

    def ring(self) -> None:
        """Resume questions: something arrived, or the broker can no longer send notices."""
        self._rung = True
        self._stretch = 1
        self._due_at = 0.0
