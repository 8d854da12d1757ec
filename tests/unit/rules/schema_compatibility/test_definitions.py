"""Definitions by type; the many shapes of Avro ones are in `test_avro_types.py` and `test_real_answers.py`."""

from __future__ import annotations

import base64
import json

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.errors import InvalidSchemaDefinition
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schema_compatibility.definitions import (
    STRATEGIES,
    check_definition,
    find_conflict,
    key_value_parts,
    root_message,
)
from tests.schema_pairs import generated
from tests.schema_pairs.cases import Schema, avro, fld, pair, record

TEXT = Schema("STRING", "")


@pytest.mark.parametrize(
    "schema", [TEXT, Schema("STRING", "null"), Schema("INT64", ""), avro(record()), pair(TEXT, avro(record(), "JSON"))]
)
def test_definition_when_good_then_passes(schema: Schema) -> None:
    check_definition(schema.info)


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (avro(record(), "JSON").info, None),
        (SchemaInfo(SchemaType.JSON, b"{"), "Invalid schema definition data for JSON schema: Invalid Avro definition"),
        (SchemaInfo(SchemaType.AVRO, b'["int"]'), r"Avro schema typed \[UNION\] is not supported"),
        (SchemaInfo(SchemaType.INT8, b"x"), "INT8 schema: a primitive type has none, but 1 bytes are given"),
        (SchemaInfo(SchemaType.AUTO_CONSUME), "AUTO_CONSUME is a client-side schema type"),
        (SchemaInfo(SchemaType.PROTOBUF_NATIVE), "Invalid PROTOBUF_NATIVE definition"),
        (pair(TEXT, avro("Nope")).info, "the type Nope is not defined|Expecting value"),
        (SchemaInfo(SchemaType.KEY_VALUE), "cut short"),
    ],
)
def test_definition_when_wrong_then_refused_naming_its_type(schema: SchemaInfo, sentence: str | None) -> None:
    if sentence is None:
        check_definition(schema)
        return
    with pytest.raises(InvalidSchemaDefinition, match=sentence):
        check_definition(schema)


PAIR = b"\x00\x00\x00\x01k\x00\x00\x00\x01v"


def parts(definition: bytes, **properties: str) -> tuple[SchemaInfo, SchemaInfo]:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return key_value_parts(SchemaInfo(SchemaType.KEY_VALUE, definition, named))


def test_parts_when_whole_then_definition_type_and_properties_of_each() -> None:
    key, value = parts(PAIR, key_schema_type="AVRO", key_schema_properties='{"a":"b"}')
    assert key == SchemaInfo(SchemaType.AVRO, b"k", {"a": "b"})
    assert value == SchemaInfo(SchemaType.NONE, b"v")


def test_parts_when_marked_empty_then_empty() -> None:
    key, value = parts(b"\xff" * 8, value_schema_type="BYTES")
    assert (key.definition, value.definition, value.type) == (b"", b"", SchemaType.NONE)


@pytest.mark.parametrize("definition", [b"", PAIR[:3], PAIR[:5], PAIR[:-1]])
def test_parts_when_cut_short_then_refused(definition: bytes) -> None:
    with pytest.raises(InvalidSchemaDefinition, match="cut short"):
        parts(definition)


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"key_schema_type": "FOO"}, "key.schema.type of the KeyValue schema is 'FOO'; known are BYTES, NONE, STRING"),
        ({"value_schema_properties": "["}, "value.schema.properties of the KeyValue schema is no JSON object"),
    ],
)
def test_parts_when_properties_say_nonsense_then_refused(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidSchemaDefinition, match=sentence):
        parts(PAIR, **properties)


def definition(root: str = "n.Outer.Inner", file: str = "main.proto", *, with_import: bool = True) -> bytes:
    imported = FileDescriptorProto(name="imported.proto", package="i", syntax="proto3")
    imported.message_type.add(name="Other")
    main = FileDescriptorProto(name="main.proto", package="n", syntax="proto3", dependency=["imported.proto"])
    main.message_type.add(name="Outer").nested_type.add(name="Inner")
    files = FileDescriptorSet(file=[main, *([imported] if with_import else [])])
    encoded = base64.b64encode(files.SerializeToString()).decode()
    body = {"fileDescriptorSet": encoded, "rootMessageTypeName": root, "rootFileDescriptorName": file}
    return json.dumps(body).encode()


