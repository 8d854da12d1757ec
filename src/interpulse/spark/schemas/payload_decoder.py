"""Payloads as columns. Each message is read by the schema of its own version, as the schema of the query's start."""

from __future__ import annotations

import io
import os
from array import array
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from interpulse.model.errors import InvalidRequest
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schema_compatibility.avro import AliasConflict, with_aliases_of
from interpulse.rules.schema_compatibility.avro_types import AvroField, AvroType
from interpulse.rules.schema_compatibility.definitions import key_value_parts
from interpulse.spark.schemas.avro_columns import non_null_branches, resolved_types
from interpulse.spark.schemas.avro_reading import avro_decoder, reading_shape
from interpulse.spark.schemas.avro_values import VALUE, WireForm, in_column, tree_of
from interpulse.spark.schemas.json_payloads.definition import parse_json_definition
from interpulse.spark.schemas.json_payloads.reader import json_reader
from interpulse.spark.schemas.payload_columns import is_record, is_separated, payload_fields
from interpulse.spark.schemas.primitives import PRIMITIVES
from interpulse.wire.commands import varint

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

SchemaOfVersion: TypeAlias = Callable[[str, bytes], SchemaInfo | None]
"""Function from topic and schema version, as in message metadata, to the schema; None if the topic lacks it."""

_NULL_LENGTH: Final = 0xFFFFFFFF


class UnreadablePayload(InvalidRequest):
    """A payload that its schema cannot read."""


class Payload(NamedTuple):
    """The part of a message that the decoder needs. ``where`` is ledger, entry, and batch index or -1."""

    topic: str
    where: tuple[int, int, int]
    version: bytes
    value: bytes | None
    key: bytes | None

    @property
    def place(self) -> str:
        return ":".join(str(number) for number in self.where if number >= 0)


class PayloadRun(NamedTuple):
    """Payloads of one batch, by their batch ``indexes``. ``keys`` is None if they are not needed or none has one."""

    topic: str
    place: tuple[int, int]
    version: bytes
    indexes: Sequence[int]
    values: pa.Array
    keys: Sequence[bytes | None] | None

    def payloads(self) -> list[Payload]:
        keys = self.keys or repeat(None, len(self.indexes))
        rows = zip(self.indexes, self.values.to_pylist(), keys, strict=True)
        return [Payload(self.topic, (*self.place, index), self.version, value, key) for index, value, key in rows]


_Decode: TypeAlias = Callable[[bytes], Any]
_Row: TypeAlias = dict[str, Any] | None


