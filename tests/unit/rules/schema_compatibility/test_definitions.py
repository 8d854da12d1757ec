"""Definitions by type; the many shapes of Avro ones are in `test_avro_types.py` and `test_real_answers.py`."""

from __future__ import annotations

import base64
import json

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from interpulse.model.errors import InvalidSchemaDefinition
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schema_compatibility.definitions import check_definition, key_value_parts, root_message
from tests.schema_pairs.cases import Schema, avro, pair, record

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
