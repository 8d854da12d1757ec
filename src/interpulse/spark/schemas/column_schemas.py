"""Schema of Spark columns, for topics that have none yet."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StringType, StructField, StructType

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.spark.options.option import OptionError
from interpulse.spark.schemas.primitives import PRIMITIVES

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
_RECORD: Final = "topLevelRecord"
_OF_VALUE: Final = (
    SchemaType.STRING,
    SchemaType.BOOLEAN,
    SchemaType.INT8,
    SchemaType.INT16,
    SchemaType.INT32,
    SchemaType.INT64,
    SchemaType.FLOAT,
    SchemaType.DOUBLE,
    SchemaType.LOCAL_DATE,
    SchemaType.INSTANT,
    SchemaType.LOCAL_DATE_TIME,
)


def schema_of_columns(columns: StructType, record_type: SchemaType) -> SchemaInfo:
    """Return a record of the columns, or the primitive schema of a single column ``value`` that is no record.

    Raises OptionError for a type or a name that no schema has.
    """
    if columns.names == ["value"] and not isinstance(columns["value"].dataType, StructType):
        wanted = columns["value"].dataType
        primitive = next((kind for kind in _OF_VALUE if PRIMITIVES[kind].type == wanted), None)
        if primitive is not None:
            return SchemaInfo(primitive)
    return SchemaInfo(record_type, json.dumps(_record(columns, _RECORD)).encode())


def _record(columns: StructType, name: str) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_field(item, name) for item in columns.fields]}


def _field(item: StructField, record: str) -> dict[str, Any]:
    if _NAME.fullmatch(item.name) is None:
        raise OptionError(f"column {item.name!r} cannot be a field of a schema: rename it to letters, digits and _")
    kind = _avro(item.dataType, f"{record}_{item.name}", item.name)
    return (
        {"name": item.name, "type": ["null", kind], "default": None}
        if item.nullable
        else {
            "name": item.name,
            "type": kind,
        }
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
