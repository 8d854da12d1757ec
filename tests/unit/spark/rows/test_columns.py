"""Which columns a read has, and which a schema of the user's may name."""

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from interpulse.spark.options.option import OptionError
from interpulse.spark.rows.columns import Layout, check_schema, read_schema

TYPED = Layout(payload=StructType([StructField("name", StringType()), StructField("age", LongType())]))
METADATA = ["__key", "__topic", "__messageId", "__publishTime", "__eventTime", "__messageProperties"]


def test_default_columns_of_messages_are_those_of_the_other_connector():
    assert read_schema(Layout(), ["default"]).names == [
        "value",
        "__key",
        "__topic",
        "__messageId",
        "__publishTime",
        "__eventTime",
        "__messageProperties",
    ]


def test_unknown_columns_are_named():
    with pytest.raises(OptionError, match="no column __colour in message mode"):
        read_schema(Layout(), ["__colour"])


def test_schema_of_the_user_is_checked():
    schema = read_schema(Layout(), ["__partition"])
    check_schema(schema, Layout(), ["__PARTITION"])
    check_schema(schema, Layout(), ["default"])
    with pytest.raises(OptionError, match="no column value in entry mode; there are __topic"):
        check_schema(schema, Layout("entry"), ["default"])
    with pytest.raises(OptionError, match="schema and includeColumns name different columns"):
        check_schema(schema, Layout(), ["__key"])


def test_type_given_by_the_user_is_checked():
    schema = StructType([StructField("value", StringType())])
    with pytest.raises(OptionError, match="column value is read as BINARY, not STRING; read it so and cast it"):
        check_schema(schema, Layout(), ["default"])


def test_fields_of_the_topics_schema_come_before_the_metadata():
    assert read_schema(TYPED, ["default"]).names == ["name", "age", *METADATA]
    assert read_schema(TYPED, ["none"]).names == ["name", "age"]
    assert read_schema(TYPED, ["__key"]).names == ["name", "age", "__key"]
    assert read_schema(TYPED, ["age", "__KEY"]).names == ["age", "__key"]


def test_field_that_is_called_like_metadata_is_refused_unless_there_is_none():
    layout = Layout(payload=StructType([StructField("__key", StringType())]))
    with pytest.raises(
        OptionError, match=r"fields __key, and columns with such names hold metadata.*includeColumns=none"
    ):
        read_schema(layout, ["default"])
    assert read_schema(layout, ["none"]) == layout.payload


def test_columns_in_the_style_of_kafka():
    kafka = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert read_schema(Layout(style="kafka"), ["default"]).names == kafka
    assert read_schema(Layout(style="kafka"), ["all"]).names == [*kafka, "headers"]
    assert read_schema(Layout(style="kafka"), ["offset"]).names == ["offset"]
