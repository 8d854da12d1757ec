"""The rate at which watchers poll: the more there are, the less often each polls, so that the total cost is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from interpulse.model.errors import ServiceNotReady


class PollingRate:
    """The shared rate of all watchers of one kind."""

    def __init__(self, what: str, *, every_seconds: float, per_second_max: float, most: int) -> None:
        """Allow at most ``most`` watchers; ``what`` names the watched things in the refusal.

        Each watcher has a turn every ``every_seconds``, or less often so that all have ``per_second_max`` together.
        """
        self.watchers = 0
        self._what = what
        self._every_seconds = every_seconds
        self._per_second_max = per_second_max
        self._most = most

    @property
    def seconds(self) -> float:
        """The seconds between two turns of one watcher."""
        return max(self._every_seconds, self.watchers / self._per_second_max)

    def check_room(self) -> None:
        """Raise ServiceNotReady if one more watcher is too many."""
        if self.watchers >= self._most:
            raise ServiceNotReady(f"{self._most} {self._what} are watched already; close one of them")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count one more watcher inside. Raise ServiceNotReady if that is too many."""
        self.check_room()
        self.watchers += 1
        try:
            yield
        finally:
            self.watchers -= 1
