"""The record of a topic in Pulsar's protobuf, ``ManagedLedgerInfo``.

Unchanged content keeps its bytes, including unknown fields. Two counters are among the properties, under the names that
Pulsar's broker gives them.

Pulsar records when a ledger was *closed*, and 0 for the current one; a log needs the time at which one was *opened*,
which is when the previous one was closed. Source: docs/reference/cluster-protocol.md#topic-record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from struct import Struct
from typing import Any, Final

from google.protobuf.message import DecodeError

from interpulse.model.ids import Position
from interpulse.storage.api import LedgerRecord, LogEntry
from interpulse.storage.cursors import COMPACTED_LEDGER
from interpulse.storage.logs.topic_records import TopicRecord, record_key
from interpulse.storage.managed_ledger import managed_ledger_pb2 as pb
from interpulse.storage.managed_ledger.compression import packed, parsed, unpacked
from interpulse.storage.managed_ledger.cursor_codec import decode_record
from interpulse.storage.managed_ledger.schema_codec import decode_locator
from interpulse.wire.pulsar_api_pb2 import MessageIdData

_SCHEMAS: Final = "/schemas/"
_COUNTERS: Final = {"topicEpoch": "pulsar.topic.epoch", "lastIndex": "index"}


class PulsarTopicRecords:
    """The codec of topic records. An empty value is a topic that was never loaded.

    See `interpulse.storage.logs.topic_records.TopicRecordCodec`.
    """

    def decode(self, value: bytes) -> TopicRecord:
        plain = unpacked(value)
        message = _message(plain)
        for ledger in message.ledgerInfo:
            if ledger.offloadContext.complete:
                raise ValueError(
                    f"ledger {ledger.ledgerId} was offloaded to other storage, which is not supported here"
                )
        properties = {pair.key: pair.value for pair in message.properties}
        other: dict[str, Any] = {}
        for counter, name in _COUNTERS.items():
            if properties.get(name, "").isdecimal():
                other[counter] = int(properties.pop(name))
        end = message.terminatedPosition if message.HasField("terminatedPosition") else None
        return TopicRecord(
            tuple(_rows(message.ledgerInfo)),
            None if end is None else Position(end.ledgerId, end.entryId),
            {"properties": properties, **other},
            stored=plain,
        )

    def encode(self, record: TopicRecord) -> bytes:
        if record.compacted is not None:
            raise ValueError("the record of a cursor names the compacted ledger, not the record of the topic")
        message = _message(record.stored)
        _put_ledgers(message, record.ledgers)
        if record.terminated is not None:
            message.terminatedPosition.ledgerId, message.terminatedPosition.entryId = record.terminated
        else:
            message.ClearField("terminatedPosition")
        counters = {
            name: str(record.other[counter])
            for counter, name in _COUNTERS.items()
            if record.other.get(counter) is not None
        }
        properties = {**(record.other.get("properties") or {}), **counters}
        if {pair.key: pair.value for pair in message.properties} != properties:
            del message.properties[:]
            for key, value in properties.items():
                message.properties.add(key=key, value=value)
        return packed(message.SerializeToString(deterministic=True))

    def amended(self, value: bytes | None, **other: Any) -> bytes:
        record = self.decode(value or b"")
        return self.encode(replace(record, other=record.other | other))

    def ledgers_named(self, key: str, value: bytes) -> Sequence[int]:
        try:
            if key.startswith(_SCHEMAS):
                return [version.position.ledger for version in decode_locator(value)]
            if not key.startswith(record_key("")):
                return ()
            cursor = decode_record(value)
        except ValueError:
            return ()
        compacted = cursor.state.numbers.get(COMPACTED_LEDGER)
        return [ledger for ledger in (cursor.ledger_id, compacted) if ledger is not None and ledger >= 0]


def _message(record: bytes) -> pb.ManagedLedgerInfo:
    return parsed(pb.ManagedLedgerInfo, record)


def _rows(ledgers: Sequence[pb.LedgerInfo]) -> list[LedgerRecord]:
    rows = []
    begun_ms = ledgers[0].timestamp if ledgers else 0  # the start of the first one is not recorded
    for ledger in ledgers:
        rows.append(LedgerRecord(ledger.ledgerId, ledger.entries, ledger.size, begun_ms))
        begun_ms = ledger.timestamp or begun_ms
    return rows


def _put_ledgers(message: pb.ManagedLedgerInfo, rows: Sequence[LedgerRecord]) -> None:
    stored = {info.ledgerId: pb.LedgerInfo.FromString(info.SerializeToString()) for info in message.ledgerInfo}
    del message.ledgerInfo[:]
    for row, following in zip(rows, [*rows[1:], None], strict=False):
        ledger = message.ledgerInfo.add()
        if row.ledger_id in stored:
            ledger.CopyFrom(stored[row.ledger_id])
        else:
            ledger.ledgerId, ledger.timestamp = row.ledger_id, 0
        if ledger.entries != row.entries:
            ledger.entries = row.entries
        if ledger.size != row.size:
            ledger.size = row.size
        if following is not None and not ledger.timestamp:
            ledger.timestamp = following.created_ms


_SIZE: Final = Struct(">I")
_NO_PARTITION: Final = -1


class PulsarCompacted:
    """Pulsar's form of compacted entries. See `interpulse.storage.logs.compacted.CompactedForm`."""

    def pack(self, log_entry: LogEntry) -> bytes:
        ledger, entry = log_entry.position
        message_id = MessageIdData(ledgerId=ledger, entryId=entry, partition=_NO_PARTITION).SerializeToString()
        return b"".join((_SIZE.pack(len(message_id)), message_id, _SIZE.pack(len(log_entry.entry)), log_entry.entry))

    def unpack(self, stored: bytes) -> LogEntry:
        raw_id, start = _sized(stored, 0)
        entry, end = _sized(stored, start)
        if end != len(stored):
            raise ValueError(f"{len(stored) - end} bytes follow the entry")
        try:
            message_id = MessageIdData.FromString(raw_id)
        except DecodeError as error:
            raise ValueError(f"the id of the message cannot be read: {error}") from None
        return LogEntry(Position(message_id.ledgerId, message_id.entryId), entry)


def _sized(stored: bytes, at: int) -> tuple[bytes, int]:
    """Return the bytes behind a size, and the offset at which they end."""
    start = at + _SIZE.size
    if start > len(stored):
        raise ValueError(f"it ends after {len(stored)} bytes, before a size")
    end = start + int.from_bytes(stored[at:start], "big")
    if end > len(stored):
        raise ValueError(f"it ends after {len(stored)} bytes and should have {end}")
    return stored[start:end], end
