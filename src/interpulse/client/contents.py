"""Contents and their schemas: conversion of received bytes to values."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

from interpulse.model.errors import InvalidSchemaDefinition, NotSupported
from interpulse.model.extras import pip_install
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schema_compatibility.definitions import key_value_parts

NULL_LENGTH: Final = 0xFFFFFFFF
"""Length of a null key or value in a content that holds both."""

BYTES: Final = SchemaInfo(SchemaType.NONE, name="Bytes")
"""Schema of contents without a schema."""


class TypedValue(NamedTuple):
    """Value of a primitive schema, with the name of its Java class, which pulsar-client prints."""

    value: Any
    java_class: str


def read_content(schema: SchemaInfo | None, content: bytes | None, key: bytes | None) -> Any:
    """Decode a content with its schema. A KEY_VALUE content becomes an object of both.

    Return primitive values and plain bytes as `TypedValue`, bytes as bytes. Raise ValueError if the content does not
    match the schema or the schema is invalid, and NotSupported if Avro is not installed.
    """
    if schema is not None and schema.type is SchemaType.KEY_VALUE:
        try:
            parts = key_value_parts(schema)
        except InvalidSchemaDefinition as error:
            raise ValueError(str(error)) from error
        if schema.properties.get("kv.encoding.type") != "SEPARATED":
            key, content = _split(content)
        return {"key": read_value(parts.key, key), "value": read_value(parts.value, content)}
    return read_value(schema or BYTES, content)


def read_value(schema: SchemaInfo, raw: bytes | None) -> Any:
    """Decode a content whose schema is not KEY_VALUE; see `read_content` for values and errors."""
    if raw is None:
        return None
    if schema.type is SchemaType.AVRO:
        return _avro_value(schema, raw)
    if schema.type is SchemaType.JSON:
        return json.loads(raw)
    primitive = _PRIMITIVES.get(schema.type)
    if primitive is None:
        return TypedValue(raw, "java.lang.String")
    decode, java_class = primitive
    try:
        return TypedValue(decode(raw), java_class)
    except (struct.error, OverflowError) as error:
        raise ValueError(str(error)) from error


def parsed_definition(schema: SchemaInfo) -> Any:
    """Return the definition of an AVRO or JSON schema in fastavro's form. Raise ValueError or NotSupported."""
    try:
        definition = json.loads(schema.definition)
        if schema.type is not SchemaType.AVRO:
            return definition
        # Defaults are not checked against their types: encoded values have all fields.
        return load_fastavro().parse_schema(definition, _ignore_default_error=True)
    except NotSupported:
        raise
    except Exception as error:  # fastavro raises arbitrary errors for a wrong structure
        raise ValueError(f"the definition cannot be read: {reason_of(error)}") from error


def load_fastavro() -> Any:
    """Import fastavro, at the first content that needs it. Raise NotSupported if it is missing."""
    try:
        import fastavro
    except ImportError as error:
        raise NotSupported(f"Avro needs the package fastavro: {pip_install('broker')}") from error
    return fastavro


def reason_of(error: Exception) -> str:
    """Return the message of an exception on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _split(content: bytes | None) -> tuple[bytes | None, bytes | None]:
    if content is None:
        return None, None
    parts: list[bytes | None] = []
    at = 0
    for _ in range(2):
        length = int.from_bytes(content[at : at + 4], "big")
        at += 4
        end = at if length == NULL_LENGTH else at + length
        if len(content) < end:
            raise ValueError("the content is truncated: key and value are each a length followed by that many bytes")
        parts.append(None if length == NULL_LENGTH else content[at:end])
        at = end
    return parts[0], parts[1]


def _avro_value(schema: SchemaInfo, raw: bytes) -> Any:
    parsed, source = parsed_definition(schema), io.BytesIO(raw)
    try:
        value = load_fastavro().schemaless_reader(source, parsed, None)
    except Exception as error:  # fastavro has no exception class for undecodable data
        raise ValueError(reason_of(error)) from error
    if rest := len(raw) - source.tell():
        raise ValueError(f"{rest} bytes are left over")
    return value


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _unpacked(layout: str) -> Callable[[bytes], Any]:
    packing = struct.Struct(layout)
    return lambda raw: packing.unpack(raw)[0]


_long: Final = _unpacked(">q")


def _moment(raw: bytes) -> str:
    return (_EPOCH + timedelta(milliseconds=_long(raw))).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _day(raw: bytes) -> str:
    return (date(1970, 1, 1) + timedelta(days=_long(raw))).isoformat()


_PRIMITIVES: Final[Mapping[SchemaType, tuple[Callable[[bytes], Any], str]]] = {
    SchemaType.STRING: (bytes.decode, "java.lang.String"),
    SchemaType.BOOLEAN: (_unpacked(">?"), "java.lang.Boolean"),
    SchemaType.INT8: (_unpacked(">b"), "java.lang.Byte"),
    SchemaType.INT16: (_unpacked(">h"), "java.lang.Short"),
    SchemaType.INT32: (_unpacked(">i"), "java.lang.Integer"),
    SchemaType.INT64: (_long, "java.lang.Long"),
    SchemaType.FLOAT: (_unpacked(">f"), "java.lang.Float"),
    SchemaType.DOUBLE: (_unpacked(">d"), "java.lang.Double"),
    SchemaType.DATE: (_moment, "java.util.Date"),
    SchemaType.TIME: (_moment, "java.sql.Time"),
    SchemaType.TIMESTAMP: (_moment, "java.sql.Timestamp"),
    SchemaType.LOCAL_DATE: (_day, "java.time.LocalDate"),
}
