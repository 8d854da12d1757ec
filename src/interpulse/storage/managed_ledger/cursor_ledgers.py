"""Cursors in a cluster: each has a record and, while its topic is open, a ledger of newer states.

Acknowledgements change all the time, and an entry in a ledger costs ZooKeeper nothing. The record names the ledger. It
is written when the ledger changes, when settings of the subscription change, and when the topic is closed: then it
holds the state itself, and the ledger is deleted. Source: docs/reference/cluster-protocol.md#cursor-ledgers.

Every record is written under the version that this owner of the topic has seen, and claimed when it is first read, so
that an earlier owner that does not know of its loss can no longer change it. Recovery of the cursor's ledger stops the
earlier owner there too. If the record changes nevertheless while this broker certainly is the owner, the
acknowledgements of both count from then on, until the cursor is reset. Source:
docs/reference/cluster-protocol.md#claimed-cursors. Model: docs/models/bundle_takeover.tla.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, NoReturn

from interpulse.clock import now_ms
from interpulse.model.names import decode_local_name
from interpulse.storage.api import (
    Change,
    CommitConflict,
    Delete,
    FenceCause,
    LogFenced,
    MetadataStore,
    MetadataUnavailable,
    Put,
    Versioned,
)
from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.errors import BookKeeperError, LedgerFenced, NoLedger
from interpulse.storage.bookkeeper.records import LogQuorums
from interpulse.storage.bookkeeper.writer import LedgerWriter
from interpulse.storage.cursors import CursorRecord, TopicCursors, cursor_key, is_continued, merged, numbers_are_whole
from interpulse.storage.logs.topic_records import record_key
from interpulse.storage.managed_ledger.cursor_codec import (
    IN_RECORD,
    StoredCursor,
    decode_entry,
    decode_record,
    encode_entry,
    encode_record,
)

log = logging.getLogger(__name__)

_ENTRIES_MAX: Final = 50_000  # managedLedgerCursorMaxEntriesPerLedger
_AGE_MAX_MS: Final = 4 * 3600 * 1000  # managedLedgerCursorRolloverTimeInSeconds
_AT_ONCE: Final = 64  # cursors of one topic that are read or written in parallel
_KEYS_AT_ONCE: Final = 500
_CLAIMS_MAX: Final = 3
_TAKEN: Final = "another broker has taken the topic over"


class _Along(NamedTuple):
    """Changes that are committed with the record of a cursor, and their expectations."""

    also: Sequence[Change] = ()
    expect: Mapping[str, int | None] = {}


_ALONE: Final = _Along()


@dataclass(slots=True)
class _OpenCursor:
    version: int | None
    """The version of the record, None before it exists."""
    previous: bytes
    """The plain bytes of the record."""
    state: CursorRecord
    """The stored state."""
    ours: CursorRecord
    """The state of this broker."""
    ledger: LedgerWriter | None = None
    entries: int = 0
    begun_ms: int = 0
    theirs: CursorRecord | None = None
    """The state that another broker wrote into the record, whose acknowledgements count here too."""
    was_reset: bool = False
    """True if the cursor was reset since it was opened: states of other brokers no longer count."""
    unsure: set[int] = field(default_factory=set)
    """Own ledgers that the record may name: the write that named them got no answer."""
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)


class _RecordChanged(LogFenced):
    """Another broker wrote the record of a cursor, although this broker may be the owner of the topic."""


class LedgerCursors:
    """The cursors of all topics of a cluster. See `interpulse.storage.cursors.CursorStore`."""

    def __init__(
        self,
        metadata: MetadataStore,
        ledgers: BookKeeperClient,
        quorums: LogQuorums,
        now_ms: Callable[[], int] = now_ms,
        is_guarded: Callable[[str], bool] = lambda log_name: False,
    ) -> None:
        """``is_guarded`` returns True if commits about a log succeed only while this broker owns it."""
        self.metadata = metadata
        self.ledgers = ledgers
        self.quorums = quorums
        self.now_ms = now_ms
        self.is_guarded = is_guarded

    def of(self, log_name: str) -> TopicCursors:
        return _TopicCursors(log_name, self)


class _TopicCursors:
    def __init__(self, log_name: str, store: LedgerCursors) -> None:
        self._log_name = log_name
        self._store = store
        self._metadata = store.metadata
        self._open: dict[str, _OpenCursor] = {}

    # --- reading

    async def load(self) -> dict[str, CursorRecord]:
        above = record_key(self._log_name)
        names = await self._metadata.children(above)
        for first in range(0, len(names), _KEYS_AT_ONCE):
            keys = [f"{above}/{name}" for name in names[first : first + _KEYS_AT_ONCE]]
            records = await self._metadata.get_many(keys)
            cursors = {decode_local_name(key.rpartition("/")[2]): stored for key, stored in records.items()}
            await _all(self._claim(name, stored) for name, stored in cursors.items())
        return {name: cursor.state for name, cursor in self._open.items()}

    async def _claim(self, name: str, stored: Versioned, attempts: int = _CLAIMS_MAX) -> None:
        """Read the newest state, and write it into the record, so that no other broker can any more.

        An earlier owner that closes the topic at this moment may be faster, and then has the newer state.
        """
        record, state = await self._read(name, stored.value)
        cursor = self._open[name] = _OpenCursor(stored.version, record.plain, state, state)
        try:
            await self._write_record(name, cursor, state, IN_RECORD)
        except LogFenced:
            again = await self._metadata.get(cursor_key(self._log_name, name))
            if again is None or not attempts:
                raise
            await self._claim(name, again, attempts - 1)
            return
        if record.ledger_id != IN_RECORD:
            await self._drop(record.ledger_id)

    async def _read(self, name: str, value: bytes) -> tuple[StoredCursor, CursorRecord]:
        """Return a stored record and the newest state. No earlier owner can append to the cursor's ledger any more."""
        try:
            record = decode_record(value)
            if record.ledger_id == IN_RECORD:
                return record, record.state
            ledger = await self._store.ledgers.recover(record.ledger_id)
            if ledger.last_confirmed < 0:
                return record, record.state
            (entry,) = await ledger.read(ledger.last_confirmed, entries_max=1, bytes_max=1)
            return record, decode_entry(entry, record.state)
        except NoLedger:
            return record, record.state
        except ValueError as error:
            raise MetadataUnavailable(f"the cursor {name} of {self._log_name} cannot be understood: {error}") from error

    # --- writing

    async def put(
        self, name: str, record: CursorRecord, *, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}
    ) -> None:
        cursor = self._open.get(name)
        if cursor is None:
            await self._create(name, record, _Along(also, expect))
            return
        async with cursor.changing:
            await self._merged_if_changed(name, cursor, record, _Along(also, expect))

    async def flush(self, records: Mapping[str, CursorRecord], *, last: bool = False) -> None:
        await _all(self._flush(name, record, last=last) for name, record in records.items())
        if last:
            with_ledger = [name for name, cursor in self._open.items() if cursor.ledger is not None]
            await _all(self._flush(name, self._open[name].state, last=True) for name in with_ledger)

    async def delete(self, name: str, *, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}) -> None:
        key, cursor = cursor_key(self._log_name, name), self._open.pop(name, None)
        if cursor is None:
            await self._metadata.commit([*also, Delete(key)], expect)
            return
        async with cursor.changing:
            await self._commit(key, Delete(key), cursor, _Along(also, expect))
            await self._leave(cursor.ledger)

    async def _create(self, name: str, state: CursorRecord, along: _Along = _ALONE) -> None:
        """Create a record. One that was created for a new partition meanwhile is taken over."""
        key = cursor_key(self._log_name, name)
        stored = await self._metadata.get(key)
        previous = b"" if stored is None else decode_record(stored.value).plain
        cursor = _OpenCursor(None if stored is None else stored.version, previous, state, state)
        await self._write_record(name, cursor, state, IN_RECORD, along)
        self._open[name] = cursor

    async def _flush(self, name: str, state: CursorRecord, *, last: bool) -> None:
        cursor = self._open.get(name)
        if cursor is None:
            await self._create(name, state)
            return
        async with cursor.changing:
            if last:
                await self._merged_if_changed(name, cursor, state)
                return
            try:
                await self._into_ledger(name, cursor, _joined(cursor, state))
            except LedgerFenced as error:
                raise LogFenced(self._log_name, f"{_TAKEN}: {error}", FenceCause.OWNED_ELSEWHERE) from error
            except _RecordChanged:
                await self._merged_if_changed(name, cursor, state)
            except BookKeeperError as error:
                log.warning("cursor not stored in ledger topic=%s cursor=%s error=%s", self._log_name, name, error)
                await self._merged_if_changed(name, cursor, state)

    async def _merged_if_changed(
        self, name: str, cursor: _OpenCursor, state: CursorRecord, along: _Along = _ALONE
    ) -> None:
        """Store the state in the record, merged with the state of another broker if that changed the record.

        The merged write depends on the lock, so that only the owner of the topic writes it.
        """
        for _ in range(_CLAIMS_MAX):
            try:
                await self._into_record(name, cursor, _joined(cursor, state), along)
                return
            except _RecordChanged:
                await self._take_theirs(name, cursor)
        await self._into_record(name, cursor, _joined(cursor, state), along)

    async def _take_theirs(self, name: str, cursor: _OpenCursor) -> None:
        key = cursor_key(self._log_name, name)
        stored = await self._metadata.get(key)
        if stored is None:
            self._taken_over(key)
        record, theirs = await self._read(name, stored.value)
        cursor.version, cursor.previous = stored.version, record.plain
        if not cursor.was_reset and not numbers_are_whole(name):  # these numbers belong to the position
            cursor.theirs = theirs if cursor.theirs is None else merged(cursor.theirs, theirs)
        log.warning(
            "cursor was changed by another broker topic=%s cursor=%s theirs=%s",
            self._log_name,
            name,
            theirs.mark_delete,
        )

    async def _into_ledger(self, name: str, cursor: _OpenCursor, state: CursorRecord) -> None:
        entry = encode_entry(name, state, numbers=cursor.state.numbers)
        full = cursor.entries >= _ENTRIES_MAX or self._store.now_ms() - cursor.begun_ms >= _AGE_MAX_MS
        if cursor.ledger is not None and not full:
            await cursor.ledger.add(entry)
            cursor.entries += 1
            cursor.state = _as_stored(name, state, cursor.state)
            return
        old = cursor.ledger
        quorum = await self._store.quorums.of(self._log_name)
        custom = {
            "component": b"managed-ledger",
            "pulsar/managed-ledger": self._log_name.encode(),
            "pulsar/cursor": name.encode(),
            "application": b"pulsar",
        }
        ledger = await self._store.ledgers.create(quorum, custom=custom)
        try:
            await ledger.add(entry)
        except BaseException:
            await self._leave(ledger)
            raise
        try:
            await self._write_record(name, cursor, state, ledger.ledger_id)
        except LogFenced:
            await self._leave(ledger)
            raise
        except BaseException:
            ledger.abandon()
            cursor.unsure.add(ledger.ledger_id)
            raise
        cursor.ledger, cursor.entries, cursor.begun_ms = ledger, 1, self._store.now_ms()
        await self._leave(old)

    async def _into_record(self, name: str, cursor: _OpenCursor, state: CursorRecord, along: _Along = _ALONE) -> None:
        await self._write_record(name, cursor, state, IN_RECORD, along)
        old, cursor.ledger = cursor.ledger, None
        await self._leave(old)

    async def _write_record(
        self, name: str, cursor: _OpenCursor, state: CursorRecord, ledger_id: int, along: _Along = _ALONE
    ) -> None:
        key = cursor_key(self._log_name, name)
        written = state if ledger_id == IN_RECORD else replace(state, ranges=(), batches=())
        value = encode_record(name, written, ledger_id=ledger_id, previous=cursor.previous)
        await self._commit(key, Put(key, value), cursor, along)
        stored = await self._metadata.get(key)
        if stored is None or stored.value != value:
            self._taken_over(key)
        cursor.version = stored.version
        cursor.previous = decode_record(value).plain
        cursor.state = _as_stored(name, state, cursor.state)

    async def _commit(self, key: str, change: Change, cursor: _OpenCursor, along: _Along = _ALONE) -> None:
        """Commit a record. One that names a ledger known only to this owner was written here."""
        try:
            await self._metadata.commit([*along.also, change], {**along.expect, key: cursor.version})
        except CommitConflict as conflict:
            if conflict.key != key:
                raise
            stored = await self._metadata.get(key)
            if stored is None or stored.version == cursor.version:
                self._taken_over(key)
            if _ledger_named(stored.value) not in cursor.unsure:
                if isinstance(change, Put) and self._store.is_guarded(self._log_name):
                    reason = f"{key} was changed by another broker"
                    raise _RecordChanged(self._log_name, reason, FenceCause.OWNED_ELSEWHERE) from conflict
                self._taken_over(key)
            cursor.version = stored.version
            await self._commit(key, change, cursor, along)
            return
        while cursor.unsure:
            await self._drop(cursor.unsure.pop())

    def _taken_over(self, key: str) -> NoReturn:
        reason = f"{_TAKEN}: {key} was changed by another broker"
        raise LogFenced(self._log_name, reason, FenceCause.OWNED_ELSEWHERE)

    async def _leave(self, ledger: LedgerWriter | None) -> None:
        if ledger is not None:
            ledger.abandon()
            await self._drop(ledger.ledger_id)

    async def _drop(self, ledger_id: int) -> None:
        """Delete a ledger that no record names. If that fails, it stays."""
        try:
            await self._store.ledgers.delete(ledger_id)
        except (BookKeeperError, MetadataUnavailable) as error:
            log.warning("ledger of a cursor not deleted ledger=%d topic=%s error=%s", ledger_id, self._log_name, error)


def _joined(cursor: _OpenCursor, state: CursorRecord) -> CursorRecord:
    """Return the state merged with that of another broker, unless the cursor was reset since it was opened."""
    if not cursor.was_reset and not is_continued(cursor.ours, state):
        cursor.was_reset, cursor.theirs = True, None
    cursor.ours = state
    return state if cursor.theirs is None else merged(state, cursor.theirs)


def _as_stored(name: str, state: CursorRecord, old: CursorRecord) -> CursorRecord:
    """Return the state as stored: numbers that it omits stay, except for cursors that have all of theirs."""
    return state if numbers_are_whole(name) else replace(state, numbers={**old.numbers, **state.numbers})


def _ledger_named(record: bytes) -> int:
    try:
        return decode_record(record).ledger_id
    except ValueError:
        return IN_RECORD


async def _all(calls: Iterable[Awaitable[None]]) -> None:
    """Wait for all, a bounded number at a time, and then raise the first failure."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(call: Awaitable[None]) -> None:
        async with limit:
            await call

    outcomes = await asyncio.gather(*map(one, calls), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
