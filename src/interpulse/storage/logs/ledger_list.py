"""The ledgers of one log in memory: existing positions, and their order.

A position exists if its ledger is in the list and its entry is below the ledger's durable count. Ledger ids grow from
left to right. Empty ledgers may occur anywhere and are skipped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from interpulse.model.ids import Position
from interpulse.storage.api import LedgerRecord


class LedgerList:
    """Durable entry counts per ledger, oldest first, and steps between their positions."""

    __slots__ = ("_created_ms", "_entries", "_ids", "_sizes")

    def __init__(self, records: Iterable[LedgerRecord] = ()) -> None:
        rows = list(records)
        self._ids = [row.ledger_id for row in rows]
        self._entries = [row.entries for row in rows]
        self._sizes = [row.size for row in rows]
        self._created_ms = [row.created_ms for row in rows]
        assert self._ids == sorted(set(self._ids)), "ledger ids must grow"

    @property
    def records(self) -> Sequence[LedgerRecord]:
        """All ledgers, oldest first."""
        return tuple(map(LedgerRecord, self._ids, self._entries, self._sizes, self._created_ms))

    @property
    def newest(self) -> LedgerRecord | None:
        """The newest ledger."""
        if not self._ids:
            return None
        return LedgerRecord(self._ids[-1], self._entries[-1], self._sizes[-1], self._created_ms[-1])

    def begin(self, ledger_id: int, created_ms: int) -> None:
        """Add an empty ledger at the end."""
        assert not self._ids or ledger_id > self._ids[-1], "ledger ids must grow"
        self._ids.append(ledger_id)
        self._entries.append(0)
        self._sizes.append(0)
        self._created_ms.append(created_ms)

    def extend(self, ledger_id: int, first: int, entries: int, size: int) -> None:
        """Count entries that became durable; they must follow those already counted."""
        index = bisect_left(self._ids, ledger_id)
        assert self._entries[index] == first, "entry ids must be dense"
        self._entries[index] += entries
        self._sizes[index] += size

    def drop(self, ledger_ids: Iterable[int]) -> None:
        """Remove ledgers."""
        gone = set(ledger_ids)
        remaining = [index for index, ledger_id in enumerate(self._ids) if ledger_id not in gone]
        for column in (self._ids, self._entries, self._sizes, self._created_ms):
            column[:] = [column[index] for index in remaining]

    def entries_of(self, ledger_id: int) -> int:
        """Return the number of entries of a ledger in the list."""
        return self._entries[bisect_left(self._ids, ledger_id)]

    def first_position(self) -> Position | None:
        """Return the first position, None if there is no entry."""
        return self._first_from(0)

    def last_position(self) -> Position:
        """Return the last position, else ``(current ledger, -1)``, else ``(-1, -1)``."""
        for index in range(len(self._ids) - 1, -1, -1):
            if self._entries[index]:
                return Position(self._ids[index], self._entries[index] - 1)
        return Position(self._ids[-1], -1) if self._ids else Position(-1, -1)

    def at_or_after(self, position: Position) -> Position | None:
        """Return the first position at or after ``position``."""
        ledger, entry = position
        index = bisect_left(self._ids, ledger)
        if index == len(self._ids) or self._ids[index] != ledger:
            return self._first_from(index)
        entry = max(entry, 0)
        return Position(ledger, entry) if entry < self._entries[index] else self._first_from(index + 1)

    def next_position(self, after: Position) -> Position | None:
        """Return the first position after ``after``."""
        return self.at_or_after(Position(after.ledger, after.entry + 1))

    def entries_between(self, after: Position, upto: Position) -> int:
        """Return the number of entries in ``(after, upto]``."""
        return max(0, self._rank(upto) - self._rank(after))

    def before(self, position: Position) -> list[int]:
        """Return the ids of the ledgers whose entries are all before ``position``."""
        ledger, entry = position
        index = bisect_left(self._ids, ledger)
        if index < len(self._ids) and self._ids[index] == ledger and self._entries[index] <= entry:
            index += 1
        return self._ids[:index]

    def _rank(self, position: Position) -> int:
        ledger, entry = position
        index = bisect_left(self._ids, ledger)
        counted = self._entries[index] if index < len(self._ids) and self._ids[index] == ledger else 0
        return sum(self._entries[:index]) + min(counted, max(entry + 1, 0))

    def _first_from(self, index: int) -> Position | None:
        for later in range(index, len(self._ids)):
            if self._entries[later]:
                return Position(self._ids[later], 0)
        return None
