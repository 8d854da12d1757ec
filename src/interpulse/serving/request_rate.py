"""How many requests a program answers per second."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["RequestRate"]


class RequestRate:
    """Permits that come back with time, up to those of one second. Of a burst that is larger, the rest is refused."""

    def __init__(self, per_second: float, now: Callable[[], float]) -> None:
        """``now`` gives seconds of a clock that never goes back."""
        self._per_second = per_second
        self._now = now
        self._left = per_second
        self._at = now()

    def take(self) -> bool:
        """Whether one more is answered now."""
        now = self._now()
        self._left = min(self._per_second, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
