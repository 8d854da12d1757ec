"""Cursors in Pulsar's protobuf: records (``ManagedCursorInfo``), and entries of cursor ledgers (``PositionInfo``).

Foreign content keeps its bytes: unknown fields, the numbers that belong to a position, and the properties that Pulsar
reserves for itself. Source: docs/reference/cluster-protocol.md#cursor-record,
docs/reference/cluster-protocol.md#cursor-ledgers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from interpulse.model.ids import Position
from interpulse.storage.cursors import CursorRecord, numbers_are_whole
from interpulse.storage.managed_ledger import managed_ledger_pb2 as pb
from interpulse.storage.managed_ledger.compression import packed, parsed, unpacked

IN_RECORD: Final = -1
"""The ledger id of a cursor without a ledger: its state is in its record."""

_REPLICATED: Final = "pulsar.replicated.subscription"
_RESETS: Final = "interpulse.resets"
"""The number of resets. Brokers of Pulsar omit it from their states, so it begins at 0 again after them."""
_BY_POLICY: Final = "interpulse.openedByPolicy"
_INTERNAL: Final = "#pulsar.internal."
_WORD: Final = (1 << 64) - 1


class StoredCursor(NamedTuple):
    """A decoded record: its state, the ledger that has newer states, and the plain bytes."""

    state: CursorRecord
    ledger_id: int
    plain: bytes


class PulsarCursors:
    """The codec of cursor records. See `interpulse.storage.cursors.CursorCodec`."""

    def decode(self, name: str, value: bytes) -> CursorRecord:
        return decode_record(value).state

    def encode(self, name: str, record: CursorRecord) -> bytes:
        return encode_record(name, record)

    def ledger_of(self, value: bytes) -> int:
        return decode_record(value).ledger_id


def decode_record(value: bytes) -> StoredCursor:
    """Decode a record. Raise ValueError if it is none."""
    plain = unpacked(value)
    message = parsed(pb.ManagedCursorInfo, plain)
    numbers = {pair.name: pair.value for pair in message.properties}
    properties = {pair.name: pair.value for pair in message.cursorProperties if not pair.name.startswith(_INTERNAL)}
    by_policy = properties.pop(_BY_POLICY, None) is not None
    state = CursorRecord(
        Position(message.markDeleteLedgerId, message.markDeleteEntryId),
        tuple(_ranges(message.individualDeletedMessages)),
        _batches(message.batchedEntryDeletionIndexInfo),
        properties,
        bool(numbers.pop(_REPLICATED, 0)),
        by_policy,
        message.lastActive or None,
        resets=numbers.pop(_RESETS, 0),
        numbers=numbers,
    )
    return StoredCursor(state, message.cursorsLedgerId, plain)


def encode_record(name: str, state: CursorRecord, *, ledger_id: int = IN_RECORD, previous: bytes = b"") -> bytes:
    """Encode a state as a record. ``previous`` are the plain bytes of the record that it replaces."""
    message = pb.ManagedCursorInfo.FromString(previous) if previous else pb.ManagedCursorInfo()
    old = {pair.name: pair.value for pair in message.properties}
    internal = {pair.name: pair.value for pair in message.cursorProperties if pair.name.startswith(_INTERNAL)}
    for field in message.DESCRIPTOR.fields:
        message.ClearField(field.name)  # type: ignore[arg-type]
    message.cursorsLedgerId = ledger_id
    message.markDeleteLedgerId, message.markDeleteEntryId = state.mark_delete
    _put_ranges(message.individualDeletedMessages, state.ranges)
    _put_batches(message.batchedEntryDeletionIndexInfo, state)
    _put_numbers(message.properties, _numbers(name, state, old))
    if state.last_active_ms is not None:
        message.lastActive = state.last_active_ms
    properties = {**internal, **state.properties, **({_BY_POLICY: "true"} if state.by_policy else {})}
    for key, value in properties.items():
        message.cursorProperties.add(name=key, value=value)
    return packed(message.SerializeToString(deterministic=True))


def decode_entry(entry: bytes, record: CursorRecord) -> CursorRecord:
    """Decode an entry of a cursor ledger; the record supplies what belongs to the subscription. Raise ValueError."""
    message = parsed(pb.PositionInfo, entry)
    bitmaps = message.individualDeletedMessageRanges
    numbers = {pair.name: pair.value for pair in message.properties}
    return CursorRecord(
        Position(message.ledgerId, message.entryId),
        tuple(_ranges_of_bitmaps(bitmaps) if bitmaps else _ranges(message.individualDeletedMessages)),
        _batches(message.batchedEntryDeletionIndexInfo),
        record.properties,
        bool(numbers.pop(_REPLICATED, 0)),
        record.by_policy,
        record.last_active_ms,
        resets=numbers.pop(_RESETS, 0),
        numbers=numbers,
    )


def encode_entry(name: str, state: CursorRecord, *, numbers: Mapping[str, int] | None = None) -> bytes:
    """Encode an entry of a cursor ledger. ``numbers`` are those of the state before, which stay for most cursors."""
    message = pb.PositionInfo(ledgerId=state.mark_delete.ledger, entryId=state.mark_delete.entry)
    _put_numbers(message.properties, _numbers(name, state, numbers or {}))
    _put_batches(message.batchedEntryDeletionIndexInfo, state)
    bitmaps: dict[int, bytearray] = {}
    for ledger, first, last in state.ranges:
        _mark(bitmaps.setdefault(ledger, bytearray()), first, last)
    for ledger, acknowledged in bitmaps.items():
        message.individualDeletedMessageRanges.add(key=ledger, values=_words(acknowledged))
    return message.SerializeToString(deterministic=True)


def _numbers(name: str, state: CursorRecord, old: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers to store. Two cursors of the broker have all of theirs; others keep those of Pulsar."""
    if numbers_are_whole(name):
        return dict(state.numbers)
    others = {key: value for key, value in old.items() if key not in (_REPLICATED, _RESETS)}
    ours = {_REPLICATED: int(state.replicate_state), _RESETS: state.resets}
    return {**others, **state.numbers, **{key: value for key, value in ours.items() if value}}


