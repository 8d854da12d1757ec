"""Rows as messages, and which columns the sink takes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DayTimeIntervalType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from interpulse.model.errors import InvalidRequest
from interpulse.model.ids import Position
from interpulse.spark.options.option import OptionError
from interpulse.spark.writing.broker_target import StoredEntry
from interpulse.spark.writing.sink_rows import (
    build_messages,
    check_write_schema,
    outgoing_messages,
    record_columns,
    stored_messages,
    with_own_names,
)
from interpulse.spark.writing.write_options import parse_write_options
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import unpack_batch
from interpulse.wire.entries import parse_entry, verify_checksum


def options(**values):
    return parse_write_options({"service.url": "pulsar://x:1", **values})


def schema(**columns):
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def test_value_alone_is_enough_when_the_topic_is_an_option():
    check_write_schema(options(topic="t"), schema(value=StringType()))


def test_columns_of_a_read_are_accepted_back_with_a_warning(caplog):
    check_write_schema(options(topic="t"), schema(value=BinaryType(), __messageId=BinaryType(), __ledgerId=LongType()))
    assert "not written, brokers assign them again columns=__ledgerId, __messageId" in caplog.text


def test_clusters_that_a_message_goes_to_are_a_column():
    check_write_schema(options(topic="t"), schema(value=BinaryType(), __replicateTo=ArrayType(StringType(), False)))
    with pytest.raises(OptionError, match="column __replicateTo is STRING, not ARRAY<STRING>"):
        check_write_schema(options(topic="t"), schema(value=BinaryType(), __replicateTo=StringType()))


@pytest.mark.parametrize(
    ("given", "columns", "problem"),
    [
        ({}, {"value": BinaryType()}, "column __topic is missing: set the option topic"),
        ({"topic": "t"}, {"__key": BinaryType()}, "column value is missing: .*to_json"),
        (
            {"topic": "t", "valueSchema": "raw"},
            {"value": LongType()},
            "column value is BIGINT, not BINARY or STRING: cast one",
        ),
        (
            {"topic": "t", "valueSchema": "raw"},
            {"value": BinaryType(), "colour": StringType()},
            "columns colour are not understood",
        ),
        ({"topic": "t"}, {"name": StringType(), "__colour": StringType()}, "columns __colour are not understood"),
        ({"topic": "t"}, {"pause": DayTimeIntervalType()}, "column pause is INTERVAL.*, which no schema has: cast it"),
        ({"topic": "t", "mode": "entry"}, {"__metadata": BinaryType()}, "column __entryId is missing"),
    ],
)
def test_problems_are_named(given, columns, problem):
    with pytest.raises(OptionError, match=problem):
        check_write_schema(options(**given), schema(**columns))


def test_row_without_a_topic_is_refused():
    batch = pa.record_batch({"value": ["a"], "__topic": pa.array([None], pa.string())})
    with pytest.raises(InvalidRequest, match="no topic"):
        outgoing_messages(batch, None)


def test_times_are_milliseconds():
    times = pa.array([1_234_567], pa.timestamp("us", tz="UTC"))
    message = outgoing_messages(pa.record_batch({"value": ["a"], "__eventTime": times}), "t")[0]
    assert message.event_time_ms == 1234


def messages(**columns):
    return outgoing_messages(pa.record_batch({"value": ["a", None], **columns}), "t")


def built(given, **values):
    entry = build_messages(
        given,
        **{
            "producer_name": "p",
            "ids": range(10, 10 + len(given)),
            "publish_time_ms": 99,
            "batched": True,
            "codec": pb.NONE,
            **values,
        },
    )
    assert verify_checksum(entry)
    return parse_entry(entry)


def test_batch_of_messages():
    parsed = built(messages(__key=["x", "y"]))
    assert (parsed.metadata.num_messages_in_batch, parsed.metadata.highest_sequence_id) == (2, 11)
    first, second = unpack_batch(parsed.payload, 2)
    assert (bytes(first.payload), first.metadata.partition_key, first.metadata.sequence_id) == (b"a", "x", 10)
    assert second.metadata.null_value


def test_single_message_with_a_binary_key():
    parsed = built(messages(__key=[b"\xff", b""])[:1], batched=False)
    assert not parsed.is_batch
    assert parsed.metadata.partition_key_b64_encoded
    assert parsed.metadata.partition_key == "/w=="


def test_compressed_batch_names_its_size():
    parsed = built(messages(), codec=pb.ZSTD)
    assert parsed.metadata.compression == pb.ZSTD
    assert parsed.metadata.uncompressed_size > 0


PROPERTIES = pa.map_(pa.string(), pa.string())


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (
            [("a", "x"), ("b", None)],
            r"column __messageProperties \(headers\): property b is null: leave it out.*map_filter",
        ),
        (
            [("a", "x"), ("b", "y"), ("a", "z")],
            "property a comes twice, and messages keep one of each name",
        ),
    ],
)
def test_properties_that_messages_cannot_have_are_named(pairs, said):
    with pytest.raises(InvalidRequest, match=said):
        outgoing_messages(pa.record_batch({"value": ["a"], "__messageProperties": pa.array([pairs], PROPERTIES)}), "t")


def test_event_times_before_1970_are_negative_as_in_java():
    times = pa.array([-1_500_001, -1], pa.timestamp("us", tz="UTC"))
    given = messages(__eventTime=times)
    assert [message.event_time_ms for message in given] == [-1501, -1]
    entry = built(given)
    single = next(iter(unpack_batch(entry.payload, 2))).metadata
    assert single.event_time == 2**64 - 1501
    assert [message.event_time_ms for message in stored_messages(StoredEntry(10, Position(1, 1), 11, entry))] == [
        -1501,
        -1,
    ]


HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
ARROW_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def test_columns_of_kafka_are_taken_also_those_of_a_read():
    check_write_schema(
        options(columnStyle="kafka"),
        schema(key=StringType(), value=BinaryType(), topic=StringType(), partition=IntegerType(), headers=HEADERS),
    )
    read_back = schema(key=BinaryType(), value=BinaryType(), offset=LongType(), timestampType=IntegerType())
    check_write_schema(options(columnStyle="kafka", topic="t"), read_back)
    assert record_columns(options(columnStyle="kafka"), read_back) is None


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
        check_write_schema(options(columnStyle="kafka"), schema(**columns))


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
