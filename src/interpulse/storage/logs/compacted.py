"""The compacted ledger of one log, in the same journal as all other ledgers.

Its entries are in the order of the log, each preceded by its position there. The ledger is written to its end and
sealed. Then one write makes it current, and the ledger before it is deleted.

A broker alone names it in the topic record. A ledger that no record names belongs to no log, and the next start drops
it. In a cluster a `CompactedPointer` names it. A write of the pointer that fails may have been applied, so both ledgers
stay. Source: docs/reference/cluster-protocol.md#compaction.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Sequence
from struct import Struct
from typing import Any, Final, Protocol, TypeVar

from interpulse.model.ids import Position
from interpulse.storage.api import CompactedLedger, CompactedPointer, LogDamaged, LogEntry, LogNotFound
from interpulse.storage.logs.journal import Journal, LedgerGone, LedgerPurpose, LedgerUse, LedgerWriter
from interpulse.storage.logs.topic_records import TopicRecord, TopicRecords

R = TypeVar("R")

_POSITION: Final = Struct("<qq")
_PLACES_MAX: Final = 100  # readers that continue without a search


class CompactedForm(Protocol):
    """The form of an entry in a compacted ledger, together with its position in the log."""

    def pack(self, log_entry: LogEntry) -> bytes: ...

    def unpack(self, stored: bytes) -> LogEntry:
        """Decode a stored entry. Raise ValueError for other bytes."""


class _PositionsInFront:
    """A position of two 8-byte numbers, then the entry. See `CompactedForm`."""

    def pack(self, log_entry: LogEntry) -> bytes:
        return _POSITION.pack(*log_entry.position) + log_entry.entry

    def unpack(self, stored: bytes) -> LogEntry:
        return LogEntry(Position(*_POSITION.unpack_from(stored)), stored[_POSITION.size :])


POSITIONS_IN_FRONT: Final[CompactedForm] = _PositionsInFront()
"""The form of a broker alone."""


class CompactedStore(Protocol):
    """The store of all logs, as seen by the compacted entries of a log."""

    compacted_form: CompactedForm
    journal: Journal
    now_ms: Callable[[], int]
    records: TopicRecords

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work without a caller; the store keeps it alive."""


class CompactedOwner(Protocol):
    """The log, as seen by its compacted ledger."""

    def check_open(self) -> None:
        """Raise `LogFenced` once the log is closed or deleted."""

    def failed(self, error: Exception) -> None:
        """Report that a stored entry is damaged."""


