"""Rows that are only a value are written at once, with the bytes that they have one by one."""

import asyncio
import subprocess
import sys

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from interpulse.model.errors import IncompatibleSchema, InvalidRequest
from interpulse.model.schemas import SchemaInfo, SchemaType, definition_from_text
from interpulse.spark.schemas.payload_columns import schema_of_columns
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
        self.sender = self
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

    def __init__(self, schema=None, count=2):
        self.schema = schema
        self.count = count
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
        return self.count

    async def encoder(self, topic):
        return RowEncoder(topic, schema_of_columns(COLUMNS, SchemaType.AVRO), COLUMNS)


def first_alone(batch, *given, **options):
    """No row becomes a message of its own, but the first one, with which a publisher is opened."""
    return [None] if len(batch) == 1 else 1 / 0


def sent(batches, *, at_once, encodes=False, schema=None, count=2, **options):
    publishers = Publishers(schema, count)
    given = parse_write_options({"service.url": "pulsar://x:1", **options})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_writer, "now_ms", lambda: 99)
        if at_once:
            patch.setattr(message_writer, "outgoing_messages", first_alone)
        else:
            patch.setattr(message_writer, "ROWS_MIN", 1 << 30)
        writer = MessageWriter(given, publishers, publishers, publishers if encodes else None)  # type: ignore[arg-type]
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


def rows_of(**columns):
    return pa.record_batch(
        {"value": [b"x"], **{name: pa.array([value], kind) for name, (value, kind) in columns.items()}}
    )


@pytest.mark.parametrize(
    ("topic", "index", "options", "said"),
    [
        (TOPIC, 3, {"count": 0}, "column __partition: .*/t has no partitions, a row asks for 3: leave the column null"),
        (TOPIC, 0, {"count": 0}, "has no partitions, a row asks for 0"),
        (f"{TOPIC}-partition-1", 2, {"count": 0}, "t-partition-1 has no partitions, a row asks for 2"),
        (TOPIC, 2, {}, "column __partition: .*/t has 2 partitions, a row asks for 2"),
        (TOPIC, -1, {}, "has 2 partitions, a row asks for -1"),
    ],
)
def test_partition_that_a_topic_does_not_have_is_refused(topic, index, options, said):
    with pytest.raises(InvalidRequest, match=said):
        sent([rows_of(__partition=(index, pa.int32()))], at_once=False, topic=topic, **options)


@pytest.mark.parametrize(
    ("topic", "index", "options", "place"),
    [
        (TOPIC, None, {"count": 0}, TOPIC),
        (f"{TOPIC}-partition-1", 1, {"count": 0}, f"{TOPIC}-partition-1"),
        (TOPIC, 1, {}, f"{TOPIC}-partition-1"),
    ],
)
def test_partition_that_a_topic_has_is_taken(topic, index, options, place):
    assert [*sent([rows_of(__partition=(index, pa.int32()))], at_once=False, topic=topic, **options)] == [place]


def test_rows_read_in_the_style_of_kafka_are_written_back_to_a_topic_without_partitions():
    options = {"at_once": False, "topic": TOPIC, "count": 0, "columnStyle": "kafka"}
    assert [*sent([rows_of(partition=(0, pa.int32()))], **options)] == [TOPIC]
    with pytest.raises(InvalidRequest, match=r"column partition: .* a row asks for 1"):
        sent([rows_of(partition=(1, pa.int32()))], **options)


def test_key_beside_a_schema_that_keeps_its_own_there_is_refused():
    properties = {"key.schema.type": "STRING", "value.schema.type": "INT32", "kv.encoding.type": "SEPARATED"}
    schema = SchemaInfo(
        SchemaType.KEY_VALUE, definition_from_text(SchemaType.KEY_VALUE, '{"key": "", "value": ""}'), properties
    )
    columns = StructType([StructField("key", StringType()), StructField("value", IntegerType())])
    publishers = Publishers(schema)
    publishers.columns = columns

    async def encoder(topic):
        return RowEncoder(topic, schema, columns)

    publishers.encoder = encoder  # type: ignore[method-assign]
    options = parse_write_options({"service.url": "pulsar://x:1", "topic": TOPIC})
    writer = MessageWriter(options, publishers, publishers, publishers)  # type: ignore[arg-type]
    batch = pa.record_batch({"key": ["k"], "value": pa.array([1], pa.int32()), "__key": ["other"]})
    with pytest.raises(InvalidRequest, match=r"column __key: the schema of .*/t keeps its column key there"):
        asyncio.run(writer.write(batch))


def test_writer_when_it_is_imported_then_makes_no_arrow_values_which_would_import_pandas() -> None:
    """The import of pandas takes seconds, and only its own users need it."""
    program = (
        "import sys, interpulse.spark.writing.message_writer;"
        "print(sorted({'pandas', 'interpulse.spark.schemas.varints'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
