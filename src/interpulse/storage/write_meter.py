"""The write latency and the size of entries, per period and in the buckets of Pulsar's metrics."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

__all__ = ["ENTRY_BYTES", "WAIT_MS", "Histogram", "WriteMeter", "WrittenEntries"]

WAIT_MS: Final = (0.5, 1, 5, 10, 20, 50, 100, 200, 1000)
ENTRY_BYTES: Final = (128, 512, 1024, 2048, 4096, 16_384, 102_400, 1_048_576)
PERIOD_S: Final = 60.0


class Histogram:
    """How many values fell between its bounds; the last count is of those above all of them."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)

    def add(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def add_all(self, values: Sequence[float], total: float) -> None:
        """Many values whose sum is known; at least one."""
        self.sum += total
        first, last = bisect_left(self.bounds, min(values)), bisect_left(self.bounds, max(values))
        if first == last:  # as a rule they are of about one size
            self.counts[first] += len(values)
            return
        for index, times in Counter(map(partial(bisect_left, self.bounds), values)).items():
            self.counts[index] += times


class WrittenEntries:
    """The entries of one period."""

    __slots__ = ("sizes", "waits_ms")

    def __init__(self) -> None:
        self.waits_ms = Histogram(WAIT_MS)
        self.sizes = Histogram(ENTRY_BYTES)


class WriteMeter:
    """Counts what became durable. ``now`` gives seconds of a clock that never goes back."""

    __slots__ = ("_begun", "_current", "_last", "_now", "_period_s")

    def __init__(self, now: Callable[[], float] = time.monotonic, *, period_s: float = PERIOD_S) -> None:
        self._now = now
        self._period_s = period_s
        self._begun = now()
        self._current, self._last = WrittenEntries(), WrittenEntries()

    def wrote(self, entries: Sequence[bytes], total_bytes: int, waited_s: float) -> None:
        """These entries are durable; the first of them waited that long, and stands for all."""
        current = self._turned()._current
        current.waits_ms.add(waited_s * 1000, len(entries))
        if len(entries) == 1:
            current.sizes.add(total_bytes)
        else:
            current.sizes.add_all(list(map(len, entries)), total_bytes)

    @property
    def last_period(self) -> WrittenEntries:
        """The durable entries of the last full period."""
        return self._turned()._last

    @property
    def is_idle(self) -> bool:
        """Nothing came in this period or the last."""
        return not (self._turned()._current.sizes.count or self._last.sizes.count)

    def _turned(self) -> WriteMeter:
        """Begin a new period if the present one is over."""
        passed = int((self._now() - self._begun) // self._period_s)
        if passed:
            self._last = self._current if passed == 1 else WrittenEntries()
            self._current = WrittenEntries()
            self._begun += passed * self._period_s
        return self
