"""The durable form of a cursor, and its JSON below the record of a topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from interpulse.model.ids import EARLIEST, Position

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
        return json.dumps(body, separators=(",", ":")).encode()

    def ledger_of(self, value: bytes) -> int:
        return -1


JSON_CURSORS: Final = JsonCursors()
