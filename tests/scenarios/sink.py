"""What writing to topics with schemas does on a broker that wants them of producers: on ours and on a real Pulsar."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, IntegerType, LongType, MapType, StringType, TimestampType

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.model.errors import IncompatibleSchema, InvalidRequest, NotAllowed, TopicNotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_records import AutoTopicCreation
from interpulse.model.schemas import SchemaInfo, SchemaType, version_from_bytes, version_to_bytes
from interpulse.spark.lanes import LaneReport
from interpulse.spark.writing.sink import write_rows
from interpulse.spark.writing.write_options import parse_write_options
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import FRAME_OVERHEAD, MESSAGE_BYTES_MAX
from tests.scenarios.client import Cluster
from tests.support.spark_source import columns_of, read_batch, write_batch

RECORD = b"\x02\x02a"
"""The Avro record ``{"name": "a"}``."""


def avro(*fields: str) -> SchemaInfo:
    described = [{"name": name, "type": ["null", "string"], "default": None} for name in fields]
    return SchemaInfo(SchemaType.AVRO, json.dumps({"type": "record", "name": "r", "fields": described}).encode())


async def prepared(cluster: Cluster, schemas: Mapping[str, Sequence[SchemaInfo]]) -> NamespaceName:
    """A namespace that enforces schema validation, with a topic of one partition per name."""
    namespace = NamespaceName.parse(f"public/sink-{uuid4().hex[:8]}")
    async with AdminClient(cluster.web_url) as admin:
        await admin.namespaces.create(namespace)
        await admin.namespaces.set_schema_validation_enforced(namespace, True)
        for name, versions in schemas.items():
            topic = TopicName.parse(f"persistent://{namespace}/{name}")
            await admin.topics.create_partitioned(topic, 1)
            for schema in versions:
                await admin.schemas.upload(topic, schema)
    return namespace


def write(cluster: Cluster, columns: Mapping[str, Any], **options: str) -> list[LaneReport]:
    given = parse_write_options({"service.url": cluster.service_url, **options})
    return write_rows(given, iter([pa.record_batch(columns)]), {})


async def stored(cluster: Cluster, topic: str) -> list[tuple[bytes | None, int | None]]:
    """The messages of the only partition, with the versions of their schemas."""
    found = []
    async with Client(cluster.service_url) as client:
        reader = await client.create_reader(f"{topic}-partition-0")
        while await reader.has_message_available():
            message = await reader.read_next()
            version = message.schema_version
            found.append((message.content, version_from_bytes(version) if version else None))
    return found


async def write_messages_with_the_schema_of_their_topic(cluster: Cluster) -> None:
    schemas = {"records": [avro("name"), avro("name", "size")], "texts": [SchemaInfo(SchemaType.STRING)], "plain": []}
    namespace = await prepared(cluster, schemas)
    records, texts, plain = (f"persistent://{namespace}/{name}" for name in schemas)

    write(cluster, {"value": [RECORD]}, topic=records, batchingMaxMessages="1")
    write(cluster, {"value": [RECORD, None]}, topic=records)
    assert await stored(cluster, records) == [(RECORD, 1), (RECORD, 1), (None, 1)]
    write(cluster, {"value": ["a"]}, topic=texts)
    assert await stored(cluster, texts) == [(b"a", 0)]
    write(cluster, {"value": ["a"]}, topic=plain)
    assert await stored(cluster, plain) == [(b"a", None)]

    with pytest.raises(IncompatibleSchema, match="schema of type AVRO, column value holds text"):
        write(cluster, {"value": ["a"]}, topic=records)


async def write_rows_by_schemas(cluster: Cluster) -> None:
    """Columns are encoded by the topic's schema, and where it has none the one that they make is registered."""
    namespace = await prepared(cluster, {"avro": [avro("name", "size")], "fresh": [], "json": [], "number": []})
    topics = {name: f"persistent://{namespace}/{name}" for name in ("avro", "fresh", "json", "number")}
    text, number = StringType(), LongType()
    columns = columns_of(name=text, at=TimestampType(), tags=MapType(text, ArrayType(IntegerType())), __key=text)
    moment = datetime(2024, 1, 2, 3, 4, 5, 678_901, UTC)
    row = ("a", moment, {"x": [1, 2]}, "k")

    def options(name: str, **more: str) -> dict[str, str]:
        return {"service.url": cluster.service_url, "topic": topics[name], **more}

    write_batch(options("avro"), columns_of(name=text), ("a",), (None,))
    assert await stored(cluster, topics["avro"]) == [(RECORD + b"\0", 0), (b"\0\0", 0)]
    for name, kind in {"fresh": {}, "json": {"schemaType": "JSON"}}.items():
        write_batch(options(name, **kind), columns, row)
        write_batch(options(name), columns, row)
        back = read_batch(options(name, includeColumns="name,at,tags,__key"))
        assert back == [{"name": "a", "at": moment, "tags": {"x": [1, 2]}, "__key": b"k"}] * 2
    write_batch(options("number"), columns_of(value=number), (7,), (None,))
    assert await stored(cluster, topics["number"]) == [((7).to_bytes(8, "big"), 0), (None, 0)]

    async with AdminClient(cluster.web_url) as admin:
        types = {name: (await admin.schemas.get(TopicName.parse(topic))).schema.type for name, topic in topics.items()}
    assert types["json"] is SchemaType.JSON
    assert types["number"] is SchemaType.INT64
    with pytest.raises(IncompatibleSchema, match=rf"schema of {topics['avro']}: it has no field colour"):
        write_batch(options("avro"), columns_of(name=text, colour=text), ("a", "b"))
    with pytest.raises(IncompatibleSchema, match="column name is BIGINT, its field STRING: cast it"):
        write_batch(options("avro"), columns_of(name=number), (1,))


