"""The durable form of a cursor, and its JSON below the record of a topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from interpulse.model.ids import EARLIEST, Position

__all__ = [
    "COMPACTED_LEDGER",
    "COMPACTION_CURSOR",
    "DEDUPLICATION_CURSOR",
    "JSON_CURSORS",
    "UNREADABLE",
    "CursorCodec",
    "CursorRecord",
    "JsonCursors",
    "numbers_are_whole",
]

DEDUPLICATION_CURSOR: Final = "pulsar.dedup"
"""The name under which the sequence ids of producers lie among the cursors of a topic."""

COMPACTION_CURSOR: Final = "__compaction"
"""The subscription that stands where the compacted part of a topic ends."""

COMPACTED_LEDGER: Final = "CompactedTopicLedger"
"""Where brokers share topics: the number of that cursor which names the compacted ledger."""

UNREADABLE: Final = (ValueError, KeyError, TypeError, AttributeError)
"""What a codec raises for a value that is no cursor."""


@dataclass(frozen=True, slots=True)
class CursorRecord:
    """The acknowledgements of one subscription. The default stands before every entry."""

    mark_delete: Position = EARLIEST
    ranges: tuple[tuple[int, int, int], ...] = ()
    """Acknowledged beyond it: ledger, first entry, last entry."""
    batches: tuple[tuple[Position, tuple[int, ...]], ...] = ()
    """Partly acknowledged: bit i of the words is 1 while message i waits."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """What clients set of the subscription."""
    replicate_state: bool = False
    by_policy: bool = False
    """Of a replication cursor: policies opened it, and close it when they list its cluster no more."""
    last_active_ms: int | None = None
    """The time of its last consumer; None = a consumer was connected."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """What belongs to the position: of the de-duplication cursor the highest sequence id of each producer name, of the
    compaction cursor the compacted ledger."""
    active_ms: Mapping[str, int] = field(default_factory=dict)
    """When each of these names was last active, where that is written down."""

    def of_new_partition(self, mark_delete: Position) -> CursorRecord:
        """The same subscription on a later partition: with the settings of its clients, and nothing acknowledged."""
        return CursorRecord(mark_delete, properties=self.properties, replicate_state=self.replicate_state)


def numbers_are_whole(cursor: str) -> bool:
    """Whether a state of this cursor has all its numbers; of others, those that it does not have stay."""
    return cursor in (DEDUPLICATION_CURSOR, COMPACTION_CURSOR)


class CursorCodec(Protocol):
    """How the records of cursors are stored; chosen with the metadata store."""

    def decode(self, name: str, value: bytes) -> CursorRecord:
        """The state in a stored record; raises one of `UNREADABLE` if it is none."""

    def encode(self, name: str, record: CursorRecord) -> bytes:
        """The record with this state."""

    def ledger_of(self, value: bytes) -> int:
        """The ledger that has newer states than a stored record, -1 if there is none."""


class JsonCursors:
    """The JSON of a broker that is alone. See `CursorCodec`."""

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
