"""Recovery: a ledger closed for good at one agreed end, whichever process wrote it.

Several processes may recover a ledger at once, and repeat it.

1. The metadata say that the ledger is in recovery, so its writer can no longer change them.
2. Its bookies are fenced, so its writer can have nothing acknowledged any more.
3. Entries behind the last one known to be acknowledged are read and written to every bookie that should have them. The
ledger ends before the first entry that too many bookies lack.
4. The metadata name the end.

An acknowledged entry is always found: so many bookies have it that too few remain to miss it. Silence, faults and
damaged entries never count as an answer: if too few bookies answer, recovery stops without a decision. Source:
docs/reference/cluster-protocol.md#fencing. Model: docs/models/bundle_takeover.tla.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container
from typing import Final, NamedTuple

from interpulse.storage.bookkeeper.bookies import Bookies
from interpulse.storage.bookkeeper.errors import BookieAway, Code, LedgerChanged, RecoveryStopped, WrongDigest
from interpulse.storage.bookkeeper.metadata_store import LedgerMetadataStore, StoredLedger
from interpulse.storage.bookkeeper.packets import Packet, digest_of
from interpulse.storage.bookkeeper.protocol import add_frame
from interpulse.storage.bookkeeper.reader import NOT_THERE, LedgerReader, ReadableLedger, ask_last_confirmed
from interpulse.storage.bookkeeper.records import NO_ENTRY_YET, LedgerMetadata, LedgerState

log = logging.getLogger(__name__)

_WINDOW_MAX: Final = 128  # entries read and written back in parallel
_WINDOW_BYTES: Final = 8 << 20
_LATE_S: Final = 1.0  # the wait for bookies that are not needed


async def recover(ledger_id: int, store: LedgerMetadataStore, bookies: Bookies) -> LedgerMetadata:
    """Close the ledger and return its metadata. Raise `RecoveryStopped` if too few bookies answer, or `NoLedger`."""
    while True:
        stored = await store.read(ledger_id)
        if stored.ledger.closed:
            return stored.ledger
        try:
            if stored.ledger.state is LedgerState.OPEN:
                recovering = stored.ledger.recovering()
                stored = StoredLedger(recovering, await store.write(ledger_id, recovering, stored.version))
            closed = await _Recovery(ledger_id, stored.ledger, bookies).run()
            await store.write(ledger_id, closed, stored.version)
        except LedgerChanged:
            continue  # changed by another recovery, or by its writer before the first step
        log.info("ledger recovered ledger=%d last=%d", ledger_id, closed.last_entry)
        return closed


class _StoredEntry(NamedTuple):
    """An entry read from a bookie."""

    packet: Packet
    raw: bytes


class _Recovery:
    """Steps 2 and 3 of a recovery."""

    def __init__(self, ledger_id: int, ledger: LedgerMetadata, bookies: Bookies) -> None:
        self._ledger_id = ledger_id
        self._ledger = ledger  # as its writer left it: the bookies to read from
        self._target = ledger  # the bookies to write to, and the final metadata
        self._bookies = bookies
        self._digest = digest_of(ledger.digest, ledger.password)

    async def run(self) -> LedgerMetadata:
        """Return the closed ledger, to be written into the metadata."""
        last = max(await self._fence(), self._ledger.last_segment.first - 1)
        length: int | None = None
        window = 2
        while True:
            entries = await self._read(last + 1, window)
            if entries:
                await self._write(entries)
                last, length = entries[-1].packet.entry_id, entries[-1].packet.length
            if len(entries) < window:
                break
            average = sum(len(entry.raw) for entry in entries) // len(entries) + 1
            window = max(1, min(window * 2, _WINDOW_MAX, _WINDOW_BYTES // average))
        if length is None:
            length = await self._length_upto(last)
        return self._target.closed_at(last, length)

    async def _fence(self) -> int:
        """Fence the bookies, and return the last entry that one of them knows to be acknowledged."""
        ensemble = self._ledger.last_segment.ensemble
        fenced: dict[int, int] = {}

        async def fence(slot: int, bookie_id: str) -> None:
            last = await ask_last_confirmed(self._ledger_id, bookie_id, self._digest, self._bookies, fence=True)
            if last is not None:
                fenced[slot] = last

        tasks = [asyncio.create_task(fence(slot, bookie)) for slot, bookie in enumerate(ensemble)]
        try:
            for task in asyncio.as_completed(tasks):
                await task
                if self._none_acknowledges(fenced):
                    return max(fenced.values())
        finally:
            for task in tasks:
                task.cancel()
        missing = ", ".join(bookie for slot, bookie in enumerate(ensemble) if slot not in fenced)
        raise RecoveryStopped(self._ledger_id, f"these bookies do not answer: {missing}")

    def _none_acknowledges(self, fenced: Container[int]) -> bool:
        """Return True if no write set has an ack quorum of bookies that are not fenced."""
        quorum = self._ledger.quorum
        return all(
            sum(slot not in fenced for slot in quorum.positions(start)) < quorum.ack for start in range(quorum.ensemble)
        )

    async def _read(self, first: int, count: int) -> list[_StoredEntry]:
        """Return the entries from ``first`` on, up to one that does not exist."""
        asked = (self._read_one(first + offset) for offset in range(count))
        entries: list[_StoredEntry] = []
        for entry in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(entry, BaseException):
                raise entry
            if entry is None:
                break
            entries.append(entry)
        return entries

    async def _read_one(self, entry_id: int) -> _StoredEntry | None:
        quorum = self._ledger.quorum
        tasks = [asyncio.create_task(self._ask(bookie, entry_id)) for bookie in self._ledger.bookies_of(entry_id)]
        without = 0
        try:
            for task in asyncio.as_completed(tasks):
                answer = await task
                if isinstance(answer, _StoredEntry):
                    return answer
                without += answer
                if without > quorum.write - quorum.ack:
                    return None
        finally:
            for task in tasks:
                task.cancel()
        raise RecoveryStopped(self._ledger_id, f"too few bookies say whether entry {entry_id} exists")

    async def _ask(self, bookie_id: str, entry_id: int) -> _StoredEntry | bool:
        """Return the entry; otherwise True if the bookie certainly lacks it, False if it may have it."""
        try:
            connection = await self._bookies.connect(bookie_id)
        except BookieAway:
            return False
        key = self._digest.master_key
        reply = await connection.read(self._ledger_id, entry_id, fence_key=key, recovery=True)
        if reply.code != Code.OK:
            return reply.code in NOT_THERE
        try:
            raw = bytes(reply.packets[0])
            return _StoredEntry(self._digest.open(raw, self._ledger_id, entry_id), raw)
        except WrongDigest as error:
            log.error(
                "entry damaged bookie=%s ledger=%d entry=%d problem=%s", bookie_id, self._ledger_id, entry_id, error
            )
            return False

    async def _write(self, entries: list[_StoredEntry]) -> None:
        """Write these entries to every bookie that should have them, or to replacements of those that fail."""
        stored: dict[int, set[int]] = {entry.packet.entry_id: set() for entry in entries}
        slots = set(range(self._target.quorum.ensemble))
        while slots:
            failed = await self._write_to(slots, entries, stored)
            ensemble = list(self._target.last_segment.ensemble)
            spares = await self._bookies.writable(without=ensemble) if failed else []
            chosen = dict(zip(sorted(failed), spares, strict=False))
            for slot, bookie_id in chosen.items():
                ensemble[slot] = bookie_id
                for slots_of_entry in stored.values():
                    slots_of_entry.discard(slot)
            if chosen:
                self._target = self._target.with_ensemble(entries[0].packet.entry_id, tuple(ensemble))
            slots = set(chosen)
        if not self._enough(stored):
            raise RecoveryStopped(self._ledger_id, "too few bookies take the entries at its end")

    async def _write_to(self, slots: set[int], entries: list[_StoredEntry], stored: dict[int, set[int]]) -> set[int]:
        """Return the slots whose bookies did not accept all. Bookies that are not needed are awaited only briefly."""
        waiting = {asyncio.create_task(self._write_to_one(slot, entries, stored)): slot for slot in slots}
        failed = set()
        try:
            while waiting:
                timeout = _LATE_S if self._enough(stored) else None
                done, _ = await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    break
                failed |= {slot for task in done if (slot := waiting.pop(task)) is not None and not task.result()}
        finally:
            for task in waiting:
                task.cancel()
        return failed | set(waiting.values())

    def _enough(self, stored: dict[int, set[int]]) -> bool:
        return all(len(slots) >= self._target.quorum.ack for slots in stored.values())

    async def _write_to_one(self, slot: int, entries: list[_StoredEntry], stored: dict[int, set[int]]) -> bool:
        try:
            connection = await self._bookies.connect(self._target.last_segment.ensemble[slot])
        except BookieAway:
            return False

        async def write(entry: _StoredEntry) -> bool:
            entry_id = entry.packet.entry_id
            if slot not in self._target.quorum.positions(entry_id):
                return True
            frame = add_frame(self._digest.master_key, entry.raw, recovery=True)
            if await connection.add_until_taken(self._ledger_id, entry_id, frame) != Code.OK:
                return False
            stored[entry_id].add(slot)
            return True

        return all(await asyncio.gather(*(write(entry) for entry in entries)))

    async def _length_upto(self, last: int) -> int:
        if last == NO_ENTRY_YET:
            return 0
        reader = LedgerReader(ReadableLedger(self._ledger_id, self._ledger, last), self._bookies)
        return (await reader.read_entry(last)).length
