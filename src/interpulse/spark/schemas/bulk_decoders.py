"""Decoders of many payloads of one schema in one call.

Payloads that these decoders cannot read are read one by one, which also names errors.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.spark.schemas.avro_arrays import record_reader
from interpulse.spark.schemas.avro_columns import parse_definition
from interpulse.spark.schemas.avro_reading import reading_shape
from interpulse.spark.schemas.avro_wire import VALUE, WireForm, tree_of
from interpulse.spark.schemas.json_payloads.definition import non_null_branches, parse_json_definition, resolved_types

if TYPE_CHECKING:
    import pyarrow as pa

BulkDecode: TypeAlias = "Callable[[pa.Array], list[pa.Array] | None]"
"""Function from BINARY payloads without nulls to columns. After None or any exception, read them one by one."""

_MARK_BYTES: Final = 8


def bulk_decoder(written: SchemaInfo, wanted: SchemaInfo, columns: pa.Schema) -> BulkDecode | None:
    """Return a decoder of these columns from payloads written by one schema and read as another.

    Returns None if these schemas and columns have none.
    """
    if wanted.type is SchemaType.JSON:
        return _json_decoder(wanted, columns)
    if wanted.type is SchemaType.AVRO and written.definition == wanted.definition:
        return _avro_decoder(wanted, columns)
    return None


_PLAIN_JSON: Final = frozenset({"boolean", "int", "long", "float", "double", "string", "enum"})


def _is_plain_json(schema: Any) -> bool:
    """Return True for a resolved type that Arrow's JSON reader reads as ours does, with the same refusals.

    Symbols of fields are checked afterwards.
    """
    branches = non_null_branches(schema)
    if len(branches) != 1 or "logicalType" in branches[0]:
        return False
    kind = branches[0]["type"]
    if kind == "array":
        items = non_null_branches(branches[0]["items"])
        return _is_plain_json(items) and items[0]["type"] != "enum" and not _symbols_of(items[0])
    if kind in ("record", "error"):
        return all(_is_plain_json(field["type"]) for field in branches[0]["fields"])
    return kind in _PLAIN_JSON


def _symbols_of(schema: Any) -> dict[str, Any]:
    """Return the symbols of a record's enumerations by field, and those of nested records by theirs."""
    by_field: dict[str, Any] = {}
    for field in schema.get("fields", ()):
        branch = non_null_branches(field["type"])[0]
        if symbols := branch["symbols"] if branch["type"] == "enum" else _symbols_of(branch):
            by_field[field["name"]] = symbols
    return by_field


def _has_known_symbols(column: pa.Array, symbols: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(symbols, dict):
        return all(_has_known_symbols(pc.struct_field(column, name), inner) for name, inner in symbols.items())
    matches = pc.is_in(column.drop_null(), pa.array(symbols, pa.string()))
    return pc.all(matches, min_count=0).as_py() is True


def _json_decoder(schema: SchemaInfo, columns: pa.Schema) -> BulkDecode | None:
    resolved = resolved_types(parse_json_definition(schema.definition))
    fields = {} if isinstance(resolved, list) else {field["name"]: field for field in resolved.get("fields", ())}
    if not all(name in fields and _is_plain_json(fields[name]["type"]) for name in columns.names):
        return None
    symbols = _symbols_of({"fields": [fields[name] for name in columns.names]})

    def decode(values: pa.Array) -> list[pa.Array] | None:
        import pyarrow.json as pj

        payloads = values.to_pylist()
        lines = b"\n".join(payloads)
        one_each = all(payload[:1] == b"{" and payload[-1:] == b"}" for payload in payloads)
        if not one_each or lines.count(b"\n") != len(payloads) - 1:
            return None
        table = pj.read_json(
            io.BytesIO(lines),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=pj.ParseOptions(explicit_schema=columns, unexpected_field_behavior="ignore"),
        )
        if table.num_rows != len(payloads):
            return None
        found = {name: table.column(name).combine_chunks() for name in columns.names}
        if not all(_has_known_symbols(found[name], known) for name, known in symbols.items()):
            return None
        return list(found.values())

    return decode


def _avro_decoder(schema: SchemaInfo, columns: pa.Schema) -> BulkDecode | None:
    """Return a decoder that reads field by field, or else all payloads as one Avro array.

    In the array, a marker behind each payload proves that it was read to its end and no further.
    """
    import fastavro

    body = json.loads(schema.definition)
    if not isinstance(body, dict) or body.get("type") not in ("record", "error"):
        return None
    resolved = parse_definition(schema.definition)
    by_column = record_reader(resolved, columns)
    if by_column is not None:
        return by_column
    end = {"type": "fixed", "name": "InterpulseEnd", "size": _MARK_BYTES}
    fields = [{"name": "value", "type": body}, {"name": "end", "type": end}]
    items = {"type": "record", "name": "InterpulseRow", "fields": fields}
    rows = tree_of(json.dumps({"type": "array", "items": items}).encode())
    parsed = WireForm(rows).parsed
    value = rows.parts[0].fields[0].type
    shape = reading_shape(value, value)
    mark = os.urandom(_MARK_BYTES)

    def decode(values: pa.Array) -> list[pa.Array] | None:
        import pyarrow as pa

        payloads = values.to_pylist()
        source = io.BytesIO(b"".join((_zigzag(len(payloads)), mark.join(payloads), mark, b"\0")))
        read: Any = fastavro.schemaless_reader(source, parsed, None)
        found = read[VALUE]
        if len(found) != len(payloads) or {record["end"] for record in found} != {mark}:
            return None
        rows = [record["value"] for record in found] if shape is None else [shape(record["value"]) for record in found]
        return list(pa.array(rows, pa.struct(list(columns))).flatten())

    return decode


def _zigzag(count: int) -> bytes:
    """Return the encoded number of items of an Avro array."""
    left, out = count << 1, bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    out.append(left)
    return bytes(out)