async def write_entries_with_schemas_of_their_source(cluster: Cluster, source: Cluster) -> None:
    namespace = await prepared(cluster, {"translated": [], "bare": []})
    translated, bare = (f"persistent://{namespace}/{name}" for name in ("translated", "bare"))
    async with AdminClient(source.web_url) as admin:
        await admin.namespaces.create(namespace)
        await admin.topics.create_partitioned(TopicName.parse(translated), 1)
        for schema in (avro("name"), avro("name", "size")):
            await admin.schemas.upload(TopicName.parse(translated), schema)

    second = {"schema_version": version_to_bytes(1), "txnid_least_bits": 1, "txnid_most_bits": 2}
    rows = entries(f"{translated}-partition-0", second, {"marker_type": 10}, {})
    written = write(cluster, rows, mode="entry", schemaSourceUrl=source.service_url)
    assert [(each.entries, each.skipped) for each in written] == [(2, {"marker": 1})]
    assert await stored(cluster, translated) == [(RECORD, 0), (RECORD, None)]

    write(cluster, entries(f"{bare}-partition-0", second), mode="entry")
    assert await stored(cluster, bare) == [(RECORD, None)]


async def write_entries_only_to_topics_that_are_there(cluster: Cluster) -> None:
    namespace = await prepared(cluster, {"there": []})
    for name, refusal in {
        "absent": TopicNotFound,
        "there": InvalidRequest,
        "there-partition-7": TopicNotFound,
        "absent-partition-0": NotAllowed,
    }.items():
        with pytest.raises(refusal, match=name):
            write(cluster, entries(f"persistent://{namespace}/{name}", {}), mode="entry")
    async with AdminClient(cluster.web_url) as admin:
        assert [str(name) for name in await admin.topics.list(namespace)] == [
            f"persistent://{namespace}/there-partition-0"
        ]


