"""Rows as payloads of a topic's schema, the inverse of ``payload_decoder``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StructField, StructType

from interpulse.model.errors import IncompatibleSchema, InvalidRequest
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schema_compatibility.definitions import key_value_parts
from interpulse.spark.schemas.avro_columns import parse_definition
from interpulse.spark.schemas.avro_values import in_column
from interpulse.spark.schemas.avro_writing import avro_encoder
from interpulse.spark.schemas.json_payloads.definition import is_of_java
from interpulse.spark.schemas.json_payloads.writer import json_writer
from interpulse.spark.schemas.payload_columns import is_record, is_separated, payload_fields
from interpulse.spark.schemas.primitives import PRIMITIVES

if TYPE_CHECKING:
    import pyarrow as pa

    from interpulse.spark.schemas.avro_arrays import WriteRecords

_WIDER: Final = {
    "tinyint": {"smallint", "int", "bigint"},
    "smallint": {"int", "bigint"},
    "int": {"bigint"},
    "float": {"double"},
}

_Encode: TypeAlias = Callable[[Any], bytes]


class EncodedRow(NamedTuple):
    """Payload of a row. ``key`` is set for a pair whose key is stored apart from its value."""

    value: bytes | None
    key: bytes | None = None


class RowEncoder:
    """Encoder of rows with these columns. Raises IncompatibleSchema if they do not fit the topic's schema."""

    def __init__(self, topic: str, schema: SchemaInfo, columns: StructType) -> None:
        self.schema = schema
        self._topic = topic
        fields = payload_fields(schema)
        if fields is None:
            raise IncompatibleSchema(
                f"{topic} has a schema of type {schema.type.name}: encode rows for it into a BINARY column value"
            )
        if problems := _misfits(columns, fields, ""):
            raise IncompatibleSchema(f"the rows do not fit the schema of {topic}: {'; '.join(problems)}")
        self.makes_keys = schema.type is SchemaType.KEY_VALUE and is_separated(schema)
        self._encode = _row_encoder(schema, fields)
        self._encode_all: WriteRecords | None = None
        if schema.type is SchemaType.AVRO:
            from interpulse.spark.schemas.avro_arrays import record_writer

            self._encode_all = record_writer(parse_definition(schema.definition), columns.names)

    def encode_all(self, rows: pa.RecordBatch) -> pa.Array | None:
        """Return the values of all rows as BINARY, or None to encode them one by one, which names errors."""
        if self._encode_all is None:
            return None
        try:
            return self._encode_all(rows)
        except (ValueError, TypeError, OverflowError, NotImplementedError):
            return None  # encoding one by one names the error

    def encode(self, row: Mapping[str, Any]) -> EncodedRow:
        """Encode one row. Raise InvalidRequest if the schema does not take it, for example null in a required field."""
        try:
            return self._encode(row)
        except Exception as error:  # noqa: BLE001 - each kind of schema fails in its own way; all are of this row
            kind = self.schema.type.name
            raise InvalidRequest(f"a row does not fit the {kind} schema of {self._topic}: {error}") from None


def _misfits(columns: StructType, fields: StructType, path: str) -> list[str]:
    by_name = {item.name: item for item in fields.fields}
    problems = [f"it has no field {path}{name}" for name in columns.names if name not in by_name]
    for item in columns.fields:
        if item.name in by_name:
            problems += _misfit(item, by_name[item.name], path)
    return problems


def _misfit(column: StructField, field: StructField, path: str) -> list[str]:
    actual, wanted = column.dataType, field.dataType
    if isinstance(actual, StructType) and isinstance(wanted, StructType):
        return _misfits(actual, wanted, f"{path}{column.name}.")
    if _fits(actual, wanted):
        return []
    types = f"{actual.simpleString().upper()}, its field {wanted.simpleString().upper()}"
    return [f"column {path}{column.name} is {types}: cast it"]


def _fits(actual: DataType, wanted: DataType) -> bool:
    if isinstance(actual, ArrayType) and isinstance(wanted, ArrayType):
        return _fits(actual.elementType, wanted.elementType)
    if isinstance(actual, MapType) and isinstance(wanted, MapType):
        return _fits(actual.keyType, wanted.keyType) and _fits(actual.valueType, wanted.valueType)
    if isinstance(actual, StructType) and isinstance(wanted, StructType):
        return not _misfits(actual, wanted, "")
    if isinstance(actual, DecimalType) and isinstance(wanted, DecimalType):
        return actual.scale <= wanted.scale and actual.precision - actual.scale <= wanted.precision - wanted.scale
    narrow, wide = actual.simpleString(), wanted.simpleString()
    return narrow == wide or wide in _WIDER.get(narrow, ())


def _row_encoder(schema: SchemaInfo, fields: StructType) -> Callable[[Mapping[str, Any]], EncodedRow]:
    if schema.type is SchemaType.KEY_VALUE:
        return _pair_encoder(schema)
    encode = _encoder(schema)
    if schema.type in PRIMITIVES or (fields.names == ["value"] and not is_record(schema)):
        return lambda row: EncodedRow(None if row["value"] is None else encode(row["value"]))
    return lambda row: EncodedRow(encode(row))


def _pair_encoder(schema: SchemaInfo) -> Callable[[Mapping[str, Any]], EncodedRow]:
    encode_key, encode_value = map(in_column, ("key", "value"), map(_encoder, key_value_parts(schema)))
    separated = is_separated(schema)

    def encoded(row: Mapping[str, Any]) -> EncodedRow:
        key = None if row.get("key") is None else encode_key(row["key"])
        value = None if row.get("value") is None else encode_value(row["value"])
        return EncodedRow(value, key) if separated else EncodedRow(_part(key) + _part(value))

    return encoded


def _part(raw: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if raw is None else len(raw).to_bytes(4, "big") + raw


def _encoder(schema: SchemaInfo) -> _Encode:
    if schema.type in PRIMITIVES:
        return PRIMITIVES[schema.type].encode
    if schema.type is SchemaType.JSON:
        return json_writer(schema.definition, for_java=is_of_java(schema.properties))
    return avro_encoder(schema.definition)
