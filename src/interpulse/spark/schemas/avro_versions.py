"""Avro records of another schema version as Arrow columns, for all rows in one call.

The payloads are read by the definition that wrote them, and the columns are cast to those wanted. Covers what schemas
mostly change: fields added with a default, removed, renamed by an alias, made nullable, of a wider type. A conversion
that Arrow cannot do exactly raises an exception, as an invalid row does; the caller then reads the rows one by one.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from interpulse.rules.schema_compatibility.avro import AliasConflict, promotes, with_aliases_of
from interpulse.rules.schema_compatibility.avro_types import AvroField, AvroType
from interpulse.spark.schemas.avro_arrays import ReadRecords, record_reader
from interpulse.spark.schemas.avro_columns import parse_definition
from interpulse.spark.schemas.avro_reading import reading_shape
from interpulse.spark.schemas.avro_values import default_of, logical_of, members_of, tree_of

_LEAVES: Final = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})


def version_reader(written: bytes, wanted: bytes, columns: pa.Schema) -> ReadRecords | None:
    """Return a reader of these columns of ``wanted`` from payloads of the definition ``written``, if there is one."""
    if written == wanted:
        return record_reader(parse_definition(wanted), columns)
    reader, origin = tree_of(wanted), tree_of(written)
    if reader.kind != "record" or origin.kind != "record":
        return None
    try:
        writer = with_aliases_of(reader, origin)
    except AliasConflict:
        return None
    types = {field.name: field.type for field in writer.fields}
    if not all(field.has_default or field.name in types for field in reader.fields):
        return None
    if not all(_is_read_alike(types[field.name], field.type) for field in reader.fields if field.name in types):
        return None
    stored_as = {field.name: stored.name for field, stored in zip(writer.fields, origin.fields, strict=True)}
    stored = pa.schema([column.with_name(stored_as[column.name]) for column in columns if column.name in types])
    read_stored = record_reader(parse_definition(written), stored)
    if read_stored is None:
        return None
    try:
        defaults = {field.name: _default(field) for field in reader.fields if field.name not in types}
    except ValueError:
        return None
    constants = {
        name: pa.array([value], columns.field(name).type) for name, value in defaults.items() if name in columns.names
    }

    def read(payloads: pa.Array) -> list[pa.Array]:
        found = iter(read_stored(payloads))
        first = pa.repeat(pa.scalar(0, pa.int32()), len(payloads))
        return [constants[name].take(first) if name in constants else next(found) for name in columns.names]

    return read


def _default(field: AvroField) -> Any:
    value, shape = default_of(field), reading_shape(field.type, field.type)
    return value if shape is None else shape(value)


def _is_read_alike(written: AvroType, wanted: AvroType) -> bool:
    """Return True if the column of the written type, cast to that of the wanted one, has the values that Avro says."""
    (written, has_null), (wanted, takes_null) = _without_null(written), _without_null(wanted)
    if has_null and not takes_null:
        return False
    kinds = written.kind, wanted.kind
    if kinds == ("record", "record"):
        pairs = [*zip(written.fields, wanted.fields, strict=False)]
        return len(written.fields) == len(wanted.fields) and all(
            one.name == other.name and _is_read_alike(one.type, other.type) for one, other in pairs
        )
    if kinds in (("enum", "enum"), ("fixed", "fixed")):
        return (written.name, written.symbols, written.size) == (wanted.name, wanted.symbols, wanted.size)
    if not _LEAVES.issuperset(kinds):
        return False
    logical = [logical_of(kind).removesuffix("-millis").removesuffix("-micros") for kind in (written, wanted)]
    if any(logical):
        return logical[0] == logical[1] and written.kind == wanted.kind
    return written.kind == wanted.kind or promotes(written, wanted)


def _without_null(kind: AvroType) -> tuple[AvroType, bool]:
    """Return the one type of a union of it and null, and True for such a union."""
    if kind.kind != "union" or len(kind.parts) != 2 or len(members := members_of(kind)) != 1:
        return kind, False
    return members[0], True
