"""Turns of the replication job's control side, and of its tasks, from a broker of ours to a target, without Spark."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from interpulse.client.client import Client
from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.clock import now_ms
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import AutoTopicCreation
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.spark.job.pipeline import Pipeline
from interpulse.spark.job.pipeline_config import PipelineConfig, ProvisionRules, Selection, SubscriptionSettings
from interpulse.spark.job.source_backlog import cursor_position, entries_after
from interpulse.spark.job.start import parse_start
from interpulse.spark.topic_map import TopicMap, parse_topic_map
from interpulse.spark.writing.broker_target import BrokerTarget, last_position
from interpulse.spark.writing.lane_writer import LaneWriter
from interpulse.spark.writing.write_options import WriteOptions
from tests.support.waiting import SECONDS_MAX, eventually

TOPIC = TopicName.parse("persistent://public/default/flights")
FIRST = TOPIC.partition(0)
OTHER, PLAIN = (TopicName.parse(f"public/default/{name}") for name in ("other", "plain"))
BY_POLICIES, BY_HAND = Selection(from_policies=True), Selection(topics=(str(TOPIC),))


class Broker(Protocol):
    """What is needed to reach a cluster."""

    @property
    def service_url(self) -> str: ...

    @property
    def web_url(self) -> str: ...


class Job:
    """Turns of one pipeline from east to west."""

    def __init__(self, directory: Path, east: Broker, west: Broker, **west_address: Any) -> None:
        """``west_address``: fields of its `ClusterAddress`, where these are not those of any broker."""
        self.directory = directory
        self.events: list[dict[str, Any]] = []
        self.clusters = {
            name: ClusterAddress(cluster=name, service_url=broker.service_url, admin_url=broker.web_url)
            for name, broker in (("east", east), ("west", west))
        }
        self.clusters["west"] = replace(self.clusters["west"], **west_address)
        self.east, self.west = self.clusters["east"].admin(), self.clusters["west"].admin()
        self.pipeline = self.selecting(BY_POLICIES)

    def selecting(
        self,
        select: Selection,
        cursor: str = "pulsar.repl.west",
        *,
        topic_map: TopicMap | None = None,
        **settings: Any,
    ) -> Pipeline:
        """A pipeline; as in an earlier run what it wrote down is still there. ``settings``: tables of its file."""
        config = PipelineConfig(
            name="t",
            state=self.directory,
            source=self.clusters["east"],
            target=None,
            select=select,
            map=topic_map or TopicMap(),
            as_replicator=topic_map is None,
            **settings,
        )
        return Pipeline(config, self.east, self.clusters["west"], None, self.events.append, cursor)

    async def turn(self, partitions: int) -> dict[str, Any]:
        """One look at everything; the record of the first partition."""
        await self.pipeline.update({TOPIC: partitions})
        ((first, *_),) = self.pipeline.records().values()
        return first

    async def until(self, partitions: int, state: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async with asyncio.timeout(SECONDS_MAX):
            while True:
                record = await self.turn(partitions)
                if state(record):
                    return record
                await asyncio.sleep(0.05)

    async def connected(self) -> int:
        """How many partitions of the target say that a replicator of the source is connected."""
        names = [str(TOPIC.partition(index)) for index in range(2)]
        shown = [(await self.west.topics.stats(name))["replication"].get("east", {}) for name in names]
        return sum(each.get("inboundConnection") is not None for each in shown)

    async def until_connected(self) -> None:
        """Until it is connected to both."""
        async with asyncio.timeout(SECONDS_MAX):
            while True:
                if await self.connected() == 2:
                    return
                await asyncio.sleep(0.05)

    async def publish(
        self, value: str, schema: SchemaInfo | None, topic: TopicName = FIRST, *, cluster: str = "east"
    ) -> None:
        async with self.client(cluster) as client:
            producer = await client.create_producer(str(topic), schema=schema)
            await producer.send(value.encode())
            await producer.close()

    async def copy(self, topic: TopicName = FIRST) -> None:
        """What a task of Spark does with a topic-partition."""
        async with self.client("east") as east, self.client("west") as west:
            await copy_log(east, west, topic, self.pipeline)

    async def arrived(self, topic: TopicName = FIRST) -> list[tuple[str, int | None]]:
        """The messages of a topic-partition of the target, with the versions of their schemas there."""
        found: list[tuple[str, int | None]] = []
        async with self.client("west") as client:
            reader = await client.create_reader(str(topic))
            while await reader.has_message_available():
                message = await reader.read_next()
                version = message.schema_version
                found.append(((message.content or b"").decode(), int.from_bytes(version) if version else None))
        return found

    def client(self, cluster: str) -> Client:
        return self.clusters[cluster].client()


async def copy_log(source: Client, target: Client, topic: TopicName, pipeline: Pipeline) -> None:
    """What a task of Spark does with a log: all of it is written, and what was written before is settled."""
    topic_map = pipeline.route.config.map
    options = WriteOptions(
        service_url=target.session.config.service_url,
        mode="entry",
        producer_name=pipeline.route.lane_name,
        source_cluster=pipeline.route.config.source.cluster,
        target_cluster=pipeline.route.remote,
        topic_map=topic_map,
        takeover_timeout_ms=1000,
    )
    writer = LaneWriter(BrokerTarget(target.session, options, source=source.session), options, {}, "query")
    writer.collect_runs()
    end = await last_position(source.session, topic)
    async with EntryReader(source.session, topic, after=EARLIEST, upto=end) as reader:
        await reader.open()
        while runs := await reader.read_runs():
            await writer.copy(str(topic), runs)
    reports = await writer.finish()
    await writer.close()
    copies = {report.topic: report.runs for report in reports if report.runs}
    pipeline.route.files.positions.write(copies, writer="test")


def avro(*fields: str) -> SchemaInfo:
    """A record of optional texts: any two of them can read each other's data."""
    described = [{"name": name, "type": ["null", "string"], "default": None} for name in fields]
    definition = json.dumps({"type": "record", "name": "flight", "fields": described})
    return SchemaInfo(SchemaType.AVRO, definition.encode())


