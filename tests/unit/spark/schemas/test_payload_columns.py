"""Which columns the schema of a topic makes, and which schemas count as one."""

import json

import pytest

from interpulse.model.schemas import SchemaInfo, SchemaType, definition_from_text
from interpulse.spark.options.option import OptionError
from interpulse.spark.schemas.payload_columns import check_same_schemas, payload_fields


def record(*names, kind=SchemaType.AVRO, **more):
    fields = [{"name": name, "type": "string"} for name in names]
    return SchemaInfo(kind, json.dumps({"type": "record", "name": "R", "fields": fields, **more}).encode())


def pair(key, value, encoding="INLINE"):
    parts = {"key": key.definition.decode(), "value": value.definition.decode()}
    properties = {"key.schema.type": key.type.name, "value.schema.type": value.type.name, "kv.encoding.type": encoding}
    return SchemaInfo(SchemaType.KEY_VALUE, definition_from_text(SchemaType.KEY_VALUE, json.dumps(parts)), properties)


STRING, INT = SchemaInfo(SchemaType.STRING), SchemaInfo(SchemaType.INT32)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (STRING, "struct<value:string>"),
        (SchemaInfo(SchemaType.INT8), "struct<value:tinyint>"),
        (SchemaInfo(SchemaType.LOCAL_TIME), "struct<value:bigint>"),
        (record("a", "b"), "struct<a:string,b:string>"),
        (record("a", kind=SchemaType.JSON), "struct<a:string>"),
        (SchemaInfo(SchemaType.AVRO, b'"long"'), "struct<value:bigint>"),
        (pair(STRING, record("a")), "struct<key:string,value:struct<a:string>>"),
        (pair(SchemaInfo(SchemaType.NONE), INT), "struct<key:binary,value:int>"),
    ],
)
def test_columns_of_a_schema(schema, expected):
    fields = payload_fields(schema)
    assert fields is not None
    assert fields.simpleString() == expected


@pytest.mark.parametrize("kind", [SchemaType.NONE, SchemaType.PROTOBUF, SchemaType.PROTOBUF_NATIVE])
def test_payload_that_is_given_as_bytes(kind):
    assert payload_fields(SchemaInfo(kind)) is None


def test_unit_of_a_time_is_named_in_the_comment():
    fields = payload_fields(SchemaInfo(SchemaType.LOCAL_TIME))
    assert fields is not None
    assert fields["value"].metadata == {"comment": "nanoseconds of the day"}


def test_fields_that_differ_in_letter_case_only_are_refused():
    with pytest.raises(OptionError, match=r"fields a and A.*valueSchema=raw"):
        payload_fields(record("a", "A"))


def test_one_schema_of_several_topics():
    assert check_same_schemas({}) is None
    assert check_same_schemas({"a": None, "b": SchemaInfo(SchemaType.NONE)}) is None
    spaced = SchemaInfo(SchemaType.AVRO, json.dumps(json.loads(record("a").definition), indent=2).encode())
    assert check_same_schemas({"a": record("a"), "b": spaced}) == record("a")


@pytest.mark.parametrize(
    ("other", "described"),
    [
        (None, "none"),
        (record("b"), "AVRO \\(b:string\\)"),
        (record("a", kind=SchemaType.JSON), "JSON \\(a:string\\)"),
        (STRING, "STRING \\(value:string\\)"),
    ],
)
def test_topics_with_different_schemas_are_both_named(other, described):
    with pytest.raises(OptionError, match=rf"x has AVRO \(a:string\), y has {described}; .*valueSchema=raw"):
        check_same_schemas({"x": record("a"), "y": other})


def test_pairs_with_another_encoding_are_different():
    with pytest.raises(OptionError, match="x has KEY_VALUE"):
        check_same_schemas({"x": pair(STRING, INT), "y": pair(STRING, INT, "SEPARATED")})