def _put_numbers(target: Any, numbers: Mapping[str, int]) -> None:
    for name, value in numbers.items():
        target.add(name=name, value=value)


def _ranges(stored: Iterable[pb.MessageRange]) -> Iterable[tuple[int, int, int]]:
    """Yield the ranges. Of a range over several ledgers, as in old versions, only the last ledger's part counts."""
    for stored_range in stored:
        lower, upper = stored_range.lowerEndpoint, stored_range.upperEndpoint
        first = lower.entryId + 1 if lower.ledgerId == upper.ledgerId else 0
        if first <= upper.entryId:
            yield upper.ledgerId, first, upper.entryId


def _put_ranges(target: Any, ranges: Iterable[tuple[int, int, int]]) -> None:
    for ledger, first, last in ranges:
        target.add(
            lowerEndpoint=pb.NestedPositionInfo(ledgerId=ledger, entryId=first - 1),
            upperEndpoint=pb.NestedPositionInfo(ledgerId=ledger, entryId=last),
        )


def _batches(stored: Iterable[pb.BatchedEntryDeletionIndexInfo]) -> tuple[tuple[Position, tuple[int, ...]], ...]:
    return tuple(
        (Position(batch.position.ledgerId, batch.position.entryId), tuple(batch.deleteSet)) for batch in stored
    )


def _put_batches(target: Any, state: CursorRecord) -> None:
    for position, words in state.batches:
        at = pb.NestedPositionInfo(ledgerId=position.ledger, entryId=position.entry)
        target.add(position=at, deleteSet=words)


def _mark(bitmap: bytearray, first: int, last: int) -> None:
    """Set the bits of a range, at the cost of the bitmap's growth."""
    start, end = first >> 3, last >> 3
    bitmap.extend(bytes(max(0, end + 1 - len(bitmap))))
    from_first, upto_last = 0xFF << (first & 7) & 0xFF, 0xFF >> (7 - (last & 7))
    if start == end:
        bitmap[start] |= from_first & upto_last
        return
    bitmap[start] |= from_first
    bitmap[start + 1 : end] = b"\xff" * (end - start - 1)
    bitmap[end] |= upto_last


def _words(bitmap: bytearray) -> list[int]:
    bitmap.extend(bytes(-len(bitmap) % 8))
    return [*struct.unpack(f"<{len(bitmap) // 8}q", bitmap), 0]


def _ranges_of_bitmaps(bitmaps: Iterable[pb.LongListMap]) -> Iterable[tuple[int, int, int]]:
    for bitmap in bitmaps:
        text = "".join(f"{word & _WORD:064b}"[::-1] for word in bitmap.values)
        first = text.find("1")
        while first >= 0:
            end = text.find("0", first)
            end = len(text) if end < 0 else end
            yield bitmap.key, first, end - 1
            first = text.find("1", end)
