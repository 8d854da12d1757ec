"""Stored cursors of subscriptions: their record and its JSON, the seam to their store, and two states merged.

The owner of a topic may see that another broker has written the record of a cursor nevertheless. Each may have
acknowledged entries that the other has not, and nothing acknowledged may be delivered again. Source:
docs/reference/cluster-protocol.md#claimed-cursors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import decode_local_name, encode_local_name
from interpulse.storage.api import Change, Delete, MetadataStore, MetadataUnavailable, Put, scan_pages
from interpulse.storage.logs.topic_records import record_key

DEDUPLICATION_CURSOR: Final = "pulsar.dedup"
"""The cursor that holds the sequence ids of a topic's producers."""

COMPACTION_CURSOR: Final = "__compaction"
"""The cursor at which the compacted part of a topic ends."""

COMPACTED_LEDGER: Final = "CompactedTopicLedger"
"""The number of the compaction cursor that names the compacted ledger, in a cluster."""

UNREADABLE: Final = (ValueError, KeyError, TypeError, AttributeError)
"""The errors that a codec raises for a value that is no cursor."""


@dataclass(frozen=True, slots=True)
class CursorRecord:
    """The acknowledgements of one subscription. The default is before every entry."""

    mark_delete: Position = EARLIEST
    ranges: tuple[tuple[int, int, int], ...] = ()
    """Entries acknowledged above the mark-delete position: ledger, first entry, last entry."""
    batches: tuple[tuple[Position, tuple[int, ...]], ...] = ()
    """Partly acknowledged batches. Bit i of the words is 1 while message i is not acknowledged."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties that clients set on the subscription."""
    replicate_state: bool = False
    by_policy: bool = False
    """True for a replication cursor that policies opened. They close it when they no longer list its cluster."""
    last_active_ms: int | None = None
    """The time at which the last consumer left; None while one is connected."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Numbers that belong to the position: the highest sequence id of each producer, or the compacted ledger."""
    active_ms: Mapping[str, int] = field(default_factory=dict)
    """The time at which each producer of ``numbers`` was last active, if it was recorded."""
    resets: int = 0
    """The number of resets: seeks of clients and operators, by position or by time."""

    def of_new_partition(self, mark_delete: Position) -> CursorRecord:
        """Return the record of this subscription on a new partition: same settings, nothing acknowledged."""
        return CursorRecord(mark_delete, properties=self.properties, replicate_state=self.replicate_state)


def numbers_are_whole(cursor: str) -> bool:
    """Return True if each state of this cursor has all its numbers; other cursors keep numbers that it omits."""
    return cursor in (DEDUPLICATION_CURSOR, COMPACTION_CURSOR)


class CursorCodec(Protocol):
    """The stored form of cursors, chosen with the metadata store."""

    def decode(self, name: str, value: bytes) -> CursorRecord:
        """Decode a stored record. Raise one of `UNREADABLE` if it is none."""

    def encode(self, name: str, record: CursorRecord) -> bytes:
        """Encode a state of a cursor."""

    def ledger_of(self, value: bytes) -> int:
        """Return the ledger that has newer states than a stored record, -1 if there is none."""


class JsonCursors:
    """The JSON of a broker alone. See `CursorCodec`."""

    def decode(self, name: str, value: bytes) -> CursorRecord:
        body = json.loads(value)
        mark_delete = Position.parse(body["markDeletePosition"])
        if name == DEDUPLICATION_CURSOR:
            sequences = {
                producer: (int(last), int(active)) for producer, (last, active) in body.get("sequences", {}).items()
            }
            return CursorRecord(
                mark_delete,
                numbers={producer: last for producer, (last, _) in sequences.items()},
                active_ms={producer: active for producer, (_, active) in sequences.items()},
            )
        return CursorRecord(
            mark_delete=mark_delete,
            ranges=tuple((ledger, start, end) for ledger, start, end in body.get("individuallyDeletedMessages", ())),
            batches=tuple(
                (Position.parse(text), tuple(words))
                for text, words in body.get("batchedEntryDeletionIndexInfo", {}).items()
            ),
            properties=dict(body.get("cursorProperties") or {}),
            replicate_state=bool(body.get("replicated")),
            by_policy=bool(body.get("openedByPolicy")),
            last_active_ms=int(body["lastActive"]) if "lastActive" in body else None,
            resets=int(body.get("resets", 0)),
        )

    def encode(self, name: str, record: CursorRecord) -> bytes:
        body: dict[str, Any] = {"markDeletePosition": str(record.mark_delete)}
        if name == DEDUPLICATION_CURSOR:
            body["sequences"] = {
                producer: [last, record.active_ms.get(producer, 0)] for producer, last in record.numbers.items()
            }
        if record.ranges:
            body["individuallyDeletedMessages"] = record.ranges
        if record.batches:
            body["batchedEntryDeletionIndexInfo"] = {str(position): list(words) for position, words in record.batches}
        if record.properties:
            body["cursorProperties"] = dict(record.properties)
        if record.replicate_state:
            body["replicated"] = True
        if record.by_policy:
            body["openedByPolicy"] = True
        if record.last_active_ms is not None:
            body["lastActive"] = record.last_active_ms
        if record.resets:
            body["resets"] = record.resets
        return json.dumps(body, separators=(",", ":")).encode()

    def ledger_of(self, value: bytes) -> int:
        return -1


JSON_CURSORS: Final = JsonCursors()


_CURSORS_PER_PAGE: Final = 100


