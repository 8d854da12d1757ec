"""All segments of a log directory and the records in them, in memory. Lives in the event loop; does no IO.

A segment is living while one of its ledgers is. Ledgers are dropped whole; a segment that no log needs may be unlinked
once it is sealed, and nothing else ever changes a sealed segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from interpulse.storage.segments.index import LedgerRows, Row
from interpulse.storage.segments.records import SEGMENT_HEAD

__all__ = ["Extent", "Segment", "SegmentSet", "index_path", "segment_path"]


def segment_path(directory: Path, number: int) -> Path:
    """Where the records of segment ``number`` are."""
    return directory / f"{number:010d}.seg"


def index_path(directory: Path, number: int) -> Path:
    """Where the index of segment ``number`` is."""
    return directory / f"{number:010d}.idx"


@dataclass(slots=True)
class Segment:
    """One segment and the rows of the ledgers in it that are still wanted."""

    number: int
    path: Path
    size: int = SEGMENT_HEAD
    sealed: bool = False
    mysterious: bool = False  # holds lost records of unknown ledgers; kept for a rescue
    ledgers: dict[int, LedgerRows] = field(default_factory=dict)

    def rows_of(self, ledger_id: int) -> LedgerRows:
        """The records of a ledger; made if there are none."""
        rows = self.ledgers.get(ledger_id)
        if rows is None:
            rows = self.ledgers[ledger_id] = LedgerRows()
        return rows

    def add(self, row: Row) -> None:
        """Note a record at its place."""
        self.rows_of(row.ledger_id).add(row.first, row.entries, row.offset, row.length)


@dataclass(frozen=True, slots=True)
class Extent:
    """A record to read, and which of its entries are wanted."""

    segment: Segment
    row: Row
    skip: int
    count: int


class SegmentSet:
    """Finds the records of ledgers across segments."""

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
        """Above every segment there is."""
        return max(self._segments, default=0) + 1

    def begin(self, segment: Segment) -> None:
        """Take in a new segment."""
        self._segments[segment.number] = segment

    def add(self, segment: Segment, row: Row) -> None:
        """Note a durable record at the end of a segment."""
        has_ledger = row.ledger_id in segment.ledgers
        segment.add(row)
        if not has_ledger:
            self._holders.setdefault(row.ledger_id, []).append(segment)

    def parts(self, ledger_id: int) -> Iterator[tuple[Segment, LedgerRows]]:
        """The segments that hold records of the ledger, oldest first, with these records."""
        for segment in self._holders.get(ledger_id, ()):
            yield segment, segment.ledgers[ledger_id]

    def measure(self, ledger_id: int) -> tuple[int, int]:
        """Entries of the ledger, and their bytes."""
        rows = [rows for _, rows in self.parts(ledger_id)]
        return (rows[-1].end, sum(row.size for row in rows)) if rows else (0, 0)

    def extents(self, ledger_id: int, first: int, entries_max: int, bytes_max: int) -> list[Extent]:
        """The records to read for at most so much, at least one; empty if the ledger is not here (any more)."""
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
        """Drop ledgers; the sealed segments that no log needs any more are removed from the set and returned."""
        touched: dict[int, Segment] = {}
        for ledger_id in ledger_ids:
            for segment in self._holders.pop(ledger_id, ()):
                del segment.ledgers[ledger_id]
                touched[segment.number] = segment
        return self.remove_empty(touched.values())

    def remove_empty(self, segments: Iterable[Segment] | None = None) -> list[Segment]:
        """Of these segments (or all), take out the sealed ones that hold nothing living."""
        candidates = list(self._segments.values() if segments is None else segments)
        empty = [segment for segment in candidates if segment.sealed and not segment.ledgers and not segment.mysterious]
        for segment in empty:
            del self._segments[segment.number]
        return empty
