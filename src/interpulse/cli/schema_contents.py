"""Contents by their schemas: texts of the command line as bytes, and received bytes as the values in them."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

import click

from interpulse.cli.support.running import UNUSABLE, CommandFailed
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schema_compatibility.key_value import key_value_parts

__all__ = ["OutgoingContents", "TypedValue", "read_content"]

_NULL_LENGTH: Final = 0xFFFFFFFF
_BYTES: Final = SchemaInfo(SchemaType.NONE, name="Bytes")


class TypedValue(NamedTuple):
    """A value of a primitive schema, with the name of Java's class for it, which pulsar-client prints."""

    value: Any
    java_class: str


class OutgoingContents:
    """The schema of a producer, and messages in it, as pulsar-client describes them.

    A description is ``bytes``, ``string``, ``avro:DEFINITION`` or ``json:DEFINITION``. ``encoding``: ``separated`` or
    ``inline`` for keys and values in one schema, None for values alone. Raises UsageError.
    """

    def __init__(self, value: str, key: str = "string", encoding: str | None = None) -> None:
        self._value = _described(value, "--value-schema")
        self._key = _described(key, "--key-schema")
        self._encoding = encoding

    @property
    def schema(self) -> SchemaInfo | None:
        """None for plain bytes."""
        if self._encoding is not None:
            return _key_value_schema(self._key, self._value, self._encoding)
        return None if self._value.type is SchemaType.NONE else self._value

    def value_of_text(self, text: str | bytes) -> bytes:
        """A value typed by a person: of Avro in Avro's JSON form. Raises UsageError for one of another kind."""
        return _of_text(self._value, text)

    def key_of_text(self, text: str) -> bytes:
        """The same for a key of keys and values."""
        return _of_text(self._key, text)

    def check_value(self, raw: bytes, name: str) -> bytes:
        """The value in a file as it is. Raises UsageError if it is none of the schema."""
        return _checked(self._value, raw, name)

    def check_key(self, raw: bytes, name: str) -> bytes:
        """The same for a key."""
        return _checked(self._key, raw, name)

    def joined(self, key: str | bytes | None, value: bytes) -> tuple[str | bytes | None, bytes]:
        """The key and the content of a message: both parts stand in the content if they are inline."""
        if self._encoding != "inline":
            return key, value
        return None, _with_length(key.encode() if isinstance(key, str) else key) + _with_length(value)


def read_content(schema: SchemaInfo | None, content: bytes | None, key: bytes | None) -> Any:
    """The value in a content; of keys and values an object of both.

    Primitive values and plain bytes come as `TypedValue`, bytes as bytes. Raises ValueError if the content is not of
    the schema, and CommandFailed if Avro is missing here.
    """
    if schema is not None and schema.type is SchemaType.KEY_VALUE:
        parts = key_value_parts(schema)
        if schema.properties.get("kv.encoding.type") != "SEPARATED":
            key, content = _split(content)
        return {"key": _value(parts.key, key), "value": _value(parts.value, content)}
    return _value(schema or _BYTES, content)


def _described(text: str, option: str) -> SchemaInfo:
    kind, _, definition = text.partition(":")
    match kind:
        case "bytes" if not definition:
            return _BYTES
        case "string" if not definition:
            return SchemaInfo(SchemaType.STRING, name="String")
        case "avro" | "json" if definition:
            schema = SchemaInfo(SchemaType[kind.upper()], definition.encode(), name="client")
            _parsed(schema, option)
            return schema
    raise click.UsageError(
        f"Invalid schema type: {text} ({option}; valid are bytes, string, avro:DEFINITION and json:DEFINITION)"
    )


def _key_value_schema(key: SchemaInfo, value: SchemaInfo, encoding: str) -> SchemaInfo:
    properties = {"kv.encoding.type": encoding.upper()}
    for side, part in (("key", key), ("value", value)):
        kind = "BYTES" if part.type is SchemaType.NONE else part.type.name
        properties |= {f"{side}.schema.name": part.name, f"{side}.schema.type": kind, f"{side}.schema.properties": "{}"}
    definition = _with_length(key.definition) + _with_length(value.definition)
    return SchemaInfo(SchemaType.KEY_VALUE, definition, properties, "KeyValue")


def _with_length(raw: bytes | None) -> bytes:
    return _NULL_LENGTH.to_bytes(4, "big") if raw is None else len(raw).to_bytes(4, "big") + raw


def _split(content: bytes | None) -> tuple[bytes | None, bytes | None]:
    if content is None:
        return None, None
    parts: list[bytes | None] = []
    at = 0
    for _ in range(2):
        length = int.from_bytes(content[at : at + 4], "big")
        at += 4
        end = at if length == _NULL_LENGTH else at + length
        if len(content) < end:
            raise ValueError("the content is cut short: a length and that many bytes stand for key and for value")
        parts.append(None if length == _NULL_LENGTH else content[at:end])
        at = end
    return parts[0], parts[1]


def _of_text(schema: SchemaInfo, text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    if schema.type is SchemaType.AVRO:
        return _avro_of_text(schema, raw.decode(errors="replace"))
    return _checked(schema, raw, raw.decode(errors="replace"))


def _avro_of_text(schema: SchemaInfo, text: str) -> bytes:
    avro, parsed = _fastavro(), _parsed(schema, "the schema")
    raw = io.BytesIO()
    try:
        (value,) = avro.json_reader(io.StringIO(text), parsed)
        avro.schemaless_writer(raw, parsed, value)
    except Exception as error:  # fastavro has no class of its own for what it cannot read
        raise click.UsageError(f"Cannot convert {text} to AVRO: {_reason(error)}") from error
    return raw.getvalue()


def _checked(schema: SchemaInfo, raw: bytes, name: str) -> bytes:
    try:
        _value(schema, raw)
    except ValueError as error:
        raise click.UsageError(f"{name} is not of the schema {schema.type.name}: {error}") from error
    return raw


def _value(schema: SchemaInfo, raw: bytes | None) -> Any:
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


def _avro_value(schema: SchemaInfo, raw: bytes) -> Any:
    parsed, source = _parsed(schema, "the schema"), io.BytesIO(raw)
    try:
        value = _fastavro().schemaless_reader(source, parsed, None)
    except Exception as error:
        raise ValueError(_reason(error)) from error
    if rest := len(raw) - source.tell():
        raise ValueError(f"{rest} bytes are left over")
    return value


def _parsed(schema: SchemaInfo, where: str) -> Any:
    try:
        definition = json.loads(schema.definition)
        return _fastavro().parse_schema(definition) if schema.type is SchemaType.AVRO else definition
    except CommandFailed:
        raise
    except Exception as error:
        raise click.UsageError(f"{where}: the definition cannot be read: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError as error:
        raise CommandFailed(
            "Avro needs the package fastavro: pip install 'interpulse[broker]' brings it", UNUSABLE
        ) from error
    return fastavro


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