class CompactedLog:
    """The compacted entries of one log. See `interpulse.storage.api.CompactedEntries`."""

    def __init__(
        self, name: str, current: CompactedLedger | None, store: CompactedStore, owner: CompactedOwner
    ) -> None:
        self._name = name
        self.current = current
        self._store = store
        self._owner = owner
        self._places: dict[Position, int] = {}  # the index at which a reader that continues at this position begins
        self._committing: asyncio.Task[None] | None = None
        self._pointer: CompactedPointer | None = None  # None: the record of the log names the current ledger
        self._undecided: list[int] = []  # ledgers that the pointer may name: their write was not confirmed

    @property
    def committing(self) -> bool:
        return self._committing is not None and not self._committing.done()

    async def follow(self, pointer: CompactedPointer) -> None:
        if pointer.named is not None:
            ledger_id, horizon = pointer.named
            sealed = await self._store.journal.recover(ledger_id)
            if sealed is None:
                raise self._missing(ledger_id)
            self.current = CompactedLedger(ledger_id, sealed.entries, sealed.size, 0, horizon)
        self._pointer = pointer

    # --- reading

    async def read(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        async def read(ledger: CompactedLedger) -> list[LogEntry]:
            index = self._places.get(start)
            if index is None:
                index = await self._search(ledger, lambda entry: entry.position >= start)
            entries = await self._read(ledger, index, entries_max, bytes_max)
            if entries and ledger is self.current:
                if len(self._places) >= _PLACES_MAX:
                    del self._places[next(iter(self._places))]
                ledger_id, entry = entries[-1].position
                self._places[Position(ledger_id, entry + 1)] = index + len(entries)
            return entries

        return await self._of_current(read) or []

    async def first(self, wanted: Callable[[LogEntry], bool]) -> LogEntry | None:
        async def first(ledger: CompactedLedger) -> LogEntry | None:
            entries = await self._read(ledger, await self._search(ledger, wanted), 1, 1)
            return entries[0] if entries else None

        return await self._of_current(first)

    async def last(self) -> LogEntry | None:
        async def last(ledger: CompactedLedger) -> LogEntry | None:
            entries = await self._read(ledger, ledger.entries - 1, 1, 1)
            return entries[0] if entries else None

        return await self._of_current(last)

    async def _of_current(self, ask: Callable[[CompactedLedger], Awaitable[R]]) -> R | None:
        """Ask the current ledger, again if it was replaced meanwhile. Return None if there is none."""
        while (ledger := self.current) is not None:
            try:
                return await ask(ledger)
            except LedgerGone as error:
                if ledger is self.current:
                    self._owner.check_open()
                    damage = self._missing(ledger.ledger_id)
                    self._owner.failed(damage)
                    raise damage from error
        return None

    async def _search(self, ledger: CompactedLedger, wanted: Callable[[LogEntry], bool]) -> int:
        """Return the index of the first wanted entry, by binary search. Reads one entry per step."""
        low, high = 0, ledger.entries
        while low < high:
            middle = (low + high) // 2
            if wanted((await self._read(ledger, middle, 1, 1))[0]):
                high = middle
            else:
                low = middle + 1
        return low

    async def _read(self, ledger: CompactedLedger, index: int, entries_max: int, bytes_max: int) -> list[LogEntry]:
        number = min(entries_max, ledger.entries - index)
        if number <= 0 or index < 0:
            return []
        try:
            stored = await self._store.journal.read(self._name, ledger.ledger_id, index, number, bytes_max)
            return self._unpacked(ledger, index, stored)
        except LogDamaged as error:
            self._owner.failed(error)
            raise

    def _unpacked(self, ledger: CompactedLedger, index: int, stored: list[bytes]) -> list[LogEntry]:
        unpack = self._store.compacted_form.unpack
        try:
            return [unpack(stored_entry) for stored_entry in stored]
        except ValueError as error:
            span = f"compacted ledger {ledger.ledger_id}, entries {index} to {index + len(stored) - 1}"
            raise LogDamaged(self._name, span, -1, str(error)) from error

    def _missing(self, ledger_id: int) -> LogDamaged:
        return LogDamaged(self._name, f"compacted ledger {ledger_id}", -1, "the ledger is missing")

    # --- changing

    async def replace(self, horizon: Position, parts: AsyncIterable[Sequence[LogEntry]]) -> CompactedLedger:
        self._owner.check_open()
        journal, form = self._store.journal, self._store.compacted_form
        purpose = LedgerPurpose(LedgerUse.COMPACTED, horizon=horizon)
        writer = LedgerWriter(journal, await journal.create(self._name, purpose))
        try:
            async for part in parts:
                if part:
                    await writer.write([form.pack(entry) for entry in part])
            await journal.seal(writer.ledger_id)
            self._owner.check_open()
        except BaseException:
            await journal.forget([writer.ledger_id])
            raise
        new = CompactedLedger(writer.ledger_id, writer.entries, writer.size, self._store.now_ms(), horizon)
        await self._commit(new)
        return new

    async def drop(self) -> None:
        await self.close()  # a replacement whose caller is gone would otherwise come after this
        if self.current is not None:
            await self._commit(None)

    async def _commit(self, new: CompactedLedger | None) -> None:
        """Commit and wait, even if the caller is cancelled, so that memory matches the stored state."""
        self._committing = self._store.spawn(self._change(new))
        await asyncio.shield(self._committing)

    async def _change(self, new: CompactedLedger | None) -> None:
        if self._pointer is None:
            await self._change_record(new)
        else:
            try:
                await self._pointer.name(new)
            except BaseException:
                if new is not None:
                    self._undecided.append(new.ledger_id)
                raise
        old, self.current = self.current, new
        self._places.clear()
        gone, self._undecided = self._undecided, []
        if old is not None:
            gone.append(old.ledger_id)
        await self._store.journal.forget(gone)

    async def _change_record(self, new: CompactedLedger | None) -> None:
        def step(record: TopicRecord | None) -> TopicRecord:
            if record is None:
                raise LogNotFound(self._name)
            self._owner.check_open()
            return dataclasses.replace(record, compacted=new)

        try:
            await self._store.records.change(self._name, step)
        except BaseException:
            if new is not None:
                await self._store.journal.forget([new.ledger_id])
            raise

    async def close(self) -> None:
        """Wait for the commit under way. Its caller gets the outcome."""
        if self._committing is not None:
            await asyncio.wait([self._committing])
