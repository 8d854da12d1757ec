"""Contents of messages by schema: texts of the command line as bytes. `client.contents` reads them."""

from __future__ import annotations

import io
from typing import Any

import click

from interpulse.cli.support.running import UNUSABLE, CommandFailed
from interpulse.client.contents import BYTES, NULL_LENGTH, load_fastavro, parsed_definition, read_value, reason_of
from interpulse.model.errors import NotSupported
from interpulse.model.schemas import SchemaInfo, SchemaType


class OutgoingContents:
    """Schema of a producer, and messages in it, in the notation of pulsar-client.

    A description is ``bytes``, ``string``, ``avro:DEFINITION`` or ``json:DEFINITION``. ``encoding`` is ``separated`` or
    ``inline`` for keys and values in one schema, None for values alone. Raises UsageError.
    """

    def __init__(self, value: str, key: str = "string", encoding: str | None = None) -> None:
        self.value = _described(value, "--value-schema")
        self.key = _described(key, "--key-schema")
        self._encoding = encoding

    @property
    def schema(self) -> SchemaInfo | None:
        """Schema of the producer; None for plain bytes."""
        if self._encoding is not None:
            return _key_value_schema(self.key, self.value, self._encoding)
        return None if self.value.type is SchemaType.NONE else self.value

    def joined(self, key: str | bytes | None, value: bytes) -> tuple[str | bytes | None, bytes]:
        """Return the key and the content of a message. With ``inline`` encoding the content contains both."""
        if self._encoding != "inline":
            return key, value
        return None, _with_length(key.encode() if isinstance(key, str) else key) + _with_length(value)


def _described(text: str, option: str) -> SchemaInfo:
    kind, _, definition = text.partition(":")
    match kind:
        case "bytes" if not definition:
            return BYTES
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
    return NULL_LENGTH.to_bytes(4, "big") if raw is None else len(raw).to_bytes(4, "big") + raw


def encoded(schema: SchemaInfo, text: str | bytes) -> bytes:
    """Encode a text, for Avro in Avro's JSON notation. Raise UsageError if it does not match the schema."""
    raw = text.encode() if isinstance(text, str) else text
    if schema.type is SchemaType.AVRO:
        return _avro_of_text(schema, raw.decode(errors="replace"))
    return checked(schema, raw, raw.decode(errors="replace"))


def _avro_of_text(schema: SchemaInfo, text: str) -> bytes:
    parsed = _parsed(schema, "the schema")
    avro = load_fastavro()
    raw = io.BytesIO()
    try:
        (value,) = avro.json_reader(io.StringIO(text), parsed)
        avro.schemaless_writer(raw, parsed, value)
    except Exception as error:  # fastavro has no class of its own for what it cannot read
        raise click.UsageError(f"Cannot convert {text} to AVRO: {reason_of(error)}") from error
    return raw.getvalue()


def checked(schema: SchemaInfo, raw: bytes, name: str) -> bytes:
    """Return the content of the file of this name. Raise UsageError if it does not match the schema."""
    try:
        read_value(schema, raw)
    except ValueError as error:
        raise click.UsageError(f"{name} is not of the schema {schema.type.name}: {error}") from error
    return raw


def _parsed(schema: SchemaInfo, where: str) -> Any:
    try:
        return parsed_definition(schema)
    except NotSupported as error:
        raise CommandFailed(str(error), UNUSABLE) from error
    except ValueError as error:
        raise click.UsageError(f"{where}: {error}") from error
