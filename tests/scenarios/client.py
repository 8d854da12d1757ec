"""What our client must be able to do with any broker: run against ours and against a real Pulsar.

Each scenario gets the two URLs of a cluster and makes topics of its own.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import takewhile
from typing import NamedTuple
from uuid import uuid4

import pytest

from interpulse.client import AdminClient, Client, Message
from interpulse.client.consuming.consumer import Consumer
from interpulse.client.producing.producer import Producer
from interpulse.model.errors import (
    AlreadyClosed,
    ConsumerBusy,
    IncompatibleSchema,
    InvalidRequest,
    NotAllowed,
    OperationTimeout,
    PersistenceError,
    ProducerBusy,
    ProducerFenced,
    TopicNotFound,
    TopicTerminated,
)
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.policies.policy_records import AutoTopicCreation
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.hashing import sticky_slot

WAIT_MS = 60_000


class Cluster(NamedTuple):
    """Where a broker is."""

    service_url: str
    web_url: str


Scenario = Callable[[Cluster], Awaitable[None]]


class Scenarios(list[Scenario]):
    """The scenarios of one module, in their order; called as a decorator it takes one more."""

    def __call__(self, function: Scenario) -> Scenario:
        self.append(function)
        return function


SCENARIOS = scenario = Scenarios()


def new_topic() -> str:
    return f"persistent://public/default/{uuid4().hex}"


@asynccontextmanager
async def connected(cluster: Cluster):
    async with Client(cluster.service_url, backoff_max_ms=500) as client:
        yield client


@asynccontextmanager
async def administered(cluster: Cluster):
    async with connected(cluster) as client, AdminClient(cluster.web_url) as admin:
        yield client, admin


async def take(consumer: Consumer, count: int) -> list[Message]:
    return [await consumer.receive(WAIT_MS) for _ in range(count)]


@scenario
async def every_way_of_packing_messages(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        consumer = await client.subscribe(topic, "s")
        for compression in ("none", "lz4", "zlib", "zstd", "snappy"):
            for batching in (True, False):
                async with await client.create_producer(
                    topic, compression=compression, batching_enabled=batching
                ) as producer:
                    futures = [
                        await producer.enqueue(b"hello %d" % number, key=f"k{number}", properties={"n": str(number)})
                        for number in range(5)
                    ]
                    await producer.flush()
                messages = await take(consumer, 5)
                assert [message.content for message in messages] == [b"hello %d" % number for number in range(5)]
                assert [message.key for message in messages] == [f"k{number}" for number in range(5)]
                assert [message.properties["n"] for message in messages] == [str(number) for number in range(5)]
                assert [future.result() for future in futures] == [message.id for message in messages]
                assert all((message.batch_size > 0) == batching for message in messages)


@scenario
async def every_field_of_a_message(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        consumer = await client.subscribe(topic, "s")
        producer = await client.create_producer(topic, name="me", initial_sequence_id=9)
        await producer.send(b"x", key=b"\x00\xff", event_time_ms=77, ordering_key=b"o")
        await producer.send(None, key="k")
        await producer.send(b"")
        first, tombstone, empty = await take(consumer, 3)
        assert (first.key_bytes, first.key_is_binary, first.ordering_key) == (b"\x00\xff", True, b"o")
        assert (first.event_time_ms, first.producer_name, first.sequence_id) == (77, "me", 10)
        assert abs(first.publish_time_ms - time.time() * 1000) < 60_000
        assert (tombstone.content, tombstone.key_bytes) == (None, b"k")
        assert (empty.content, empty.key) == (b"", None)
        assert first.topic == topic


@scenario
async def subscription_goes_on_where_it_was(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        consumer = await client.subscribe(topic, "s")
        async with await client.create_producer(topic, batch_messages_max=1) as producer:
            for number in range(10):
                await producer.enqueue(b"%d" % number)
        messages = await take(consumer, 10)
        consumer.acknowledge_cumulative(messages[6])
        await consumer.close()
        again = await client.subscribe(topic, "s")
        assert [message.content for message in await take(again, 3)] == [b"7", b"8", b"9"]


@scenario
async def single_entries_are_acknowledged_one_by_one(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        consumer = await client.subscribe(topic, "s", subscription_type="shared")
        async with await client.create_producer(topic, batching_enabled=False) as producer:
            for number in range(6):
                await producer.enqueue(b"%d" % number)
        for message in await take(consumer, 6):
            if message.content not in (b"1", b"4"):
                consumer.acknowledge(message)
        await consumer.close()
        again = await client.subscribe(topic, "s", subscription_type="shared")
        assert sorted([message.content or b"" for message in await take(again, 2)]) == [b"1", b"4"]
        with pytest.raises(OperationTimeout):
            await again.receive(300)


@scenario
async def messages_given_back_come_again(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        for kind in ("shared", "exclusive", "failover", "key-shared"):
            consumer = await client.subscribe(topic, kind, subscription_type=kind, nack_delay_ms=50)
            async with await client.create_producer(topic, batching_enabled=False) as producer:
                await producer.send(b"again", key="k")
            first = await consumer.receive(WAIT_MS)
            assert first.redelivery_count == 0
            consumer.negative_acknowledge(first)
            second = await consumer.receive(WAIT_MS)
            assert second.id == first.id
            consumer.acknowledge(second)
            await consumer.unsubscribe()


@scenario
async def seeking_to_a_message_and_to_a_time(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        consumer = await client.subscribe(topic, "s")
        producer = await client.create_producer(topic, batching_enabled=False)
        for number in range(5):
            await producer.send(b"%d" % number)
        messages = await take(consumer, 5)
        await consumer.seek(messages[2].id)
        assert [message.content for message in await take(consumer, 3)] == [b"2", b"3", b"4"]
        await consumer.seek(messages[0].publish_time_ms)
        assert (await consumer.receive(WAIT_MS)).content == b"0"
        await consumer.seek(MessageId(*LATEST))
        await producer.send(b"new")
        assert (await consumer.receive(WAIT_MS)).content == b"new"
        await consumer.seek(MessageId(*EARLIEST))
        assert (await consumer.receive(WAIT_MS)).content == b"0"


@scenario
async def reading_from_anywhere(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        producer = await client.create_producer(topic)
        futures = [await producer.enqueue(b"%d" % number) for number in range(10)]
        await producer.flush()
        ids = [future.result() for future in futures]

        async def read_all(start: MessageId | Position, **options: bool) -> list[bytes | None]:
            contents = []
            async with await client.create_reader(topic, start, **options) as reader:
                while await reader.has_message_available():
                    contents.append((await reader.read_next(WAIT_MS)).content)
            return contents

        everything = [b"%d" % number for number in range(10)]
        assert await read_all(EARLIEST) == everything
        assert await read_all(ids[6]) == everything[7:]
        assert await read_all(ids[6], start_included=True) == everything[6:]
        assert await read_all(ids[9]) == []
        assert await read_all(LATEST) == []
        async with await client.create_reader(topic, LATEST) as reader:
            await producer.send(b"late")
            assert await reader.has_message_available()
            assert (await reader.read_next(WAIT_MS)).content == b"late"
            assert not await reader.has_message_available()
            await reader.seek(ids[8])
            assert (await reader.read_next(WAIT_MS)).content == b"8"


@scenario
async def reading_ranges_of_keys(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        keys = [f"k{number}" for number in range(30)]
        async with await client.create_producer(topic, batching_enabled=False) as producer:
            for key in keys:
                await producer.send(b"x", key=key)
        for low, high in ((0, 32_767), (32_768, 65_535)):
            async with await client.create_reader(topic, key_hash_ranges=((low, high),)) as reader:
                wanted = [key for key in keys if low <= sticky_slot(key.encode()) <= high]
                assert [(await reader.read_next(WAIT_MS)).key for _ in wanted] == wanted


@scenario
async def partitions_are_one_topic(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await admin.topics.create_partitioned(topic, 3)
        names = [f"{topic}-partition-{index}" for index in range(3)]
        assert await client.get_partitions_for_topic(topic, create=False) == names
        consumer = await client.subscribe(topic, "s")
        producer = await client.create_producer(topic, batching_enabled=False)
        for number in range(30):
            await producer.send(b"%d" % number, key=f"k{number % 10}")
        messages = await take(consumer, 30)
        homes = {(message.key, message.topic) for message in messages}
        assert len(homes) == 10, "one key lives in one partition"
        assert {message.topic for message in messages} == set(names)
        assert {message.id.partition for message in messages} == {0, 1, 2}
        for message in messages:
            consumer.acknowledge(message)
        async with await client.create_reader(topic) as reader:
            assert len([await reader.read_next(WAIT_MS) for _ in range(30)]) == 30
            assert not await reader.has_message_available()


@scenario
async def topics_that_grow_are_noticed(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await admin.topics.create_partitioned(topic, 1)
        consumer = await client.subscribe(topic, "s")
        producer = await client.create_producer(topic, batching_enabled=False)
        await admin.topics.expand(topic, 4)
        await consumer.update_partitions()
        await producer.update_partitions()
        assert (len(consumer.parts), len(producer.partitions)) == (4, 4)
        for number in range(8):
            await producer.send(b"%d" % number)
        assert len({message.topic for message in await take(consumer, 8)}) == 4


@scenario
async def topics_that_grow_are_noticed_within_the_interval(cluster: Cluster) -> None:
    """What was sent to a new partition before a consumer knew of it is received like everything else."""
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await admin.topics.create_partitioned(topic, 1)
        look = {"auto_update_partitions_interval_ms": 200}
        consumer = await client.subscribe(topic, "s", **look)
        reader = await client.create_reader(topic, LATEST, **look)
        producer = await client.create_producer(topic, batching_enabled=False, **look)
        await admin.topics.expand(topic, 3)
        async with await client.create_producer(topic, batching_enabled=False) as early:
            for number in range(3):
                await early.send(b"%d" % number)
        assert len({message.topic for message in await take(consumer, 3)}) == 3
        assert len({(await reader.read_next(WAIT_MS)).topic for _ in range(3)}) == 3
        async with asyncio.timeout(WAIT_MS / 1000):
            while len(producer.partitions) < 3:
                await producer.send(b"until it knows them all")
        await producer.send(b"a")
        await producer.close()
        await consumer.close()
        with pytest.raises(AlreadyClosed):
            await producer.update_partitions()


@scenario
async def topics_that_are_gone_do_not_come_back_by_looking_for_partitions(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin), Client(cluster.web_url) as http:
        topic = new_topic()
        await admin.topics.create_partitioned(topic, 2)
        look = {"auto_update_partitions_interval_ms": 20}
        consumer = await client.subscribe(topic, "s", **look)
        producer = await client.create_producer(topic, **look)
        over_http = await http.create_producer(topic, **look)
        await admin.topics.delete_partitioned(topic, force=True)
        for looking in (consumer, producer, over_http):
            for _ in range(3):
                with pytest.raises(TopicNotFound):
                    await looking.update_partitions()
        assert topic not in await admin.topics.list_partitioned("public/default")
        for partition in (topic, f"{topic}-partition-0", f"{topic}-partition-1"):
            with pytest.raises(TopicNotFound):
                await client.get_partitions_for_topic(partition, create=False)


@scenario
async def several_topics_in_one_consumer(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topics = [new_topic() for _ in range(3)]
        consumer = await client.subscribe(topics, "s")
        for topic in topics:
            async with await client.create_producer(topic) as producer:
                await producer.send(topic)
        messages = await take(consumer, 3)
        assert {message.content for message in messages} == {topic.encode() for topic in topics}
        assert all(message.content == message.topic.encode() for message in messages)


@scenario
async def partitions_asked_without_creating(cluster: Cluster) -> None:
    """PIP-344, the cases of ``get_partitions_for_topic(topic, create)`` that need no policy, over both transports."""
    async with administered(cluster) as (client, admin), Client(cluster.web_url) as http:
        for asking in (client, http):
            plain, partitioned, absent = new_topic(), new_topic(), new_topic()
            await admin.topics.create(plain)
            await admin.topics.create_partitioned(partitioned, 2)
            for create in (True, False):
                assert await asking.get_partitions_for_topic(plain, create) == [plain]
                names = [f"{partitioned}-partition-0", f"{partitioned}-partition-1"]
                assert await asking.get_partitions_for_topic(partitioned, create) == names
            with pytest.raises(TopicNotFound):
                await asking.get_partitions_for_topic(absent, create=False)
            assert await asking.get_partitions_for_topic(absent, create=True) == [absent]
            with pytest.raises(TopicNotFound):
                await asking.get_partitions_for_topic(absent, create=False)


@scenario
async def partitions_asked_under_every_policy(cluster: Cluster) -> None:
    """PIP-344, the cases of ``get_partitions_for_topic(topic, create)`` for absent topics, over both transports."""
    async with administered(cluster) as (client, admin), Client(cluster.web_url) as http:
        namespace = f"public/{uuid4().hex}"
        await admin.namespaces.create(namespace)
        for name, asking in (("binary", client), ("http", http)):
            topic = f"persistent://{namespace}/{name}"
            for override, found in (
                (AutoTopicCreation(False), None),
                (AutoTopicCreation(True, "non-partitioned"), [f"{topic}-plain"]),
                (AutoTopicCreation(True, "partitioned", 2), [f"{topic}-parts-partition-{i}" for i in range(2)]),
            ):
                await admin.namespaces.set_auto_topic_creation(namespace, override)
                asked = f"{topic}-{'parts' if override.topic_type == 'partitioned' else 'plain'}"
                with pytest.raises(TopicNotFound):
                    await asking.get_partitions_for_topic(asked, create=False)
                if found is None:
                    with pytest.raises(TopicNotFound):
                        await asking.get_partitions_for_topic(asked, create=True)
                else:
                    assert await asking.get_partitions_for_topic(asked, create=True) == found
            assert await asking.get_partitions_for_topic(f"{topic}-parts", create=False) == found
            assert await asking.get_partitions_for_topic(f"{topic}-DLQ", create=True) == [f"{topic}-DLQ"]
        absent = f"persistent://public/{uuid4().hex}/t"
        for asking in (client, http):
            for create in (True, False):
                with pytest.raises(TopicNotFound):
                    await asking.get_partitions_for_topic(absent, create=create)


@scenario
async def http_service_url(cluster: Cluster) -> None:
    async with Client(cluster.web_url) as client:
        topic = new_topic()
        consumer = await client.subscribe(topic, "s")
        async with await client.create_producer(topic) as producer:
            await producer.send(b"over http")
        assert (await consumer.receive(WAIT_MS)).content == b"over http"
        assert topic in await client.get_topics_of_namespace("public/default")


@scenario
async def schemas_travel_with_producers_and_consumers(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        assert await client.get_schema(topic) is None
        fields: list[dict[str, object]] = [{"name": "carrier", "type": "string"}]
        first = avro_schema(fields)
        producer = await client.create_producer(topic, schema=first)
        consumer = await client.subscribe(topic, "s", schema=first, initial_position="earliest")
        version = producer.partitions[0].schema_version
        assert version == (0).to_bytes(8, "big")
        await producer.send(b"\x04LH")
        assert (await consumer.receive(WAIT_MS)).schema_version == version
        found = await client.get_schema(topic)
        assert found is not None
        assert (found.version, found.schema.type) == (version, SchemaType.AVRO)
        second = avro_schema([*fields, {"name": "number", "type": ["null", "int"], "default": None}])
        assert await client.register_schema(topic, second) == (1).to_bytes(8, "big")
        with pytest.raises(IncompatibleSchema):
            await client.create_producer(topic, schema=SchemaInfo(SchemaType.STRING, b"", {}, "String"))
        old = await client.get_schema(topic, version)
        assert old is not None
        assert json.loads(old.schema.definition)["fields"][0]["name"] == "carrier"


@scenario
async def auto_consume_leaves_the_first_schema_to_others(cluster: Cluster) -> None:
    for domain in ("persistent", "non-persistent"):
        topic = new_topic().replace("persistent", domain, 1)
        flight = avro_schema([{"name": "carrier", "type": "string"}])
        async with connected(cluster) as client:
            await client.subscribe(topic, "watch", schema=SchemaInfo(SchemaType.AUTO_CONSUME))
            with pytest.raises(IncompatibleSchema, match="AUTO_CONSUME is a client-side schema type"):
                await client.create_producer(topic, schema=SchemaInfo(SchemaType.AUTO_CONSUME))
            await client.subscribe(topic, "work", schema=flight)
            found = await client.get_schema(topic)
            assert found is not None
            assert found.schema.type is SchemaType.AVRO


@scenario
async def names_of_transactions_are_kept_for_them_in_the_persistent_domain_alone(cluster: Cluster) -> None:
    topic = f"{new_topic()}__transaction_pending_ack"
    async with connected(cluster) as client:
        await client.create_producer(topic.replace("persistent", "non-persistent", 1))
        with pytest.raises(NotAllowed, match="Can not create transaction system topic"):
            await client.create_producer(topic)


@scenario
async def consumers_without_a_schema_read_bytes_and_leave_no_room_for_one(cluster: Cluster) -> None:
    topic, text = new_topic(), SchemaInfo(SchemaType.STRING, b"", {}, "String")
    async with connected(cluster) as client:
        await client.subscribe(topic, "watch", schema=SchemaInfo(SchemaType.AUTO_CONSUME))
        await client.subscribe(topic, "bytes")
        with pytest.raises(IncompatibleSchema, match="Failed to add schema to an active topic"):
            await client.subscribe(topic, "work", schema=text)


@scenario
async def external_schemas_are_kept_and_never_compared(cluster: Cluster) -> None:
    topic = new_topic()
    schemas = [SchemaInfo(SchemaType.EXTERNAL, definition, {}, "mine") for definition in (b"", b"{", b"\xff")]
    async with administered(cluster) as (client, admin):
        for version, schema in enumerate(schemas):
            producer = await client.create_producer(topic, schema=schema)
            assert producer.partitions[0].schema_version == version.to_bytes(8, "big")
        assert [each.schema.type for each in await admin.schemas.history(topic)] == [SchemaType.EXTERNAL] * 3
        found = await client.get_schema(topic, (1).to_bytes(8, "big"))
        assert found is not None
        assert found.schema.definition == b"{"
        with pytest.raises(IncompatibleSchema, match="exists schema type EXTERNAL, new schema type STRING"):
            await client.subscribe(topic, "s", schema=SchemaInfo(SchemaType.STRING, b"", {}, "String"))


def avro_schema(fields: list[dict[str, object]]) -> SchemaInfo:
    definition = {"type": "record", "name": "Flight", "fields": fields}
    return SchemaInfo(SchemaType.AVRO, json.dumps(definition).encode(), {}, "AVRO")


@scenario
async def names_and_exclusivity_are_defended(cluster: Cluster) -> None:
    async with connected(cluster) as client, connected(cluster) as other:
        topic = new_topic()
        producer = await client.create_producer(topic, name="one")
        with pytest.raises(ProducerBusy):
            await other.create_producer(topic, name="one")
        with pytest.raises(ProducerFenced):
            await other.create_producer(topic, access_mode="exclusive")
        waiting = asyncio.create_task(other.create_producer(topic, access_mode="wait-for-exclusive"))
        await other.get_topics_of_namespace("public/default")
        assert not waiting.done()
        await producer.close()
        exclusive = await asyncio.wait_for(waiting, 10)
        await exclusive.send(b"mine alone")
        with pytest.raises(ProducerBusy):
            await client.create_producer(topic)
        await client.subscribe(topic, "s")
        with pytest.raises(ConsumerBusy):
            await other.subscribe(topic, "s")


@scenario
async def terminated_topics_take_nothing_more(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        producer = await client.create_producer(topic)
        await producer.send(b"last")
        await admin.topics.terminate(topic)
        with pytest.raises(TopicTerminated):
            await producer.send(b"too late")
        with pytest.raises(TopicTerminated):
            await client.create_producer(topic)
        async with await client.create_reader(topic) as reader:
            assert (await reader.read_next(WAIT_MS)).content == b"last"


@scenario
async def large_messages_up_to_the_limit(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        producer = await client.create_producer(topic)
        async with await client.create_reader(topic) as reader:
            content = bytes(range(256)) * 4 * 4096
            await producer.send(content)
            assert (await reader.read_next(WAIT_MS)).content == content
            with pytest.raises(InvalidRequest, match="limit"):
                await producer.send(bytes(6 * 1024 * 1024))
            await producer.send(b"small again")
            assert (await reader.read_next(WAIT_MS)).content == b"small again"


@scenario
async def larger_messages_in_chunks(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        content = bytes(range(256)) * 4 * 12_000
        consumer = await client.subscribe(topic, "s", subscription_type="shared", nack_delay_ms=50)
        for compression in ("none", "zlib"):
            producer = await client.create_producer(
                topic, batching_enabled=False, chunking_enabled=True, compression=compression
            )
            sent = await producer.send(content, key="k")
            message = await consumer.receive(WAIT_MS)
            assert (message.content == content, message.key, message.id) == (True, "k", sent)
            consumer.negative_acknowledge(message)
            again = await consumer.receive(WAIT_MS)
            assert again.content == content
            consumer.acknowledge(again)
            await producer.close()
        await consumer.close()
        again_subscribed = await client.subscribe(topic, "s", subscription_type="shared")
        with pytest.raises(OperationTimeout):
            await again_subscribed.receive(300)


@scenario
async def unsubscribing_forgets_the_position(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        consumer = await client.subscribe(topic, "s")
        async with await client.create_producer(topic) as producer:
            await producer.send(b"x")
        await consumer.receive(WAIT_MS)
        await consumer.unsubscribe()
        again = await client.subscribe(topic, "s")
        with pytest.raises(OperationTimeout):
            await again.receive(300)


@scenario
async def non_persistent_topics_pass_messages_on(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = f"non-persistent://public/default/{uuid4().hex}"
        consumer = await client.subscribe(topic, "s")
        async with await client.create_producer(topic) as producer:
            await producer.send(b"now or never")
        assert (await consumer.receive(WAIT_MS)).content == b"now or never"


@scenario
async def entries_are_copied_as_they_are(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        source, target = new_topic(), new_topic()
        await client.get_partitions_for_topic(source, create=True)
        async with await client.create_producer(source, name="origin", compression="zstd") as producer:
            for start in range(5):
                for number in range(20):
                    await producer.enqueue(b"%d" % (start * 20 + number))
                await producer.flush()
        async with await client.create_reader(source) as reader:
            expected = [(await reader.read_next(WAIT_MS)).content for _ in range(100)]
        last = (await client.create_producer(source, batching_enabled=False)).send(b"end")
        upto = (await last).position
        sender = await client.create_entry_sender(target, "lane.e0")
        copied = 0
        async with await client.create_entry_reader(source, after=EARLIEST, upto=upto) as entries:
            async for entry in entries:
                metadata = entry.parsed.metadata
                number = entry.position.ledger << 32 | entry.position.entry
                metadata.producer_name = "lane.e0"
                metadata.sequence_id = metadata.highest_sequence_id = number
                metadata.replicated_from = "elsewhere"
                await sender.send(
                    metadata.SerializeToString(),
                    entry.parsed.payload,
                    sequence_id=number,
                    highest_sequence_id=number,
                    num_messages=entry.parsed.message_count,
                )
                copied += 1
            assert entries.resubscribed_count == 0
        await sender.drain()
        await sender.close()
        async with await client.create_reader(target) as reader:
            messages = [await reader.read_next(WAIT_MS) for _ in range(101)]
        assert [message.content for message in messages[:100]] == expected
        assert {message.replicated_from for message in messages} == {"elsewhere"}
        assert copied >= 6


@scenario
async def repeated_entries_are_recognised(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        namespace = f"public/{uuid4().hex}"
        await admin.namespaces.create(namespace)
        await admin.namespaces.set_deduplication(namespace, True)
        topic = f"persistent://{namespace}/t"

        async def send(*numbers: int) -> list[bool]:
            async with await client.create_entry_sender(topic, "lane.e0") as sender:
                futures = []
                for number in numbers:
                    metadata = pb.MessageMetadata(
                        producer_name="lane.e0", sequence_id=number, highest_sequence_id=number, publish_time=1
                    )
                    futures.append(
                        await sender.send(
                            metadata.SerializeToString(), b"x", sequence_id=number, highest_sequence_id=number
                        )
                    )
                await sender.drain()
                return [future.result().is_duplicate for future in futures]

        assert await send(5, 6, 7) == [False] * 3
        assert await send(6, 7, 8) == [True, True, False]
        async with await client.create_entry_sender(topic, "lane.e0") as sender:
            assert sender.last_sequence_id == 8
        async with await client.create_reader(topic) as reader:
            stored = [(await reader.read_next(WAIT_MS)).sequence_id for _ in range(4)]
        assert stored == [5, 6, 7, 8]


@scenario
async def topics_unloaded_under_way_lose_nothing(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await (await client.subscribe(topic, "keeps")).close()  # else a broker may drop what lies in closed ledgers
        consumer = await client.subscribe(topic, "s", subscription_type="shared")
        reader = await client.create_reader(topic)
        producer = await client.create_producer(topic, batch_messages_max=5)
        for number in range(200):
            await producer.enqueue(b"%d" % number)
            if number in (50, 120):
                await admin.topics.unload(topic)
        await asyncio.wait_for(producer.flush(), 20)
        expected = [b"%d" % number for number in range(200)]
        seen: set[bytes | None] = set()
        while len(seen) < 200:
            message = await consumer.receive(WAIT_MS)
            consumer.acknowledge(message)
            seen.add(message.content)
        read = [(await reader.read_next(WAIT_MS)).content for _ in range(200)]
        assert list(dict.fromkeys(read)) == expected[: len(dict.fromkeys(read))]


@scenario
async def entries_survive_unloading(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await (await client.subscribe(topic, "keeps")).close()  # else a broker may drop what lies in closed ledgers
        upto = max(await _stored_while_unloading(client, admin, topic, 1000))
        reader = await client.create_entry_reader(topic, after=EARLIEST, upto=upto, buffer_bytes=20_000)
        numbers: list[int] = []
        async for entry in reader:
            numbers.append(entry.parsed.metadata.sequence_id)
            if len(numbers) in (100, 700):
                await admin.topics.unload(topic)
        await reader.close()
        assert list(dict.fromkeys(numbers)) == list(range(1000))


@scenario
async def entry_readers_come_back_behind_the_last_entry_of_a_ledger(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await (await client.subscribe(topic, "keeps")).close()
        async with (
            await client.create_entry_reader(topic, after=EARLIEST) as reader,
            await client.create_producer(topic, batching_enabled=False) as producer,
        ):
            positions: list[Position] = []
            read: list[Position] = []
            for _ in range(4):
                positions += [(await producer.send(b"x")).position for _ in range(2)]
                while len(read) < len(positions):
                    read += [entry.position for entry in await asyncio.wait_for(reader.read_batch(), 60)]
                await admin.topics.unload(topic)
            assert read == positions
            assert len({position.ledger for position in positions}) == 4


async def _stored_while_unloading(client: Client, admin: AdminClient, topic: str, count: int) -> list[Position]:
    """Positions of ``count`` entries in order; the topic is unloaded while half of them are on their way.

    A broker that unloads may refuse what is on its way ("fenced"). That ends the sender; another one goes on behind the
    last receipt.
    """
    positions: list[Position] = []
    unloaded = False
    while len(positions) < count:
        async with await client.create_entry_sender(topic, "lane") as sender:
            receipts = []
            with suppress(PersistenceError):
                for number in range(len(positions), count):
                    metadata = pb.MessageMetadata(producer_name="lane", sequence_id=number, publish_time=1)
                    receipts.append(await sender.send(metadata.SerializeToString(), bytes(500), sequence_id=number))
                    if number == count // 2 and not unloaded:
                        unloaded = True
                        await admin.topics.unload(topic)
                await asyncio.wait_for(sender.drain(), 60)
            stored = takewhile(lambda receipt: receipt.done() and receipt.exception() is None, receipts)
            positions += [receipt.result().position for receipt in stored]
    return positions


@scenario
async def entry_readers_start_behind_large_batches(cluster: Cluster) -> None:
    """The entry a reader starts at is sent again and costs as many permits as it has messages."""
    async with connected(cluster) as client:
        topic = new_topic()
        producer = await client.create_producer(topic, batch_messages_max=200)
        ids = [
            receipt for _ in range(5) for receipt in await asyncio.gather(*(producer.send(b"x") for _ in range(200)))
        ]
        positions = sorted({receipt.position for receipt in ids})
        async with await client.create_entry_reader(topic, after=positions[0], upto=positions[-1]) as entries:
            read = [entry.position async for entry in entries]
            assert entries.resubscribed_count == 0
        assert read == positions[1:]
        await producer.close()


@scenario
async def deleted_topics_end_their_readers(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        producer = await client.create_producer(topic)
        position = (await producer.send(b"x")).position
        await producer.close()
        reader = await client.create_entry_reader(
            topic, after=EARLIEST, upto=Position(position.ledger, position.entry + 5), silence_ms=200
        )
        assert len(await reader.read_batch()) == 1
        await admin.topics.delete(topic, force=True)
        with pytest.raises(TopicNotFound):
            await asyncio.wait_for(reader.read_batch(), 20)
        await reader.close()


@scenario
async def names_are_free_again_when_an_opening_is_cancelled_at_any_moment(cluster: Cluster) -> None:
    """Whatever the broker is doing with the opening when its caller gives it up."""

    async def cancelled_after(seconds: float, opening: Awaitable[Producer | Consumer]) -> None:
        task = asyncio.ensure_future(opening)
        await asyncio.wait([task], timeout=seconds)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await (await task).close()

    async with connected(cluster) as client:
        for attempt in range(40):
            topic = new_topic()
            for _ in range(3):
                await cancelled_after(attempt / 4000, client.create_producer(topic, name="p"))
                await cancelled_after(attempt / 4000, client.subscribe(topic, "s"))
            async with (
                await client.subscribe(topic, "s") as consumer,
                await client.create_producer(topic, name="p") as producer,
            ):
                await producer.send(b"arrives")
                assert [message.content for message in await take(consumer, 1)] == [b"arrives"]
