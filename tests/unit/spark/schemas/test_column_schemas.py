"""The schema that columns make, for topics that have none yet."""

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

from interpulse.model.schemas import SchemaType
from interpulse.spark.options.option import OptionError
from interpulse.spark.schemas.column_schemas import schema_of_columns
from interpulse.spark.schemas.payload_columns import payload_fields


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
