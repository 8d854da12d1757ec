"""Messages of batches, column by column: the codec reads them, and no message becomes an object of Python."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from interpulse.spark.rows.columns import Column, Message, index_of_first, message_id_of, micros_of, place_as_offset
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import (
    HAS_KEY,
    HAS_ORDERING_KEY,
    HAS_SEQUENCE_ID,
    HAS_VALUE,
    KEY_IN_BASE64,
    Pieces,
    unpack_batch,
)
from interpulse.wire.codec import codec
from interpulse.wire.ids import signed

_MICROS_PER_MILLI: Final = pa.scalar(1000, pa.int64())


class MessageBlock(NamedTuple):
    """An uncompressed batch that begins at ``start`` of ``data``. ``whole`` is its entry."""

    whole: Message
    data: bytes
    start: int

    @property
    def message_count(self) -> int:
        """The number of messages, with those that compaction removed."""
        return max(self.whole.outer.num_messages_in_batch, 0)

    def messages(self) -> list[Message]:
        """Return the messages that compaction left, one by one. Raise RemoteProtocolError if the batch is malformed."""
        return [
            self.whole._replace(batch_index=index, single=single, payload=payload, size=len(payload))
            for index, (single, payload) in enumerate(
                unpack_batch(memoryview(self.data)[self.start :], self.message_count)
            )
            if not single.compacted_out
        ]


class BlockRows:
    """The rows of some batches. Raises RemoteProtocolError if one is malformed."""

    def __init__(self, blocks: Sequence[MessageBlock]) -> None:
        self._blocks = blocks
        self._found = codec().read_batches([(block.data, block.start, block.message_count) for block in blocks])
        self.counts: Sequence[int] = self._found.counts
        self.indexes: Sequence[int] = memoryview(self._found.indexes).cast("i")

    @cached_property
    def payloads(self) -> pa.Array:
        """The payloads, null for tombstones."""
        return self._pieces(pa.binary(), self._found.payloads, HAS_VALUE)

    @cached_property
    def keys(self) -> pa.Array:
        """The keys, null without one."""
        keys = self._pieces(pa.binary(), self._found.keys, HAS_KEY)
        in_base64 = self._have(KEY_IN_BASE64)
        if not pc.any(in_base64).as_py():
            return keys
        decoded = [None if key is None else base64.b64decode(key) for key in keys.filter(in_base64).to_pylist()]
        return pc.replace_with_mask(keys, in_base64, pa.array(decoded, pa.binary()))

    def column(self, name: str, column: Column, kind: pa.DataType) -> pa.Array:
        """Return a column as an Arrow array of the requested type."""
        return self._of_entries(column.value, kind) if column.of_entry else _OF_MESSAGES[name](self, kind)

    def _of_entries(self, value: Callable[[Message], Any], kind: pa.DataType) -> pa.Array:
        """Repeat the value of each batch for each of its messages."""
        return arrow_array([value(block.whole) for block in self._blocks], kind).take(self._places)

    @cached_property
    def _places(self) -> pa.Array:
        """Which of the batches each row is from."""
        places = array("i")
        for at, count in enumerate(self.counts):
            places += array("i", (at,)) * count
        return self._numbers(pa.int32(), places)

    def _numbers(self, kind: pa.DataType, numbers: bytes | array[int]) -> pa.Array:
        return pa.Array.from_buffers(kind, len(self.indexes), [None, pa.py_buffer(numbers)])

    def _have(self, flag: int) -> pa.Array:
        """Return which rows have a flag."""
        if self._are_alike:
            return pa.repeat(bool(self._found.flags[0] & flag), len(self.indexes))
        flags = self._numbers(pa.uint8(), self._found.flags)
        return pc.not_equal(pc.bit_wise_and(flags, pa.scalar(flag, pa.uint8())), pa.scalar(0, pa.uint8()))

    @cached_property
    def _are_alike(self) -> bool:
        """True if all rows have the same flags, as nearly always."""
        flags = self._found.flags
        return len(flags) > 0 and flags == flags[:1] * len(flags)

    def _pieces(self, kind: pa.DataType, pieces: Pieces, flag: int) -> pa.Array:
        if self._are_alike and not self._found.flags[0] & flag:
            return pa.nulls(len(self.indexes), kind)
        validity = None if self._are_alike else self._have(flag).buffers()[1]
        return pa.Array.from_buffers(kind, len(self.indexes), [validity, *map(pa.py_buffer, pieces)])

    def _message_ids(self, kind: pa.DataType) -> pa.Array:
        indexes = self._batch_indexes(pa.int32())
        highest = max((block.message_count for block in self._blocks), default=0)
        fields = _index_fields(1 << highest.bit_length()).take(indexes)
        return pc.binary_join_element_wise(self._of_entries(message_id_of, kind), fields, pa.scalar(b"", kind))

    def _ordering_keys(self, kind: pa.DataType) -> pa.Array:
        return self._pieces(kind, self._found.ordering_keys, HAS_ORDERING_KEY)

    def _event_times(self, kind: pa.DataType) -> pa.Array:
        if self._found.event_times == bytes(len(self._found.event_times)):
            return pa.nulls(len(self.indexes), kind)
        times = self._numbers(pa.int64(), self._found.event_times)
        try:
            micros = pc.multiply_checked(times, _MICROS_PER_MILLI)
        except pa.ArrowInvalid:
            for time in times.to_pylist():
                micros_of(time)  # names the one that no column holds
            raise
        return pc.if_else(pc.equal(times, pa.scalar(0, pa.int64())), pa.scalar(None, pa.int64()), micros).cast(kind)

    def _batch_indexes(self, kind: pa.DataType) -> pa.Array:
        return self._numbers(kind, self._found.indexes)

    def _sequence_ids(self, kind: pa.DataType) -> pa.Array:
        of_entries = self._of_entries(lambda message: signed(message.outer.sequence_id), kind)
        counted = pc.add(of_entries, self._batch_indexes(pa.int32()))
        return pc.if_else(self._have(HAS_SEQUENCE_ID), self._numbers(kind, self._found.sequence_ids), counted)

    def _log_indexes(self, kind: pa.DataType) -> pa.Array:
        firsts = self._of_entries(index_of_first, kind)
        return pc.add(firsts, self._batch_indexes(pa.int32()))

    def _kafka_offsets(self, kind: pa.DataType) -> pa.Array:
        return pc.coalesce(self._log_indexes(kind), self._of_entries(place_as_offset, kind))

    def _sizes(self, kind: pa.DataType) -> pa.Array:
        offsets, joined = map(pa.py_buffer, self._found.payloads)
        return pc.binary_length(pa.Array.from_buffers(pa.binary(), len(self.indexes), [None, offsets, joined]))

    def _properties(self, kind: pa.MapType) -> pa.Array:
        items = self._property_items([kind.key_field, kind.item_field])
        ends = pa.py_buffer(self._found.property_ends)
        return pa.Array.from_buffers(kind, len(self.indexes), [None, ends], children=[items])

    def _headers(self, kind: pa.ListType) -> pa.Array:
        items = self._property_items(list(kind.value_type))
        ends = self._found.property_ends
        headers = pa.Array.from_buffers(kind, len(self.indexes), [None, pa.py_buffer(ends)], children=[items])
        are_some = pc.not_equal(pc.list_value_length(headers), pa.scalar(0, pa.int32()))
        buffers = [are_some.buffers()[1], pa.py_buffer(ends)]
        return pa.Array.from_buffers(kind, len(self.indexes), buffers, children=[items])

    def _property_items(self, fields: Sequence[pa.Field]) -> pa.Array:
        columns = []
        for field, pieces in zip(fields, (self._found.property_names, self._found.property_values), strict=True):
            buffers = [None, *map(pa.py_buffer, pieces)]
            columns.append(pa.Array.from_buffers(field.type, len(pieces[0]) // 4 - 1, buffers))
            columns[-1].validate(full=True)  # a peer's text need not be UTF-8
        return pa.StructArray.from_arrays(columns, fields=fields)


@lru_cache(maxsize=16)
def _index_fields(count: int) -> pa.Array:
    """Return batch indexes as they appear in serialized message ids, after ledger, entry and partition."""
    ids = (pb.MessageIdData(ledgerId=0, entryId=0, batch_index=index) for index in range(count))
    return pa.array([message_id.SerializeToString()[4:] for message_id in ids], pa.binary())


_OF_MESSAGES: Final[Mapping[str, Callable[[BlockRows, Any], pa.Array]]] = {
    "value": lambda rows, kind: rows.payloads,
    "__key": lambda rows, kind: rows.keys,
    "__messageId": BlockRows._message_ids,
    "__eventTime": BlockRows._event_times,
    "__messageProperties": BlockRows._properties,
    "__sequenceId": BlockRows._sequence_ids,
    "__index": BlockRows._log_indexes,
    "__size": BlockRows._sizes,
    "__batchIndex": BlockRows._batch_indexes,
    "__orderingKey": BlockRows._ordering_keys,
    "key": lambda rows, kind: rows.keys,
    "offset": BlockRows._kafka_offsets,
    "headers": BlockRows._headers,
}
"""Columns whose values differ between the messages of an entry."""


def arrow_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return an array of values as a `Column` has them: times are numbers."""
    return pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)
