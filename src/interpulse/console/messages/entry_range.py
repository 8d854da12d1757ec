"""The stored entries of a topic, counted from the first. Pure.

Links name positions, because the number of an entry changes when earlier ledgers are deleted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from interpulse.model.ids import Position


class EntryRange:
    """Ledgers in their order, each with the number of its entries."""

    def __init__(self, ledgers: list[tuple[int, int]]) -> None:
        self._ledgers = [(ledger, count) for ledger, count in ledgers if count > 0]
        self._begins = [0, *accumulate(count for _, count in self._ledgers)]

    @classmethod
    def of(cls, internal_stats: Mapping[str, Any]) -> EntryRange:
        """Return the range from the topic's statistics, which list the count of the current ledger separately."""
        ledgers = [(int(ledger["ledgerId"]), int(ledger.get("entries", 0))) for ledger in internal_stats["ledgers"]]
        if ledgers:
            ledger, count = ledgers[-1]
            ledgers[-1] = ledger, max(count, int(internal_stats.get("currentLedgerEntries", 0)))
        return cls(ledgers)

    def __len__(self) -> int:
        return self._begins[-1]

    def __getitem__(self, number: int) -> Position:
        """Return the position of an entry. Raise IndexError."""
        if not 0 <= number < len(self):
            raise IndexError(f"entry {number} of {len(self)}")
        ledger = bisect_right(self._begins, number) - 1
        return Position(self._ledgers[ledger][0], number - self._begins[ledger])

    def number(self, position: Position) -> int:
        """Return the number of the entry at a position, or of the next one; the length if there is none."""
        for (ledger, count), begin in zip(self._ledgers, self._begins, strict=False):
            if ledger == position.ledger:
                return begin + min(max(position.entry, 0), count)
            if ledger > position.ledger:
                return begin
        return len(self)
