"""May this schema be registered, and which version is it: the history of one topic's schemas.

Invariants of a history:

* versions are consecutive from 0, in the order they were registered; a deletion marker takes a version too;
* only what comes after the last deletion marker is *live*: it is compared, handed out and counted.

Types BYTES and None stand for "no schema" and never come here. Whether an old and a new definition of one type can
read each other is not compared yet: under every strategy but ALWAYS_INCOMPATIBLE a definition of the same type passes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from interpulse.model.errors import IncompatibleSchema
from interpulse.model.schemas import SchemaInfo, SchemaType

__all__ = [
    "ALWAYS_COMPATIBLE",
    "ALWAYS_INCOMPATIBLE",
    "SchemaVersion",
    "check_consumer_schema",
    "decide_registration",
    "find_equal",
    "live_versions",
]

ALWAYS_COMPATIBLE: Final = "ALWAYS_COMPATIBLE"
ALWAYS_INCOMPATIBLE: Final = "ALWAYS_INCOMPATIBLE"
_TRANSITIVE: Final = frozenset({"BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"})
_AVRO_DEFINED: Final = frozenset({SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF})
_KEY_VALUE_PARTS: Final = 2
_LENGTH_BYTES: Final = 4
_EMPTY_PART: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One entry of a history; ``schema`` is None in a deletion marker."""

    version: int
    schema: SchemaInfo | None
    created_ms: int = 0


def live_versions(history: Sequence[SchemaVersion]) -> Sequence[SchemaVersion]:
    """The versions after the last deletion marker, oldest first."""
    for index in range(len(history) - 1, -1, -1):
        if history[index].schema is None:
            return history[index + 1 :]
    return history


def find_equal(history: Sequence[SchemaVersion], schema: SchemaInfo) -> int | None:
    """The live version that holds this very schema, or None."""
    identity = _identity(schema)
    for entry in live_versions(history):
        if entry.schema is not None and _identity(entry.schema) == identity:
            return entry.version
    return None


def decide_registration(
    history: Sequence[SchemaVersion], schema: SchemaInfo, *, strategy: str, may_update: bool
) -> int | None:
    """The version that already holds ``schema``, or None if it is to be appended; refuses with IncompatibleSchema.

    ``may_update`` says whether whoever asks may add schemas to this topic at all; a known schema needs no permission.
    """
    _check_definition(schema)
    known = find_equal(history, schema)
    if known is not None:
        return known
    if not may_update:
        raise IncompatibleSchema(
            "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException: "
            "Schema not found and schema auto updating is disabled."
        )
    _check_against(live_versions(history), schema, strategy)
    return None


def check_consumer_schema(history: Sequence[SchemaVersion], schema: SchemaInfo, *, strategy: str) -> None:
    """Refuse a consumer whose schema cannot read what the topic holds; nothing is ever registered."""
    _check_definition(schema)
    live = live_versions(history)
    if strategy != ALWAYS_COMPATIBLE and live:
        _check_type(live[-1], schema, strategy)


def _check_against(live: Sequence[SchemaVersion], schema: SchemaInfo, strategy: str) -> None:
    if not live or strategy == ALWAYS_COMPATIBLE:
        return
    if strategy == ALWAYS_INCOMPATIBLE:
        raise _incompatible("the topic's schema may not change", strategy)
    for entry in live if strategy in _TRANSITIVE else live[-1:]:
        _check_type(entry, schema, strategy)


def _check_type(existing: SchemaVersion, schema: SchemaInfo, strategy: str) -> None:
    if existing.schema is not None and existing.schema.type != schema.type:
        raise _incompatible(
            f"Incompatible schema: exists schema type {existing.schema.type.name}, new schema type {schema.type.name}",
            strategy,
        )


def _incompatible(reason: str, strategy: str) -> IncompatibleSchema:
    # User code looks for the Java exception's name in the text, whatever the language.
    return IncompatibleSchema(
        "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException: "
        f"{reason}, schema compatibility strategy {strategy}"
    )


def _check_definition(schema: SchemaInfo) -> None:
    if schema.type is SchemaType.KEY_VALUE and not _holds_two_parts(schema.definition):
        raise IncompatibleSchema(
            "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException: "
            "the KeyValue definition is cut short: expected a length and a definition for key and for value"
        )


def _holds_two_parts(definition: bytes) -> bool:
    offset = 0
    for _ in range(_KEY_VALUE_PARTS):
        if offset + _LENGTH_BYTES > len(definition):
            return False
        length = int.from_bytes(definition[offset : offset + _LENGTH_BYTES], "big")
        offset += _LENGTH_BYTES + (0 if length == _EMPTY_PART else length)
    return offset <= len(definition)


def _identity(schema: SchemaInfo) -> tuple[SchemaType, object, object]:
    """What makes two schemas the same: white space in an Avro definition does not, the parts' types of a pair do."""
    properties = tuple(sorted(schema.properties.items())) if schema.type is SchemaType.KEY_VALUE else ()
    if schema.type not in _AVRO_DEFINED:
        return schema.type, schema.definition, properties
    try:
        parsed = json.loads(schema.definition)
    except ValueError:
        return schema.type, schema.definition, properties
    return schema.type, json.dumps(parsed, sort_keys=True), properties
