"""Avro records as Arrow columns and back, field by field for all rows in one call: no Python object per row.

Covers records of primitive types, dates, times, enumerations, nested records, and unions of one of these with null.
Other schemas have no such reader or writer. An invalid row raises an exception; the caller then reads the rows one by
one to name it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from interpulse.spark.schemas.avro_values import DAYS, MICROS
from interpulse.spark.schemas.varints import (
    OddBytes,
    byte_strings,
    read_varints,
    varints,
    zigzag,
    zigzag_undone,
)

if TYPE_CHECKING:
    import pyarrow as pa

ReadRecords: TypeAlias = "Callable[[pa.Array], list[pa.Array]]"
"""Function from BINARY payloads without nulls to columns."""
WriteRecords: TypeAlias = "Callable[[pa.RecordBatch], pa.Array]"
"""Function from rows to payloads."""

T = TypeVar("T")

_PLAIN_LOGICAL: Final = frozenset(
    {"date", *(f"{kind}timestamp-{unit}" for kind in ("", "local-") for unit in ("millis", "micros"))}
)


class _Names:
    """Named types of a definition."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def resolved(self, parsed: Any) -> Any:
        """Replace a name, or a type wrapped in a type, by its definition."""
        if isinstance(parsed, str):
            return self._known.get(parsed, {"type": parsed})
        if isinstance(parsed, dict):
            if "name" in parsed:
                self._known[parsed["name"]] = parsed
            if isinstance(parsed["type"], dict | list):
                return self.resolved(parsed["type"])
        return parsed


def _of_fields(parsed: Any, names: _Names, make: Callable[[Any, _Names], T | None]) -> dict[str, T] | None:
    """Apply ``make`` to each field of a record, by name. Return None if it fails for one, or for other types."""
    schema = names.resolved(parsed)
    if not isinstance(schema, dict) or schema.get("type") not in ("record", "error"):
        return None
    made: dict[str, T] = {}
    for field in schema["fields"]:
        one = make(field["type"], names)
        if one is None:
            return None
        made[field["name"]] = one
    return made


def _null_and_other(union: Sequence[Any]) -> tuple[int, Any] | None:
    """Return the index of null and the other type, for a union of null and one other type; else None."""
    nulls = [index for index, branch in enumerate(union) if branch in ("null", {"type": "null"})]
    return (nulls[0], union[1 - nulls[0]]) if len(union) == 2 and len(nulls) == 1 else None


# ---- Reading


class _Rows:
    """Payloads of one column of bytes, each with its own read position."""

    def __init__(self, bytes_of_all: pa.Buffer, data: pa.Array, at: pa.Array, ends: pa.Array) -> None:
        self.bytes_of_all = bytes_of_all
        self.data = data
        self.at = at
        self.ends = ends

    def __len__(self) -> int:
        return len(self.at)

    def number(self) -> pa.Array:
        """Read a number of each row, as UINT64."""
        numbers, self.at = read_varints(self.data, self.at)
        return numbers

    def size(self) -> pa.Array:
        """Read a size of each row, as INT64 from 0 to the number of bytes left."""
        import pyarrow as pa
        import pyarrow.compute as pc

        numbers = self.number()
        if len(numbers) and pc.max(numbers).as_py() > 2 * len(self.data):
            raise OddBytes("a length above that of all payloads")
        sizes = zigzag_undone(numbers)
        if pc.any(pc.less(sizes, pa.scalar(0, pa.int64()))).as_py():
            raise OddBytes("a length below 0")
        return sizes

    def cut(self, size: Any) -> Callable[[], pa.Array]:
        """Read this many bytes of each row, as BINARY."""
        import pyarrow.compute as pc

        start = self.at
        self.at = end = pc.add(start, size)
        if pc.any(pc.greater(end, self.ends)).as_py():
            raise OddBytes("a payload that is cut short")
        return lambda: self._pieces(start, end)

    def _pieces(self, start: pa.Array, end: pa.Array) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

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
    import pyarrow as pa

    return pa.array(range(0, 2 * count, 2), pa.int32())


_Read: TypeAlias = "Callable[[_Rows], Callable[[], pa.Array]]"
"""Function that reads past a field of all rows. Its result makes the column, if it is wanted."""


