"""Many messages in one entry: ``(size, SingleMessageMetadata, payload)`` repeated, compressed as a whole."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple, TypeAlias

from google.protobuf.message import DecodeError

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError

_U32: Final = Struct(">I")
_PAYLOAD_SIZE: Final = 0x18
_SEQUENCE_ID: Final = 0x40
"""The first bytes of these fields of a message inside a batch."""


class BatchedMessage(NamedTuple):
    """One message of a batch."""

    metadata: pb.SingleMessageMetadata
    payload: memoryview


def pack_one(metadata: pb.SingleMessageMetadata, payload: bytes) -> bytes:
    """Return one message in the form of a batch. Set ``payload_size`` of the metadata."""
    metadata.payload_size = len(payload)
    raw = metadata.SerializeToString()
    return b"%b%b%b" % (_U32.pack(len(raw)), raw, payload)


def pack_batch(messages: Iterable[tuple[pb.SingleMessageMetadata, bytes]]) -> bytes:
    """Return the payload of a batch before compression."""
    return b"".join(pack_one(metadata, payload) for metadata, payload in messages)


def unpack_batch(payload: bytes | memoryview, count: int) -> list[BatchedMessage]:
    """Return the ``count`` messages of a decompressed batch. Raise RemoteProtocolError if it has more or fewer."""
    view = memoryview(payload)
    messages: list[BatchedMessage] = []
    start = 0
    try:
        for _ in range(count):
            (size,) = _U32.unpack_from(view, start)
            body = start + 4 + size
            if body > len(view):
                raise RemoteProtocolError("batch that is cut off")
            metadata = pb.SingleMessageMetadata.FromString(bytes(view[start + 4 : body]))
            start = body + metadata.payload_size
            if metadata.payload_size < 0 or start > len(view):
                raise RemoteProtocolError("batch that is cut off")
            messages.append(BatchedMessage(metadata, view[body:start]))
    except (StructError, DecodeError) as error:
        raise RemoteProtocolError(f"batch that cannot be parsed: {error}") from None
    return messages


HAS_VALUE: Final = 1
HAS_KEY: Final = 2
KEY_IN_BASE64: Final = 4
HAS_ORDERING_KEY: Final = 8
HAS_SEQUENCE_ID: Final = 16
"""Flags of a message in `BatchColumns`."""

Pieces: TypeAlias = tuple[bytes, bytes]
"""The begin of each piece and the end of the last one, in four bytes each; and all pieces joined."""


class BatchColumns(NamedTuple):
    """Messages of some batches, column by column, without those that compaction removed.

    Numbers are in the machine's order: ``indexes`` in their batch and ``property_ends`` have four bytes, sequence ids
    and event times eight, ``flags`` one. What a message lacks is 0 or empty. ``counts`` are by batch. The properties of
    a message lie between two of ``property_ends``.
    """

    counts: Sequence[int]
    indexes: bytes
    flags: bytes
    sequence_ids: bytes
    event_times: bytes
    property_ends: bytes
    payloads: Pieces
    keys: Pieces
    ordering_keys: Pieces
    property_names: Pieces
    property_values: Pieces


def read_batches(batches: Sequence[tuple[bytes, int, int]]) -> BatchColumns:
    """Read uncompressed batches: the bytes, where the batch begins in them, and its number of messages.

    Raises RemoteProtocolError if one is malformed.
    """
    counts: list[int] = []
    flags = bytearray()
    indexes, sequence_ids, event_times, property_ends = array("i"), array("Q"), array("Q"), array("i", (0,))
    payloads: list[bytes | memoryview] = []
    keys: list[bytes] = []
    ordering_keys: list[bytes] = []
    names: list[bytes] = []
    values: list[bytes] = []
    for data, start, count in batches:
        before = len(flags)
        view = memoryview(data)
        plain = _plain_messages(data, start, count)
        if plain is not None:
            bounds, numbers, plain_flags = plain
            indexes.extend(range(count))
            flags += plain_flags
            sequence_ids += numbers
            event_times.frombytes(bytes(8 * count))
            property_ends += array("i", (len(names),)) * count
            payloads += [view[begin:end] for begin, end in bounds]
            keys += [b""] * count
            ordering_keys += [b""] * count
        for index, (single, payload) in enumerate(unpack_batch(view[start:], count) if plain is None else ()):
            if single.compacted_out:
                continue
            key = encoded(single.partition_key)
            has_key = not single.null_partition_key and bool(key or single.HasField("partition_key"))
            indexes.append(index)
            flags.append(
                (0 if single.null_value else HAS_VALUE)
                | (HAS_KEY if has_key else 0)
                | (KEY_IN_BASE64 if single.partition_key_b64_encoded else 0)
                | (HAS_ORDERING_KEY if single.HasField("ordering_key") else 0)
                | (HAS_SEQUENCE_ID if single.HasField("sequence_id") else 0)
            )
            sequence_ids.append(single.sequence_id)
            event_times.append(single.event_time)
            payloads.append(payload)
            keys.append(key if has_key else b"")
            ordering_keys.append(single.ordering_key)
            for item in single.properties:
                names.append(encoded(item.key))
                values.append(encoded(item.value))
            property_ends.append(len(names))
        counts.append(len(flags) - before)
    return BatchColumns(
        counts,
        bytes(indexes),
        bytes(flags),
        bytes(sequence_ids),
        bytes(event_times),
        bytes(property_ends),
        _joined(payloads),
        _joined(keys),
        _joined(ordering_keys),
        _joined(names),
        _joined(values),
    )


def encoded(text: str | bytes) -> bytes:
    """Return the bytes of a text of protobuf, which is bytes already if they are not UTF-8."""
    return text if isinstance(text, bytes) else text.encode()


def _joined(pieces: Sequence[bytes | memoryview]) -> Pieces:
    return array("i", accumulate(map(len, pieces), initial=0)).tobytes(), b"".join(pieces)


def _plain_messages(data: bytes, start: int, count: int) -> tuple[list[tuple[int, int]], array[int], bytearray] | None:
    """Read a batch whose messages have nothing but their size and a sequence id. Takes a third of protobuf's time.

    Returns begin and end of the payloads, sequence ids and flags; None if a message has more, or if it is damaged.
    """
    bounds: list[tuple[int, int]] = []
    sequence_ids, flags = array("Q"), bytearray()
    try:
        for _ in range(count):
            at = start + 6
            body = start + 4 + _U32.unpack_from(data, start)[0]
            size = data[at - 1]
            if size > 127:
                size = size & 127 | data[at] << 7
                at += 1
                if size > 0x3FFF:
                    size = size & 0x3FFF | data[at] << 14
                    at += 1
            if data[start + 4] != _PAYLOAD_SIZE or size > 0x1FFFFF:
                return None
            flag, number, shift = HAS_VALUE, 0, 0
            if at != body:
                if data[at] != _SEQUENCE_ID or body - at > 11:
                    return None
                at += 1
                while data[at] > 127:
                    number |= (data[at] & 127) << shift
                    at += 1
                    shift += 7
                number |= data[at] << shift
                if at + 1 != body:
                    return None
                flag |= HAS_SEQUENCE_ID
            start = body + size
            bounds.append((body, start))
            sequence_ids.append(number)
            flags.append(flag)
    except (StructError, IndexError, OverflowError):
        return None
    return (bounds, sequence_ids, flags) if start <= len(data) else None
