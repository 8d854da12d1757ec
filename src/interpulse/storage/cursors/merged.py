"""Two states of one cursor taken together. Pure.

Whoever owns a topic may find that somebody else has written the record of a cursor all the same. Both may have
acknowledged what the other one has not, and nothing acknowledged is to come back.
Source: docs/reference/cluster-protocol.md#claimed-cursors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from interpulse.model.ids import Position
from interpulse.storage.cursors.cursor_records import CursorRecord

__all__ = ["is_continued", "merged"]

_Range = tuple[int, int, int]


def merged(ours: CursorRecord, theirs: CursorRecord) -> CursorRecord:
    """What either has acknowledged; everything else as ours says."""
    mark_delete = max(ours.mark_delete, theirs.mark_delete)
    ranges = tuple(_behind(mark_delete, _merged([*ours.ranges, *theirs.ranges])))
    waiting = dict(theirs.batches)
    for position, words in ours.batches:
        waiting[position] = _still_waiting(words, waiting[position]) if position in waiting else words
    batches = tuple(
        (position, words)
        for position, words in sorted(waiting.items())
        if position > mark_delete and not _covers(ranges, position)
    )
    return replace(ours, mark_delete=mark_delete, ranges=ranges, batches=batches)


def is_continued(before: CursorRecord, after: CursorRecord) -> bool:
    """Whether nothing that was acknowledged waits again: the cursor was neither reset nor sought in between."""
    behind = _behind(after.mark_delete, before.ranges)
    return after.mark_delete >= before.mark_delete and all(
        any(ledger == other and low <= first and last <= high for other, low, high in _merged(after.ranges))
        for ledger, first, last in behind
    )


def _merged(ranges: Iterable[_Range]) -> list[_Range]:
    """In order, those that touch as one."""
    merged: list[_Range] = []
    for ledger, first, last in sorted(ranges):
        if merged and merged[-1][0] == ledger and first <= merged[-1][2] + 1:
            merged[-1] = ledger, merged[-1][1], max(merged[-1][2], last)
        else:
            merged.append((ledger, first, last))
    return merged


def _behind(mark_delete: Position, ranges: Iterable[_Range]) -> list[_Range]:
    """What of the ranges lies behind a position."""
    return [
        (ledger, max(first, mark_delete.entry + 1) if ledger == mark_delete.ledger else first, last)
        for ledger, first, last in ranges
        if Position(ledger, last) > mark_delete
    ]


def _covers(ranges: Iterable[_Range], position: Position) -> bool:
    return any(ledger == position.ledger and first <= position.entry <= last for ledger, first, last in ranges)


def _still_waiting(ours: tuple[int, ...], theirs: tuple[int, ...]) -> tuple[int, ...]:
    """A message waits if neither has acknowledged it; words that one leaves out are acknowledged."""
    return tuple(a & b for a, b in zip(ours, theirs, strict=False))
