"""Avro records as Arrow columns and back, field by field for all rows in one call: no Python object per row.

Covers records of primitive types, dates, times, enumerations, nested records, and unions of one of these with null.
Other schemas have no such reader or writer. An invalid row raises an exception; the caller then reads the rows one by
one to name it. Imported only where rows are read or written, because it imports pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from interpulse.spark.schemas.avro_columns import resolved_types
from interpulse.spark.schemas.avro_values import DAYS, MICROS
from interpulse.spark.schemas.varints import OddBytes, byte_strings, read_varints, varints, zigzag, zigzag_undone

ReadRecords: TypeAlias = Callable[[pa.Array], list[pa.Array]]
"""Function from BINARY payloads without nulls to columns."""
WriteRecords: TypeAlias = Callable[[pa.RecordBatch], pa.Array]
"""Function from rows to payloads."""

T = TypeVar("T")

_PLAIN_LOGICAL: Final = frozenset(
    {"date", *(f"{kind}timestamp-{unit}" for kind in ("", "local-") for unit in ("millis", "micros"))}
)


def _of_fields(schema: Any, make: Callable[[Any], T | None]) -> dict[str, T] | None:
    """Apply ``make`` to each field of a record, by name. Return None if it fails for one, or for other types."""
    if isinstance(schema, list) or schema["type"] not in ("record", "error"):
        return None
    made: dict[str, T] = {}
    for field in schema["fields"]:
        one = make(field["type"])
        if one is None:
            return None
        made[field["name"]] = one
    return made


def _null_and_other(union: Sequence[Any]) -> tuple[int, Any] | None:
    """Return the index of null and the other type, for a union of null and one other type; else None."""
    nulls = [index for index, branch in enumerate(union) if branch["type"] == "null"]
    return (nulls[0], union[1 - nulls[0]]) if len(union) == 2 and len(nulls) == 1 else None


# ---- Reading


@dataclass
class _Rows:
    """Payloads of one column of bytes, each with its own read position."""

    bytes_of_all: pa.Buffer
    data: pa.Array
    at: pa.Array
    ends: pa.Array

    def number(self) -> pa.Array:
        numbers, self.at = read_varints(self.data, self.at)
        return numbers

    def size(self) -> pa.Array:
        """Read a size of each row, as INT64 from 0 to the number of bytes left."""
        numbers = self.number()
        if len(numbers) and pc.max(numbers).as_py() > 2 * len(self.data):
            raise OddBytes("a length above that of all payloads")
        sizes = zigzag_undone(numbers)
        if pc.any(pc.less(sizes, pa.scalar(0, pa.int64()))).as_py():
            raise OddBytes("a length below 0")
        return sizes

    def cut(self, size: Any) -> Callable[[], pa.Array]:
        start = self.at
        self.at = end = pc.add(start, size)
        if pc.any(pc.greater(end, self.ends)).as_py():
            raise OddBytes("a payload that is cut short")
        return lambda: self._pieces(start, end)

    def _pieces(self, start: pa.Array, end: pa.Array) -> pa.Array:
        count = len(start)
        if count == 0:
            return pa.array([], pa.binary())
        # Where each piece begins and ends, as two INT32 beside each other: the offsets of twice as many pieces.
        offsets = pc.bit_wise_or(start, pc.shift_left(end, pa.scalar(32, pa.int64())))
        buffers = [None, offsets.buffers()[1], self.bytes_of_all]
        return pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers).take(_every_second(count))

    def chosen(self, places: pa.Array) -> _Rows:
        return _Rows(self.bytes_of_all, self.data, self.at.take(places), self.ends.take(places))


@lru_cache(maxsize=16)
def _every_second(count: int) -> pa.Array:
    return pa.array(range(0, 2 * count, 2), pa.int32())


_Read: TypeAlias = Callable[[_Rows], Callable[[], pa.Array]]
"""Function that reads past a field of all rows. Its result makes the column, if it is wanted."""


def record_reader(parsed: Any, columns: pa.Schema) -> ReadRecords | None:
    """Return a reader of these columns from payloads of a parsed definition, or None if there is none for it."""
    fields = _of_fields(resolved_types(parsed), _reader)
    if fields is None or not set(columns.names) <= set(fields):
        return None

    def read(payloads: pa.Array) -> list[pa.Array]:
        _, offsets, content = payloads.buffers()
        places = pa.Array.from_buffers(pa.int32(), len(payloads) + 1, [None, offsets], 0, payloads.offset)
        bounds = places.cast(pa.int64())
        content = pa.py_buffer(b"") if content is None else content
        data = pa.Array.from_buffers(pa.uint8(), content.size, [None, content])
        rows = _Rows(content, data, bounds.slice(0, len(payloads)), bounds.slice(1))
        made = {name: read(rows) for name, read in fields.items()}
        if not rows.at.equals(rows.ends):
            raise OddBytes("a payload that does not end with its last field")
        return [made[field.name]().cast(field.type) for field in columns]

    return read


def _reader(schema: Any) -> _Read | None:
    if isinstance(schema, list):
        branches = _null_and_other(schema)
        reader = None if branches is None else _reader(branches[1])
        return None if branches is None or reader is None else partial(_read_optional, branches[0], reader)
    kind, logical = schema["type"], schema.get("logicalType")
    if logical is not None:
        return _time_reader(logical) if logical in _PLAIN_LOGICAL else None
    if kind in ("record", "error"):
        fields = _of_fields(schema, _reader)
        return partial(_read_struct, fields) if fields else None
    if kind == "enum":
        return partial(_read_symbols, schema["symbols"])
    if kind == "fixed":
        return lambda rows: rows.cut(schema["size"])
    return _READERS.get(kind)


def _read_optional(null_branch: int, reader: _Read, rows: _Rows) -> Callable[[], pa.Array]:
    branches = rows.number()
    if len(branches) and (
        pc.max(branches).as_py() > 2 or pc.any(pc.equal(branches, pa.scalar(1, pa.uint64()))).as_py()
    ):
        raise OddBytes("a branch that the union does not have")
    is_there = pc.equal(branches, pa.scalar(2 - 2 * null_branch, pa.uint64()))
    if pc.all(is_there).as_py():
        return reader(rows)
    some = rows.chosen(pc.indices_nonzero(is_there))
    dense = reader(some)
    rows.at = pc.replace_with_mask(rows.at, is_there, some.at)
    return lambda: dense().take(places_among(is_there))


def places_among(is_there: pa.Array) -> pa.Array:
    """Return the index of each row among the present ones, or null."""
    counted = pc.subtract(pc.cumulative_sum(is_there.cast(pa.int32())), pa.scalar(1, pa.int32()))
    return pc.if_else(is_there, counted, pa.scalar(None, pa.int32()))


def _read_struct(fields: Mapping[str, _Read], rows: _Rows) -> Callable[[], pa.Array]:
    made = {name: reader(rows) for name, reader in fields.items()}
    return lambda: pa.StructArray.from_arrays([make() for make in made.values()], names=list(made))


def _read_symbols(symbols: Sequence[str], rows: _Rows) -> Callable[[], pa.Array]:
    places = zigzag_undone(rows.number())
    return lambda: pa.array(symbols, pa.string()).take(places)


def _read_long(rows: _Rows) -> Callable[[], pa.Array]:
    numbers = rows.number()
    return lambda: zigzag_undone(numbers)


def _read_as(kind: pa.DataType, read: _Read, rows: _Rows) -> Callable[[], pa.Array]:
    column = read(rows)
    return lambda: column().cast(kind)


def _read_bytes(rows: _Rows) -> Callable[[], pa.Array]:
    return rows.cut(rows.size())


def _read_boolean(rows: _Rows) -> Callable[[], pa.Array]:
    numbers = rows.data.take(rows.at)
    if len(numbers) and pc.max(numbers).as_py() > 1:
        raise OddBytes("a boolean that is neither 0 nor 1")
    rows.at = pc.add(rows.at, pa.scalar(1, pa.int64()))
    return lambda: numbers.cast(pa.bool_())


def _read_fixed(kind: pa.DataType, rows: _Rows) -> Callable[[], pa.Array]:
    cut = rows.cut(kind.bit_width // 8)

    def make() -> pa.Array:
        pieces = cut()
        buffer = pieces.buffers()[2] if len(pieces) else pa.py_buffer(b"")
        return pa.Array.from_buffers(kind, len(pieces), [None, buffer])

    return make


_read_int: Final = partial(_read_as, pa.int32(), _read_long)


def _time_reader(logical: str) -> _Read:
    if logical == "date":
        return partial(_read_times, _read_int, 1, DAYS, pa.date32())
    zone = None if logical.startswith("local") else "UTC"
    factor = 1000 if logical.endswith("millis") else 1
    return partial(_read_times, _read_long, factor, MICROS, pa.timestamp("us", tz=zone))


def _read_times(
    read: _Read, factor: int, limits: tuple[int, int], kind: pa.DataType, rows: _Rows
) -> Callable[[], pa.Array]:
    numbers = read(rows)

    def make() -> pa.Array:
        ticks = numbers()
        lowest, highest = (limit // factor for limit in limits)
        if len(ticks) and not (lowest <= pc.min(ticks).as_py() and pc.max(ticks).as_py() <= highest):
            raise OddBytes("a time before the year 1 or after the year 9999")
        return (ticks if factor == 1 else pc.multiply(ticks, factor)).view(kind)

    return make


_READERS: Final[Mapping[str, _Read]] = {
    "boolean": _read_boolean,
    "int": _read_int,
    "long": _read_long,
    "float": partial(_read_fixed, pa.float32()),
    "double": partial(_read_fixed, pa.float64()),
    "bytes": _read_bytes,
    "string": partial(_read_as, pa.string(), _read_bytes),
}


# ---- Writing


_Write: TypeAlias = Callable[[pa.Array], list[Any]]
"""Function from values without nulls to adjacent pieces of bytes: BINARY, or one constant for all rows."""


class NullInField(ValueError):
    """A null in a field that takes none."""


def record_writer(parsed: Any, columns: Sequence[str]) -> WriteRecords | None:
    """Return a writer of payloads of a parsed definition from rows with these columns, or None without one."""
    writers = _of_fields(resolved_types(parsed), _writer)
    if not writers or set(writers) != set(columns):
        return None

    def write(batch: pa.RecordBatch) -> pa.Array:
        pieces = [piece for name, writer in writers.items() for piece in writer(batch.column(name))]
        return pc.binary_join_element_wise(*pieces, b"")

    return write


def _writer(schema: Any) -> _Write | None:
    if isinstance(schema, list):
        branches = _null_and_other(schema)
        inner = None if branches is None else _writer(branches[1])
        return None if branches is None or inner is None else partial(_write_optional, branches[0], inner)
    return _WRITERS.get(schema.get("logicalType", schema["type"]))


def _write_optional(null_branch: int, inner: _Write, values: pa.Array) -> list[Any]:
    null, other = (pa.scalar(bytes([2 * branch]), pa.binary()) for branch in (null_branch, 1 - null_branch))
    if values.null_count == 0:
        return [other, *inner(values)]
    if values.null_count == len(values):
        return [pa.repeat(null, len(values))]
    dense = pc.binary_join_element_wise(other, *inner(values.drop_null()), b"")
    return [pc.fill_null(dense.take(places_among(values.is_valid())), null)]


def _checked(values: pa.Array) -> pa.Array:
    if values.null_count:
        raise NullInField("null in a field without null")
    return values


def _write_number(values: pa.Array) -> list[Any]:
    return [varints(zigzag(_checked(values).cast(pa.int64())))]


def _write_bytes(values: pa.Array) -> list[Any]:
    content = _checked(values).cast(pa.binary())
    return [varints(zigzag(pc.binary_length(content).cast(pa.int64()))), content]


def _write_fixed(kind: pa.DataType, values: pa.Array) -> list[Any]:
    return [_checked(values).cast(kind).view(pa.binary(kind.bit_width // 8)).cast(pa.binary())]


_WRITERS: Final[Mapping[str, _Write]] = {
    "boolean": lambda values: [byte_strings(_checked(values).cast(pa.uint8()))],
    "int": _write_number,
    "long": _write_number,
    "float": partial(_write_fixed, pa.float32()),
    "double": partial(_write_fixed, pa.float64()),
    "bytes": _write_bytes,
    "string": _write_bytes,
    "date": lambda values: _write_number(values.cast(pa.int32())),
    "timestamp-micros": _write_number,
    "local-timestamp-micros": _write_number,
}
