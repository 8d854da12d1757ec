"""Rows that have nothing but a value: Arrow makes whole Pulsar batches of them, without a Python object per row.

The bytes are those that ``sink_rows`` makes of the same rows, one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType

from interpulse.spark.schemas.varints import varints
from interpulse.spark.writing.sink_rows import ROW_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ROWS_MIN", "PackedRun", "is_plain", "only_topic", "plain_values"]

ROWS_MIN: Final = 16
"""Fewer rows are written one by one: Arrow's calls cost some microseconds each."""
_PAYLOAD_SIZE: Final = b"\x18"
_SEQUENCE_ID: Final = b"\x40"
"""How these fields of a message's own metadata begin."""


def is_plain(batch: pa.RecordBatch, record: StructType | None) -> bool:
    """Whether the rows say nothing about themselves: neither key nor time, property, partition or clusters.

    ``record``: the columns that a schema encodes. What a row says of its topic is not looked at.
    """
    if record is None and batch.column("value").null_count:
        return False
    own = set(ROW_COLUMNS) - {"__topic", "value"}
    return all(_is_empty(batch.column(name)) for name in batch.schema.names if name in own)


def _is_empty(column: pa.Array) -> bool:
    import pyarrow as pa

    if pa.types.is_map(column.type) and column.null_count == 0:
        return bool(column.offsets[0].as_py() == column.offsets[-1].as_py())
    return bool(column.null_count == len(column))


def only_topic(batch: pa.RecordBatch) -> str | None:
    """What column ``__topic`` says, if that is the same in all rows."""
    import pyarrow.compute as pc

    topics = batch.column("__topic")
    if not len(topics) or topics.null_count or not pc.all(pc.equal(topics, topics[0])).as_py():
        return None
    return str(topics[0].as_py()) or None


def plain_values(batch: pa.RecordBatch) -> tuple[pa.Array, bool]:
    """The column ``value`` as BINARY, and whether it holds text."""
    import pyarrow as pa

    values = batch.column("value")
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    return values.cast(pa.binary()), is_text


class PackedRun:
    """Values one after the other, each as it lies in a batch: with its size and sequence id in front."""

    def __init__(self, values: pa.Array, ids: range) -> None:
        """BINARY without nulls; the ids are 0 or more."""
        import pyarrow as pa
        import pyarrow.compute as pc

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
        """The payloads of batches with at most so many messages and bytes of values, or one message, with their ids."""
        count, start = len(self._ids), 0
        while start < count:
            fitting = bisect_right(self._value_ends, self._value_ends[start] + bytes_max) - 1
            end = min(start + messages_max, max(fitting, start + 1))
            yield self._content[self._ends[start] : self._ends[end]], self._ids[start:end]
            start = end


def _offsets(strings: pa.Array) -> Sequence[int]:
    """Where each begins, and where the last one ends."""
    every = memoryview(strings.buffers()[1]).cast("i")
    return every[strings.offset : strings.offset + len(strings) + 1].tolist()


@lru_cache(maxsize=1)
def _head_sizes() -> pa.Array:
    """How sizes of metadata are written, by the bytes of the two numbers in it."""
    import pyarrow as pa

    return pa.array([(each + 2).to_bytes(4, "big") for each in range(32)], pa.binary())
