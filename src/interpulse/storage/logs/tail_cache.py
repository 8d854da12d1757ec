"""The newest entries of every open log, cached so that fresh entries are delivered without the disk.

The bound counts the bytes of all logs together; the oldest run is evicted first. Runs of one log are contiguous, so
once the start of a read is cached, everything behind it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from itertools import accumulate, islice, repeat

from interpulse.model.ids import Position
from interpulse.storage.api import LogEntry
from interpulse.storage.logs.journal import Run

_ENTRY_OVERHEAD = 40  # bytes of a Python bytes object beyond its content


class LogTail:
    """The cached runs of one log, oldest first."""

    __slots__ = ("costs", "firsts", "runs")

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.firsts: list[tuple[int, int]] = []
        self.costs: list[int] = []

    def read(self, start: Position, entries_max: int, bytes_max: int) -> list[LogEntry] | None:
        """Return entries from ``start`` on, which must exist; None if it is not cached."""
        index = bisect_right(self.firsts, start) - 1
        if index < 0:
            return None
        result: list[LogEntry] = []
        for run in islice(self.runs, index, None):
            skip = start.entry - run.first if not result else 0
            entries = (
                run.entries[skip : skip + entries_max - len(result)] if skip or result else run.entries[:entries_max]
            )
            fitting = within(entries, bytes_max, first_always=not result)
            result += as_log_entries(run.ledger_id, run.first + skip, fitting)
            bytes_max -= sum(map(len, fitting))
            if len(fitting) < len(entries) or len(result) >= entries_max or bytes_max <= 0:
                break
        return result

    def pop_oldest(self) -> int:
        """Drop the oldest run and return its cost."""
        del self.runs[0]
        del self.firsts[0]
        return self.costs.pop(0)


class TailCache:
    """A common bound for the tails of all logs."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._order: deque[LogTail] = deque()  # one item per run, oldest first
        self._forgotten = 0  # estimated items whose runs are gone

    @property
    def bytes_held(self) -> int:
        return self._bytes

    def add(self, tail: LogTail, run: Run, size: int) -> None:
        """Cache a run whose entries have ``size`` bytes in total."""
        cost = size + _ENTRY_OVERHEAD * len(run.entries)
        tail.runs.append(run)
        tail.firsts.append((run.ledger_id, run.first))
        tail.costs.append(cost)
        self._order.append(tail)
        self._bytes += cost
        while self._bytes > self._bytes_max:
            self._evict()

    def remove(self, tail: LogTail) -> None:
        """Remove a log. Its items in the order are skipped later, or dropped once they are the majority."""
        self._bytes -= sum(tail.costs)
        self._forgotten += len(tail.runs)
        tail.runs.clear()
        tail.firsts.clear()
        tail.costs.clear()
        if self._forgotten > len(self._order) // 2:
            self._order = deque(tail for tail in self._order if tail.runs)
            self._forgotten = 0

    def _evict(self) -> None:
        tail = self._order.popleft()
        if tail.runs:
            self._bytes -= tail.pop_oldest()
        else:
            self._forgotten -= 1


def within(entries: list[bytes], bytes_max: int, *, first_always: bool = True) -> list[bytes]:
    """Return the longest prefix of ``entries`` that fits, with at least one entry if ``first_always``."""
    ends = list(accumulate(map(len, entries)))
    if not ends or ends[-1] <= bytes_max:
        return entries
    return entries[: max(int(first_always), bisect_right(ends, bytes_max))]


def as_log_entries(ledger_id: int, first: int, entries: list[bytes]) -> list[LogEntry]:
    """Return the entries with positions, without a Python call per entry, since every message passes here."""
    numbers = range(first, first + len(entries))
    positions = map(tuple.__new__, repeat(Position), zip(repeat(ledger_id), numbers, strict=False))
    return list(map(tuple.__new__, repeat(LogEntry), zip(positions, entries, strict=False)))
