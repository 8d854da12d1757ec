"""Rows with the columns of Spark's Kafka sink."""

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, LongType, StringType, StructField, StructType

from interpulse.model.errors import InvalidRequest
from interpulse.spark.options.option import OptionError
from interpulse.spark.writing.kafka_style import with_own_names
from interpulse.spark.writing.sink_rows import check_write_schema, outgoing_messages, record_columns
from interpulse.spark.writing.write_options import parse_write_options

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
ARROW_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def options(**values):
    return parse_write_options({"service.url": "pulsar://x:1", "columnStyle": "kafka", **values})


def schema(**columns):
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def test_columns_of_kafka_are_taken_also_those_of_a_read():
    check_write_schema(
        options(),
        schema(key=StringType(), value=BinaryType(), topic=StringType(), partition=IntegerType(), headers=HEADERS),
    )
    read_back = schema(key=BinaryType(), value=BinaryType(), offset=LongType(), timestampType=IntegerType())
    check_write_schema(options(topic="t"), read_back)
    assert record_columns(options(), read_back) is None


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"value": LongType(), "topic": StringType()}, "column value is BIGINT, not BINARY or STRING"),
        ({"value": BinaryType()}, "column __topic is missing: set the option topic"),
        ({"value": BinaryType(), "topic": StringType(), "colour": LongType()}, "columns colour are not understood"),
        ({"value": BinaryType(), "topic": StringType(), "headers": StringType()}, "__messageProperties is STRING"),
    ],
)
def test_other_columns_are_refused(columns, problem):
    with pytest.raises(OptionError, match=problem):
        check_write_schema(options(), schema(**columns))


def test_rows_become_messages():
    batch = pa.record_batch(
        {
            "key": ["a", None],
            "value": [b"1", b"2"],
            "topic": ["t", "t"],
            "partition": pa.array([1, None], pa.int32()),
            "headers": pa.array([[{"key": "n", "value": b"x"}, {"key": "m", "value": None}], None], ARROW_HEADERS),
            "timestampType": pa.array([0, 0], pa.int32()),
        }
    )
    first, second = outgoing_messages(with_own_names(batch), None)
    assert (first.key, first.value, first.topic, first.partition, first.properties) == (
        b"a",
        b"1",
        "t",
        1,
        {"n": "x", "m": ""},
    )
    assert (second.key, second.partition, second.properties) == (None, None, {})
    assert outgoing_messages(with_own_names(batch.slice(1)), None) == [second]


def test_headers_that_are_no_text_are_refused():
    batch = pa.record_batch({"value": [b"1"], "headers": pa.array([[{"key": "n", "value": b"\xff"}]], ARROW_HEADERS)})
    with pytest.raises(InvalidRequest, match="column headers: properties of messages are text"):
        with_own_names(batch)
