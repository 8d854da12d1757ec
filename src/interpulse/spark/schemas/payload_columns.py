"""Columns of Spark that a topic's schema makes, and the schema that columns make for a topic without one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StringType, StructField, StructType

from interpulse.model.errors import InvalidSchemaDefinition
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schema_compatibility.definitions import key_value_parts
from interpulse.spark.options.option import OptionError
from interpulse.spark.schemas.avro_columns import avro_type, parse_definition
from interpulse.spark.schemas.json_payloads.definition import parse_json_definition
from interpulse.spark.schemas.primitives import PRIMITIVES

_RAW_TYPES: Final = frozenset(
    {
        *(SchemaType.NONE, SchemaType.PROTOBUF, SchemaType.PROTOBUF_NATIVE),
        *(SchemaType.AUTO_CONSUME, SchemaType.EXTERNAL),
    }
)
_DEFINED_IN_AVRO: Final = frozenset({SchemaType.AVRO, SchemaType.JSON})


def payload_fields(schema: SchemaInfo | None) -> StructType | None:
    """Return the columns of the payload, or None if payloads stay bytes: without a schema, and for Protobuf.

    Raises OptionError for a schema that makes no columns.
    """
    if schema is None or schema.type in _RAW_TYPES:
        return None
    if schema.type is SchemaType.KEY_VALUE:
        try:
            parts = key_value_parts(schema)
        except InvalidSchemaDefinition as error:
            raise OptionError(f"{error}; read with valueSchema=raw") from None
        return StructType([_field("key", parts.key), _field("value", parts.value)])
    kind = _type_of(schema)
    fields = kind if isinstance(kind, StructType) and is_record(schema) else StructType([_field("value", schema)])
    _check_names(fields)
    return fields


def is_record(schema: SchemaInfo) -> bool:
    """Return True if the fields are columns, False if there is one column ``value``."""
    body = json.loads(schema.definition) if schema.type in _DEFINED_IN_AVRO else None
    return isinstance(body, dict) and body.get("type") in ("record", "error")


def is_separated(schema: SchemaInfo) -> bool:
    """Return True if a KEY_VALUE schema stores keys apart from values."""
    return schema.properties.get("kv.encoding.type", "INLINE").upper() == "SEPARATED"


def _field(name: str, schema: SchemaInfo) -> StructField:
    primitive = PRIMITIVES.get(schema.type)
    metadata = {"comment": primitive.comment} if primitive is not None and primitive.comment else None
    return StructField(name, _type_of(schema), True, metadata)


def _type_of(schema: SchemaInfo) -> DataType:
    if schema.type is SchemaType.AVRO:
        return avro_type(parse_definition(schema.definition))
    if schema.type is SchemaType.JSON:
        return avro_type(parse_json_definition(schema.definition))
    if schema.type in PRIMITIVES:
        return PRIMITIVES[schema.type].type
    raise OptionError(f"a part of a KEY_VALUE schema is {schema.type.name}: read with valueSchema=raw")


def _check_names(fields: StructType) -> None:
    """Refuse columns that differ in letter case alone, which Spark cannot distinguish."""
    seen: dict[str, str] = {}
    for name in fields.names:
        if seen.setdefault(name.lower(), name) != name:
            raise OptionError(
                f"the topic's schema has fields {seen[name.lower()]} and {name}, which are the same to Spark; "
                f"read with valueSchema=raw"
            )


def schema_identity(schema: SchemaInfo | None) -> object:
    """Return a value that is equal for schemas that make the same columns of the same bytes."""
    if schema is None or schema.type is SchemaType.NONE:
        return None
    if schema.type is SchemaType.KEY_VALUE:
        encoding = schema.properties.get("kv.encoding.type", "INLINE")
        return (schema.type, encoding, *(schema_identity(part) for part in key_value_parts(schema)))
    if schema.type not in _DEFINED_IN_AVRO:
        return (schema.type, schema.definition if schema.type in _RAW_TYPES else b"")
    try:
        return (schema.type, json.dumps(json.loads(schema.definition), sort_keys=True))
    except ValueError:
        return (schema.type, schema.definition)


def check_same_schemas(schemas: Mapping[str, SchemaInfo | None]) -> SchemaInfo | None:
    """Return the one schema of topics that are read together, or None if none has one.

    Raises OptionError with two topics whose schemas differ.
    """
    (first, wanted), *others = sorted(schemas.items()) or [("", None)]
    for topic, schema in others:
        if schema_identity(wanted) != schema_identity(schema):
            raise OptionError(
                f"topics have different schemas: {first} has {_described(wanted)}, {topic} has "
                f"{_described(schema)}; read them one by one, or with valueSchema=raw"
            )
    return None if schema_identity(wanted) is None else wanted


def _described(schema: SchemaInfo | None) -> str:
    if schema is None or schema.type is SchemaType.NONE:
        return "none"
    fields = payload_fields(schema)
    return schema.type.name if fields is None else f"{schema.type.name} ({fields.simpleString()[7:-1]})"


_AVRO: Final[dict[str, Any]] = {
    "boolean": "boolean",
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_VALUE: Final = [kind for kind in PRIMITIVES if kind not in (SchemaType.NONE, SchemaType.DATE, SchemaType.TIMESTAMP)]
"""Primitives of a column ``value``, the first of a type: of Java's times those without a time zone of their own."""


def schema_of_columns(columns: StructType, record_type: SchemaType) -> SchemaInfo:
    """Return a record of the columns, or the primitive schema of a single column ``value`` that is no record.

    Raises OptionError for a type or a name that no schema has.
    """
    for primitive in _OF_VALUE if columns.names == ["value"] else ():
        if PRIMITIVES[primitive].type == columns["value"].dataType:
            return SchemaInfo(primitive)
    return SchemaInfo(record_type, json.dumps(_record(columns, "topLevelRecord")).encode())


def _record(columns: StructType, name: str) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_schema_field(item, name) for item in columns.fields]}


def _schema_field(item: StructField, record: str) -> dict[str, Any]:
    if _NAME.fullmatch(item.name) is None:
        raise OptionError(f"column {item.name!r} cannot be a field of a schema: rename it to letters, digits and _")
    kind = _avro(item.dataType, f"{record}_{item.name}", item.name)
    return (
        {"name": item.name, "type": ["null", kind], "default": None}
        if item.nullable
        else {"name": item.name, "type": kind}
    )


def _avro(kind: DataType, name: str, column: str) -> Any:
    if isinstance(kind, StructType):
        return _record(kind, name)
    if isinstance(kind, ArrayType):
        return {"type": "array", "items": _element(kind.elementType, kind.containsNull, name, column)}
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return {"type": "map", "values": _element(kind.valueType, kind.valueContainsNull, name, column)}
    if isinstance(kind, DecimalType):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    known = _AVRO.get("string" if isinstance(kind, StringType) else kind.simpleString())
    if known is None:
        raise OptionError(f"column {column} is {kind.simpleString().upper()}, which no schema has: cast it")
    return known


def _element(kind: DataType, nullable: bool, name: str, column: str) -> Any:
    avro = _avro(kind, name, column)
    return ["null", avro] if nullable else avro