def is_ready(record: dict[str, Any]) -> bool:
    return bool(record["reason"] == "Spark is starting")


async def schemas_come_while_they_are_wanted(job: Job) -> None:
    """As Pulsar's replicators do, the job opens its producers with the schema that the topic has there at the time."""
    await job.west.namespaces.set_schema_validation_enforced(TOPIC.namespace_name, True)
    await job.publish("none", None)
    await job.until(2, is_ready)
    await job.copy()
    await job.publish("first", avro("carrier"))
    await job.copy()  # the schema arrives with its message
    await job.publish("evolved", avro("carrier", "tail"))
    await job.until(2, is_ready)
    await job.copy()
    assert await job.arrived() == [("none", None), ("first", 0), ("evolved", 1)]
    await job.until_connected()
    await job.west.topics.unload(TOPIC)
    await job.until_connected()


async def subscriptions_go_along(job: Job, cursor: str, *, into_use: bool) -> None:
    """What is acknowledged on either cluster is on both.

    ``into_use``: also while an exclusive consumer is connected on the target.
    """
    job.pipeline = job.selecting(BY_HAND, cursor, subscriptions=SubscriptionSettings(sync="all", interval_ms=20))
    for name in ("billing", "idle"):
        await job.east.topics.create_subscription(FIRST, name, MessageId(*EARLIEST))
    for number in range(10):
        await job.publish(str(number), None)
    assert await take(job, "east", "billing", 4) == ["0", "1", "2", "3"]
    await job.until(2, is_ready)
    await job.copy()
    await backlogs_become(job, billing=6, idle=10)
    async with job.client("west") as west:
        consumer = await west.subscribe(str(FIRST), "billing")
        assert (await consumer.receive()).content == b"4"
        await take(job, "east", "billing", 3)
        for _ in range(3):
            await job.turn(2)
        await backlogs_become(job, billing=3 if into_use else 6, idle=10)
    await backlogs_become(job, billing=3, idle=10)
    assert await take(job, "west", "billing", 3) == ["7", "8", "9"]
    await backlogs_become(job, cluster="east", billing=0, idle=10)
    await take(job, "east", "idle", 9)
    await job.publish("own", None, cluster="west")
    await backlogs_become(job, billing=1, idle=2)

    def done() -> Counter[str]:
        """Count the carried acknowledgements of each subscription. An event comes after its acknowledgements."""
        carried = [event for event in job.events if event["event"] == "subscription"]
        return Counter(name for event in carried for name in [event["subscription"]] * event["acknowledged"])

    await eventually(lambda: done() >= Counter(billing=10, idle=9))
    assert {event["on"] for event in job.events if event["event"] == "subscription"} == {"east", "west"}
    if into_use:  # Apache Pulsar may be sent the same again before it shows it
        assert done() == Counter(billing=10, idle=9)


