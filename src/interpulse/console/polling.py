"""How often those look who look again and again: less often the more they are, so that together they cost the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from interpulse.model.errors import ServiceNotReady

__all__ = ["PollingRate"]


class PollingRate:
    """Of all who watch one kind of thing."""

    def __init__(self, what: str, *, every_seconds: float, per_second_max: float, most: int) -> None:
        """``what`` is watched, at most ``most`` of it at once.

        Each watcher has its turn every so many seconds, later where all of them would have more turns a second.
        """
        self.watchers = 0
        self._what = what
        self._every_seconds = every_seconds
        self._per_second_max = per_second_max
        self._most = most

    @property
    def seconds(self) -> float:
        """Between two turns of one watcher."""
        return max(self._every_seconds, self.watchers / self._per_second_max)

    def check_room(self) -> None:
        """Raises ServiceNotReady where one more is too many."""
        if self.watchers >= self._most:
            raise ServiceNotReady(f"{self._most} {self._what} are watched already; close one of them")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """There is one more watcher inside; raises ServiceNotReady where that is too many."""
        self.check_room()
        self.watchers += 1
        try:
            yield
        finally:
            self.watchers -= 1
