"""What our client must be able to do with any broker: patterns, dead letters, retries, keys, delays, seeking."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any
from uuid import uuid4

import pytest

from interpulse.client import (
    AdminClient,
    Client,
    DeadLetterPolicy,
    KeySharedPolicy,
    Message,
    RedeliveryBackoff,
    deserialize_message_id,
    serialize_message_id,
)
from interpulse.client.consuming.consumer import Consumer
from interpulse.model.errors import (
    AlreadyClosed,
    ConsumerAssignError,
    InvalidRequest,
    OperationTimeout,
    TopicNotFound,
)
from interpulse.model.ids import EARLIEST, LATEST, MessageId
from tests.scenarios.client import WAIT_MS, Cluster, Scenarios, administered, connected, new_topic, take

SCENARIOS = scenario = Scenarios()

NEVER_MS = 600_000


async def new_namespace(admin: AdminClient) -> str:
    namespace = f"public/{uuid4().hex[:12]}"
    await admin.namespaces.create(namespace)
    return namespace


async def send(client: Client, topic: str, *contents: bytes, **options: Any) -> list[MessageId]:
    async with await client.create_producer(topic, batching_enabled=False) as producer:
        return [await producer.send(content, **options) for content in contents]


async def contents_of(consumer: Consumer, count: int) -> list[bytes | None]:
    messages = await take(consumer, count)
    for message in messages:
        consumer.acknowledge(message)
    return [message.content for message in messages]


async def assert_silent(consumer: Consumer) -> None:
    with pytest.raises(OperationTimeout):
        await consumer.receive(300)


async def assert_has_topics(consumer: Consumer, *topics: str) -> None:
    """Wait until the consumer has exactly these topics, and is connected to all."""
    async with asyncio.timeout(WAIT_MS / 1000):
        while consumer.topics != sorted(topics) or not consumer.is_connected:  # noqa: ASYNC110  # the broker acts
            await asyncio.sleep(0.02)


@scenario
async def patterns_find_late_topics_without_asking(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        namespace = await new_namespace(admin)
        name = f"persistent://{namespace}".__add__
        await admin.topics.create(name("/f-1"))
        await admin.topics.create(name("/other"))
        pattern = re.compile(f"{namespace}/f-.*")
        async with await client.subscribe(pattern, "s", pattern_discovery_interval_ms=NEVER_MS) as consumer:
            assert consumer.topics == [name("/f-1")]
            await send(client, name("/f-1"), b"early")
            await send(client, name("/other"), b"not ours")
            assert await contents_of(consumer, 1) == [b"early"]
            await send(client, name("/f-2"), b"late")
            assert await contents_of(consumer, 1) == [b"late"]
            await admin.topics.create_partitioned(name("/f-3"), 2)
            partitions = [name("/f-3-partition-0"), name("/f-3-partition-1")]
            await assert_has_topics(consumer, name("/f-1"), name("/f-2"), *partitions)
            await admin.topics.expand(name("/f-3"), 3)
            await send(client, name("/f-3"), b"1", b"2", b"3")
            assert len(set(await contents_of(consumer, 3))) == 3


@scenario
async def patterns_do_not_bring_deleted_topics_back(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        namespace = await new_namespace(admin)
        stays, goes = f"persistent://{namespace}/stays", f"persistent://{namespace}/goes"
        for topic in (stays, goes):
            await admin.topics.create(topic)
        pattern = re.compile(f"persistent://{namespace}/.*")
        async with await client.subscribe(pattern, "s", pattern_discovery_interval_ms=NEVER_MS) as consumer:
            await send(client, goes, b"before")
            message = await consumer.receive(WAIT_MS)
            await admin.topics.delete(goes, force=True)
            await assert_has_topics(consumer, stays)
            consumer.acknowledge(message)  # of a topic that is gone: neither a failure nor of use
            with pytest.raises(TopicNotFound):
                await client.get_partitions_for_topic(goes, create=False)
            await send(client, goes, b"again")
            assert await contents_of(consumer, 1) == [b"again"]
            await assert_has_topics(consumer, goes, stays)


@scenario
async def patterns_ask_where_the_broker_does_not_tell(cluster: Cluster) -> None:
    async with administered(cluster) as (_, admin), Client(cluster.web_url) as http:
        namespace = await new_namespace(admin)
        await admin.topics.create(f"persistent://{namespace}/other")
        pattern = re.compile(f"{namespace}/(?=f).*")
        async with await http.subscribe(pattern, "s", pattern_discovery_interval_ms=50) as consumer:
            assert consumer.topics == []
            await send(http, f"persistent://{namespace}/f", b"late")
            assert await contents_of(consumer, 1) == [b"late"]
            with pytest.raises(InvalidRequest, match="match"):
                await consumer.add_topics(["x"])


@scenario
async def topics_come_to_a_consumer_and_leave_it(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        first, second = new_topic(), new_topic()
        consumer = await client.subscribe(first, "s")
        await consumer.add_topics([second])
        assert consumer.topics == [first, second]
        await send(client, first, b"1")
        assert await contents_of(consumer, 1) == [b"1"]
        await consumer.remove_topics([first])
        await send(client, first, b"unheard")
        await send(client, second, b"2")
        message = await consumer.receive(WAIT_MS)
        assert (message.content, consumer.topics) == (b"2", [second])
        await consumer.remove_topics([second])
        with pytest.raises(AlreadyClosed):
            consumer.acknowledge(message)
        await consumer.add_topics([first, second])
        assert sorted(await contents_of(consumer, 2)) == [b"2", b"unheard"]  # type: ignore[type-var]


async def dead_letter(client: Client, topic: str) -> Message:
    async with await client.create_reader(topic) as reader:
        message = await reader.read_next(WAIT_MS)
        assert not await reader.has_message_available()
        return message


@scenario
async def messages_given_back_too_often_become_dead_letters(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        policy = DeadLetterPolicy(2, initial_subscription_name="kept")
        shared = {"subscription_type": "shared", "nack_delay_ms": 50}
        consumer = await client.subscribe(topic, "s", dead_letter_policy=policy, **shared)
        fields = {"key": "k", "ordering_key": b"o", "event_time_ms": 77, "properties": {"mine": "1"}}
        (sent,) = await send(client, topic, b"bad", **fields)
        for count in range(3):
            message = await consumer.receive(WAIT_MS)
            assert message.redelivery_count == count
            consumer.negative_acknowledge(message)
        await assert_silent(consumer)
        dead = await dead_letter(client, f"{topic}-s-DLQ")
        assert (dead.content, dead.key, dead.ordering_key, dead.event_time_ms) == (b"bad", "k", b"o", 77)
        assert dead.properties == {
            "mine": "1",
            "REAL_TOPIC": topic,
            "REAL_SUBSCRIPTION": "s",
            "ORIGIN_MESSAGE_ID": str(sent),
            "ORIGIN_MESSAGE_IDY_TIME": str(sent),
        }
        assert "kept" in (await admin.topics.stats(f"{topic}-s-DLQ"))["subscriptions"]
        await consumer.close()
        again = await client.subscribe(topic, "s", subscription_type="shared")
        await assert_silent(again)


@scenario
async def messages_of_a_batch_die_one_by_one(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await admin.topics.create_partitioned(topic, 2)
        consumer = await client.subscribe(
            topic,
            "s",
            subscription_type="key-shared",
            nack_delay_ms=50,
            dead_letter_policy=DeadLetterPolicy(1, dead_letter_topic=f"{topic}-graveyard"),
        )
        async with await client.create_producer(topic, batch_delay_ms=200) as producer:
            sent = await asyncio.gather(*(producer.send(b"%d" % number, key="k") for number in range(3)))
        assert {message_id.batch_index for message_id in sent} == {0, 1, 2}
        first, bad, last = await take(consumer, 3)
        consumer.acknowledge(first)
        consumer.negative_acknowledge(bad)
        consumer.acknowledge(last)
        (again,) = await take(consumer, 1)
        assert (again.id, again.redelivery_count) == (bad.id, 1)
        consumer.negative_acknowledge(again)
        dead = await dead_letter(client, f"{topic}-graveyard")
        assert (dead.content, dead.properties["ORIGIN_MESSAGE_ID"]) == (b"1", str(bad.id))
        assert dead.properties["REAL_TOPIC"] == bad.topic
        await consumer.close()
        await assert_silent(await client.subscribe(topic, "s", subscription_type="key-shared"))


@scenario
async def messages_forgotten_too_often_become_dead_letters(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        consumer = await client.subscribe(
            topic, "s", subscription_type="shared", ack_timeout_ms=100, dead_letter_policy=DeadLetterPolicy(1)
        )
        await send(client, topic, b"forgotten")
        assert [message.redelivery_count for message in await take(consumer, 2)] == [0, 1]
        assert (await dead_letter(client, f"{topic}-s-DLQ")).content == b"forgotten"


@scenario
async def messages_are_tried_again_later(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        consumer = await client.subscribe(
            topic, "s", subscription_type="shared", retry_enabled=True, dead_letter_policy=DeadLetterPolicy(2)
        )
        (sent,) = await send(client, topic, b"x", key="k", properties={"mine": "1"})
        seen = []
        for number in range(3):
            message = await consumer.receive(WAIT_MS)
            seen.append((message.topic, message.properties.get("RECONSUMETIMES")))
            await consumer.reconsume_later(message, 10, {"custom": f"c{number}"})
        retry = f"{topic}-s-RETRY"
        assert seen == [(topic, None), (retry, "1"), (retry, "2")]
        dead = await dead_letter(client, f"{topic}-s-DLQ")
        assert (dead.content, dead.key) == (b"x", "k")
        assert dead.properties == {
            "mine": "1",
            "custom": "c2",
            "REAL_TOPIC": topic,
            "REAL_SUBSCRIPTION": "s",
            "ORIGIN_MESSAGE_ID": str(sent),
            "ORIGIN_MESSAGE_IDY_TIME": str(sent),
            "RECONSUMETIMES": "3",
            "DELAY_TIME": "10",
        }
        await assert_silent(consumer)
        plain = await client.subscribe(topic, "plain", initial_position="earliest")
        with pytest.raises(InvalidRequest, match="retry_enabled"):
            await plain.reconsume_later(await plain.receive(WAIT_MS), 10)


@scenario
async def messages_given_back_again_and_again_wait_longer(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        backoff = RedeliveryBackoff(initial_ms=50, max_ms=200, multiplier=2)
        consumer = await client.subscribe(topic, "s", subscription_type="shared", nack_backoff=backoff)
        await send(client, topic, b"x")
        waited = []
        message = await consumer.receive(WAIT_MS)
        for _ in range(4):
            begun = time.monotonic()
            consumer.negative_acknowledge(message)
            message = await consumer.receive(WAIT_MS)
            waited.append(time.monotonic() - begun)
        assert all(actual >= least for actual, least in zip(waited, (0.05, 0.1, 0.2, 0.2), strict=True)), waited


@scenario
async def keys_stay_with_the_consumer_of_their_range(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        low, high = KeySharedPolicy(((0, 32767),)), KeySharedPolicy(((32768, 65535),))
        shared = {"subscription_type": "key-shared"}
        consumers = [await client.subscribe(topic, "s", key_shared=policy, **shared) for policy in (low, high)]
        with pytest.raises(ConsumerAssignError):
            await client.subscribe(topic, "s", key_shared=KeySharedPolicy(((1, 2),)), **shared)
        async with await client.create_producer(topic, batching_enabled=False) as producer:
            await producer.send(b"low", key="key1")  # slot 293
            await producer.send(b"high", key="order-42")  # slot 41358
            await producer.send(b"low by ordering key", key="order-42", ordering_key=b"key1")
        assert await contents_of(consumers[0], 2) == [b"low", b"low by ordering key"]
        assert await contents_of(consumers[1], 1) == [b"high"]


@scenario
async def consumers_and_subscriptions_say_what_they_are(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        async with await client.subscribe(
            topic,
            "s",
            subscription_type="key-shared",
            name="me",
            priority_level=3,
            properties={"of": "the consumer"},
            subscription_properties={"of": "the subscription"},
            key_shared=KeySharedPolicy(out_of_order_allowed=True),
        ):
            subscription = (await admin.topics.stats(topic))["subscriptions"]["s"]
            (consumer,) = subscription["consumers"]
            assert (consumer["consumerName"], consumer["metadata"]) == ("me", {"of": "the consumer"})
            assert subscription["subscriptionProperties"] == {"of": "the subscription"}
            assert subscription["allowOutOfOrderDelivery"] is True


@scenario
async def messages_wait_for_their_time(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        shared = await client.subscribe(topic, "shared", subscription_type="shared")
        alone = await client.subscribe(topic, "alone")
        async with await client.create_producer(topic) as producer:
            begun_ms = time.time() * 1000
            await producer.send(b"after", deliver_after_ms=6000)
            await producer.send(b"at", deliver_at_ms=int(begun_ms) + 6000)
            await producer.send(b"now")
        assert await contents_of(alone, 3) == [b"after", b"at", b"now"]
        assert await contents_of(shared, 1) == [b"now"]
        late = await take(shared, 2)
        assert {message.content for message in late} == {b"after", b"at"}
        assert all(time.time() * 1000 > (message.deliver_at_ms or 0) - 1000 > begun_ms for message in late)


@scenario
async def several_topics_in_one_reader(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        plain, partitioned = new_topic(), new_topic()
        await admin.topics.create_partitioned(partitioned, 2)
        for topic in (plain, partitioned):
            await send(client, topic, b"1", b"2")
        async with await client.create_reader([plain, partitioned]) as reader:
            assert reader.topics == [plain, partitioned]
            messages = []
            while await reader.has_message_available():
                messages.append(await reader.read_next(WAIT_MS))
            assert len(messages) == 4
            await reader.seek(MessageId(*EARLIEST))
            assert len([await reader.read_next(WAIT_MS) for _ in range(4)]) == 4
            await reader.seek(MessageId(*LATEST))
            assert not await reader.has_message_available()
            ids = {message.topic: message.id for message in messages if message.content == b"2"}
            await reader.seek(lambda topic: ids.get(topic, MessageId(*LATEST)))
            again = [await reader.read_next(WAIT_MS) for _ in ids]
            assert {message.topic: message.id for message in again} == ids
            assert not await reader.has_message_available()
            await reader.seek(messages[0].publish_time_ms - 60_000)
            assert await reader.has_message_available()
            with pytest.raises(InvalidRequest, match="fits one"):
                await reader.seek(next(message.id for message in messages if message.topic == plain))
        with pytest.raises(InvalidRequest, match="EARLIEST or LATEST"):
            await client.create_reader([plain, partitioned], messages[0].id)


@scenario
async def seeking_in_and_behind_messages(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        consumer = await client.subscribe(topic, "s")
        async with await client.create_producer(topic, batch_delay_ms=200) as producer:
            ids = await asyncio.gather(*(producer.send(b"%d" % number) for number in range(4)))
        assert len({message_id.position for message_id in ids}) == 1
        await consumer.seek(ids[2])
        assert await contents_of(consumer, 2) == [b"2", b"3"]
        await consumer.seek(ids[0], included=False)
        assert [message.content for message in await take(consumer, 3)] == [b"1", b"2", b"3"]
        async with await client.create_reader(topic) as reader:
            await reader.seek(ids[1], included=False)
            assert (await reader.read_next(WAIT_MS)).content == b"2"


@scenario
async def messages_taken_in_batches(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        consumer = await client.subscribe(topic, "s")
        assert await consumer.receive_batch(timeout_ms=20) == []
        await send(client, topic, *(b"%d" % number for number in range(5)))
        first = await consumer.receive_batch(messages_max=3, timeout_ms=WAIT_MS)
        rest = await consumer.receive_batch(bytes_max=2, timeout_ms=WAIT_MS)
        assert [message.content for message in first + rest] == [b"%d" % number for number in range(5)]


async def send_batch(client: Client, topic: str, count: int) -> list[MessageId]:
    """One entry with the messages b"0", b"1", ..."""
    async with await client.create_producer(topic, batch_delay_ms=60_000) as producer:
        sending = [asyncio.ensure_future(producer.send(b"%d" % number)) for number in range(count)]
        await asyncio.sleep(0)  # let all of them begin
        await producer.flush()
        ids = [await future for future in sending]
    assert len({message_id.position for message_id in ids}) == 1
    return ids


async def backlog_of(admin: AdminClient, topic: str) -> int:
    return int((await admin.topics.stats(topic))["subscriptions"]["s"]["msgBacklog"])


async def assert_acknowledged(admin: AdminClient, topic: str) -> None:
    async with asyncio.timeout(WAIT_MS / 1000):
        while await backlog_of(admin, topic):  # noqa: ASYNC110  # the broker acts
            await asyncio.sleep(0.02)


@scenario
async def batches_half_acknowledged_go_on_with_the_other_half(cluster: Cluster) -> None:
    """Whether the next consumer tells of batch indexes or not."""
    async with administered(cluster) as (client, admin):
        for subscription_type in ("exclusive", "shared"):
            topic = new_topic()
            options = {"subscription_type": subscription_type, "initial_position": "earliest", "ack_timeout_ms": 1000}
            await send_batch(client, topic, 70)
            async with await client.subscribe(topic, "s", batch_index_ack_enabled=True, **options) as consumer:
                for message in (await take(consumer, 70))[1::2]:
                    consumer.acknowledge(message)
            async with await client.subscribe(topic, "s", batch_index_ack_enabled=True, **options) as consumer:
                messages = await take(consumer, 35)
                assert [message.content for message in messages] == [b"%d" % number for number in range(0, 70, 2)]
                if subscription_type == "exclusive":
                    consumer.acknowledge_cumulative(messages[-6])
                else:
                    for message in messages[:-5]:
                        consumer.acknowledge(message)
            async with await client.subscribe(topic, "s", **options) as consumer:
                assert await contents_of(consumer, 5) == [b"60", b"62", b"64", b"66", b"68"]
                await assert_acknowledged(admin, topic)


@scenario
async def batches_given_back_come_again_without_what_is_acknowledged(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        options = {"subscription_type": "shared", "nack_delay_ms": 50, "initial_position": "earliest"}
        await send_batch(client, topic, 4)
        consumer = await client.subscribe(
            topic, "s", batch_index_ack_enabled=True, dead_letter_policy=DeadLetterPolicy(2), **options
        )
        seen = []
        for waiting in (4, 3, 2, 2):
            received = await take(consumer, waiting)
            seen.append([(message.content, message.redelivery_count) for message in received])
            if waiting > 2:
                consumer.acknowledge(received[0])
            consumer.negative_acknowledge(received[-2])
        assert seen == [
            [(b"0", 0), (b"1", 0), (b"2", 0), (b"3", 0)],
            [(b"1", 1), (b"2", 1), (b"3", 1)],
            [(b"2", 1), (b"3", 1)],  # an acknowledged part makes the broker count from the beginning
            [(b"2", 2), (b"3", 2)],
        ]
        consumer.acknowledge(received[1])
        dead = await dead_letter(client, f"{topic}-s-DLQ")
        assert (dead.content, dead.properties["ORIGIN_MESSAGE_ID"]) == (b"2", str(received[0].id))
        await assert_acknowledged(admin, topic)
        await assert_silent(consumer)


@scenario
async def seeking_into_a_batch_leaves_nothing_behind(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        consumer = await client.subscribe(topic, "s", subscription_type="shared")
        ids = await send_batch(client, topic, 4)
        assert len(await contents_of(consumer, 4)) == 4
        await consumer.seek(ids[2])
        assert await contents_of(consumer, 2) == [b"2", b"3"]
        await assert_acknowledged(admin, topic)
        await consumer.seek(ids[3], included=False)
        await assert_acknowledged(admin, topic)
        await admin.topics.reset_cursor_to_message(topic, "s", MessageId(*EARLIEST))
        assert len(await contents_of(consumer, 4)) == 4


@scenario
async def seeking_to_and_behind_a_message_in_chunks(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic, large = new_topic(), bytes(6 * 1024 * 1024)
        consumer = await client.subscribe(topic, "s")
        async with await client.create_producer(topic, batching_enabled=False, chunking_enabled=True) as producer:
            ids = [await producer.send(content) for content in (b"before", large, b"behind")]
        received = await take(consumer, 3)
        assert [message.id.first_chunk for message in received] == [message_id.first_chunk for message_id in ids]
        assert [message_id.first_chunk is None for message_id in ids] == [True, False, True]
        kept = deserialize_message_id(serialize_message_id(received[1].id))
        await consumer.seek(kept)
        assert await contents_of(consumer, 2) == [large, b"behind"]
        await assert_acknowledged(admin, topic)
        await consumer.seek(kept, included=False)
        assert await contents_of(consumer, 1) == [b"behind"]
        await assert_acknowledged(admin, topic)
        await admin.topics.reset_cursor_to_message(topic, "s", kept)
        assert await contents_of(consumer, 2) == [large, b"behind"]
        for included, comes_next in ((True, large), (False, b"behind")):
            async with await client.create_reader(topic, kept, start_included=included) as reader:
                assert (await reader.read_next(WAIT_MS)).content == comes_next
                await reader.seek(kept, included=included)
                assert (await reader.read_next(WAIT_MS)).content == comes_next
