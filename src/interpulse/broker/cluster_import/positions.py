"""Positions of one topic before and after its ledgers were copied. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from interpulse.model.ids import EARLIEST, Position
from interpulse.storage.cursors import CursorRecord


class CopiedLedger(NamedTuple):
    """A ledger with entries: its source id, its id in the cluster, and the number of its entries."""

    old_id: int
    new_id: int
    entries: int


def moved_end(position: Position, ledgers: Sequence[CopiedLedger]) -> Position:
    """Translate an end position: the same entries are before it or at it.

    ``ledgers`` are all that hold entries, oldest first. A position in another ledger, trimmed or empty, becomes the end
    of the ledger before it, or a position before every entry.
    """
    at = bisect_right(ledgers, position.ledger, key=lambda ledger: ledger.old_id) - 1
    if at < 0:
        return Position(ledgers[0].new_id, -1) if ledgers else EARLIEST
    ledger = ledgers[at]
    last = ledger.entries - 1
    return Position(ledger.new_id, min(position.entry, last) if ledger.old_id == position.ledger else last)


def moved_cursor(record: CursorRecord, ledgers: Sequence[CopiedLedger]) -> CursorRecord:
    """Translate a cursor. Acknowledgements of trimmed entries are left out."""
    there = {ledger.old_id: ledger for ledger in ledgers}
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
