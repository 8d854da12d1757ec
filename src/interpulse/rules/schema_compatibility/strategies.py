"""Conditions of each compatibility strategy, and the check of each type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from interpulse.model.errors import InvalidSchemaDefinition
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schema_compatibility.avro import find_unreadable
from interpulse.rules.schema_compatibility.avro_types import parse_avro
from interpulse.rules.schema_compatibility.definitions import key_value_parts, root_message

ALWAYS_COMPATIBLE: Final = "ALWAYS_COMPATIBLE"
ALWAYS_INCOMPATIBLE: Final = "ALWAYS_INCOMPATIBLE"
_NEW_READS_OLD: Final = frozenset({"BACKWARD", "BACKWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"})
_OLD_READS_NEW: Final = frozenset({"FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"})
TRANSITIVE: Final = frozenset({"BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"})
"""Strategies that compare with every version, not only with the latest."""

STRATEGIES: Final = frozenset({ALWAYS_COMPATIBLE, ALWAYS_INCOMPATIBLE}) | _NEW_READS_OLD | _OLD_READS_NEW


def find_conflict(existing: Sequence[SchemaInfo], new: SchemaInfo, strategy: str) -> str | None:
    """Return the reason why ``new`` conflicts with ``existing`` schemas of its type; None if it does not.

    Definitions were checked when they were registered. Types other than AVRO, JSON, KEY_VALUE and PROTOBUF_NATIVE have
    nothing to compare. PROTOBUF is not compared either: Apache Pulsar has no checker for it. EXTERNAL schemas are
    compared by their own registry, so even ALWAYS_INCOMPATIBLE accepts another one.
    """
    assert strategy in STRATEGIES, strategy
    if strategy == ALWAYS_COMPATIBLE:
        return None
    if new.type is SchemaType.KEY_VALUE:
        return _key_value_conflict(existing, new, strategy)
    if new.type is SchemaType.EXTERNAL:
        return None
    if strategy == ALWAYS_INCOMPATIBLE:
        return "Schema compatibility strategy is ALWAYS_INCOMPATIBLE"
    if new.type in (SchemaType.AVRO, SchemaType.JSON):
        return _avro_conflict(existing, new, strategy)
    if new.type is SchemaType.PROTOBUF_NATIVE:
        return _root_conflict(existing, new)
    return None


def _avro_conflict(existing: Sequence[SchemaInfo], new: SchemaInfo, strategy: str) -> str | None:
    theirs = parse_avro(new.definition)
    for old in reversed(existing):
        try:
            ours = parse_avro(old.definition)
        except InvalidSchemaDefinition as error:
            return f"Unable to read schema: an existing schema cannot be compared: {error}"
        if strategy in _NEW_READS_OLD and (reason := find_unreadable(writer=ours, reader=theirs)):
            return f"Unable to read schema: the new schema cannot read what is written with an existing one: {reason}"
        if strategy in _OLD_READS_NEW and (reason := find_unreadable(writer=theirs, reader=ours)):
            return f"Unable to read schema: an existing schema cannot read what is written with the new one: {reason}"
    return None


def _root_conflict(existing: Sequence[SchemaInfo], new: SchemaInfo) -> str | None:
    root = root_message(new.definition)
    for old in existing:
        existing_name = root_message(old.definition)
        if existing_name != root:
            return f"Protobuf root message isn't allow change: existing {existing_name}, new {root}"
    return None


def _key_value_conflict(existing: Sequence[SchemaInfo], new: SchemaInfo, strategy: str) -> str | None:
    theirs, ours = key_value_parts(new), [key_value_parts(old) for old in existing]
    for parts in ours:
        if (parts.key.type, parts.value.type) != (theirs.key.type, theirs.value.type):
            return (
                f"Key schema type or value schema type is different: exists {_shown(parts.key)} and "
                f"{_shown(parts.value)}, new {_shown(theirs.key)} and {_shown(theirs.value)}"
            )
    key = find_conflict([parts.key for parts in ours], theirs.key, strategy)
    value = key or find_conflict([parts.value for parts in ours], theirs.value, strategy)
    return value and f"{'key' if key else 'value'} schema: {value}"


def _shown(part: SchemaInfo) -> str:
    return "BYTES" if part.type is SchemaType.NONE else part.type.name
