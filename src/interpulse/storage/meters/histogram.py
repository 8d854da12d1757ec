"""Values counted in buckets."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from functools import partial
from operator import add


class Histogram:
    """The number of values per bucket; the last bucket holds the values above all bounds."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self.counts)

    def add(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def merge(self, other: Histogram) -> None:
        """Add the values of a histogram with the same bounds."""
        self.counts = list(map(add, self.counts, other.counts))
        self.sum += other.sum

    def add_all(self, values: Sequence[float], total: float) -> None:
        """Add at least one value; ``total`` is the sum of the values."""
        self.sum += total
        first, last = bisect_left(self.bounds, min(values)), bisect_left(self.bounds, max(values))
        if first == last:  # usually the values are of similar size
            self.counts[first] += len(values)
            return
        for index, times in Counter(map(partial(bisect_left, self.bounds), values)).items():
            self.counts[index] += times
