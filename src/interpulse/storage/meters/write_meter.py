"""The write latency and the size of entries, per log and period, in the buckets of Pulsar's metrics."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final

from interpulse.storage.meters.histogram import Histogram

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
