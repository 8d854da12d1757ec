"""Permits that lookups and metadata queries share."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from interpulse.model.errors import TooManyRequests

__all__ = ["LookupPermits"]


class LookupPermits:
    """How many lookups and metadata queries run at once (``maxConcurrentLookupRequest``); one more is refused.

    Each runs inside ``with permits:``.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        """``limit`` is asked each time: it is a dynamic setting."""
        self._limit = limit
        self._taken = 0
        self.rejected = 0
        """How many were refused so far."""

    @property
    def taken(self) -> int:
        """How many run now."""
        return self._taken

    @property
    def left(self) -> bool:
        """Whether one more may run now."""
        return self._taken < self._limit()

    def __enter__(self) -> None:
        """Take one permit; raises TooManyRequests."""
        if not self.left:
            self.rejected += 1
            raise TooManyRequests("Failed due to too many pending lookup requests")
        self._taken += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back, whatever happened."""
        self._taken -= 1
