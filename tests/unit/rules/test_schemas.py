"""Registering schemas: equality, versions, deletion markers, the auto-update switch, changes of type."""

from __future__ import annotations

import pytest

from interpulse.model.errors import IncompatibleSchema
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schemas import (
    SchemaVersion,
    check_consumer_schema,
    decide_registration,
    find_equal,
    live_versions,
)

AVRO = SchemaInfo(SchemaType.AVRO, b'{"type": "record", "name": "a", "fields": []}')
AVRO_RESPACED = SchemaInfo(SchemaType.AVRO, b'{"name":"a","type":"record","fields":[]}')
AVRO_2 = SchemaInfo(SchemaType.AVRO, b'{"type": "record", "name": "b", "fields": []}')
STRING = SchemaInfo(SchemaType.STRING)
PAIR = b"\x00\x00\x00\x00\x00\x00\x00\x01v"


def history(*schemas: SchemaInfo | None) -> list[SchemaVersion]:
    return [SchemaVersion(version, schema) for version, schema in enumerate(schemas)]


def register(past: list[SchemaVersion], schema: SchemaInfo, strategy: str = "FULL", may: bool = True) -> int | None:
    return decide_registration(past, schema, strategy=strategy, may_update=may)


def test_registration_when_topic_has_none_then_appended() -> None:
    assert register([], AVRO) is None


def test_registration_when_only_white_space_differs_then_old_version() -> None:
    assert register(history(AVRO_2, AVRO), AVRO_RESPACED) == 1


def test_registration_when_bytes_of_other_types_differ_then_not_equal() -> None:
    assert find_equal(history(SchemaInfo(SchemaType.STRING, b"{}")), SchemaInfo(SchemaType.STRING, b"{ }")) is None


def test_registration_when_definition_is_no_json_then_compared_as_bytes() -> None:
    assert register(history(SchemaInfo(SchemaType.AVRO, b"not json")), SchemaInfo(SchemaType.AVRO, b"not json")) == 0


def test_registration_when_equal_schema_was_deleted_then_appended() -> None:
    past = history(AVRO, None)
    assert live_versions(past) == []
    assert register(past, AVRO) is None


def test_registration_when_type_changes_then_refused_with_strategy_and_java_name() -> None:
    with pytest.raises(IncompatibleSchema, match="IncompatibleSchemaException") as refusal:
        register(history(AVRO), STRING)
    assert "exists schema type AVRO, new schema type STRING" in str(refusal.value)
    assert "FULL" in str(refusal.value)


def test_registration_when_always_compatible_then_type_may_change() -> None:
    assert register(history(AVRO), STRING, "ALWAYS_COMPATIBLE") is None


def test_registration_when_always_incompatible_then_only_the_first() -> None:
    assert register([], AVRO, "ALWAYS_INCOMPATIBLE") is None
    with pytest.raises(IncompatibleSchema):
        register(history(AVRO), AVRO_2, "ALWAYS_INCOMPATIBLE")


@pytest.mark.parametrize(("strategy", "refused"), [("FULL", False), ("FULL_TRANSITIVE", True)])
def test_registration_when_an_older_version_has_another_type_then_only_transitive_refuses(
    strategy: str, refused: bool
) -> None:
    past = history(STRING, AVRO)
    if refused:
        with pytest.raises(IncompatibleSchema):
            register(past, AVRO_2, strategy)
    else:
        assert register(past, AVRO_2, strategy) is None


def test_registration_when_updates_are_off_then_known_passes_and_new_is_refused() -> None:
    assert register(history(AVRO), AVRO, may=False) == 0
    for past in ([], history(AVRO)):
        with pytest.raises(IncompatibleSchema, match="schema auto updating is disabled"):
            register(past, AVRO_2, may=False)


@pytest.mark.parametrize("definition", [b"", PAIR[:3], PAIR[:5], PAIR[:-1]])
def test_registration_when_key_value_is_cut_short_then_refused(definition: bytes) -> None:
    with pytest.raises(IncompatibleSchema, match="cut short"):
        register([], SchemaInfo(SchemaType.KEY_VALUE, definition))


def test_registration_when_key_value_parts_have_other_types_then_not_equal() -> None:
    first = SchemaInfo(SchemaType.KEY_VALUE, PAIR, {"key.schema.type": "STRING"})
    second = SchemaInfo(SchemaType.KEY_VALUE, PAIR, {"key.schema.type": "BYTES"})
    assert register(history(first), first) == 0
    assert register(history(first), second, "ALWAYS_COMPATIBLE") is None
    with pytest.raises(IncompatibleSchema, match="exists STRING and BYTES, new BYTES and BYTES"):
        register(history(first), second)


def test_key_value_when_a_part_is_marked_empty_then_accepted() -> None:
    assert register([], SchemaInfo(SchemaType.KEY_VALUE, b"\xff\xff\xff\xff\xff\xff\xff\xff")) is None


def test_consumer_when_type_differs_then_refused_unless_always_compatible() -> None:
    check_consumer_schema(history(AVRO), AVRO_2, strategy="FULL")
    check_consumer_schema(history(AVRO), STRING, strategy="ALWAYS_COMPATIBLE")
    check_consumer_schema([], STRING, strategy="FULL")
    with pytest.raises(IncompatibleSchema):
        check_consumer_schema(history(AVRO), STRING, strategy="FULL")
