"""Schemas as values: type, definition, properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

__all__ = ["SchemaInfo", "SchemaType", "version_from_bytes", "version_to_bytes"]


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


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """One schema: how the bytes of a topic's messages are to be read."""

    type: SchemaType
    definition: bytes = b""
    properties: Mapping[str, str] = field(default_factory=dict)
    name: str = ""


def version_to_bytes(version: int) -> bytes:
    """The eight big-endian bytes in which a schema version travels."""
    return version.to_bytes(8, "big")


def version_from_bytes(raw: bytes) -> int:
    """The inverse of :func:`version_to_bytes`; raises ValueError if there are not eight bytes."""
    if len(raw) != 8:
        raise ValueError(f"a schema version has 8 bytes, got {len(raw)}")
    return int.from_bytes(raw, "big", signed=True)
