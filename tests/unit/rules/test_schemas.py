"""Registering schemas: equality, versions, deletion markers, the auto-update switch, changes of type."""

from __future__ import annotations

import pytest

from interpulse.model.changes import AppendSchema
from interpulse.model.errors import IncompatibleSchema, InvalidSchemaDefinition
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schemas import (
    SchemaVersion,
    check_compatibility,
    check_consumer_schema,
    decide_delete_schema,
    decide_registration,
    find_equal,
    live_versions,
)
from tests.schema_pairs.cases import avro, fld, record

TOPIC = TopicName.parse("t")
AVRO = SchemaInfo(SchemaType.AVRO, b'{"type": "record", "name": "a", "fields": []}')
AVRO_RESPACED = SchemaInfo(SchemaType.AVRO, b'{"name":"a","type":"record","fields":[]}')
AVRO_2 = SchemaInfo(SchemaType.AVRO, b'{"type": "record", "name": "b", "fields": []}')
STRING = SchemaInfo(SchemaType.STRING)
PAIR = b"\x00\x00\x00\x00\x00\x00\x00\x01v"


def history(*schemas: SchemaInfo | None) -> list[SchemaVersion]:
    return [SchemaVersion(version, schema) for version, schema in enumerate(schemas)]


def register(past: list[SchemaVersion], schema: SchemaInfo, strategy: str = "FULL", may: bool = True) -> int | None:
    """Return the version that holds the schema, None if it is appended behind the others."""
    decision = decide_registration(TOPIC, past, schema, strategy=strategy, may_update=may, now_ms=7)
    if not decision.changes:
        return decision.answer
    assert decision.answer == len(past)
    assert decision.changes == (AppendSchema(TOPIC, len(past), schema, 7),)
    return None


def test_registration_when_topic_has_none_then_appended() -> None:
    assert register([], AVRO) is None


def test_registration_when_only_white_space_differs_then_old_version() -> None:
    assert register(history(AVRO_2, AVRO), AVRO_RESPACED) == 1


def test_registration_when_attributes_come_in_another_order_then_old_version() -> None:
    one, other = (
        SchemaInfo(SchemaType.AVRO, b'{"type": "record", "name": "a", "fields": [], %s}' % attributes)
        for attributes in (b'"x": 1, "y": 2', b'"y": 2, "x": 1')
    )
    assert register(history(one), other) == 0


@pytest.mark.parametrize("holder", [b'{"type": "array", "items": %s}', b'{"type": "map", "values": %s}'])
def test_registration_when_only_a_doc_inside_is_added_then_old_version(holder: bytes) -> None:
    one, other = (
        SchemaInfo(SchemaType.AVRO, b'{"type": "record", "name": "a", "fields": [{"name": "f", "type": %s}]}' % held)
        for held in (
            holder % b'{"type": "record", "name": "b", "fields": []}',
            holder % b'{"type": "record", "name": "b", "fields": [], "doc": "x"}',
        )
    )
    assert register(history(one), other) == 0


def test_registration_when_the_namespace_stands_in_the_name_then_old_version() -> None:
    one = SchemaInfo(SchemaType.AVRO, b'{"type": "record", "name": "a", "namespace": "n", "fields": []}')
    other = SchemaInfo(SchemaType.AVRO, b'{"type": "record", "name": "n.a", "fields": []}')
    assert register(history(one), other) == 0


def test_registration_when_bytes_of_other_types_differ_then_not_equal() -> None:
    assert find_equal(history(SchemaInfo(SchemaType.STRING, b"{}")), SchemaInfo(SchemaType.STRING, b"{ }")) is None


def test_registration_when_definition_is_no_json_then_compared_as_bytes() -> None:
    assert register(history(SchemaInfo(SchemaType.AVRO, b"not json")), SchemaInfo(SchemaType.AVRO, b"not json")) == 0


def test_registration_when_equal_schema_was_deleted_then_appended() -> None:
    past = history(AVRO, None)
    assert live_versions(past) == []
    assert register(past, AVRO) is None


def test_live_versions_are_those_behind_the_last_deletion() -> None:
    past = history(AVRO, None, AVRO_2, None, STRING, AVRO)
    assert live_versions(past) == past[4:]
    assert live_versions(past[:3]) == past[2:3]
    assert live_versions(past[:1]) == past[:1]


def test_properties_count_in_key_value_schemas_alone() -> None:
    assert find_equal(history(SchemaInfo(SchemaType.STRING, b"", {"a": "1"})), STRING) == 0


def test_registration_when_type_changes_then_refused_with_strategy_and_java_name() -> None:
    with pytest.raises(IncompatibleSchema, match="IncompatibleSchemaException") as refusal:
        register(history(AVRO), STRING)
    assert "exists schema type AVRO, new schema type STRING" in str(refusal.value)
    assert "FULL" in str(refusal.value)


def test_registration_when_always_compatible_then_type_may_change() -> None:
    assert register(history(AVRO), STRING, "ALWAYS_COMPATIBLE") is None


def test_registration_when_always_incompatible_then_only_the_first() -> None:
    assert register([], AVRO, "ALWAYS_INCOMPATIBLE") is None
    with pytest.raises(IncompatibleSchema, match=r"Schema compatibility strategy is ALWAYS_INCOMPATIBLE$"):
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


