"""Split of ranges into pieces, for more tasks than there are topic-partitions. No IO."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from interpulse.model.ids import Position
from interpulse.spark.offsets import TopicRange, entries_between

_USUAL_BYTES: Final = 1024


class Ledger(NamedTuple):
    """One ledger of a topic-partition, as the admin API describes it."""

    id: int
    entries: int
    bytes: int


@dataclass(frozen=True)
class SplitHints:
    """Wanted number of pieces and their maximum size; None where the options set none."""

    pieces_min: int | None = None
    bytes_max: int | None = None
    entries_max: int | None = None

    @property
    def any(self) -> bool:
        return (self.pieces_min, self.bytes_max, self.entries_max) != (None, None, None)


class _Run(NamedTuple):
    """Consecutive entries of one ledger."""

    ledger: int
    first: int
    entries: int
    bytes: int


def split_ranges(
    ranges: Sequence[TopicRange], hints: SplitHints, ledgers: Mapping[str, Sequence[Ledger]]
) -> list[TopicRange]:
    """Return the ranges with their sizes, split where the hints ask for more or smaller ones.

    ``ledgers`` are by topic-partition, in order. If a topic-partition's are unknown, only the entries in the ledger of
    the range's end are split, and those before it stay in one piece.
    """
    runs = {item: _runs(item, ledgers.get(item.topic, ())) for item in ranges}
    whole = sum(run.bytes for parts in runs.values() for run in parts)
    return [piece for item, parts in runs.items() for piece in _cut(item, parts, _pieces(parts, whole, hints))]


def _pieces(runs: Sequence[_Run], whole: int, hints: SplitHints) -> int:
    """Return the number of pieces of a range, from its share of all bytes and the maximum size."""
    count, size = sum(run.entries for run in runs), sum(run.bytes for run in runs)
    wanted = [1]
    if hints.pieces_min is not None:
        wanted.append(math.ceil(hints.pieces_min * size / max(whole, 1)))
    if hints.bytes_max is not None:
        wanted.append(math.ceil(size / hints.bytes_max))
    if hints.entries_max is not None:
        wanted.append(math.ceil(count / hints.entries_max))
    return min(max(wanted), max(count, 1))


def _runs(item: TopicRange, ledgers: Sequence[Ledger]) -> list[_Run]:
    """Return the entries of a range by ledger."""
    if not ledgers:
        first = item.after.entry + 1 if item.after.ledger == item.upto.ledger else 0
        count = entries_between(item.after, item.upto)
        return [_Run(item.upto.ledger, first, count, item.bytes_estimate or count * _USUAL_BYTES)]
    runs = []
    for ledger in ledgers:
        first = item.after.entry + 1 if ledger.id == item.after.ledger else 0
        last = min(item.upto.entry, ledger.entries - 1) if ledger.id == item.upto.ledger else ledger.entries - 1
        if item.after.ledger <= ledger.id <= item.upto.ledger and last >= first:
            count = last - first + 1
            runs.append(_Run(ledger.id, first, count, count * ledger.bytes // max(ledger.entries, 1)))
    return runs


def _cut(item: TopicRange, runs: Sequence[_Run], pieces: int) -> list[TopicRange]:
    """Return pieces with equally many entries each, which together are the range."""
    count, size = sum(run.entries for run in runs), sum(run.bytes for run in runs)
    if pieces <= 1:
        return [item._replace(bytes_estimate=size)]
    cuts = [count * number // pieces for number in range(1, pieces)]
    ends = [*(_nth(runs, cut) for cut in cuts), item.upto]
    starts = [item.after, *ends]
    firsts = [item.first, *(_nth(runs, cut + 1) for cut in cuts)]
    return [
        item._replace(after=after, upto=upto, bytes_estimate=size // pieces, first=first)
        for after, upto, first in zip(starts, ends, firsts, strict=False)
        if after < upto
    ]


def _nth(runs: Sequence[_Run], number: int) -> Position:
    """Return the position of the entry with this number, counted from 1."""
    for run in runs:
        if number <= run.entries:
            return Position(run.ledger, run.first + number - 1)
        number -= run.entries
    raise AssertionError(number)
