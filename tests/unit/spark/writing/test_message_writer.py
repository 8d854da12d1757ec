"""Rows that are only a value are written at once, with the bytes that they have one by one."""

import asyncio

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from interpulse.model.errors import IncompatibleSchema
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.spark.schemas.column_schemas import schema_of_columns
from interpulse.spark.schemas.payload_encoder import RowEncoder
from interpulse.spark.writing import message_writer
from interpulse.spark.writing.message_writer import MessageWriter
from interpulse.spark.writing.write_options import parse_write_options

TOPIC = "persistent://public/default/t"
COLUMNS = StructType([StructField("id", LongType()), StructField("name", StringType())])


class Publisher:
    """Keeps what it is given."""

    name, schema_version = "p", b"\x02"

    def __init__(self, schema):
        self.schema = schema
        self.next_id = 7
        self.sent = []

    def unsent(self, messages):
        return messages

    def ids(self, messages):
        return range(self.next_id, self.next_id + len(messages))

    async def send(self, entry, ids):
        self.next_id = ids[-1] + 1
        self.sent.append((entry, list(ids)))


class Publishers:
    """Opens them, and is what knows topics and schemas, too."""

    columns = COLUMNS

    def __init__(self, schema=None):
        self.schema = schema
        self.opened = {}
        self.turn = 0

    async def open(self, topic, first, schema):
        return self.opened.setdefault(topic, Publisher(schema or self.schema))

    def producer_of(self, message):
        return ""

    def keyless_partition(self, count):
        self.turn += 1
        return self.turn % count

    async def partitions(self, topic):
        return 2

    async def encoder(self, topic):
        return RowEncoder(topic, schema_of_columns(COLUMNS, SchemaType.AVRO), COLUMNS)


def first_alone(batch, *given, **options):
    """No row becomes a message of its own, but the first one, with which a publisher is opened."""
    return [None] if len(batch) == 1 else 1 / 0


def sent(batches, *, at_once, encodes=False, schema=None, **options):
    publishers = Publishers(schema)
    given = parse_write_options({"service.url": "pulsar://x:1", **options})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_writer, "now_ms", lambda: 99)
        if at_once:
            patch.setattr(message_writer, "outgoing_messages", first_alone)
        else:
            patch.setattr(message_writer, "ROWS_MIN", 1 << 30)
        writer = MessageWriter(given, publishers, publishers, publishers if encodes else None)
        for batch in batches:
            asyncio.run(writer.write(batch))
    return {topic: publisher.sent for topic, publisher in publishers.opened.items()}


def of_values(count, **more):
    return pa.record_batch({"value": [b"x" * (each % 7) for each in range(count)], **more})


def of_records(count):
    return pa.record_batch(
        {"id": list(range(count)), "name": [None if each % 3 else "ü" * each for each in range(count)]}
    )


@pytest.mark.parametrize(
    ("batches", "options"),
    [
        ([of_values(50), of_values(60), of_values(70)], {"topic": TOPIC}),
        ([of_values(50)], {"topic": TOPIC, "batchingMaxMessages": "7", "compressionType": "zstd"}),
        ([of_values(50)], {"topic": TOPIC, "batchingMaxBytes": "10"}),
        ([of_values(50, __topic=[TOPIC] * 50), of_values(50, __topic=[f"{TOPIC}2"] * 50)], {}),
        ([of_records(40)], {"topic": TOPIC, "encodes": True}),
    ],
)
def test_rows_that_are_only_a_value_are_written_at_once(batches, options):
    found = sent(batches, at_once=True, **options)
    assert found == sent(batches, at_once=False, **options)
    assert sum(len(ids) for entries in found.values() for _, ids in entries) == sum(map(len, batches))


def test_rows_of_several_topics_are_written_one_by_one():
    batch = of_values(50, __topic=[TOPIC, f"{TOPIC}2"] * 25)
    with pytest.raises(ZeroDivisionError):
        sent([batch], at_once=True)
    assert len(sent([batch], at_once=False)) == 2


def test_text_is_refused_at_once_by_a_topic_of_numbers():
    batch = pa.record_batch({"value": ["a"] * 50})
    with pytest.raises(IncompatibleSchema, match="column value holds text"):
        sent([batch], at_once=True, topic=TOPIC, schema=SchemaInfo(SchemaType.INT32))
