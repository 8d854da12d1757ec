"""The records of logs in the metadata store.

``/managed-ledgers/<log name>`` holds the topic record: ledgers, compacted ledger, properties and the position of a
termination, in the form of a `TopicRecordCodec`. The properties belong to the broker and are stored unchanged. A record
is always written under the version that was read, since the broker creates records and changes properties at the same
time. In a cluster, a process that opens a log begins a ledger in its record.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Protocol

from interpulse.model.ids import Position
from interpulse.storage.api import (
    Change,
    CommitTooLarge,
    CompactedLedger,
    Delete,
    FenceCause,
    LedgerRecord,
    LogFenced,
    MetadataStore,
    MetadataUnavailable,
    Put,
)
from interpulse.storage.cas import retry_on_conflict

_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError)
_to_json = json.JSONEncoder(separators=(",", ":")).encode
_RECORDS_AT_ONCE = 100  # records deleted in one turn of the event loop
_DELETED_AT_ONCE = 500  # names have at most a thousand characters, mostly


def record_key(name: str) -> str:
    """Return the key of a log's record."""
    return f"/managed-ledgers/{name}"


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """The durable record of a log. A ledger with 0 entries is one whose count is not stored yet."""

    ledgers: tuple[LedgerRecord, ...] = ()
    terminated: Position | None = None
    other: dict[str, Any] = field(default_factory=lambda: {"properties": {}})
    """Fields of the broker: ``properties``, and its counters ``topicEpoch`` and ``lastIndex``."""
    compacted: CompactedLedger | None = None
    stored: bytes = field(default=b"", compare=False, repr=False)
    """The bytes that were read, for a codec that preserves unknown fields."""

    @property
    def ledger_ids(self) -> list[int]:
        """Every ledger that belongs to the log."""
        ids = [row.ledger_id for row in self.ledgers]
        return ids if self.compacted is None else [*ids, self.compacted.ledger_id]

    @property
    def newest(self) -> int | None:
        """The newest ledger."""
        return self.ledgers[-1].ledger_id if self.ledgers else None


class TopicRecordCodec(Hashable, Protocol):
    """The form of topic records."""

    def decode(self, value: bytes) -> TopicRecord:
        """Decode a record. Raise ValueError, KeyError, TypeError or AttributeError for other values."""

    def encode(self, record: TopicRecord) -> bytes:
        """Encode a record, with all fields that it had when it was read."""

    def amended(self, value: bytes | None, **other: Any) -> bytes:
        """Return the record with some of `TopicRecord.other` replaced; None is the record of a new topic."""

    def ledgers_named(self, key: str, value: bytes) -> Sequence[int]:
        """Return the ledgers that a cursor or schema record of a log names, as far as it can be decoded."""


class _JsonRecords:
    """The JSON of a broker alone, whose cursors have no ledgers."""

    def decode(self, value: bytes) -> TopicRecord:
        fields = json.loads(value)
        ledgers = tuple(
            LedgerRecord(row["ledgerId"], row.get("entries", 0), row.get("size", 0), row.get("timestamp", 0))
            for row in fields.pop("ledgers", ())
        )
        end, compacted = fields.pop("terminated", None), fields.pop("compactedLedger", None)
        if compacted:
            horizon = _position(compacted["horizon"])
            compacted = CompactedLedger(
                compacted["ledgerId"], compacted["entries"], compacted["size"], compacted["timestamp"], horizon
            )
        return TopicRecord(ledgers, _position(end) if end else None, fields, compacted or None)

    def encode(self, record: TopicRecord) -> bytes:
        fields: dict[str, Any] = {"ledgers": [_ledger_fields(row) for row in record.ledgers], **record.other}
        if record.terminated is not None:
            fields["terminated"] = _position_fields(record.terminated)
        if (compacted := record.compacted) is not None:
            fields["compactedLedger"] = _ledger_fields(compacted) | {"horizon": _position_fields(compacted.horizon)}
        return _to_json(fields).encode()

    def amended(self, value: bytes | None, **other: Any) -> bytes:
        record = {"ledgers": [], "properties": {}} if value is None else json.loads(value)
        return json.dumps(record | other).encode()

    def ledgers_named(self, key: str, value: bytes) -> Sequence[int]:
        return ()


JSON_RECORDS: Final[TopicRecordCodec] = _JsonRecords()

RecordChanges = Callable[[str, Collection[int], Collection[int]], Sequence[Change]]
"""Returns the changes to commit with the record of a log: from its name, the ledgers before and those after."""