def record_reader(parsed: Any, columns: pa.Schema) -> ReadRecords | None:
    """Return a reader of these columns from payloads of a parsed definition, or None if there is none for it."""
    import pyarrow as pa

    fields = _of_fields(parsed, _Names(), _reader)
    if fields is None or not set(columns.names) <= set(fields):
        return None

    def read(payloads: pa.Array) -> list[pa.Array]:
        _, _, content = payloads.buffers()
        offsets = pa.Array.from_buffers(
            pa.int32(), len(payloads) + 1, [None, payloads.buffers()[1]], 0, payloads.offset
        )
        bounds = offsets.cast(pa.int64())
        content = pa.py_buffer(b"") if content is None else content
        data = pa.Array.from_buffers(pa.uint8(), content.size, [None, content])
        rows = _Rows(content, data, bounds.slice(0, len(payloads)), bounds.slice(1))
        found = {name: read(rows) for name, read in fields.items()}
        if not rows.at.equals(rows.ends):
            raise OddBytes("a payload that does not end with its last field")
        return [found[field.name]().cast(field.type) for field in columns]

    return read


def _reader(parsed: Any, names: _Names) -> _Read | None:
    schema = names.resolved(parsed)
    if isinstance(schema, list):
        return _union_reader(schema, names)
    kind, logical = schema["type"], schema.get("logicalType")
    if logical is not None:
        return _time_reader(logical) if logical in _PLAIN_LOGICAL else None
    if kind in ("record", "error"):
        fields = _of_fields(schema, names, _reader)
        return None if not fields else lambda rows: _read_struct(rows, fields)
    if kind == "enum":
        return lambda rows: _read_symbols(rows, schema["symbols"])
    if kind == "fixed":
        return lambda rows: rows.cut(schema["size"])
    return _READERS.get(kind)


def _union_reader(union: Sequence[Any], names: _Names) -> _Read | None:
    branches = _null_and_other(union)
    reader = None if branches is None else _reader(branches[1], names)
    if branches is None or reader is None:
        return None
    null_branch = branches[0]
    return lambda rows: _read_optional(rows, null_branch, reader)


def _read_optional(rows: _Rows, null_branch: int, reader: _Read) -> Callable[[], pa.Array]:
    import pyarrow as pa
    import pyarrow.compute as pc

    branches = rows.number()
    if len(rows) and (pc.max(branches).as_py() > 2 or pc.any(pc.equal(branches, pa.scalar(1, pa.uint64()))).as_py()):
        raise OddBytes("a branch that the union does not have")
    is_there = pc.equal(branches, pa.scalar(2 - 2 * null_branch, pa.uint64()))
    if pc.all(is_there).as_py():
        return reader(rows)
    some = rows.chosen(pc.indices_nonzero(is_there))
    dense = reader(some)
    rows.at = pc.replace_with_mask(rows.at, is_there, some.at)
    return lambda: dense().take(_places(is_there))


def _places(is_there: pa.Array) -> pa.Array:
    """Return the index of each row among the present ones, or null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    counted = pc.subtract(pc.cumulative_sum(is_there.cast(pa.int32())), pa.scalar(1, pa.int32()))
    return pc.if_else(is_there, counted, pa.scalar(None, pa.int32()))


def _read_struct(rows: _Rows, fields: Mapping[str, _Read]) -> Callable[[], pa.Array]:
    import pyarrow as pa

    found = {name: reader(rows) for name, reader in fields.items()}
    return lambda: pa.StructArray.from_arrays([make() for make in found.values()], names=list(found))


def _read_symbols(rows: _Rows, symbols: Sequence[str]) -> Callable[[], pa.Array]:
    import pyarrow as pa

    places = zigzag_undone(rows.number())
    return lambda: pa.array(symbols, pa.string()).take(places)


def _read_long(rows: _Rows) -> Callable[[], pa.Array]:
    numbers = rows.number()
    return lambda: zigzag_undone(numbers)


def _read_int(rows: _Rows) -> Callable[[], pa.Array]:
    import pyarrow as pa

    numbers = _read_long(rows)
    return lambda: numbers().cast(pa.int32())


def _read_bytes(rows: _Rows) -> Callable[[], pa.Array]:
    return rows.cut(rows.size())


def _read_string(rows: _Rows) -> Callable[[], pa.Array]:
    import pyarrow as pa

    found = _read_bytes(rows)
    return lambda: found().cast(pa.string())


def _read_boolean(rows: _Rows) -> Callable[[], pa.Array]:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = rows.data.take(rows.at)
    if len(rows) and pc.max(found).as_py() > 1:
        raise OddBytes("a boolean that is neither 0 nor 1")
    rows.at = pc.add(rows.at, pa.scalar(1, pa.int64()))
    return lambda: found.cast(pa.bool_())


def _read_float(rows: _Rows) -> Callable[[], pa.Array]:
    import pyarrow as pa

    found = rows.cut(4)
    return lambda: _fixed(found(), pa.float32())


def _read_double(rows: _Rows) -> Callable[[], pa.Array]:
    import pyarrow as pa

    found = rows.cut(8)
    return lambda: _fixed(found(), pa.float64())


def _fixed(pieces: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return adjacent pieces of one size as values of the type."""
    import pyarrow as pa

    if len(pieces) == 0:
        return pa.array([], kind)
    return pa.Array.from_buffers(kind, len(pieces), [None, pieces.buffers()[2]])


