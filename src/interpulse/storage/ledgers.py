"""The ledgers of one log in memory: which positions exist, and what follows what.

A position exists if its ledger is in the list and its entry is below the ledger's durable count. Ledger ids grow from
left to right; empty ledgers may stand anywhere and are stepped over.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from interpulse.model.ids import Position
from interpulse.storage.api import LedgerRecord

__all__ = ["LedgerList"]


class LedgerList:
    """Durable entry counts per ledger, oldest first, and the walk over their positions."""

    __slots__ = ("_ids", "_records")

    def __init__(self, records: Iterable[LedgerRecord] = ()) -> None:
        self._records = list(records)
        self._ids = [record.ledger_id for record in self._records]
        assert self._ids == sorted(set(self._ids)), "ledger ids must grow"

    @property
    def records(self) -> Sequence[LedgerRecord]:
        """All ledgers, oldest first."""
        return tuple(self._records)

    @property
    def newest(self) -> LedgerRecord | None:
        """The ledger that was begun last."""
        return self._records[-1] if self._records else None

    def begin(self, ledger_id: int, created_ms: int) -> None:
        """Add an empty ledger at the end."""
        assert not self._ids or ledger_id > self._ids[-1], "ledger ids must grow"
        self._ids.append(ledger_id)
        self._records.append(LedgerRecord(ledger_id, 0, 0, created_ms))

    def extend(self, ledger_id: int, first: int, entries: int, size: int) -> None:
        """Count entries that became durable; they must follow those already counted."""
        index = bisect_left(self._ids, ledger_id)
        record = self._records[index]
        assert record.entries == first, "entry ids must be dense"
        self._records[index] = record._replace(entries=record.entries + entries, size=record.size + size)

    def drop(self, ledger_ids: Iterable[int]) -> None:
        """Forget ledgers."""
        gone = set(ledger_ids)
        self._records = [record for record in self._records if record.ledger_id not in gone]
        self._ids = [record.ledger_id for record in self._records]

    def record(self, ledger_id: int) -> LedgerRecord:
        """The record of a ledger that is in the list."""
        return self._records[bisect_left(self._ids, ledger_id)]

    def first_position(self) -> Position | None:
        """The first entry there is."""
        return self._first_from(0)

    def last_position(self) -> Position:
        """The last entry, else ``(current ledger, -1)``, else ``(-1, -1)``."""
        for record in reversed(self._records):
            if record.entries:
                return Position(record.ledger_id, record.entries - 1)
        return Position(self._ids[-1], -1) if self._ids else Position(-1, -1)

    def at_or_after(self, position: Position) -> Position | None:
        """The first entry that is not before ``position``."""
        ledger, entry = position
        index = bisect_left(self._ids, ledger)
        if index < len(self._ids) and self._ids[index] == ledger:
            if entry < self._records[index].entries:
                return Position(ledger, max(entry, 0)) if self._records[index].entries else self._first_from(index + 1)
            index += 1
        return self._first_from(index)

    def next_position(self, after: Position) -> Position | None:
        """The first entry behind ``after``."""
        return self.at_or_after(Position(after.ledger, after.entry + 1))

    def entries_between(self, after: Position, upto: Position) -> int:
        """How many entries lie in ``(after, upto]``."""
        if upto <= after:
            return 0
        low = bisect_left(self._ids, after.ledger)
        high = bisect_right(self._ids, upto.ledger)
        return sum(_covered(record, after, upto) for record in self._records[low:high])

    def before(self, position: Position) -> list[int]:
        """Ids of the ledgers whose entries all lie before ``position``."""
        ledger, entry = position
        return [
            record.ledger_id
            for record in self._records
            if record.ledger_id < ledger or (record.ledger_id == ledger and record.entries <= entry)
        ]

    def _first_from(self, index: int) -> Position | None:
        for record in self._records[index:]:
            if record.entries:
                return Position(record.ledger_id, 0)
        return None


def _covered(record: LedgerRecord, after: Position, upto: Position) -> int:
    low = after.entry + 1 if record.ledger_id == after.ledger else 0
    high = upto.entry + 1 if record.ledger_id == upto.ledger else record.entries
    return max(0, min(high, record.entries) - max(low, 0))