NAMES = ("billing", "idle")


async def cursors_are_put_where_the_pipeline_begins(job: Job, cursor: str) -> None:
    """Once, at a time or a position; what is published from there on is in front of them."""
    begins: dict[Any, Any] = {}
    for name, value in (("before", "0"), ("at", "1"), ("at", "2")):
        await asyncio.sleep(0.01)
        begins.setdefault(name, now_ms())
        await job.publish(value, None)
    second = (await job.east.topics.last_message_id(FIRST)).position
    job.pipeline = job.selecting(BY_HAND, cursor, start=parse_start(begins["at"]))
    await job.until(2, is_ready)
    assert await backlog_at_source(job, cursor) == [2, 0]
    told = [event for event in job.events if event["event"] == "begins"]
    assert told[0] == {
        "event": "begins",
        "cluster": "west",
        "topic": str(FIRST),
        "at": f"{second.ledger}:{second.entry - 1}",
    }
    job.pipeline.route.checkpoint.mkdir()
    for expected in ([2, 0], [1, 0]):
        await job.pipeline.stop()
        job.pipeline = job.selecting(BY_HAND, cursor, start=parse_start({str(FIRST): str(second)}))
        await job.until(2, is_ready)
        assert await backlog_at_source(job, cursor) == expected
        shutil.rmtree(job.pipeline.route.checkpoint, ignore_errors=True)  # without it the pipeline begins anew


async def backlog_at_source(job: Job, cursor: str) -> list[int]:
    """The entries behind the cursor of each partition."""
    found = []
    for index in range(2):
        stats = await job.east.topics.internal_stats(TOPIC.partition(index))
        position = cursor_position(stats, cursor)
        assert position is not None, stats
        found.append(entries_after(stats, position))
    return found


async def namespaces_are_created(job: Job, cursor: str) -> None:
    """With what counts for the topics and schemas that come; a tenant is none of the job's."""
    namespace = f"public/created{secrets.token_hex(3)}"
    here = TOPIC.namespace_name
    await job.east.namespaces.set_schema_compatibility_strategy(here, "BACKWARD")
    await job.east.namespaces.set_auto_topic_creation(here, AutoTopicCreation(True, "partitioned", 3))
    rules = {"rules": [{"from": "public/default/(.*)", "to": f"{namespace}/$1"}]}
    job.pipeline = job.selecting(BY_HAND, cursor, topic_map=parse_topic_map(rules))
    held = await job.turn(2)
    assert (held["state"], held["reason"]) == ("HELD", f"namespace {namespace} does not exist on the target cluster")
    await job.pipeline.stop()
    creating = ProvisionRules(namespaces=True)
    job.pipeline = job.selecting(BY_HAND, cursor, topic_map=parse_topic_map(rules), provision=creating)
    ready = await job.until(2, is_ready)
    assert ready["provisioned"] == (
        f"namespace {namespace} created: it was absent there; flights created with 2 partitions: it was absent there"
    )
    there = await job.west.namespaces.policies(namespace)
    assert (there.schema_compatibility_strategy, there.deduplication_enabled) == ("BACKWARD", True)
    assert there.auto_topic_creation == AutoTopicCreation(True, "partitioned", 3)
    await job.pipeline.stop()
    rules = {"rules": [{"from": "public/default/(.*)", "to": "absent/ns/$1"}]}
    job.pipeline = job.selecting(BY_HAND, cursor, topic_map=parse_topic_map(rules), provision=creating)
    held = await job.turn(2)
    assert (held["state"], held["reason"]) == ("HELD", "tenant absent does not exist on the remote cluster")