SMALL = avro(record(fld("int", "a"))).info
LARGE = avro(record(fld("int", "a"), fld("int", "b"))).info
CONSUMER_PAIRS = [(SMALL, SMALL), (LARGE, SMALL), (SMALL, LARGE)]
MIDDLE = avro(record(fld("int", "a"), fld("int", "b", default=0))).info

# What a real Pulsar answers a consumer of: the topic's own schema, one with a field less, one with a field more.
CONSUMERS = {
    "ALWAYS_INCOMPATIBLE": (False, False, False),
    "ALWAYS_COMPATIBLE": (True, True, True),
    "BACKWARD": (True, True, False),
    "FORWARD": (True, True, False),
    "FULL": (True, True, False),
    "BACKWARD_TRANSITIVE": (True, True, False),
    "FORWARD_TRANSITIVE": (True, True, False),
    "FULL_TRANSITIVE": (True, False, False),
}


@pytest.mark.parametrize("strategy", CONSUMERS)
def test_consumer_when_typed_then_most_strategies_ask_only_whether_it_can_read(strategy: str) -> None:
    admitted = [consumer_is_admitted(history(own), schema, strategy) for own, schema in CONSUMER_PAIRS]
    assert tuple(admitted) == CONSUMERS[strategy]


@pytest.mark.parametrize(
    ("strategy", "admitted"),
    [("BACKWARD", True), ("FORWARD_TRANSITIVE", True), ("BACKWARD_TRANSITIVE", False), ("FULL_TRANSITIVE", False)],
)
def test_consumer_when_an_older_version_cannot_be_read_then_only_some_refuse(strategy: str, admitted: bool) -> None:
    assert consumer_is_admitted(history(SMALL, MIDDLE), LARGE, strategy) == admitted
    assert consumer_is_admitted(history(SMALL, None, MIDDLE), LARGE, strategy)


@pytest.mark.parametrize("strategy", [name for name, admitted in CONSUMERS.items() if not all(admitted)])
def test_consumer_when_refused_then_the_strategy_is_named_as_it_was_set(strategy: str) -> None:
    with pytest.raises(IncompatibleSchema, match=f"with strategy {strategy}: "):
        check_consumer_schema(history(SMALL), LARGE, strategy=strategy)


def consumer_is_admitted(past: list[SchemaVersion], schema: SchemaInfo, strategy: str) -> bool:
    try:
        check_consumer_schema(past, schema, strategy=strategy)
    except IncompatibleSchema:
        return False
    return True


def test_consumer_when_definition_is_none_then_refused_even_if_always_compatible() -> None:
    with pytest.raises(InvalidSchemaDefinition, match="IncompatibleSchemaException: Invalid schema definition"):
        check_consumer_schema(history(SMALL), SchemaInfo(SchemaType.AVRO, b"{"), strategy="ALWAYS_COMPATIBLE")


def test_registration_when_incompatible_then_says_strategy_place_and_java_name() -> None:
    with pytest.raises(IncompatibleSchema) as refusal:
        register(history(SMALL), LARGE, "BACKWARD")
    assert str(refusal.value) == (
        "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException: Error during schema "
        "compatibility check with strategy BACKWARD: Unable to read schema: the new schema cannot read what is "
        "written with an existing one: the field b is not written and has no default"
    )


def test_registration_when_chain_ends_where_it_began_to_break_then_only_transitive_refuses() -> None:
    assert register(history(SMALL, MIDDLE), LARGE, "BACKWARD") is None
    with pytest.raises(IncompatibleSchema, match="BACKWARD_TRANSITIVE"):
        register(history(SMALL, MIDDLE), LARGE, "BACKWARD_TRANSITIVE")
    assert register(history(SMALL, None, MIDDLE), LARGE, "BACKWARD_TRANSITIVE") is None


def test_registration_when_only_a_doc_is_added_then_old_version_under_every_strategy() -> None:
    documented = SchemaInfo(SchemaType.AVRO, SMALL.definition.replace(b'"name": "A"', b'"name": "A", "doc": "x"'))
    assert register(history(LARGE, SMALL), documented, "ALWAYS_INCOMPATIBLE") == 1


def test_compatibility_when_asked_then_switches_do_not_count_and_nothing_is_returned() -> None:
    check_compatibility(history(SMALL), MIDDLE, strategy="FULL")
    check_compatibility(history(SMALL), SMALL, strategy="ALWAYS_INCOMPATIBLE")
    with pytest.raises(IncompatibleSchema):  # an older version has no right to come back
        check_compatibility(history(LARGE, SMALL), LARGE, strategy="BACKWARD")
    with pytest.raises(IncompatibleSchema):
        check_compatibility(history(SMALL), LARGE, strategy="FULL")
    with pytest.raises(InvalidSchemaDefinition):
        check_compatibility([], SchemaInfo(SchemaType.JSON, b""), strategy="FULL")


@pytest.mark.parametrize("past", [history(), history(AVRO), history(AVRO, None)])
def test_deletion_when_decided_then_a_marker_follows_the_history(past: list[SchemaVersion]) -> None:
    decision = decide_delete_schema(TOPIC, past, now_ms=7)
    assert decision.answer == len(past)
    assert decision.changes == (AppendSchema(TOPIC, len(past), None, 7),)
