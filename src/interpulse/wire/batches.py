"""Many messages in one entry: ``(size, SingleMessageMetadata, payload)`` repeated, compressed as a whole."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
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


class ParsedColumns:
    """`BatchColumns` of parsed messages. Each is made when it is wanted: in Python they cost more than the parsing."""

    def __init__(self, batches: Sequence[Sequence[BatchedMessage]]) -> None:
        self.counts: list[int] = []
        indexes = array("i")
        self._singles: list[pb.SingleMessageMetadata] = []
        self._payloads: list[memoryview] = []
        for messages in batches:
            left = [index for index, (single, _) in enumerate(messages) if not single.compacted_out]
            self.counts.append(len(left))
            indexes.extend(left)
            self._singles += [messages[index].metadata for index in left]
            self._payloads += [messages[index].payload for index in left]
        self.indexes = indexes.tobytes()

    @cached_property
    def flags(self) -> bytes:
        return bytes(map(_flags, self._singles))

    @cached_property
    def sequence_ids(self) -> bytes:
        return array("Q", [single.sequence_id for single in self._singles]).tobytes()

    @cached_property
    def event_times(self) -> bytes:
        return array("Q", [single.event_time for single in self._singles]).tobytes()

    @cached_property
    def property_ends(self) -> bytes:
        return array("i", accumulate(map(len, self._properties), initial=0)).tobytes()

    @cached_property
    def payloads(self) -> Pieces:
        return _joined(self._payloads)

    @cached_property
    def keys(self) -> Pieces:
        return _joined_texts(["" if each.null_partition_key else each.partition_key for each in self._singles])

    @cached_property
    def ordering_keys(self) -> Pieces:
        return _joined([single.ordering_key for single in self._singles])

    @cached_property
    def property_names(self) -> Pieces:
        return _joined_texts([item.key for some in self._properties for item in some])

    @cached_property
    def property_values(self) -> Pieces:
        return _joined_texts([item.value for some in self._properties for item in some])

    @cached_property
    def _properties(self) -> list[Sequence[pb.KeyValue]]:
        return [list(single.properties) for single in self._singles]


def read_batches(batches: Sequence[tuple[bytes, int, int]]) -> BatchColumns | ParsedColumns:
    """Read uncompressed batches: the bytes, where the batch begins in them, and its number of messages.

    Raises RemoteProtocolError if one is malformed.
    """
    plain = [_plain_messages(*batch) for batch in batches]
    if None not in plain:
        return _columns_of_plain(each for each in plain if each is not None)
    return ParsedColumns([unpack_batch(memoryview(data)[start:], count) for data, start, count in batches])


def _flags(single: pb.SingleMessageMetadata) -> int:
    has_key = single.HasField("partition_key") and not single.null_partition_key
    return (
        (0 if single.null_value else HAS_VALUE)
        | (HAS_KEY if has_key else 0)
        | (KEY_IN_BASE64 if single.partition_key_b64_encoded else 0)
        | (HAS_ORDERING_KEY if single.HasField("ordering_key") else 0)
        | (HAS_SEQUENCE_ID if single.HasField("sequence_id") else 0)
    )


def encoded(text: str | bytes) -> bytes:
    """Return the bytes of a text of protobuf, which is bytes already if they are not UTF-8."""
    return text if isinstance(text, bytes) else text.encode()


def _joined(pieces: Sequence[bytes | memoryview]) -> Pieces:
    return array("i", accumulate(map(len, pieces), initial=0)).tobytes(), b"".join(pieces)


def _joined_texts(texts: Sequence[str | bytes]) -> Pieces:
    """Join texts of protobuf; ASCII, as they mostly are, in one piece."""
    with suppress(TypeError):  # one of them is bytes
        joined = "".join(texts)  # type: ignore[arg-type]
        if joined.isascii():
            return array("i", accumulate(map(len, texts), initial=0)).tobytes(), joined.encode()
    return _joined([encoded(text) for text in texts])


class _PlainMessages(NamedTuple):
    payloads: list[memoryview]
    sequence_ids: array[int]
    flags: bytearray


def _columns_of_plain(batches: Iterable[_PlainMessages]) -> BatchColumns:
    counts: list[int] = []
    indexes, sequence_ids, flags = array("i"), array("Q"), bytearray()
    payloads: list[memoryview] = []
    for batch in batches:
        counts.append(len(batch.payloads))
        indexes.extend(range(len(batch.payloads)))
        sequence_ids += batch.sequence_ids
        flags += batch.flags
        payloads += batch.payloads
    rows = len(payloads)
    none, empty = (bytes(4 * rows + 4), b""), (bytes(4), b"")
    columns = indexes.tobytes(), bytes(flags), sequence_ids.tobytes(), bytes(8 * rows), bytes(4 * rows + 4)
    return BatchColumns(counts, *columns, _joined(payloads), none, none, empty, empty)


def _plain_messages(data: bytes, start: int, count: int) -> _PlainMessages | None:
    """Read a batch whose messages have nothing but their size and a sequence id. Takes a third of protobuf's time.

    Returns None if a message has more, or if it is damaged.
    """
    view = memoryview(data)
    messages = _PlainMessages([], array("Q"), bytearray())
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
            messages.payloads.append(view[body:start])
            messages.sequence_ids.append(number)
            messages.flags.append(flag)
    except (StructError, IndexError, OverflowError):
        return None
    return messages if start <= len(data) else None
