"""Counts and latencies of reads and writes, in the buckets of Pulsar's metrics."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import add
from typing import Final


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


OPERATION_MS: Final = (1.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)
OPERATIONS: Final = ("get", "put", "del")


class MetadataMeter:
    """Counts since the start. Each key that is read, set or removed is one operation with the latency of its call."""

    def __init__(self) -> None:
        self.succeeded = {operation: Histogram(OPERATION_MS) for operation in OPERATIONS}
        self.failed = {operation: Histogram(OPERATION_MS) for operation in OPERATIONS}
        self.put_bytes = 0

    @contextmanager
    def reading(self, keys: int) -> Iterator[None]:
        """Measure a read of ``keys`` values from the store. Values from memory are not counted."""
        began = time.perf_counter()
        counted = self.failed
        try:
            yield
            counted = self.succeeded
        finally:
            counted["get"].add((time.perf_counter() - began) * 1000, keys)

    @contextmanager
    def committing(self, put_sizes: Sequence[int], deleted: int) -> Iterator[None]:
        """Measure a commit that sets values of these sizes and removes ``deleted`` keys; errors count as failed."""
        began = time.perf_counter()
        counted = self.failed
        try:
            yield
            counted = self.succeeded
            self.put_bytes += sum(put_sizes)
        finally:
            ms = (time.perf_counter() - began) * 1000
            counted["put"].add(ms, len(put_sizes))
            counted["del"].add(ms, deleted)


WAIT_MS: Final = (0.5, 1, 5, 10, 20, 50, 100, 200, 1000)
ENTRY_BYTES: Final = (128, 512, 1024, 2048, 4096, 16_384, 102_400, 1_048_576)
PERIOD_S: Final = 60.0
_WAITS_REMEMBERED: Final = 1000


class WrittenEntries:
    """The write latencies and sizes of the entries of one period."""

    __slots__ = ("sizes", "waits_ms")

    def __init__(self) -> None:
        self.waits_ms = Histogram(WAIT_MS)
        self.sizes = Histogram(ENTRY_BYTES)

    def merge(self, other: WrittenEntries) -> None:
        """Add the entries of another log."""
        self.waits_ms.merge(other.waits_ms)
        self.sizes.merge(other.sizes)


class WriteMeter:
    """The reads and writes of logs, by log and period. Idle logs take no memory.

    ``now`` returns seconds of a monotonic clock.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, *, period_s: float = PERIOD_S) -> None:
        self.period_s = period_s
        self.entries = 0
        """Entries made durable since the start."""
        self.waited_ms = 0.0
        """The sum of the entries' write latencies."""
        self.latest_waits_ms: deque[float] = deque(maxlen=_WAITS_REMEMBERED)
        """One latency for each group of a log's entries that became durable together."""
        self._now = now
        self._begun = now()
        self._written: dict[str, WrittenEntries] = {}
        self._last_written: dict[str, WrittenEntries] = {}
        self._read: Counter[str] = Counter()
        self._last_read: Counter[str] = Counter()

    def wrote(self, log: str, entries: Sequence[bytes], total_bytes: int, waited_s: float) -> None:
        """Count durable entries of a log. ``waited_s`` is the latency of the first entry and stands for all."""
        self._turn()
        written = self._written.get(log)
        if written is None:
            written = self._written[log] = WrittenEntries()
        count, waited_ms = len(entries), waited_s * 1000
        self.entries += count
        self.waited_ms += waited_ms * count
        self.latest_waits_ms.append(waited_ms)
        written.waits_ms.add(waited_ms, count)
        if count == 1:
            written.sizes.add(total_bytes)
        else:
            written.sizes.add_all(list(map(len, entries)), total_bytes)

    def read(self, log: str, entries: int) -> None:
        """Count entries of a log that were read because they were not in memory."""
        self._turn()
        self._read[log] += entries

    def written_of(self, log: str) -> WrittenEntries | None:
        """Return the log's entries of the last full period; None if the log wrote none since that period began."""
        self._turn()
        written = self._last_written.get(log)
        return WrittenEntries() if written is None and log in self._written else written

    def read_rate_of(self, log: str) -> float:
        """Return the entries of a log that were read per second in the last full period."""
        self._turn()
        return self._last_read[log] / self.period_s if log in self._last_read else 0.0

    def _turn(self) -> None:
        passed = int((self._now() - self._begun) // self.period_s)
        if passed:
            self._last_written, self._written = (self._written if passed == 1 else {}), {}
            self._last_read, self._read = (self._read if passed == 1 else Counter()), Counter()
            self._begun += passed * self.period_s
