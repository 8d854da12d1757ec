"""Which columns the schema of a topic makes, and which schemas count as one."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DayTimeIntervalType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from interpulse.model.schemas import SchemaInfo, SchemaType, definition_from_text
from interpulse.spark.options.option import OptionError
from interpulse.spark.schemas.payload_columns import check_same_schemas, payload_fields, schema_of_columns


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


def columns(**types):
    return StructType([StructField(name, kind) for name, kind in types.items()])


def test_record_has_the_columns_it_was_made_of():
    made = columns(
        text=StringType(),
        raw=BinaryType(),
        number=LongType(),
        at=TimestampType(),
        local=TimestampNTZType(),
        price=DecimalType(9, 2),
        tags=ArrayType(StringType()),
        counts=MapType(StringType(), IntegerType()),
        place=columns(x=LongType()),
        way=columns(x=StringType()),
    )
    for kind in (SchemaType.AVRO, SchemaType.JSON):
        schema = schema_of_columns(made, kind)
        assert (schema.type, payload_fields(schema)) == (kind, made)


def test_column_without_null_is_a_field_without_null():
    made = schema_of_columns(StructType([StructField("a", LongType(), False)]), SchemaType.AVRO)
    assert json.loads(made.definition)["fields"] == [{"name": "a", "type": "long"}]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (StringType(), SchemaType.STRING),
        (ShortType(), SchemaType.INT16),
        (LongType(), SchemaType.INT64),
        (TimestampType(), SchemaType.INSTANT),
        (ArrayType(LongType()), SchemaType.AVRO),
        (columns(x=LongType()), SchemaType.AVRO),
    ],
)
def test_single_column_value(kind, expected):
    assert schema_of_columns(columns(value=kind), SchemaType.AVRO).type is expected


def test_what_no_schema_has_is_refused():
    with pytest.raises(OptionError, match="column pause is INTERVAL"):
        schema_of_columns(columns(pause=DayTimeIntervalType()), SchemaType.AVRO)
    with pytest.raises(OptionError, match="column 'two words' cannot be a field"):
        schema_of_columns(columns(**{"two words": LongType()}), SchemaType.AVRO)
