"""Long lists, page by page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

PAGE_ROWS: Final = 50
PAGES_MAX: Final = 1_000_000
_CHUNK: Final = 500
"""Rows that are sorted in one go and merged with the sorted ones: a millisecond or two."""


@dataclass(frozen=True, slots=True)
class PageOf(Generic[T]):
    """One page of rows; ``number`` counts from 0, ``total`` counts the rows of all pages."""

    rows: Sequence[T]
    number: int
    total: int

    @property
    def pages(self) -> int:
        return max(1, -(-self.total // PAGE_ROWS))

    @property
    def first(self) -> int:
        """The number of the first row, as people count."""
        return self.number * PAGE_ROWS + 1 if self.rows else 0

    @property
    def last(self) -> int:
        return self.number * PAGE_ROWS + len(self.rows)


def page_of(rows: Sequence[T], number: int) -> PageOf[T]:
    """Return one page, or the last page if the number is too high."""
    last = max(0, -(-len(rows) // PAGE_ROWS) - 1)
    number = min(number, last)
    return PageOf(rows[number * PAGE_ROWS : (number + 1) * PAGE_ROWS], number, len(rows))


class TopRows(Generic[T]):
    """The first ``most`` rows in order, while rows are added one by one. Needs little memory and never blocks long."""

    def __init__(self, most: int, key: Callable[[T], Any]) -> None:
        self._most = most
        self._key = key
        self._cache: list[T] = []
        self._new: list[T] = []
        self._last: T | None = None
        """The last row in memory; rows that sort after it are skipped."""
        self.total = 0

    def add(self, row: T) -> None:
        self.total += 1
        if self._last is not None and not self._key(row) < self._key(self._last):
            return
        self._new.append(row)
        if len(self._new) >= _CHUNK:
            self._merge()

    @property
    def rows(self) -> list[T]:
        self._merge()
        return self._cache

    def _merge(self) -> None:
        if self._new:
            self._cache = sorted([*self._cache, *self._new], key=self._key)[: self._most]
            self._new = []
            self._last = self._cache[-1] if len(self._cache) == self._most else None
