"""Positions of copies: which entry of a target is the copy of which entry of the source. Pure.

Copies that are stored side by side, like their originals, form a run. Positions rise strictly on both clusters, and not
every entry has a counterpart. So runs are ordered alike on both sides, and one table serves both directions.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from interpulse.model.ids import Position
from interpulse.model.numbers import LONG_MAX
from interpulse.replication.acknowledgements import Span


class Run(NamedTuple):
    """Consecutive entries of one ledger of the source, and their copies, consecutive in one ledger of the target."""

    source: Position
    target: Position
    length: int

    @property
    def source_end(self) -> Position:
        """Position of the last entry on the source."""
        return Position(self.source.ledger, self.source.entry + self.length - 1)

    @property
    def target_end(self) -> Position:
        """Position of the last copy on the target."""
        return Position(self.target.ledger, self.target.entry + self.length - 1)

    def is_followed_by(self, other: Run) -> bool:
        """Return True if another run begins right behind this one on both sides."""
        (source_ledger, source_entry), (target_ledger, target_entry), length = self
        return other.source == (source_ledger, source_entry + length) and other.target == (
            target_ledger,
            target_entry + length,
        )

    @property
    def _shift(self) -> tuple[int, int, int]:
        """Ledgers of both sides and the distance of entry numbers, which runs that may be joined have in common."""
        return self.source.ledger, self.target.ledger, self.target.entry - self.source.entry


def checked_run(source_ledger: int, source_entry: int, target_ledger: int, target_entry: int, length: int) -> Run:
    """Return a run with these fields. Raises ValueError if they are no positions, or have no entries."""
    run = Run(Position(source_ledger, source_entry), Position(target_ledger, target_entry), length)
    _check(run)
    return run


def _check(run: Run) -> None:
    is_valid = run.length > 0 and min(*run.source, *run.target) >= 0
    if not is_valid or max(run.source.entry, run.target.entry) > LONG_MAX - run.length:
        raise ValueError(f"not a run of copies: {run.length} entries from {run.source}, copied to {run.target}")


class _Starts:
    """First positions of all runs on one cluster, rising."""

    __slots__ = ("entries", "ledgers")

    def __init__(self) -> None:
        self.ledgers = array("q")
        self.entries = array("q")

    def before(self, ledger: int, entry: int) -> int:
        """Return the number of runs that start before a position."""
        low = bisect_left(self.ledgers, ledger)
        return bisect_left(self.entries, entry, low, bisect_right(self.ledgers, ledger, low))

    def append(self, position: Position) -> None:
        self.ledgers.append(position.ledger)
        self.entries.append(position.entry)

    def replace(self, where: slice, positions: Sequence[Position]) -> None:
        self.ledgers[where] = array("q", [position.ledger for position in positions])
        self.entries[where] = array("q", [position.entry for position in positions])


class PositionRuns:
    """Map between the positions of a source topic-partition and those of its copies. A run takes 40 bytes."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        """Add runs, in any order. Raises ValueError; see :meth:`add`."""
        self._source = _Starts()
        self._target = _Starts()
        self._lengths = array("q")
        for run in runs:
            self.add(run)

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._lengths)

    def __iter__(self) -> Iterator[Run]:
        """Yield the runs, rising."""
        return map(self._run, range(len(self)))

    @property
    def last(self) -> Run | None:
        """The last run; None if there is none."""
        return self._run(-1) if self._lengths else None

    def _run(self, index: int) -> Run:
        source, target = self._source, self._target
        return Run(
            Position(source.ledgers[index], source.entries[index]),
            Position(target.ledgers[index], target.entries[index]),
            self._lengths[index],
        )

    def add(self, run: Run) -> None:
        """Add a run, which may overlap with others. Constant time behind the last run, linear time in the middle.

        Raises ValueError if it contradicts another run: an entry has one copy, and copies have the order of their
        originals. Nothing is changed then.
        """
        _check(run)
        if not self._append(run):
            self._insert(run)

    def _append(self, run: Run) -> bool:
        """Add a run that is behind all others. Return False if it is not."""
        if self._lengths:
            last = self._run(-1)
            if last.is_followed_by(run):
                self._lengths[-1] += run.length
                return True
            if run.source <= last.source_end or run.target <= last.target_end:
                return False
        self._source.append(run.source)
        self._target.append(run.target)
        self._lengths.append(run.length)
        return True

    def _insert(self, run: Run) -> None:
        first, after = self._overlap(self._source, run.source, run.length)
        parts = [run, *map(self._run, range(first, after))]
        on_target = self._overlap(self._target, run.target, run.length)
        if on_target != (first, after) or any(part._shift != run._shift for part in parts):
            raise ValueError(self._contradiction(run, min(first, on_target[0]), max(after, on_target[1])))
        if first and (before := self._run(first - 1)).is_followed_by(run):
            first -= 1
            parts.append(before)
        if after < len(self) and run.is_followed_by(behind := self._run(after)):
            after += 1
            parts.append(behind)
        self._replace(slice(first, after), [_joined(parts)])

    def _overlap(self, side: _Starts, position: Position, length: int) -> tuple[int, int]:
        """Return the index of the first run that overlaps with these entries of one side, and of the one behind."""
        ledger, entry = position
        first = side.before(ledger, entry)
        if first and side.ledgers[first - 1] == ledger and side.entries[first - 1] + self._lengths[first - 1] > entry:
            first -= 1
        return first, side.before(ledger, entry + length)

    def _replace(self, where: slice, runs: Sequence[Run]) -> None:
        self._source.replace(where, [run.source for run in runs])
        self._target.replace(where, [run.target for run in runs])
        self._lengths[where] = array("q", [run.length for run in runs])

    def _contradiction(self, run: Run, first: int, after: int) -> str:
        known = "; ".join(_shown(self._run(index)) for index in range(first, min(after, first + 3)))
        return (
            f"copies of {_shown(run)} contradict {known}: the source or the target was rebuilt, or another lane has "
            f"copied these entries again; read the positions from the target again"
        )

    def to_target(self, span: Span) -> Iterator[Span]:
        """Yield the copies of a span of source entries, for each run.

        They rise. Entries without a known copy are left out. Use all of it before the map changes.
        """
        return self._translated(self._source, self._target, span)

    def to_source(self, span: Span) -> Iterator[Span]:
        """Yield the originals of a span of target entries; see :meth:`to_target`."""
        return self._translated(self._target, self._source, span)

    def _translated(self, side: _Starts, other: _Starts, span: Span) -> Iterator[Span]:
        first, last = span
        for index in range(self._overlap(side, first, 0)[0], side.before(last.ledger, last.entry + 1)):
            ledger, start, count = side.ledgers[index], side.entries[index], self._lengths[index]
            low, high = max(first, (ledger, start)), min(last, (ledger, start + count - 1))
            there, distance = other.ledgers[index], other.entries[index] - start
            yield Span(Position(there, low[1] + distance), Position(there, high[1] + distance))

    def target_of(self, position: Position) -> Position | None:
        """Return the position of the copy of a source entry; None if it has no known copy."""
        return _first(self.to_target(Span(position, position)))

    def source_of(self, position: Position) -> Position | None:
        """Return the position of the original of a target entry; None if it is not known as a copy."""
        return _first(self.to_source(Span(position, position)))

    def drop(self, source: Position, target: Position) -> None:
        """Forget the runs that end at or before a position of the source, and one of the target as well."""
        ended = min(self._ended(self._source, source), self._ended(self._target, target))
        self._replace(slice(0, ended), [])

    def _ended(self, side: _Starts, position: Position) -> int:
        """Return the number of runs that end at or before a position of one side."""
        return self._overlap(side, Position(position.ledger, position.entry + 1), 0)[0]

    def cut(self, source: Position) -> None:
        """Forget the source entries from a position on."""
        first, after = self._overlap(self._source, source, 0)
        if first < after:
            self._lengths[first] = source.entry - self._source.entries[first]
        self._replace(slice(after, len(self)), [])


def _first(spans: Iterator[Span]) -> Position | None:
    span = next(spans, None)
    return None if span is None else span.first


def _joined(parts: Sequence[Run]) -> Run:
    """Return the run of parts that overlap or touch."""
    source, target, _ = min(parts)
    return Run(source, target, max(part.source_end for part in parts).entry - source.entry + 1)


def _shown(run: Run) -> str:
    return f"{run.source} to {run.source_end} at {run.target}"