class PayloadDecoder:
    """Decoder of the wanted columns. ``schema`` is the one at the query's start.

    Without ``corrupt_column`` an unreadable payload raises UnreadablePayload. With it, which may be an empty string,
    the payload's columns are null, and that column has its bytes.
    """

    def __init__(
        self, schema: SchemaInfo, columns: StructType, schema_of: SchemaOfVersion, *, corrupt_column: str | None = None
    ) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        self._schema = schema
        fields = payload_fields(schema)
        assert fields is not None, "payloads that are bytes are not decoded"
        self._wanted = StructType([item for item in columns.fields if item.name in fields.names])
        self._arrow = to_arrow_schema(self._wanted, timezone="UTC")
        self._schema_of = schema_of
        self._corrupt_column = corrupt_column
        self._decoders: dict[tuple[str, bytes], Callable[[Payload], _Row]] = {}
        self._bulk: dict[tuple[str, bytes], BulkDecode | None] = {}
        self._bulk_by_definition: dict[bytes, BulkDecode | None] = {}
        self._default = _row_decoder(schema, schema)

    @property
    def needs_keys(self) -> bool:
        return self._schema.type is SchemaType.KEY_VALUE

    def arrays(self, payload_items: Sequence[Payload | PayloadRun]) -> dict[str, pa.Array]:
        """Return the columns by name, with a row for each payload."""
        import pyarrow as pa

        columns = self._at_once(payload_items)
        corrupt: list[bytes | None] | None = None
        if columns is None:
            runs = (item.payloads() if isinstance(item, PayloadRun) else [item] for item in payload_items)
            payloads = [payload for run in runs for payload in run]
            rows, corrupt = self._rows(payloads)
            try:
                columns = self._columns(rows)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError):
                self._find_misfits(payloads, rows, corrupt)
                columns = self._columns(rows)
        arrays = dict(zip(self._wanted.names, columns, strict=True))
        if self._corrupt_column:
            empty = corrupt is None
            arrays[self._corrupt_column] = (
                pa.nulls(len(columns[0]), pa.binary()) if empty else pa.array(corrupt, pa.binary())
            )
        return arrays

    def _at_once(self, payload_items: Sequence[Payload | PayloadRun]) -> list[pa.Array] | None:
        """Return the columns, made of all payloads of one schema in one call; None if they must be read one by one."""
        if not payload_items or not self._wanted.fields:
            return None
        try:
            found = (self._bulk_decoder(item.topic, item.version) for item in payload_items)
            decoders = [decode for decode in found if decode is not None]
            if len(decoders) < len(payload_items):
                return None
            counts = [len(item.indexes) if isinstance(item, PayloadRun) else 1 for item in payload_items]
            return _decoded(_values(payload_items), decoders, counts)
        except Exception:  # noqa: BLE001 - reading one by one names the error
            return None

    def _bulk_decoder(self, topic: str, version: bytes) -> BulkDecode | None:
        """Return the decoder of a version, the same one for equal definitions."""
        if (topic, version) not in self._bulk:
            written = self._schema_of(topic, version) if version else self._schema
            decode = None
            if written is not None and written.type is self._schema.type:
                if written.definition not in self._bulk_by_definition:
                    made = bulk_decoder(written, self._schema, self._arrow)
                    self._bulk_by_definition[written.definition] = made
                decode = self._bulk_by_definition[written.definition]
            self._bulk[topic, version] = decode
        return self._bulk[topic, version]

    def _rows(self, payloads: Sequence[Payload]) -> tuple[list[_Row], list[bytes | None]]:
        rows: list[_Row] = []
        corrupt: list[bytes | None] = [None] * len(payloads)
        for index, payload in enumerate(payloads):
            decode = self._decoder_of(payload)
            try:
                rows.append(decode(payload))
            except Exception as error:  # noqa: BLE001 - each schema has failures of its own; all are of this payload
                self._note(payload, error)
                rows.append(None)
                corrupt[index] = payload.value
        return rows, corrupt

    def _find_misfits(self, payloads: Sequence[Payload], rows: list[_Row], corrupt: list[bytes | None]) -> None:
        """Find the rows that do not fit the columns, one by one."""
        for index, row in enumerate(rows):
            try:
                self._columns([row])
            except Exception as error:  # noqa: BLE001 - Arrow's failures are many; all are of this row
                self._note(payloads[index], error)
                rows[index], corrupt[index] = None, payloads[index].value

    def _note(self, payload: Payload, error: Exception) -> None:
        if self._corrupt_column is None:
            raise UnreadablePayload(
                f"the message at {payload.place} of {payload.topic} does not fit its schema "
                f"({self._schema.type.name}, version {payload.version.hex() or 'none'}): {error}; "
                f"read it with parseMode=PERMISSIVE or valueSchema=raw"
            ) from None

    def _columns(self, rows: Sequence[_Row]) -> list[pa.Array]:
        import pyarrow as pa

        if not self._wanted.fields:
            return []
        return list(pa.array(rows, pa.struct(list(self._arrow))).flatten())

    def _decoder_of(self, payload: Payload) -> Callable[[Payload], _Row]:
        if not payload.version:
            return self._default
        decoder = self._decoders.get((payload.topic, payload.version))
        if decoder is None:
            written = self._schema_of(payload.topic, payload.version)
            if written is None:
                raise UnreadablePayload(
                    f"{payload.topic} does not know schema version {payload.version.hex()} of its message at "
                    f"{payload.place}; read it with valueSchema=raw"
                )
            if written.type is not self._schema.type:
                raise UnreadablePayload(
                    f"the message at {payload.place} of {payload.topic} has schema type {written.type.name}, the query "
                    f"reads {self._schema.type.name}; read it with valueSchema=raw"
                )
            decoder = self._decoders[(payload.topic, payload.version)] = _row_decoder(written, self._schema)
        return decoder


