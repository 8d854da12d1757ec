"""Schemas as values: type, definition, properties."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

_EMPTY_PART: Final = 0xFFFFFFFF


class SchemaType(IntEnum):
    """The schema types of the binary protocol, with its numbers; REST uses the names."""

    NONE = 0
    STRING = 1
    JSON = 2
    PROTOBUF = 3
    AVRO = 4
    BOOLEAN = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FLOAT = 10
    DOUBLE = 11
    DATE = 12
    TIME = 13
    TIMESTAMP = 14
    KEY_VALUE = 15
    INSTANT = 16
    LOCAL_DATE = 17
    LOCAL_TIME = 18
    LOCAL_DATE_TIME = 19
    PROTOBUF_NATIVE = 20
    AUTO_CONSUME = 21
    EXTERNAL = 22


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """Schema of a topic, by which the bytes of its messages are read."""

    type: SchemaType
    definition: bytes = b""
    properties: Mapping[str, str] = field(default_factory=dict)
    name: str = ""


def version_to_bytes(version: int) -> bytes:
    """Return the eight big-endian bytes of a schema version on the wire."""
    return version.to_bytes(8, "big")


def version_from_bytes(raw: bytes) -> int:
    """Return the schema version of eight bytes. Raise ValueError for another number of bytes."""
    if len(raw) != 8:
        raise ValueError(f"a schema version has 8 bytes, got {len(raw)}")
    return int.from_bytes(raw, "big", signed=True)


def definition_to_text(schema: SchemaInfo) -> str:
    """Return a definition as REST shows it; the two parts of a KEY_VALUE definition become a JSON object.

    Bytes that are no UTF-8, which only EXTERNAL definitions have, are replaced, as in Pulsar.
    """
    if schema.type is not SchemaType.KEY_VALUE:
        return schema.definition.decode(errors="replace")
    key, value = split_key_value(schema.definition)
    return json.dumps({"key": _part_to_json(key), "value": _part_to_json(value)}, separators=(",", ":"))


def definition_from_text(schema_type: SchemaType, text: str) -> bytes:
    """Return the definition for a text of :func:`definition_to_text`. Raise ValueError for a wrong KEY_VALUE text."""
    if schema_type is not SchemaType.KEY_VALUE:
        return text.encode()
    body = json.loads(text)
    if not isinstance(body, dict) or not {"key", "value"} <= body.keys():
        raise ValueError("a KEY_VALUE definition is a JSON object with key and value")
    parts = (_part_from_json(body["key"]), _part_from_json(body["value"]))
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def split_key_value(definition: bytes) -> tuple[bytes, bytes]:
    """Return the definitions of key and value in that of a KEY_VALUE schema. Raise ValueError if it is cut short."""
    key, rest = _cut_part(definition)
    value, _ = _cut_part(rest)
    return key, value


def _cut_part(raw: bytes) -> tuple[bytes, bytes]:
    """Return the first part and the rest. A part is its length in four bytes (-1 = empty), then its bytes."""
    length = int.from_bytes(raw[:4], "big")
    end = 4 + (0 if length == _EMPTY_PART else length)
    if len(raw) < end:
        raise ValueError(
            "the KeyValue definition is cut short: expected a length and a definition for key and for value"
        )
    return raw[4:end], raw[end:]


def _part_to_json(part: bytes) -> object:
    """Return an object as such, and everything else as text: an EXTERNAL definition is any bytes."""
    text = part.decode(errors="replace")
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def _part_from_json(part: object) -> bytes:
    return part.encode() if isinstance(part, str) else json.dumps(part, separators=(",", ":")).encode()
