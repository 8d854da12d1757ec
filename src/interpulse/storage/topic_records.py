"""The records of logs in the metadata store.

* ``/managed-ledgers/<log name>`` holds the topic record: its ledgers, the compacted one, properties, and where it was
  terminated, in Pulsar's JSON. The properties belong to the broker and are kept as they are.
* ``/ledgers/L<id>`` says which log a ledger belongs to. It comes and goes in one commit with the record, so that what
  lies in a segment can be told alive or dead without reading every record.
* ``/ledgers/id-counter`` is the first ledger id that was never reserved. Ids are reserved in blocks *before* one is
  used, so a crash may leave ids out but never gives one twice.

A record is always written under the version that was read, since the broker creates records and changes properties at
the same time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from interpulse.model.ids import Position
from interpulse.storage.api import (
    Change,
    CommitTooLarge,
    CompactedLedger,
    Delete,
    LedgerRecord,
    MetadataStore,
    MetadataUnavailable,
    Put,
    Versioned,
)
from interpulse.storage.cas import advance_counter, retry_on_conflict

__all__ = ["LEDGER_COUNTER_KEY", "LedgerIds", "TopicRecord", "TopicRecords", "ledger_key", "record_key", "with_ledgers"]

LEDGER_COUNTER_KEY = "/ledgers/id-counter"
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError)
_to_json = json.JSONEncoder(separators=(",", ":")).encode
_RECORDS_AT_ONCE = 100  # of many that are deleted together; then it is others' turn in the event loop
_DELETED_AT_ONCE = 500  # names have at most a thousand characters, mostly
_BLOCK = 1000  # one commit per thousand ledgers; a restart skips at most so many ids


def record_key(name: str) -> str:
    """Key of the record of a log."""
    return f"/managed-ledgers/{name}"


def ledger_key(ledger_id: int) -> str:
    """Key that says which log the ledger belongs to."""
    return f"/ledgers/L{ledger_id:010d}"


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """The durable record of a log. A ledger with 0 entries is one whose count was not written down yet."""

    ledgers: tuple[LedgerRecord, ...] = ()
    terminated: Position | None = None
    other: dict[str, Any] = field(default_factory=lambda: {"properties": {}})
    compacted: CompactedLedger | None = None

    @property
    def ledger_ids(self) -> list[int]:
        """Every ledger that belongs to the log."""
        ids = [row.ledger_id for row in self.ledgers]
        return ids if self.compacted is None else [*ids, self.compacted.ledger_id]

    @classmethod
    def decode(cls, value: bytes) -> TopicRecord:
        """Read the JSON form; raises ValueError, KeyError or TypeError for anything else."""
        fields = json.loads(value)
        ledgers = tuple(
            LedgerRecord(row["ledgerId"], row.get("entries", 0), row.get("size", 0), row.get("timestamp", 0))
            for row in fields.pop("ledgers", ())
        )
        end = fields.pop("terminated", None)
        compacted = fields.pop("compactedLedger", None)
        return cls(ledgers, _position(end) if end else None, fields, _compacted(compacted) if compacted else None)

    def encode(self) -> bytes:
        """The JSON form."""
        rows = [
            {"ledgerId": row.ledger_id, "entries": row.entries, "size": row.size, "timestamp": row.created_ms}
            for row in self.ledgers
        ]
        fields: dict[str, Any] = {"ledgers": rows, **self.other}
        if self.terminated is not None:
            fields["terminated"] = _position_fields(self.terminated)
        if self.compacted is not None:
            fields["compactedLedger"] = _compacted_fields(self.compacted)
        return _to_json(fields).encode()


class LedgerIds:
    """Gives out ledger ids, each once in the life of the metadata store."""

    def __init__(self, metadata: MetadataStore, *, block: int = _BLOCK) -> None:
        """``block`` ids are reserved at once, for this process alone."""
        self._metadata = metadata
        self._block = block
        self._next = 1
        self._end = 1
        self._reserving = asyncio.Lock()

    async def take(self) -> int:
        """A ledger id that was never used."""
        while self._next == self._end:
            async with self._reserving:
                if self._next == self._end:
                    await self._reserve()
        self._next += 1
        return self._next - 1

    async def first_unreserved(self) -> int:
        """Every ledger id there ever was is below this one."""
        stored = await self._metadata.get(LEDGER_COUNTER_KEY)
        return int(stored.value) if stored else 1

    async def _reserve(self) -> None:
        self._next = await advance_counter(self._metadata, LEDGER_COUNTER_KEY, self._block, start=1)
        self._end = self._next + self._block


class TopicRecords:
    """Reads and changes topic records, together with the owners of their ledgers."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata

    async def exists(self, name: str) -> bool:
        return await self._metadata.get(record_key(name)) is not None

    async def get(self, name: str) -> TopicRecord | None:
        """The record as it stands; raises `MetadataUnavailable` if it cannot be understood."""
        stored = await self._metadata.get(record_key(name))
        return _decode(name, stored.value) if stored else None

    async def change(self, name: str, step: Callable[[TopicRecord | None], TopicRecord]) -> TopicRecord:
        """Replace the record by what ``step`` makes of it, again if another change was faster."""
        key = record_key(name)

        async def attempt() -> TopicRecord:
            stored = await self._metadata.get(key)
            old = _decode(name, stored.value) if stored else None
            new = step(old)
            changes: list[Change] = [Put(key, new.encode()), *_owner_changes(name, old, new)]
            await self._metadata.commit(changes, {key: stored.version if stored else None})
            return new

        return await retry_on_conflict(attempt)

    async def delete(
        self, *names: str, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}
    ) -> list[int]:
        """Remove records, everything below them and the owners of their ledgers, and apply ``also``, in one commit.

        What is more than the store takes in one is removed in several: what lies below the records first, then the
        records with ``also``; begun again it finishes. Gives the ids of these ledgers. Raises `CommitConflict` only for
        what ``expect`` says. A record that cannot be understood goes as well; its ledgers have no record then, and are
        taken for dead by the next start.
        """
        keys = {record_key(name): name for name in names}

        async def attempt() -> list[int]:
            stored = await self._metadata.get_many(list(keys))
            ledgers = [ledger for key, found in stored.items() for ledger in _ledgers_of(keys[key], found.value)]
            below = [*map(ledger_key, ledgers)]
            for number, key in enumerate(keys, 1):
                below += [f"{key}/{child}" for child in await self._metadata.children(key)]
                if number % _RECORDS_AT_ONCE == 0:
                    await asyncio.sleep(0)
            if not stored and not below and not also:
                return []
            versions = {key: stored[key].version if key in stored else None for key in keys}
            expected = {**versions, **expect}
            try:
                await self._metadata.commit([*map(Delete, (*stored, *below)), *also], expected)
            except CommitTooLarge:
                await self._metadata.commit([], expected)
                for first in range(0, len(below), _DELETED_AT_ONCE):
                    await self._metadata.commit([*map(Delete, below[first : first + _DELETED_AT_ONCE])])
                await self._metadata.commit([*map(Delete, stored), *also], expected)
            return ledgers

        return await retry_on_conflict(attempt, raised_for=expect)

    async def living(self, ledger_ids: Iterable[int]) -> dict[int, str]:
        """Which of these ledgers some log still has, and the name of that log."""
        owners = await self._metadata.get_many([ledger_key(each) for each in ledger_ids])
        claims = {int(key.rpartition("L")[2]): owner.value.decode() for key, owner in owners.items()}
        stored = await self._metadata.get_many([record_key(name) for name in sorted(set(claims.values()))])
        return {each: name for each, name in claims.items() if _lists(stored.get(record_key(name)), each)}