def _values(payload_items: Sequence[Payload | PayloadRun]) -> pa.Array:
    import pyarrow as pa

    singles = [item.value for item in payload_items if isinstance(item, Payload)]
    if len(singles) == len(payload_items):
        return pa.array(singles, pa.binary())
    chunks = [
        item.values if isinstance(item, PayloadRun) else pa.array([item.value], pa.binary()) for item in payload_items
    ]
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def _decoded(values: pa.Array, decoders: Sequence[BulkDecode], counts: Sequence[int]) -> list[pa.Array] | None:
    """Decode runs of payloads, each with its decoder and its number of payloads. Columns are null for tombstones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from interpulse.spark.schemas.avro_arrays import places_among

    numbers = {decode: number for number, decode in enumerate(dict.fromkeys(decoders))}
    if len(numbers) == 1 and not values.null_count:
        return decoders[0](values)
    number_of = array("i")
    for decode, count in zip(decoders, counts, strict=True):
        number_of += array("i", (numbers[decode],)) * count
    numbers_of_rows = pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(number_of)])
    is_there = values.is_valid()
    rows, parts = [], []
    for decode, number in numbers.items():
        is_of_it = pc.equal(numbers_of_rows, pa.scalar(number, pa.int32()))
        rows.append(pc.indices_nonzero(pc.and_(is_of_it, is_there)))
        if len(rows[-1]):
            parts.append(decode(values.take(rows[-1])))
    if not parts or None in parts:
        return None
    in_order = pc.sort_indices(pa.concat_arrays(rows)).take(places_among(is_there))
    return [pa.concat_arrays(pieces).take(in_order) for pieces in zip(*parts, strict=True)]


def _row_decoder(written: SchemaInfo, wanted: SchemaInfo) -> Callable[[Payload], _Row]:
    if wanted.type is SchemaType.KEY_VALUE:
        return _pair_decoder(written, wanted)
    decode = _decoder(written, wanted)
    if is_record(wanted):
        return lambda payload: None if payload.value is None else decode(payload.value)
    return lambda payload: None if payload.value is None else {"value": decode(payload.value)}


def _pair_decoder(written: SchemaInfo, wanted: SchemaInfo) -> Callable[[Payload], _Row]:
    sides = zip(key_value_parts(written), key_value_parts(wanted), strict=True)
    decode_key, decode_value = map(in_column, ("key", "value"), (_decoder(*side) for side in sides))

    def pair(payload: Payload) -> _Row:
        if is_separated(written):
            key, value = payload.key, payload.value
        elif payload.value is None:
            return None
        else:
            key, rest = _cut(payload.value)
            value, _ = _cut(rest)
        row = {"key": None if key is None else decode_key(key)}
        return row | {"value": None if value is None else decode_value(value)}

    return pair


def _cut(raw: bytes) -> tuple[bytes | None, bytes]:
    """Read a part of an INLINE pair: its length in four bytes, -1 for null, then its bytes."""
    length = int.from_bytes(raw[:4], "big")
    if len(raw) < 4 or (length != _NULL_LENGTH and len(raw) < 4 + length):
        raise ValueError("the KeyValue payload is cut short")
    return (None, raw[4:]) if length == _NULL_LENGTH else (raw[4 : 4 + length], raw[4 + length :])


def _decoder(written: SchemaInfo, wanted: SchemaInfo) -> _Decode:
    if wanted.type is SchemaType.AVRO:
        return avro_decoder(written.definition, wanted.definition)
    if wanted.type is SchemaType.JSON:
        return json_reader(wanted.definition)
    if written.type is not wanted.type:
        raise UnreadablePayload(f"a part of the pair has schema type {written.type.name}, not {wanted.type.name}")
    return PRIMITIVES[wanted.type].decode


BulkDecode: TypeAlias = "Callable[[pa.Array], list[pa.Array] | None]"
"""Function from BINARY payloads without nulls to columns. After None or any exception, read them one by one."""

_MARK_BYTES: Final = 8


def bulk_decoder(written: SchemaInfo, wanted: SchemaInfo, columns: pa.Schema) -> BulkDecode | None:
    """Return a decoder of these columns from payloads written by one schema and read as another, if there is one."""
    if wanted.type is SchemaType.JSON:
        return _json_decoder(wanted, columns)
    if wanted.type is SchemaType.AVRO:
        return _avro_decoder(written.definition, wanted.definition, columns)
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
        arrays = {name: table.column(name).combine_chunks() for name in columns.names}
        if not all(_has_known_symbols(arrays[name], names) for name, names in symbols.items()):
            return None
        return list(arrays.values())

    return decode


def _avro_decoder(written: bytes, wanted: bytes, columns: pa.Schema) -> BulkDecode | None:
    """Return a decoder that reads field by field, or else all payloads as one Avro array.

    In the array, a marker behind each payload proves that it was read to its end and no further.
    """
    import fastavro

    from interpulse.spark.schemas.avro_versions import version_reader

    if (by_column := version_reader(written, wanted, columns)) is not None:
        return by_column
    reader = tree_of(wanted)
    try:
        writer = reader if written == wanted else with_aliases_of(reader, tree_of(written))
    except AliasConflict:
        return None
    if reader.kind != "record" or writer.kind != "record":
        return None
    end = AvroType("fixed", name="InterpulseEnd", size=_MARK_BYTES)
    row = AvroType("record", name="InterpulseRow", fields=[AvroField("value", writer), AvroField("end", end)])
    parsed = WireForm(AvroType("array", parts=[row])).parsed
    shape = reading_shape(writer, reader)
    mark = os.urandom(_MARK_BYTES)

    def decode(values: pa.Array) -> list[pa.Array] | None:
        import pyarrow as pa

        payloads = values.to_pylist()
        source = io.BytesIO(b"".join((varint(len(payloads) << 1), mark.join(payloads), mark, b"\0")))
        read: Any = fastavro.schemaless_reader(source, parsed, None)
        records = read[VALUE]
        if len(records) != len(payloads) or {record["end"] for record in records} != {mark}:
            return None
        rows = [record["value"] if shape is None else shape(record["value"]) for record in records]
        return list(pa.array(rows, pa.struct(list(columns))).flatten())

    return decode