class TopicCursors(Protocol):
    """The stored cursors of one topic, by name. The caller makes one call at a time.

    All methods raise MetadataError or PersistenceError if they cannot store or read, and `LogFenced` once another
    process has taken over the topic.
    """

    async def load(self) -> dict[str, CursorRecord]:
        """Return every stored cursor. From now on no earlier owner of the topic can change them."""

    async def put(
        self, name: str, record: CursorRecord, *, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}
    ) -> None:
        """Store a cursor that is new, or whose settings changed; durable on return.

        ``also`` is committed with it under ``expect``. Raise `CommitConflict` if that does not hold.
        """

    async def flush(self, records: Mapping[str, CursorRecord], *, last: bool = False) -> None:
        """Store the acknowledgements of these subscriptions; durable on return. ``last``: the topic is being closed.

        A cursor that cannot be stored keeps its earlier state. The first failure is raised after all were tried.
        """

    async def delete(self, name: str, *, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}) -> None:
        """Delete one cursor; for ``also`` and ``expect`` see `put`."""


class CursorStore(Protocol):
    """The cursors of all topics."""

    def of(self, log_name: str) -> TopicCursors:
        """Return the cursors of one topic."""


def cursor_key(log_name: str, cursor: str) -> str:
    """Return the key of a cursor's record."""
    return f"{record_key(log_name)}/{encode_local_name(cursor)}"


async def read_cursor_names(metadata: MetadataStore, log_name: str) -> list[str]:
    """Return the sorted names of all stored cursors of a topic."""
    return sorted(map(decode_local_name, await metadata.children(record_key(log_name))))


class RecordedCursors:
    """A `CursorStore` with one record per cursor, written as a whole."""

    def __init__(self, metadata: MetadataStore, codec: CursorCodec = JSON_CURSORS) -> None:
        self._metadata = metadata
        self._codec = codec

    def of(self, log_name: str) -> TopicCursors:
        return _TopicCursors(log_name, self._metadata, self._codec)


class _TopicCursors:
    def __init__(self, log_name: str, metadata: MetadataStore, codec: CursorCodec) -> None:
        self._log_name = log_name
        self._metadata = metadata
        self._codec = codec

    async def load(self) -> dict[str, CursorRecord]:
        prefix = f"{record_key(self._log_name)}/"
        cursors: dict[str, CursorRecord] = {}
        async for page in scan_pages(self._metadata, prefix, limit=_CURSORS_PER_PAGE):
            for key, stored in page:
                name = decode_local_name(key.removeprefix(prefix))
                try:
                    cursors[name] = self._codec.decode(name, stored.value)
                except UNREADABLE as error:
                    problem = f"the cursor {name} of {self._log_name} cannot be understood: {error!r}"
                    raise MetadataUnavailable(problem) from error
        return cursors

    async def put(
        self, name: str, record: CursorRecord, *, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}
    ) -> None:
        put = Put(cursor_key(self._log_name, name), self._codec.encode(name, record))
        await self._metadata.commit([*also, put], expect)

    async def flush(self, records: Mapping[str, CursorRecord], *, last: bool = False) -> None:
        """Store all records in one commit."""
        puts = [
            Put(cursor_key(self._log_name, name), self._codec.encode(name, record)) for name, record in records.items()
        ]
        if puts:
            await self._metadata.commit(puts)

    async def delete(self, name: str, *, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}) -> None:
        await self._metadata.commit([*also, Delete(cursor_key(self._log_name, name))], expect)


_Range = tuple[int, int, int]


def merged(ours: CursorRecord, theirs: CursorRecord) -> CursorRecord:
    """Return the state with the acknowledgements of both. Everything else is taken from ``ours``."""
    mark_delete = max(ours.mark_delete, theirs.mark_delete)
    ranges = tuple(_behind(mark_delete, _merged([*ours.ranges, *theirs.ranges])))
    waiting = dict(theirs.batches)
    for position, words in ours.batches:
        if position in waiting:  # a message waits if neither side acknowledged it; missing words do not wait
            words = tuple(a & b for a, b in zip(words, waiting[position], strict=False))
        waiting[position] = words
    batches = tuple(
        (position, words)
        for position, words in sorted(waiting.items())
        if position > mark_delete
        and not any(ledger == position.ledger and first <= position.entry <= last for ledger, first, last in ranges)
    )
    return replace(ours, mark_delete=mark_delete, ranges=ranges, batches=batches)


def is_continued(before: CursorRecord, after: CursorRecord) -> bool:
    """Return True if nothing acknowledged became unacknowledged: the cursor was neither reset nor sought in between."""
    beyond = _behind(after.mark_delete, before.ranges)
    return after.mark_delete >= before.mark_delete and all(
        any(ledger == other and low <= first and last <= high for other, low, high in _merged(after.ranges))
        for ledger, first, last in beyond
    )


def _merged(ranges: Iterable[_Range]) -> list[_Range]:
    """Return the ranges in order, with adjacent ones joined."""
    merged: list[_Range] = []
    for ledger, first, last in sorted(ranges):
        if merged and merged[-1][0] == ledger and first <= merged[-1][2] + 1:
            merged[-1] = ledger, merged[-1][1], max(merged[-1][2], last)
        else:
            merged.append((ledger, first, last))
    return merged


def _behind(mark_delete: Position, ranges: Iterable[_Range]) -> list[_Range]:
    return [
        (ledger, max(first, mark_delete.entry + 1) if ledger == mark_delete.ledger else first, last)
        for ledger, first, last in ranges
        if Position(ledger, last) > mark_delete
    ]
