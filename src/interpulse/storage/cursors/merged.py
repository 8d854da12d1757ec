"""Merged states of one cursor. Pure.

The owner of a topic may see that another broker has written the record of a cursor nevertheless. Each may have
acknowledged entries that the other has not, and nothing acknowledged may be delivered again. Source:
docs/reference/cluster-protocol.md#claimed-cursors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from interpulse.model.ids import Position
from interpulse.storage.cursors.cursor_records import CursorRecord

_Range = tuple[int, int, int]


def merged(ours: CursorRecord, theirs: CursorRecord) -> CursorRecord:
    """Return the state with the acknowledgements of both. Everything else is taken from ``ours``."""
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
    """Return True if nothing acknowledged became unacknowledged: the cursor was neither reset nor sought in between."""
    beyond = _behind(after.mark_delete, before.ranges)
    return after.mark_delete >= before.mark_delete and all(
        any(ledger == other and low <= first and last <= high for other, low, high in _merged(after.ranges))
        for ledger, first, last in beyond
    )


def _merged(ranges: Iterable[_Range]) -> list[_Range]:
    """Return the ranges in order, with adjacent ones joined."""
    merged: list[_Range] = []
    for ledger, first, last in sorted(ranges):
        if merged and merged[-1][0] == ledger and first <= merged[-1][2] + 1:
            merged[-1] = ledger, merged[-1][1], max(merged[-1][2], last)
        else:
            merged.append((ledger, first, last))
    return merged


def _behind(mark_delete: Position, ranges: Iterable[_Range]) -> list[_Range]:
    return [
        (ledger, max(first, mark_delete.entry + 1) if ledger == mark_delete.ledger else first, last)
        for ledger, first, last in ranges
        if Position(ledger, last) > mark_delete
    ]


def _covers(ranges: Iterable[_Range], position: Position) -> bool:
    return any(ledger == position.ledger and first <= position.entry <= last for ledger, first, last in ranges)


def _still_waiting(ours: tuple[int, ...], theirs: tuple[int, ...]) -> tuple[int, ...]:
    """Return the batch index in which a message waits if neither side acknowledged it; missing words do not wait."""
    return tuple(a & b for a, b in zip(ours, theirs, strict=False))
