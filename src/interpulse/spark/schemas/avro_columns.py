"""Spark's types for Avro definitions, as AVRO and JSON schemas have them.

A union of several types becomes a struct with ``member0``, ``member1``.. as in Spark's own Avro source.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from interpulse.spark.options.option import OptionError

_KINDS: Final[dict[str, DataType]] = {
    "null": NullType(),
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "fixed": BinaryType(),
    "string": StringType(),
    "enum": StringType(),
}
_LOGICAL: Final[dict[str, DataType]] = {
    "date": DateType(),
    "timestamp-millis": TimestampType(),
    "timestamp-micros": TimestampType(),
    "local-timestamp-millis": TimestampNTZType(),
    "local-timestamp-micros": TimestampNTZType(),
}
WIDE_NUMBERS: Final = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}
_OVERLOOKED: Final = "overlookedLogicalType"
_DIGITS_MAX: Final = 38
"""Maximum precision of Spark's DECIMAL."""


def parse_definition(definition: bytes) -> Any:
    """Return the definition with names resolved, as fastavro expects it. Raise OptionError if it is invalid."""
    try:
        import fastavro
    except ImportError:
        raise OptionError(
            "the topic has an Avro definition, and package fastavro is not installed where Spark's Python runs: "
            "install interpulse[spark] there, or read with valueSchema=raw"
        ) from None
    try:
        body = json.loads(definition)
        return fastavro.parse_schema(_plain(body), named_schemas={}, _ignore_default_error=True)
    except Exception as error:  # noqa: BLE001 - fastavro answers a wrong structure with whatever it stumbles over
        raise OptionError(f"the topic's schema is no Avro definition: {error}; read with valueSchema=raw") from None


def _plain(schema: Any) -> Any:
    """Rename logical types that have no Spark type, so that fastavro passes their values through unchanged."""
    if isinstance(schema, list):
        return [_plain(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    hidden = {} if "logicalType" not in schema or is_logical(schema) else {"logicalType": _OVERLOOKED}
    renamed = {hidden.get(key, key): value for key, value in schema.items()}
    for key in ("type", "items", "values"):
        if isinstance(renamed.get(key), dict | list):
            renamed[key] = _plain(renamed[key])
    if isinstance(renamed.get("fields"), list):
        renamed["fields"] = [{**field, "type": _plain(field["type"])} for field in renamed["fields"]]
    return renamed


def is_logical(schema: Mapping[str, Any]) -> bool:
    """Return True for a logical type that has a Spark type and fits its stored type. Java ignores others."""
    logical, kind = schema["logicalType"], schema.get("type")
    if logical == "decimal":
        return kind in ("bytes", "fixed") and _is_decimal(schema)
    return logical in _LOGICAL and kind == ("int" if logical == "date" else "long")


def _is_decimal(schema: Mapping[str, Any]) -> bool:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if type(precision) is not int or type(scale) is not int:
        return False
    digits_max = math.floor(math.log10(2) * (8 * schema["size"] - 1)) if schema["type"] == "fixed" else precision
    return 0 <= scale <= precision <= min(digits_max, _DIGITS_MAX) and precision > 0


def resolved_types(parsed: Any) -> Any:
    """Return a parsed definition with each name replaced by its type: unions are lists, all other types mappings.

    Inside the type itself its name stays, as a type of that name.
    """
    return _resolved(parsed, {})


def _resolved(parsed: Any, named: dict[str, Any]) -> Any:
    if isinstance(parsed, str):
        return named.get(parsed, {"type": parsed})
    if isinstance(parsed, list):
        return [_resolved(branch, named) for branch in parsed]
    if isinstance(parsed["type"], dict | list):
        return _resolved(parsed["type"], named)
    schema = dict(parsed)
    for key in ("items", "values"):
        if key in schema:
            schema[key] = _resolved(schema[key], named)
    if "fields" in schema:
        schema["fields"] = [{**field, "type": _resolved(field["type"], named)} for field in schema["fields"]]
    if "name" in schema:
        named[schema["name"]] = schema
    return schema


def non_null_branches(schema: Any) -> list[Any]:
    """Return the types of a resolved union but null, or the one type that is no union."""
    return [branch for branch in (schema if isinstance(schema, list) else [schema]) if branch["type"] != "null"]


def avro_type(parsed: Any) -> DataType:
    """Return the Spark type. It is always nullable: Pulsar's messages may have no value."""
    return _type_of(resolved_types(parsed))


def _type_of(schema: Any) -> DataType:
    if isinstance(schema, list):
        return _union_type(non_null_branches(schema))
    kind = schema["type"]
    if schema.get("logicalType") == "decimal":
        return DecimalType(schema["precision"], schema.get("scale", 0))
    if "logicalType" in schema:
        return _LOGICAL[schema["logicalType"]]
    if kind == "array":
        return ArrayType(_type_of(schema["items"]), True)
    if kind == "map":
        return MapType(StringType(), _type_of(schema["values"]), True)
    if kind in ("record", "error"):
        return StructType([StructField(field["name"], _type_of(field["type"]), True) for field in schema["fields"]])
    if kind not in _KINDS:
        raise OptionError(f"record {kind} holds itself, and no type of Spark does; read with valueSchema=raw")
    return _KINDS[kind]


def _union_type(branches: Sequence[Any]) -> DataType:
    if not branches:
        return NullType()
    if len(branches) == 1:
        return _type_of(branches[0])
    if (wide := _wide_number(branches)) is not None:
        return _KINDS[wide]
    return StructType([StructField(f"member{index}", _type_of(branch)) for index, branch in enumerate(branches)])


def _wide_number(branches: Sequence[Any]) -> str | None:
    """Return the wider type: ``int`` and ``long`` together are a long, ``float`` and ``double`` a double."""
    plain = {branch["type"] for branch in branches if not {"logicalType", _OVERLOOKED} & branch.keys()}
    return WIDE_NUMBERS.get(frozenset(plain)) if len(branches) == 2 else None