class TopicRecords:
    """Reads and changes topic records, together with the journal's records of their ledgers."""

    def __init__(
        self,
        metadata: MetadataStore,
        codec: TopicRecordCodec = JSON_RECORDS,
        along: RecordChanges = lambda name, before, after: (),
    ) -> None:
        self._metadata = metadata
        self._codec = codec
        self._along = along

    async def exists(self, name: str) -> bool:
        return await self._metadata.get(record_key(name)) is not None

    async def get(self, name: str) -> TopicRecord | None:
        """Return the stored record, None if it is absent. Raise `MetadataUnavailable` if it cannot be decoded."""
        stored = await self._metadata.get(record_key(name))
        return decode_record(self._codec, name, stored.value) if stored else None

    async def change(self, name: str, step: Callable[[TopicRecord | None], TopicRecord]) -> TopicRecord:
        """Replace the record by the result of ``step``; repeat if another change was faster.

        Raise `LogFenced` if the session of the metadata store ends meanwhile: another process may have the log by then.
        """
        key = record_key(name)
        session = self._metadata.session.id

        async def attempt() -> TopicRecord:
            stored = await self._metadata.get(key)
            old = decode_record(self._codec, name, stored.value) if stored else None
            new = step(old)
            before, after = old.ledger_ids if old else [], new.ledger_ids
            changes: list[Change] = [Put(key, self._codec.encode(new)), *self._along(name, before, after)]
            if self._metadata.session.id != session:
                raise LogFenced(name, "the session of the metadata store ended", FenceCause.OWNED_ELSEWHERE)
            await self._metadata.commit(changes, {key: stored.version if stored else None})
            return new

        return await retry_on_conflict(attempt)

    async def delete(
        self, *names: str, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}
    ) -> list[int]:
        """Delete records, everything below them and the records of their ledgers, and apply ``also``, in one commit.

        If that is too large for one commit, keys below the records are deleted first, then the records with ``also``; a
        repeated call finishes an interrupted one. Return the ids of the ledgers. Raise `CommitConflict` only for
        ``expect``. A record that cannot be decoded is deleted too; without a record its ledgers are dropped by the next
        start.
        """
        keys = {record_key(name): name for name in names}

        async def attempt() -> list[int]:
            stored = await self._metadata.get_many(list(keys))
            ledgers: list[int] = []
            below: list[Change] = []
            for key, record in stored.items():
                named = self._ledgers_of(keys[key], record.value)
                ledgers += named
                below += self._along(keys[key], named, [])
            for number, key in enumerate(keys, 1):
                cursors = [f"{key}/{child}" for child in await self._metadata.children(key)]
                ledgers += await self._ledgers_named(cursors)
                below += map(Delete, cursors)
                if number % _RECORDS_AT_ONCE == 0:
                    await asyncio.sleep(0)
            ledgers += await self._ledgers_named([change.key for change in also if isinstance(change, Delete)])
            if not stored and not below and not also:
                return []
            versions = {key: stored[key].version if key in stored else None for key in keys}
            expected = {**versions, **expect}
            try:
                await self._metadata.commit([*map(Delete, stored), *below, *also], expected)
            except CommitTooLarge:
                await self._metadata.commit([], expected)
                for first in range(0, len(below), _DELETED_AT_ONCE):
                    await self._metadata.commit(below[first : first + _DELETED_AT_ONCE])
                await self._metadata.commit([*map(Delete, stored), *also], expected)
            return ledgers

        return await retry_on_conflict(attempt, raised_for=expect)

    async def _ledgers_named(self, keys: Sequence[str]) -> list[int]:
        if self._codec is JSON_RECORDS:
            return []  # cursors have no ledgers, so they need not be read
        stored = await self._metadata.get_many(keys)
        return [ledger for key, value in stored.items() for ledger in self._codec.ledgers_named(key, value.value)]

    def _ledgers_of(self, name: str, value: bytes) -> list[int]:
        try:
            return decode_record(self._codec, name, value).ledger_ids
        except MetadataUnavailable:
            return []


def with_ledgers(record: TopicRecord | None, ledgers: Iterable[LedgerRecord]) -> TopicRecord:
    """Return the record with other ledgers; a new record for None."""
    return replace(record or TopicRecord(), ledgers=tuple(ledgers))


def _position(fields: Mapping[str, int]) -> Position:
    return Position(fields["ledgerId"], fields["entryId"])


def _position_fields(position: Position) -> dict[str, int]:
    return {"ledgerId": position.ledger, "entryId": position.entry}


def _ledger_fields(ledger: LedgerRecord | CompactedLedger) -> dict[str, Any]:
    return {
        "ledgerId": ledger.ledger_id,
        "entries": ledger.entries,
        "size": ledger.size,
        "timestamp": ledger.created_ms,
    }


def check_newest(name: str, record: TopicRecord, expected: Container[int | None]) -> None:
    """Raise `LogFenced` if the newest ledger of a record is none of those that this process began last."""
    if record.newest not in expected:
        reason = f"another process opened it and began ledger {record.newest}"
        raise LogFenced(name, reason, FenceCause.OWNED_ELSEWHERE)


@lru_cache(maxsize=100)
def decode_record(codec: TopicRecordCodec, name: str, value: bytes) -> TopicRecord:
    """Decode the record of a log. Raise `MetadataUnavailable` if that fails."""
    # Opening a log reads its record and then changes the same bytes, so the result is cached.
    try:
        return codec.decode(value)
    except _UNREADABLE as error:
        raise MetadataUnavailable(f"the record of log {name} cannot be understood: {error!r}") from error
