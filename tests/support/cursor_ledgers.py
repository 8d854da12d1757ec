"""The ledgers of cursors, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from interpulse.storage.bookkeeper.errors import LedgerFenced, NoLedger
from interpulse.storage.bookkeeper.records import Quorum


class Ledger:
    def __init__(self, ledger_id: int, custom: Mapping[str, bytes]) -> None:
        self.ledger_id = ledger_id
        self.custom = custom
        self.entries: list[bytes] = []
        self.failure: Exception | None = None
        self.abandoned = False

    @property
    def last_confirmed(self) -> int:
        return len(self.entries) - 1

    async def add(self, payload: bytes) -> int:
        if self.failure is not None:
            raise self.failure
        self.entries.append(payload)
        return len(self.entries) - 1

    async def read(self, first: int, *, entries_max: int, bytes_max: int) -> list[bytes]:
        return self.entries[first : first + entries_max]

    def abandon(self) -> None:
        self.abandoned = True


class Ledgers:
    """Ledgers in memory: one that is recovered is fenced for its writer."""

    def __init__(self, first_id: int = 1) -> None:
        self.there: dict[int, Ledger] = {}
        self.ids = count(first_id)
        self.failure: Exception | None = None

    async def create(self, quorum: Quorum, *, custom: Mapping[str, bytes] | None = None) -> Ledger:
        if self.failure is not None:
            raise self.failure
        ledger = Ledger(next(self.ids), custom or {})
        self.there[ledger.ledger_id] = ledger
        return ledger

    async def recover(self, ledger_id: int) -> Ledger:
        if ledger_id not in self.there:
            raise NoLedger(ledger_id)
        if self.failure is not None:
            raise self.failure
        self.there[ledger_id].failure = LedgerFenced(ledger_id, "recovered")
        return self.there[ledger_id]

    async def delete(self, ledger_id: int) -> None:
        self.there.pop(ledger_id, None)
