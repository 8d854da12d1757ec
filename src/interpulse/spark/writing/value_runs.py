"""Rows that have only a value: Arrow makes whole Pulsar batches of them, without a Python object per row.

The bytes equal those that ``sink_rows`` makes of the same rows, one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa
from pyspark.sql.types import StructType

from interpulse.spark.writing.sink_rows import ROW_COLUMNS

ROWS_MIN: Final = 16
"""Smallest number of rows that is packed together.

For fewer, Arrow's calls of some microseconds each do not pay off.
"""
_PAYLOAD_SIZE: Final = b"\x18"
_SEQUENCE_ID: Final = b"\x40"
"""First bytes of these fields in a message's own metadata."""


def is_plain(batch: pa.RecordBatch, record: StructType | None) -> bool:
    """Return True if the rows have only a value: no key, time, property, partition or clusters.

    ``record``: the columns that a schema encodes. The topic of a row does not matter.
    """
    if record is None and batch.column("value").null_count:
        return False
    own = set(ROW_COLUMNS) - {"__topic", "value"}
    return all(_is_empty(batch.column(name)) for name in batch.schema.names if name in own)


def _is_empty(column: pa.Array) -> bool:
    if pa.types.is_map(column.type) and column.null_count == 0:
        return bool(column.offsets[0].as_py() == column.offsets[-1].as_py())
    return bool(column.null_count == len(column))


def only_topic(batch: pa.RecordBatch) -> str | None:
    """Return the value of ``__topic``, if it is the same in all rows."""
    import pyarrow.compute as pc

    topics = batch.column("__topic")
    if not len(topics) or topics.null_count or not pc.all(pc.equal(topics, topics[0])).as_py():
        return None
    return str(topics[0].as_py()) or None


def plain_values(batch: pa.RecordBatch) -> tuple[pa.Array, bool]:
    """Return the column ``value`` as BINARY, and True if it is text."""
    values = batch.column("value")
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    return values.cast(pa.binary()), is_text


class PackedRun:
    """Packed values: each with its size and sequence id in front, as in a batch."""

    def __init__(self, values: pa.Array, ids: range) -> None:
        """Take BINARY without nulls, and ids of 0 or more."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from interpulse.spark.schemas.varints import varints

        sizes = pc.binary_length(values).cast(pa.uint64())
        size_fields, id_fields = varints(sizes), varints(pa.array(ids, pa.uint64()))
        heads = pc.add(pc.binary_length(size_fields), pc.binary_length(id_fields))
        packed = pc.binary_join_element_wise(
            _head_sizes().take(heads), _PAYLOAD_SIZE, size_fields, _SEQUENCE_ID, id_fields, values, b""
        )
        self._ids = ids
        self._ends = _offsets(packed)
        self._value_ends = _offsets(values)
        self._content = memoryview(packed.buffers()[2])

    def cut(self, messages_max: int, bytes_max: int) -> Iterator[tuple[memoryview, range]]:
        """Yield the payloads of batches within these limits, at least one message each, with their ids."""
        count, start = len(self._ids), 0
        while start < count:
            fitting = bisect_right(self._value_ends, self._value_ends[start] + bytes_max) - 1
            end = min(start + messages_max, max(fitting, start + 1))
            yield self._content[self._ends[start] : self._ends[end]], self._ids[start:end]
            start = end


def _offsets(strings: pa.Array) -> Sequence[int]:
    """Return the offset of each string, and the end of the last one."""
    every = memoryview(strings.buffers()[1]).cast("i")
    return every[strings.offset : strings.offset + len(strings) + 1].tolist()


@lru_cache(maxsize=1)
def _head_sizes() -> pa.Array:
    """Return the encoded sizes of metadata, by the bytes of the two numbers in it."""
    return pa.array([(number + 2).to_bytes(4, "big") for number in range(32)], pa.binary())
