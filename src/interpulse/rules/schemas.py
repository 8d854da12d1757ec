"""Registration of schemas: the schema history of a topic, and the decision to append to it.

Invariants of a history:

* Versions are consecutive from 0, in the order of registration. A deletion marker takes a version too.
* Only versions after the last deletion marker are *live*: compared, returned and counted.

Types BYTES and None mean "no schema" and are never passed here. ``rules/schema_compatibility`` decides if an old and a
new definition can read each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from interpulse.model.changes import AppendSchema, Decision
from interpulse.model.errors import IncompatibleSchema, InvalidSchemaDefinition
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schema_compatibility.avro_types import avro_identity
from interpulse.rules.schema_compatibility.definitions import (
    ALWAYS_COMPATIBLE,
    AVRO_DEFINED,
    TRANSITIVE,
    check_definition,
    find_conflict,
)

# Applications in all languages look for the Java exception's name in the text.
_JAVA_NAME: Final = "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException: "
_CONSUMERS_AS_BACKWARD: Final = frozenset({"BACKWARD", "FORWARD", "FORWARD_TRANSITIVE", "FULL"})


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """Entry of a history. ``schema`` is None in a deletion marker."""

    version: int
    schema: SchemaInfo | None
    created_ms: int = 0


def live_versions(history: Sequence[SchemaVersion]) -> Sequence[SchemaVersion]:
    """Return the versions after the last deletion marker, oldest first."""
    for index in range(len(history) - 1, -1, -1):
        if history[index].schema is None:
            return history[index + 1 :]
    return history


def find_equal(history: Sequence[SchemaVersion], schema: SchemaInfo) -> int | None:
    """Return the live version with an equal schema; None if there is none."""
    live = live_versions(history)
    for entry in live:
        if entry.schema is not None and _bytes_of(entry.schema) == _bytes_of(schema):
            return entry.version
    if schema.type not in AVRO_DEFINED:
        return None
    identity = _identity(schema)
    for entry in live:
        if entry.schema is not None and entry.schema.type is schema.type and _identity(entry.schema) == identity:
            return entry.version
    return None


def decide_registration(
    topic: TopicName,
    history: Sequence[SchemaVersion],
    schema: SchemaInfo,
    *,
    strategy: str,
    may_update: bool,
    now_ms: int,
) -> Decision[int]:
    """Append ``schema`` unless a version already has it, and return its version. Raise IncompatibleSchema.

    ``may_update``: the caller may add schemas to this topic; an existing schema needs no permission. Raise
    InvalidSchemaDefinition for a definition that does not match its type.
    """
    registered = find_equal(history, schema)
    if registered is not None:
        return Decision(registered)
    _check_definition(schema)
    if not may_update:
        raise IncompatibleSchema(f"{_JAVA_NAME}Schema not found and schema auto updating is disabled.")
    _check_against(live_versions(history), schema, strategy)
    return _appended(topic, history, schema, now_ms)


def decide_delete_schema(topic: TopicName, history: Sequence[SchemaVersion], *, now_ms: int) -> Decision[int]:
    """Append a deletion marker, which hides the history, and return its version."""
    return _appended(topic, history, None, now_ms)


def _appended(
    topic: TopicName, history: Sequence[SchemaVersion], schema: SchemaInfo | None, now_ms: int
) -> Decision[int]:
    version = history[-1].version + 1 if history else 0
    return Decision(version, (AppendSchema(topic, version, schema, now_ms),))


def check_compatibility(history: Sequence[SchemaVersion], schema: SchemaInfo, *, strategy: str) -> None:
    """Refuse a schema as :func:`decide_registration` would, except for permissions.

    A registered one is compared too.
    """
    _check_definition(schema)
    _check_against(live_versions(history), schema, strategy)


def check_consumer_schema(history: Sequence[SchemaVersion], schema: SchemaInfo, *, strategy: str) -> None:
    """Refuse a consumer whose schema cannot read the topic. Nothing is ever registered.

    A consumer only reads, so under most strategies only the latest schema is compared. Under the others all are, as in
    Apache Pulsar: ALWAYS_INCOMPATIBLE refuses even the topic's own schema.
    """
    _check_definition(schema)
    live = live_versions(history)
    if not live or strategy == ALWAYS_COMPATIBLE:
        return
    if strategy in _CONSUMERS_AS_BACKWARD:
        _check_against(live, schema, "BACKWARD", named=strategy)
    else:
        _compare(live, schema, strategy, named=strategy)


def _check_against(
    live: Sequence[SchemaVersion], schema: SchemaInfo, strategy: str, *, named: str | None = None
) -> None:
    if not live or strategy == ALWAYS_COMPATIBLE:
        return
    if strategy in TRANSITIVE:
        _compare(live, schema, strategy, named=named or strategy)
    elif find_equal(live[-1:], schema) is None:
        _compare(live[-1:], schema, strategy, named=named or strategy)


def _compare(versions: Sequence[SchemaVersion], schema: SchemaInfo, strategy: str, *, named: str) -> None:
    """Compare schemas. ``named`` is the strategy under its user's name, for errors."""
    existing = [entry.schema for entry in versions if entry.schema is not None]
    for old in existing:
        if old.type is not schema.type:
            _refuse(
                f"Incompatible schema: exists schema type {old.type.name}, new schema type {schema.type.name}", named
            )
    conflict = find_conflict(existing, schema, strategy)
    if conflict is not None:
        _refuse(conflict, named)


def _refuse(reason: str, strategy: str) -> NoReturn:
    raise IncompatibleSchema(f"{_JAVA_NAME}Error during schema compatibility check with strategy {strategy}: {reason}")


def _check_definition(schema: SchemaInfo) -> None:
    try:
        check_definition(schema)
    except InvalidSchemaDefinition as error:
        raise InvalidSchemaDefinition(f"{_JAVA_NAME}{error}") from None


def _bytes_of(schema: SchemaInfo) -> tuple[SchemaType, bytes, object]:
    """Return the bytes that identify a schema.

    The types of a pair's parts are in its properties, so these are included.
    """
    properties = tuple(sorted(schema.properties.items())) if schema.type is SchemaType.KEY_VALUE else ()
    return schema.type, schema.definition, properties


def _identity(schema: SchemaInfo) -> object:
    """Return a definition as Avro compares it, without white space, docs and aliases."""
    try:
        return avro_identity(schema.definition)
    except InvalidSchemaDefinition:
        return schema.definition  # a definition of another kind; a new one is refused