async def take(job: Job, cluster: str, subscription: str, count: int) -> list[str]:
    """Receive and acknowledge so many of the first topic-partition."""
    async with job.client(cluster) as client:
        consumer = await client.subscribe(str(FIRST), subscription)
        messages = [await consumer.receive() for _ in range(count)]
        consumer.acknowledge_cumulative(messages[-1])
        await consumer.close()
    return [(message.content or b"").decode() for message in messages]


async def backlogs_become(job: Job, *, cluster: str = "west", **expected: int) -> None:
    """Turn until the subscriptions of users on a cluster have so many messages left."""
    admin = job.east if cluster == "east" else job.west
    async with asyncio.timeout(SECONDS_MAX):
        while True:
            await job.turn(2)
            shown = (await admin.topics.stats(FIRST))["subscriptions"]
            if {name: each["msgBacklog"] for name, each in shown.items() if name in NAMES} == expected:
                return
            await asyncio.sleep(0.05)


async def topics_are_written_under_other_names(job: Job, cursor: str) -> None:
    """Topic, schema and messages are there under the name that the rules give, once, and under no other."""
    name, taken = f"copies{secrets.token_hex(3)}", f"taken{secrets.token_hex(3)}"
    await job.west.namespaces.create(f"public/{name}")
    copies = [TopicName.parse(f"public/{name}/flights-partition-{index}") for index in range(2)]
    rules = [{"from": "public/default/(.*)", "to": f"public/{name}/$1"}]
    job.pipeline = job.selecting(BY_HAND, cursor, topic_map=parse_topic_map({"rules": rules}))
    await job.publish("first", avro("carrier"))
    await job.until(2, is_ready)
    assert await job.west.topics.list(f"public/{name}") == [str(copy) for copy in copies]
    assert (await job.west.topics.stats(copies[1]))["publishers"], "the job stays connected"
    await job.copy()
    await job.publish("second", avro("carrier", "tail"))
    for _ in range(2):  # a batch that is repeated
        await job.copy()
    assert await job.arrived(copies[0]) == [("first", 0), ("second", 1)]
    assert str(FIRST) not in await job.west.topics.list("public/default")

    rules = [{"from": "public/default/.*", "to": f"public/{name}/{taken}"}]
    for merge, states in ((False, ["HELD", "HELD"]), (True, ["PROVISIONING", "PROVISIONING"])):
        await job.pipeline.stop()
        job.pipeline = job.selecting(BY_HAND, cursor, topic_map=parse_topic_map({"rules": rules, "merge": merge}))
        for _ in range(2 if merge else 1):  # both may create it at once
            await job.pipeline.update({OTHER: 0, PLAIN: 0})
        assert [each["state"] for rows in job.pipeline.records().values() for each in rows] == states
    for topic in (OTHER, PLAIN, OTHER):
        await job.publish(f"to {topic.local_name}", None, topic)
        for each in (OTHER, PLAIN):
            await job.copy(each)
    merged = await job.arrived(TopicName.parse(f"public/{name}/{taken}"))
    assert [value for value, _ in merged] == ["to other", "to plain", "to other"]
