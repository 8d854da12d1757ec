"""The two parts of a KEY_VALUE schema."""

from __future__ import annotations

import pytest

from interpulse.model.errors import InvalidSchemaDefinition
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schema_compatibility.key_value import key_value_parts

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
