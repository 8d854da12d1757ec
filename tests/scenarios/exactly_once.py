"""Streams that write exactly once with ``deliveryGuarantee`` and a checkpoint alone: on ours and on a real Pulsar.

Without a JVM: the driver for tests kills the query at a step, and another run goes on from its checkpoint.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.model.errors import NotAllowed
from interpulse.model.names import NamespaceName, TopicName
from interpulse.spark.rows.columns import ENTRY_WRITE_COLUMNS
from tests.scenarios.client import Cluster
from tests.spark.stream_driver import CheckpointLog, Killed, StreamDriver, StreamSink

KILLED_AT = ("planned", "read", "midst", "uncommitted", "written")
_PARTITIONS = 3
_KEYS = 5
_VALUES = range(300)


@dataclass
class Query:
    """One query, over all its runs."""

    read: dict[str, str]
    write: dict[str, str]
    schema: StructType
    change: Callable[[pa.RecordBatch], pa.RecordBatch]
    log: CheckpointLog = field(default_factory=CheckpointLog)
    query_id: str = field(default_factory=lambda: str(uuid4()))

    def run(self, kill_at: str = "") -> None:
        """Until there is nothing to do."""
        sink = StreamSink(self.write, self.schema, query_id=self.query_id, change=self.change, kill_at=kill_at)
        driver = StreamDriver(self.read, self.log, sink, kill_at=kill_at)
        idle = 0
        while idle < 2:
            idle = 0 if driver.run_batch() else idle + 1
            time.sleep(0.002)  # positions are cached for a millisecond


@asynccontextmanager
async def topics(cluster: Cluster, *, deduplicating: bool = True) -> AsyncIterator[tuple[str, str]]:
    """A source with messages, some in batches and some not, and a target."""
    namespace = NamespaceName.parse(f"public/once-{uuid4().hex[:8]}")
    source, target = f"persistent://{namespace}/source", f"persistent://{namespace}/target"
    async with AdminClient(cluster.web_url) as admin, Client(cluster.service_url) as client:
        await admin.namespaces.create(namespace)
        await admin.namespaces.set_deduplication(namespace, deduplicating)
        for topic in (source, target):
            await admin.topics.create_partitioned(TopicName.parse(topic), _PARTITIONS)
            await admin.topics.create_subscription(TopicName.parse(topic), "keep")
        for batched in (True, False):
            producer = await client.create_producer(source, batching_enabled=batched)
            values = _VALUES[:150] if batched else _VALUES[150:]
            await asyncio.gather(*(producer.send(b"%d" % value, key=f"k{value % _KEYS}") for value in values))
            await producer.close()
        yield source, target


async def assert_exactly_once(cluster: Cluster, topic: str) -> None:
    """Nothing lost, doubled, or reordered among messages of a key."""
    values: list[int] = []
    async with Client(cluster.service_url) as client:
        for name in await client.get_partitions_for_topic(topic, create=False):
            reader = await client.create_reader(name)
            while await reader.has_message_available():
                values.append(int((await reader.read_next()).content or b""))
    assert sorted(values) == list(_VALUES)
    for key in range(_KEYS):
        of_key = [value for value in values if value % _KEYS == key]
        assert of_key == sorted(of_key)


def _reading(cluster: Cluster, source: str) -> dict[str, str]:
    return {
        "service.url": cluster.service_url,
        "topic": source,
        "startingOffsets": "earliest",
        "maxEntriesPerTrigger": "60",
        "maxPartitions": "2",
        "offsetPollIntervalMs": "1",
    }


def _writing(cluster: Cluster, directory: Path, **more: str) -> dict[str, str]:
    directory.mkdir(exist_ok=True)
    return {
        "service.url": cluster.service_url,
        "deliveryGuarantee": "exactly-once",
        "checkpointLocation": str(directory),
        **more,
    }


def _fields(**types: BinaryType | LongType | StringType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


def _messages(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.select(["value", "__key"])


_PLAIN = _fields(value=BinaryType(), __key=BinaryType())


async def copy_messages_exactly_once(cluster: Cluster, directory: Path, kill_at: str) -> None:
    async with topics(cluster) as (source, target):
        query = Query(_reading(cluster, source), _writing(cluster, directory, topic=target), _PLAIN, _messages)
        with pytest.raises(Killed):
            query.run(kill_at)
        query.run()
        await assert_exactly_once(cluster, target)


async def copy_entries_exactly_once(cluster: Cluster, directory: Path, kill_at: str) -> None:
    async with topics(cluster) as (source, target):

        def renamed(rows: pa.RecordBatch) -> pa.RecordBatch:
            names = [name.replace(source, target) for name in rows.column("__topic").to_pylist()]
            return rows.set_column(0, "__topic", pa.array(names, pa.string()))

        columns = ",".join(ENTRY_WRITE_COLUMNS)
        text, number, raw = StringType(), LongType(), BinaryType()
        query = Query(
            {**_reading(cluster, source), "mode": "entry", "includeColumns": columns},
            _writing(cluster, directory, mode="entry"),
            _fields(__topic=text, __ledgerId=number, __entryId=number, __metadata=raw, __payload=raw),
            renamed,
        )
        with pytest.raises(Killed):
            query.run(kill_at)
        query.run()
        await assert_exactly_once(cluster, target)


async def write_ids_of_the_user_exactly_once(cluster: Cluster, directory: Path) -> None:
    async with topics(cluster) as (source, target):

        def numbered(rows: pa.RecordBatch) -> pa.RecordBatch:
            """Sorted, and doubled across batches: everything comes again with another query."""
            values = sorted((int(value), value) for value in rows.column("value").to_pylist())
            return pa.record_batch(
                {
                    "value": pa.array([raw for _, raw in values], pa.binary()),
                    "__key": pa.array([b"k%d" % (value % _KEYS) for value, _ in values], pa.binary()),
                    "__producerName": pa.array([f"app-{value % _KEYS}" for value, _ in values], pa.string()),
                    "__sequenceId": pa.array([value for value, _ in values], pa.int64()),
                }
            )

        schema = _fields(value=BinaryType(), __key=BinaryType(), __producerName=StringType(), __sequenceId=LongType())
        reading = {**_reading(cluster, source), "maxPartitions": "1", "rangeConcurrency": "1"}
        for run in range(2):
            writing = _writing(cluster, directory / str(run), topic=target, dedup="column")
            query = Query(reading, writing, schema, numbered)
            with pytest.raises(Killed):
                query.run("uncommitted")
            query.run()
            await assert_exactly_once(cluster, target)


async def copy_messages_with_a_killed_worker(spark: SparkSession, cluster: Cluster, directory: Path) -> None:
    """A real Spark: the Python worker of every first attempt is killed in the middle, its task tried again."""
    async with topics(cluster) as (source, target):
        messages = spark.readStream.format("pulsar").options(**_reading(cluster, source)).load()
        rows = messages.select("value", "__key").mapInArrow(_kill_first_attempts, "value BINARY, __key BINARY")
        writer = rows.writeStream.format("pulsar").options(**_writing(cluster, directory, topic=target))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        await assert_exactly_once(cluster, target)


def _kill_first_attempts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None
    for batch in batches:
        half = batch.num_rows // 2
        yield batch.slice(0, half)
        if context.attemptNumber() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch.slice(half)


async def refuse_a_topic_that_does_not_deduplicate(cluster: Cluster, directory: Path) -> None:
    """Without admin.url its first entry tells; when the operator has switched it on, nothing is there twice."""
    async with topics(cluster, deduplicating=False) as (source, target):
        query = Query(_reading(cluster, source), _writing(cluster, directory, topic=target), _PLAIN, _messages)
        namespace = TopicName.parse(target).namespace_name
        for _ in range(3):
            with pytest.raises(NotAllowed, match=f"does not de-duplicate.*set-deduplication {namespace} --enable"):
                query.run()
        async with AdminClient(cluster.web_url) as admin:
            await admin.namespaces.set_deduplication(namespace, True)
            await admin.topics.unload(TopicName.parse(target))
        query.run()
        await assert_exactly_once(cluster, target)
