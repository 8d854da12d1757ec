"""Permits that lookups and metadata queries share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from interpulse.model.errors import TooManyRequests

__all__ = ["LookupPermits"]


class LookupPermits:
    """How many lookups and metadata queries run at once (``maxConcurrentLookupRequest``); one more is refused."""

    def __init__(self, limit: Callable[[], int]) -> None:
        """``limit`` is asked each time: it is a dynamic setting."""
        self._limit = limit
        self._taken = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold one permit; raises TooManyRequests."""
        if self._taken >= self._limit():
            raise TooManyRequests("Failed due to too many pending lookup requests")
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1