def with_ledgers(record: TopicRecord | None, ledgers: Iterable[LedgerRecord]) -> TopicRecord:
    """The record with other ledgers; a new one if there was none."""
    return replace(record or TopicRecord(), ledgers=tuple(ledgers))


def _position(fields: Mapping[str, int]) -> Position:
    return Position(fields["ledgerId"], fields["entryId"])


def _position_fields(position: Position) -> dict[str, int]:
    return {"ledgerId": position.ledger, "entryId": position.entry}


def _compacted(fields: Mapping[str, Any]) -> CompactedLedger:
    return CompactedLedger(
        fields["ledgerId"], fields["entries"], fields["size"], fields["timestamp"], _position(fields["horizon"])
    )


def _compacted_fields(ledger: CompactedLedger) -> dict[str, Any]:
    return {
        "ledgerId": ledger.ledger_id,
        "entries": ledger.entries,
        "size": ledger.size,
        "timestamp": ledger.created_ms,
        "horizon": _position_fields(ledger.horizon),
    }


def _lists(stored: Versioned | None, ledger_id: int) -> bool:
    if stored is None:
        return False
    try:
        return ledger_id in TopicRecord.decode(stored.value).ledger_ids
    except _UNREADABLE:
        return True  # the log cannot be opened before its record is mended; its entries must still be there then


def _owner_changes(name: str, old: TopicRecord | None, new: TopicRecord) -> list[Change]:
    before = set(old.ledger_ids) if old else set()
    after = set(new.ledger_ids)
    begun: list[Change] = [Put(ledger_key(each), name.encode()) for each in sorted(after - before)]
    return begun + [Delete(ledger_key(each)) for each in sorted(before - after)]


def _ledgers_of(name: str, value: bytes) -> list[int]:
    try:
        return _decode(name, value).ledger_ids
    except MetadataUnavailable:
        return []


@lru_cache(maxsize=100)
def _decode(name: str, value: bytes) -> TopicRecord:
    """A log that is opened reads its record, then changes what it read."""
    try:
        return TopicRecord.decode(value)
    except _UNREADABLE as error:
        raise MetadataUnavailable(f"the record of log {name} cannot be understood: {error!r}") from error