def _time_reader(logical: str) -> _Read:
    import pyarrow as pa

    if logical == "date":
        return lambda rows: _read_times(_read_int(rows), 1, DAYS, pa.date32())
    zone = None if logical.startswith("local") else "UTC"
    factor = 1000 if logical.endswith("millis") else 1
    return lambda rows: _read_times(_read_long(rows), factor, MICROS, pa.timestamp("us", tz=zone))


def _read_times(
    numbers: Callable[[], pa.Array], factor: int, limits: tuple[int, int], kind: pa.DataType
) -> Callable[[], pa.Array]:
    import pyarrow.compute as pc

    def make() -> pa.Array:
        found = numbers()
        lowest, highest = (limit // factor for limit in limits)
        if len(found) and not (lowest <= pc.min(found).as_py() and pc.max(found).as_py() <= highest):
            raise OddBytes("a time before the year 1 or after the year 9999")
        return (found if factor == 1 else pc.multiply(found, factor)).view(kind)

    return make


_READERS: Final[Mapping[str, _Read]] = {
    "boolean": _read_boolean,
    "int": _read_int,
    "long": _read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": _read_bytes,
    "string": _read_string,
}


# ---- Writing


_Write: TypeAlias = "Callable[[pa.Array], list[Any]]"
"""Function from values without nulls to adjacent pieces of bytes: BINARY, or one constant for all rows."""


class NullInField(ValueError):
    """A null in a field that takes none."""


def record_writer(parsed: Any, columns: Sequence[str]) -> WriteRecords | None:
    """Return a writer of payloads of a parsed definition from rows with these columns, or None without one."""
    import pyarrow.compute as pc

    writers = _of_fields(parsed, _Names(), _writer)
    if not writers or set(writers) != set(columns):
        return None

    def write(batch: pa.RecordBatch) -> pa.Array:
        pieces = [piece for name, writer in writers.items() for piece in writer(batch.column(name))]
        return pc.binary_join_element_wise(*pieces, b"")

    return write


def _writer(parsed: Any, names: _Names) -> _Write | None:
    schema = names.resolved(parsed)
    if isinstance(schema, list):
        branches = _null_and_other(schema)
        inner = None if branches is None else _writer(branches[1], names)
        if branches is None or inner is None:
            return None
        null_branch = branches[0]
        return lambda values: _write_optional(values, null_branch, inner)
    return _WRITERS.get(schema.get("logicalType", schema["type"]))


def _write_optional(values: pa.Array, null_branch: int, inner: _Write) -> list[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    null, other = (pa.scalar(bytes([2 * branch]), pa.binary()) for branch in (null_branch, 1 - null_branch))
    if values.null_count == 0:
        return [other, *inner(values)]
    if values.null_count == len(values):
        return [pa.repeat(null, len(values))]
    dense = pc.binary_join_element_wise(other, *inner(values.drop_null()), b"")
    return [pc.fill_null(dense.take(_places(values.is_valid())), null)]


def _checked(values: pa.Array) -> pa.Array:
    if values.null_count:
        raise NullInField("null in a field without null")
    return values


def _write_number(values: pa.Array) -> list[Any]:
    import pyarrow as pa

    return [varints(zigzag(_checked(values).cast(pa.int64())))]


def _write_bytes(values: pa.Array) -> list[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    content = _checked(values).cast(pa.binary())
    return [varints(zigzag(pc.binary_length(content).cast(pa.int64()))), content]


def _write_boolean(values: pa.Array) -> list[Any]:
    import pyarrow as pa

    return [byte_strings(_checked(values).cast(pa.uint8()))]


def _write_float(values: pa.Array) -> list[Any]:
    import pyarrow as pa

    return [_checked(values).cast(pa.float32()).view(pa.binary(4)).cast(pa.binary())]


def _write_double(values: pa.Array) -> list[Any]:
    import pyarrow as pa

    return [_checked(values).cast(pa.float64()).view(pa.binary(8)).cast(pa.binary())]


def _write_date(values: pa.Array) -> list[Any]:
    import pyarrow as pa

    return _write_number(values.cast(pa.int32()))


_WRITERS: Final[Mapping[str, _Write]] = {
    "boolean": _write_boolean,
    "int": _write_number,
    "long": _write_number,
    "float": _write_float,
    "double": _write_double,
    "bytes": _write_bytes,
    "string": _write_bytes,
    "date": _write_date,
    "timestamp-micros": _write_number,
    "local-timestamp-micros": _write_number,
}