async def write_to_topics_that_are_not_there(cluster: Cluster) -> None:
    namespace = await prepared(cluster, {})
    plain, split, asked = (f"persistent://{namespace}/{name}" for name in ("plain", "split", "asked"))
    rows = {"value": [b"0", b"1", b"2", b"3"], "__partition": pa.array([0, 1, 0, 1], pa.int32())}
    async with AdminClient(cluster.web_url) as admin:
        write(cluster, {"value": [b"a", b"b"]}, topic=plain)
        assert await shape_and_contents(cluster, plain) == (0, [[b"a", b"b"]])
        with pytest.raises(TopicNotFound, match="split does not exist"):
            write(cluster, rows, topic=split, createTopics="false")
        two = AutoTopicCreation(allowed=True, topic_type="partitioned", default_partitions=2)
        await admin.namespaces.set_auto_topic_creation(namespace, two)
        write(cluster, rows, topic=split)
        assert await shape_and_contents(cluster, split) == (2, [[b"0", b"2"], [b"1", b"3"]])
        await admin.namespaces.set_auto_topic_creation(namespace, AutoTopicCreation(allowed=False))
        with pytest.raises(TopicNotFound, match=r"asked does not exist.*createTopics"):
            write(cluster, rows, topic=asked)
        for _ in range(2):
            write(cluster, rows, topic=asked, createTopics="3", **{"admin.url": cluster.web_url})
        assert await shape_and_contents(cluster, asked) == (3, [[b"0", b"2"] * 2, [b"1", b"3"] * 2, []])
        alone = asked + "-alone"
        write(cluster, {"value": [b"a"]}, topic=alone, createTopics="0", **{"admin.url": cluster.web_url})
        assert await shape_and_contents(cluster, alone) == (0, [[b"a"]])


async def shape_and_contents(cluster: Cluster, topic: str) -> tuple[int, list[list[bytes | None]]]:
    """The partition count, and what each partition holds."""
    found: list[list[bytes | None]] = []
    async with Client(cluster.service_url) as client:
        names = await client.get_partitions_for_topic(topic, create=False)
        for name in names:
            reader = await client.create_reader(name)
            found.append([])
            while await reader.has_message_available():
                found[-1].append((await reader.read_next()).content)
    return (0 if names == [topic] else len(names)), found


def entries(topic: str, *described: Mapping[str, Any]) -> dict[str, list[Any]]:
    metadata = [pb.MessageMetadata(producer_name="app", sequence_id=7, publish_time=1, **more) for more in described]
    return {
        "__topic": [topic] * len(metadata),
        "__ledgerId": [1] * len(metadata),
        "__entryId": list(range(len(metadata))),
        "__metadata": [each.SerializeToString() for each in metadata],
        "__payload": [RECORD] * len(metadata),
    }


async def refuse_what_is_too_large_for_the_broker(cluster: Cluster) -> None:
    """The largest message of another cluster has grown by its marks, and is still taken; all else goes on."""
    namespace = await prepared(cluster, {"sizes": []})
    topic = f"persistent://{namespace}/sizes"
    for value, options in (
        (bytes(MESSAGE_BYTES_MAX + 5000), {}),
        (bytes(MESSAGE_BYTES_MAX + FRAME_OVERHEAD - 200), {"batchingMaxMessages": "1"}),
    ):
        write(cluster, {"value": [value]}, topic=topic, **options)
    with pytest.raises(InvalidRequest, match=r"above the limit of .*maxMessageSize"):
        write(cluster, {"value": [bytes(MESSAGE_BYTES_MAX + FRAME_OVERHEAD)]}, topic=topic)
    write(cluster, {"value": [b"after"]}, topic=topic)
    sizes = [len(value or b"") for value, _ in await stored(cluster, topic)]
    assert sizes == [MESSAGE_BYTES_MAX + 5000, MESSAGE_BYTES_MAX + FRAME_OVERHEAD - 200, 5]


async def refuse_exactly_once_without_deduplication(cluster: Cluster) -> None:
    namespace = await prepared(cluster, {"there": []})
    topic = f"persistent://{namespace}/there-partition-0"
    lane = {"mode": "entry", "deliveryGuarantee": "exactly-once", "producerName": "lane", "replicatedFrom": "east"}
    lane |= {"targetCluster": "west", "admin.url": cluster.web_url}
    async with AdminClient(cluster.web_url) as admin:
        await admin.namespaces.set_deduplication(namespace, False)
        with pytest.raises(NotAllowed, match=f"{topic} does not de-duplicate.*set-deduplication {namespace} --enable"):
            write(cluster, entries(topic, {}), **lane)
        await admin.namespaces.set_deduplication(namespace, True)
        await admin.topics.unload(TopicName.parse(topic))
    with pytest.raises(TopicNotFound, match="absent"):
        write(cluster, entries(f"persistent://{namespace}/absent", {}), **lane)
    write(cluster, entries(topic, {}), **lane)
    assert await stored(cluster, topic.removesuffix("-partition-0")) == [(RECORD, None)]