@pytest.mark.parametrize("root", ["n.Outer", "n.Outer.Inner"])
def test_root_when_found_then_its_full_name(root: str) -> None:
    assert root_message(definition(root)) == root


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "it is no JSON"),
        (b"[]", "it is an object with the texts fileDescriptorSet"),
        (definition("n.Nope"), "the message n.Nope is in none of the files"),
        (definition(file="nope.proto"), "the file nope.proto is not among main.proto, imported.proto"),
        (definition("i.Other"), "the message i.Other is in imported.proto, not in main.proto"),
        (definition(with_import=False), "the file imported.proto is imported and missing"),
        (definition().replace(b'Set": "', b'Set": "!'), "fileDescriptorSet holds no files"),
        (definition().replace(b'Set": "', b'Set": "AAAA'), "fileDescriptorSet holds no files"),
    ],
)
def test_definition_when_wrong_then_refused_with_what_is_wrong(raw: bytes, sentence: str) -> None:
    with pytest.raises(InvalidSchemaDefinition, match=f"Invalid PROTOBUF_NATIVE definition: .*{sentence}"):
        root_message(raw)


SMALL = avro(record(fld("int", "a"))).info
LARGE = avro(record(fld("int", "a"), fld("int", "b"))).info
CASES = list(generated.cases())


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_strategy_when_a_field_comes_then_refused_by_those_that_read_what_is_there(strategy: str) -> None:
    refuses = strategy not in ("ALWAYS_COMPATIBLE", "FORWARD", "FORWARD_TRANSITIVE")
    assert (find_conflict([SMALL], LARGE, strategy) is not None) == refuses


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_strategy_when_a_field_goes_then_refused_by_those_whose_old_readers_read_on(strategy: str) -> None:
    refuses = strategy not in ("ALWAYS_COMPATIBLE", "BACKWARD", "BACKWARD_TRANSITIVE")
    assert (find_conflict([LARGE], SMALL, strategy) is not None) == refuses


def test_conflict_when_told_then_says_who_cannot_read_what() -> None:
    field = "the field b is not written and has no default"
    assert find_conflict([SMALL], LARGE, "FULL") == (
        f"Unable to read schema: the new schema cannot read what is written with an existing one: {field}"
    )
    assert find_conflict([LARGE], SMALL, "FULL") == (
        f"Unable to read schema: an existing schema cannot read what is written with the new one: {field}"
    )


def test_conflict_when_an_existing_definition_is_none_then_says_so() -> None:
    broken = SchemaInfo(SchemaType.AVRO, b"{")
    assert "an existing schema cannot be compared" in str(find_conflict([broken], SMALL, "FULL"))


@pytest.mark.parametrize("side", ["key", "value"])
def test_conflict_when_in_a_pair_then_says_in_which_part(side: str) -> None:
    small, large = (avro(record(*(fld("int", name) for name in names))) for names in ("a", "ab"))
    old, new = ((pair(each, small) if side == "key" else pair(small, each)).info for each in (small, large))
    assert str(find_conflict([old], new, "BACKWARD")).startswith(f"{side} schema: Unable to read")
    assert find_conflict([old], new, "FORWARD") is None


@given(st.sampled_from(CASES))
def test_full_when_asked_then_is_backward_and_forward(case: generated.Case) -> None:
    old, new = case.history[-1].info, case.new.info
    both = all(find_conflict([old], new, strategy) is None for strategy in ("BACKWARD", "FORWARD"))
    assert (find_conflict([old], new, "FULL") is None) == both


@given(st.sampled_from(CASES), st.sampled_from(["BACKWARD", "FORWARD", "FULL"]))
def test_transitive_when_asked_then_is_the_same_for_every_version(case: generated.Case, strategy: str) -> None:
    versions = [old.info for old in case.history]
    each = all(find_conflict([old], case.new.info, strategy) is None for old in versions)
    assert (find_conflict(versions, case.new.info, f"{strategy}_TRANSITIVE") is None) == each


@given(st.sampled_from(CASES))
def test_backward_when_sides_are_swapped_then_is_forward(case: generated.Case) -> None:
    old, new = case.history[-1].info, case.new.info
    assert (find_conflict([old], new, "BACKWARD") is None) == (find_conflict([new], old, "FORWARD") is None)
