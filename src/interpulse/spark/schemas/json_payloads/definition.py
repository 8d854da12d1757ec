"""Definitions of JSON schemas: Avro, plus the types that Java's client does not write as defined."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from interpulse.spark.options.option import OptionError
from interpulse.spark.schemas.avro_columns import parse_definition

JAVA_MILLIS: Final = frozenset({"java.util.Date", "java.sql.Date", "java.sql.Timestamp"})
"""Java classes that are empty records in Avro and that Jackson writes as milliseconds since 1970."""
JAVA_SECONDS: Final = frozenset({"java.time.OffsetDateTime", "java.time.ZonedDateTime"})
"""Java classes that are empty records in Avro and that Jackson writes as seconds since 1970, with a fraction."""
_JAVA_TIMES: Final = JAVA_MILLIS | JAVA_SECONDS

_TIMES_OF_DAY: Final = {"time-millis": 1000, "time-micros": 1_000_000}


def parse_json_definition(definition: bytes) -> Any:
    """Return the definition with names resolved, as ``parse_definition`` does.

    Moments of Java's classes are timestamps, with the name of the class as ``java-class``; a time of day keeps its
    ticks per second as ``dayTicks``. Raises OptionError if it is no definition.
    """
    try:
        body = json.loads(definition)
    except ValueError as error:
        raise OptionError(f"the topic's schema is no Avro definition: {error}; read with valueSchema=raw") from None
    return parse_definition(json.dumps(_with_java_types(body)).encode())


def _with_java_types(schema: Any) -> Any:
    if isinstance(schema, str):
        return _moment(schema) if schema in _JAVA_TIMES else schema
    if isinstance(schema, list):
        return [_with_java_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    if len(schema) == 1 and isinstance(schema.get("type"), str):
        return _with_java_types(schema["type"])
    if schema.get("type") == "record" and (name := _full_name(schema)) in _JAVA_TIMES and not schema.get("fields"):
        return _moment(name)
    if schema.get("logicalType") in _TIMES_OF_DAY:
        return {**schema, "dayTicks": _TIMES_OF_DAY[schema["logicalType"]]}
    changed = {key: _with_java_types(schema[key]) for key in ("type", "items", "values") if key in schema}
    if isinstance(fields := schema.get("fields"), list):
        changed["fields"] = [_with_java_types_in(field) for field in fields]
    return {**schema, **changed}


def _with_java_types_in(field: Any) -> Any:
    if not isinstance(field, dict) or "type" not in field:
        return field
    return {**field, "type": _with_java_types(field["type"])}


def _full_name(schema: Mapping[str, Any]) -> str:
    name, namespace = schema.get("name", ""), schema.get("namespace")
    return f"{namespace}.{name}" if namespace and "." not in name else str(name)


def _moment(java_class: str) -> dict[str, Any]:
    return {"type": "long", "logicalType": "timestamp-millis", "java-class": java_class}


def is_pairs(schema: Mapping[str, Any]) -> bool:
    """Return True for a Java map whose keys are not strings: an array of pairs in Avro, an object in JSON."""
    items = schema.get("items")
    if not isinstance(items, dict) or items["type"] != "record":
        return False
    names = [field["name"] for field in items["fields"]]
    return names == ["key", "value"] and items["name"].startswith("org.apache.avro.reflect.Pair")


def is_of_java(properties: Mapping[str, str]) -> bool:
    """Return True if the properties are those of a schema that Java's client derived from a class."""
    return "__jsr310ConversionEnabled" in properties
