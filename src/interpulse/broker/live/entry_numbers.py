"""A set of entry numbers of one ledger. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Set
from heapq import merge

LOOSE_MAX = 30_000
"""Limit for the loose numbers of one ledger, or its number of ranges if larger; above it they become ranges."""


class EntryNumbers:
    """A set of entry numbers of one ledger, shown as ranges with both ends included.

    Consumers that share a subscription acknowledge scattered entries, and most gaps close soon. So scattered numbers
    are stored as *loose* ones, and become ranges when there are too many.
    """

    __slots__ = ("_ends", "_loose", "_loose_from", "_starts", "highest")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._loose: set[int] = set()
        """Numbers outside all ranges."""
        self._loose_from = 0
        """A lower bound of the loose numbers."""
        self.highest = -1
        """An upper bound of all numbers."""

    def __contains__(self, entry: int) -> bool:
        return entry in self._loose or self._in_range(entry)

    def __bool__(self) -> bool:
        return bool(self._starts or self._loose)

    def ranges(self) -> Iterator[tuple[int, int]]:
        loose = self._loose
        starts = sorted(number for number in loose if number - 1 not in loose)
        ends = sorted(number for number in loose if number + 1 not in loose)
        joined: tuple[int, int] | None = None
        for start, end in merge(zip(self._starts, self._ends, strict=True), zip(starts, ends, strict=True)):
            if joined is None:
                joined = start, end
            elif joined[1] + 1 == start:
                joined = joined[0], end
            else:
                yield joined
                joined = start, end
        if joined is not None:
            yield joined

    def count(self) -> int:
        return sum(self._ends) - sum(self._starts) + len(self._starts) + len(self._loose)

    def run_end(self, entry: int) -> int:
        """Return the end of the lowest range, which begins with this number."""
        after, ends, loose = entry, iter(self._ends), self._loose
        for start in self._starts:
            while after in loose:
                after += 1
            if start != after:
                return after - 1
            after = next(ends) + 1
        while after in loose:
            after += 1
        return after - 1

    def add(self, entry: int) -> bool:
        """Add a number. Return False if it was present."""
        loose = self._loose
        if entry in loose or (self._starts and self._in_range(entry)):
            return False
        if not loose or entry < self._loose_from:
            self._loose_from = entry
        loose.add(entry)
        self.highest = max(self.highest, entry)
        self._join_if_many()
        return True

    def add_all(self, entries: Set[int]) -> int:
        """Add numbers, at least one. Return how many were absent."""
        first, last = min(entries), max(entries)
        if first < last == first + len(entries) - 1:
            return self.add_run(first, last)
        new = entries - self._loose
        if self._starts and self._starts[0] <= last and first <= self._ends[-1]:
            new = {number for number in new if not self._in_range(number)}
        self._loose_from = min(self._loose_from, first) if self._loose else first
        self._loose |= new
        self.highest = max(self.highest, last)
        self._join_if_many()
        return len(new)

    def add_run(self, first: int, last: int) -> int:
        """Add all numbers from ``first`` to ``last``. Return how many were absent."""
        starts, ends = self._starts, self._ends
        begin, end = bisect_left(ends, first - 1), bisect_right(starts, last + 1)
        joined = slice(begin, end)
        before = sum(ends[joined]) - sum(starts[joined]) + end - begin
        lowest, highest = min([first, *starts[joined]]), max([last, *ends[joined]])
        starts[joined], ends[joined] = [lowest], [highest]
        self.highest = max(self.highest, last)
        loose = self._loose.intersection(range(first, last + 1)) if self._loose else ()
        self._loose.difference_update(loose)
        return highest - lowest + 1 - before - len(loose)

    def remove_through(self, entry: int) -> int:
        """Remove all numbers up to ``entry``, and return their count."""
        removed = self._remove_loose(entry) if self._loose else 0
        starts, ends = self._starts, self._ends
        index = bisect_right(starts, entry)
        if index == 0:
            return removed
        removed += sum(ends[: index - 1]) - sum(starts[: index - 1]) + index - 1
        last_end = ends[index - 1]
        removed += min(last_end, entry) - starts[index - 1] + 1
        if last_end > entry:
            index -= 1
            starts[index] = entry + 1
        del starts[:index], ends[:index]
        return removed

    def _in_range(self, entry: int) -> bool:
        index = bisect_right(self._starts, entry) - 1
        return index >= 0 and entry <= self._ends[index]

    def _remove_loose(self, entry: int) -> int:
        before = len(self._loose)
        if entry - self._loose_from < before:
            self._loose.difference_update(range(self._loose_from, entry + 1))
        else:
            self._loose = {number for number in self._loose if number > entry}
        self._loose_from = max(self._loose_from, entry + 1)
        return before - len(self._loose)

    def _join_if_many(self) -> None:
        """Turn loose numbers into ranges, seldom enough that it costs little per number."""
        if len(self._loose) <= max(LOOSE_MAX, len(self._starts)):
            return
        ranges = list(self.ranges())
        self._starts, self._ends = [start for start, _ in ranges], [end for _, end in ranges]
        self._loose = set()
