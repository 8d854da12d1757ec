"""All segments of a log directory and their records, in memory. Used only in the event loop; does no IO.

A segment is alive while one of its ledgers is. Ledgers are dropped whole. A segment without a living ledger may be
unlinked once it is sealed; nothing else changes a sealed segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from interpulse.storage.segments.records import SEGMENT_HEAD, LedgerRows, Row


def segment_path(directory: Path, number: int) -> Path:
    """Return the path of the records of segment ``number``."""
    return directory / f"{number:010d}.seg"


def index_path(directory: Path, number: int) -> Path:
    """Return the path of the index of segment ``number``."""
    return directory / f"{number:010d}.idx"


@dataclass(slots=True)
class Segment:
    """One segment, and the rows of its living ledgers."""

    number: int
    path: Path
    size: int = SEGMENT_HEAD
    sealed: bool = False
    mysterious: bool = False  # holds lost records of unknown ledgers; stays for a rescue
    ledgers: dict[int, LedgerRows] = field(default_factory=dict)

    def rows_of(self, ledger_id: int) -> LedgerRows:
        """Return the records of a ledger, an empty object if there are none."""
        rows = self.ledgers.get(ledger_id)
        if rows is None:
            rows = self.ledgers[ledger_id] = LedgerRows()
        return rows

    def add(self, row: Row) -> None:
        """Add a record at its offset."""
        self.rows_of(row.ledger_id).add(row.first, row.entries, row.offset, row.length)


@dataclass(frozen=True, slots=True)
class Extent:
    """A record to read, and the wanted entries in it."""

    segment: Segment
    row: Row
    skip: int
    count: int


class SegmentSet:
    """The records of ledgers across segments."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._segments: dict[int, Segment] = {}
        self._holders: dict[int, list[Segment]] = {}  # per ledger, oldest first
        for segment in sorted(segments, key=lambda segment: segment.number):
            self._segments[segment.number] = segment
            for ledger_id in segment.ledgers:
                self._holders.setdefault(ledger_id, []).append(segment)

    @property
    def ledger_ids(self) -> list[int]:
        """Every ledger that has a record somewhere."""
        return list(self._holders)

    @property
    def next_number(self) -> int:
        """A number above every segment."""
        return max(self._segments, default=0) + 1

    def begin(self, segment: Segment) -> None:
        """Add a new segment."""
        self._segments[segment.number] = segment

    def add(self, segment: Segment, row: Row) -> None:
        """Add a durable record at the end of a segment."""
        has_ledger = row.ledger_id in segment.ledgers
        segment.add(row)
        if not has_ledger:
            self._holders.setdefault(row.ledger_id, []).append(segment)

    def parts(self, ledger_id: int) -> Iterator[tuple[Segment, LedgerRows]]:
        """Yield the segments with records of the ledger, oldest first, and these records."""
        for segment in self._holders.get(ledger_id, ()):
            yield segment, segment.ledgers[ledger_id]

    def measure(self, ledger_id: int) -> tuple[int, int]:
        """Return the number of entries of the ledger, and their bytes."""
        rows = [rows for _, rows in self.parts(ledger_id)]
        return (rows[-1].end, sum(row.size for row in rows)) if rows else (0, 0)

    def extents(self, ledger_id: int, first: int, entries_max: int, bytes_max: int) -> list[Extent]:
        """Return the records to read for at most this much, at least one; empty if the ledger is gone."""
        extents: list[Extent] = []
        end = first + entries_max
        for segment, rows in self.parts(ledger_id):
            if rows.end <= first:
                continue
            for index in range(rows.row_of(first), len(rows.firsts)):
                row = rows.row(index, ledger_id)
                if first >= end or (bytes_max <= 0 and extents):
                    return extents
                count = min(end, row.first + row.entries) - first
                extents.append(Extent(segment, row, first - row.first, count))
                bytes_max -= row.length * count // row.entries
                first += count
        return extents

    def forget(self, ledger_ids: Iterable[int]) -> list[Segment]:
        """Drop ledgers. Remove and return the sealed segments that no log needs any more."""
        touched: dict[int, Segment] = {}
        for ledger_id in ledger_ids:
            for segment in self._holders.pop(ledger_id, ()):
                del segment.ledgers[ledger_id]
                touched[segment.number] = segment
        return self.remove_empty(touched.values())

    def remove_empty(self, segments: Iterable[Segment] | None = None) -> list[Segment]:
        """Remove and return the sealed segments without a living ledger, of these or of all."""
        candidates = list(self._segments.values() if segments is None else segments)
        empty = [segment for segment in candidates if segment.sealed and not segment.ledgers and not segment.mysterious]
        for segment in empty:
            del self._segments[segment.number]
        return empty
