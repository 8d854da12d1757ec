"""Positions of one topic before and after its ledgers were copied. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from interpulse.model.ids import EARLIEST, Position
from interpulse.storage.cursors.cursor_records import CursorRecord

__all__ = ["CopiedLedger", "moved_cursor", "moved_end"]


class CopiedLedger(NamedTuple):
    """A ledger with entries, its id here and there, and how many it has in both."""

    old_id: int
    new_id: int
    entries: int


def moved_end(position: Position, ledgers: Sequence[CopiedLedger]) -> Position:
    """Where a position that ends something stands now: all entries up to it, and no others, are before it or at it.

    ``ledgers`` are all that hold entries, oldest first. One that lies in none of them, for it was trimmed or is empty,
    becomes the end of the ledger before, or stands before every entry.
    """
    at = bisect_right(ledgers, position.ledger, key=lambda each: each.old_id) - 1
    if at < 0:
        return Position(ledgers[0].new_id, -1) if ledgers else EARLIEST
    ledger = ledgers[at]
    last = ledger.entries - 1
    return Position(ledger.new_id, min(position.entry, last) if ledger.old_id == position.ledger else last)


def moved_cursor(record: CursorRecord, ledgers: Sequence[CopiedLedger]) -> CursorRecord:
    """The same acknowledgements of the same entries. Those of entries that are gone are left out."""
    there = {each.old_id: each for each in ledgers}
    ranges = [
        (there[ledger].new_id, first, min(last, there[ledger].entries - 1))
        for ledger, first, last in record.ranges
        if ledger in there and first < there[ledger].entries
    ]
    batches = [
        (Position(there[position.ledger].new_id, position.entry), words)
        for position, words in record.batches
        if position.ledger in there and position.entry < there[position.ledger].entries
    ]
    return replace(
        record, mark_delete=moved_end(record.mark_delete, ledgers), ranges=tuple(ranges), batches=tuple(batches)
    )
