"""Statistics of topics that store nothing."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import AccessMode, KeyRange, KeySharing
from interpulse.model.errors import (
    ConsumerAssignError,
    ConsumerBusy,
    MetadataError,
    NotAllowed,
    PreconditionFailed,
    SubscriptionNotFound,
)
from interpulse.model.ids import MessageId
from interpulse.model.names import TopicName


@pytest.fixture
async def topic(bench: Any) -> Any:
    return await bench.registry.open(TopicName.parse("non-persistent://public/default/n"))


async def test_publish_is_answered_at_once_and_reaches_every_subscription(bench: Any, topic: Any) -> None:
    producer, sink = await bench.producer(topic)
    _, first = await bench.consumer(topic, "a")
    _, second = await bench.consumer(topic, "b")
    producer.publish([7], [bench.entry(7)])
    assert sink.received == [(7, -1, 0, 0)]
    assert [each.position for each in first.deliveries] == [(0, 0)]
    assert (first.numbers(), second.numbers()) == ([7], [7])


async def test_entry_without_permits_is_lost(bench: Any, topic: Any) -> None:
    producer, _ = await bench.producer(topic)
    consumer, sink = await bench.consumer(topic, permits=1)
    for number in range(3):
        producer.publish([number], [bench.entry(number)])
    consumer.flow(5)
    assert sink.numbers() == [0]
    topic.tick(1)
    assert topic.stats()["msgDropRate"] == 2


async def test_shared_takes_turns_and_failover_prefers_one(bench: Any, topic: Any) -> None:
    producer, _ = await bench.producer(topic)
    shared = [(await bench.consumer(topic, "sh", sub_type=bench.SHARED, consumer_id=n))[1] for n in (1, 2)]
    failover = [
        (await bench.consumer(topic, "fo", sub_type=bench.FAILOVER, consumer_id=n, consumer_name=f"c{n}"))[1]
        for n in (1, 2)
    ]
    keyed = [
        (await bench.consumer(topic, "ks", sub_type=bench.KEY_SHARED, consumer_id=n, consumer_name=f"c{n}"))[1]
        for n in (1, 2)
    ]
    for number in range(4):
        producer.publish([number], [bench.entry(number, partition_key="k")])
    assert [each.numbers() for each in shared] == [[0, 2], [1, 3]]
    for pair in (failover, keyed):
        assert sorted([each.numbers() for each in pair]) == [[], [0, 1, 2, 3]]
    assert sorted(each.active[-1] for each in failover) == [False, True]


async def test_subscription_lives_as_long_as_its_consumers(bench: Any, topic: Any) -> None:
    consumer, _ = await bench.consumer(topic, "a")
    assert topic.subscription_names() == ["a"]
    with pytest.raises(ConsumerBusy):
        await bench.consumer(topic, "a")
    with pytest.raises(ConsumerBusy):
        await bench.consumer(topic, "a", sub_type=bench.SHARED)
    await topic.delete_subscription("a")
    assert consumer.closed
    assert topic.subscription_names() == []
    with pytest.raises(SubscriptionNotFound):
        await topic.delete_subscription("a")


async def test_dead_exclusive_consumer_is_replaced(bench: Any, topic: Any) -> None:
    _, old = await bench.consumer(topic, "a")
    old.alive = False
    await bench.consumer(topic, "a")
    assert topic.subscription_names() == ["a"]


async def test_what_needs_a_log_is_refused(bench: Any, topic: Any) -> None:
    consumer, _ = await bench.consumer(topic, "a")
    with pytest.raises(NotAllowed):
        await topic.create_subscription("s")
    with pytest.raises(NotAllowed):
        await topic.last_message()
    await consumer.seek(MessageId(1, 1))
    await consumer.seek_to_time(0)
    assert not consumer.closed, "as in Pulsar nothing happens"


async def test_unsubscribe(bench: Any, topic: Any) -> None:
    one, _ = await bench.consumer(topic, "a", sub_type=bench.SHARED)
    _, other = await bench.consumer(topic, "a", sub_type=bench.SHARED, consumer_id=2)
    with pytest.raises(MetadataError):
        await one.unsubscribe()
    await one.unsubscribe(force=True)
    assert other.closed == [2]
    assert not topic.clients.connected


async def test_exclusive_producers_have_epochs_here_too(bench: Any, topic: Any) -> None:
    producer, _ = await bench.producer(topic, access_mode=AccessMode.EXCLUSIVE)
    assert producer.topic_epoch == 0
    with pytest.raises(PreconditionFailed):
        topic.clients.check_none()


async def test_sticky_ranges_are_kept_and_others_refused(bench: Any, topic: Any) -> None:
    kinds = {"sub_type": bench.KEY_SHARED, "subscription": "ks"}
    sharing = [KeySharing((KeyRange(0, 299),)), KeySharing((KeyRange(300, 65535),))]
    _, low = await bench.consumer(topic, consumer_id=1, key_sharing=sharing[0], **kinds)
    with pytest.raises(ConsumerAssignError):
        await bench.consumer(topic, consumer_id=2, key_sharing=sharing[0], **kinds)
    with pytest.raises(ConsumerBusy, match="key_shared mode of 'STICKY'"):
        await bench.consumer(topic, consumer_id=2, **kinds)
    _, high = await bench.consumer(topic, consumer_id=2, key_sharing=sharing[1], **kinds)
    producer, _ = await bench.producer(topic)
    for number, key in enumerate(("key1", "key2", "key1")):  # slots 293 and 14772
        producer.publish([number], [bench.entry(number, partition_key=key)])
    await bench.settle()
    assert (low.numbers(), high.numbers()) == ([0, 2], [1])


NAME = TopicName.parse("non-persistent://public/default/n")


async def test_counters_when_clients_are_gone_then_keep_what_they_counted(bench: Any) -> None:
    topic = await bench.registry.open(NAME)
    producer, _ = await bench.producer(topic)
    consumers = [(await bench.consumer(topic, name))[0] for name in ("a", "b")]
    for number in range(3):
        producer.publish([number], [bench.entry(number)])
    before = topic.stats()
    assert (before["msgInCounter"], before["msgOutCounter"]) == (3, 6)
    assert [each["msgOutCounter"] for each in before["subscriptions"].values()] == [3, 3]
    for client in (producer, *consumers):
        client.close()
    after = topic.stats()
    counters = [key for key in before if key.endswith("Counter")]
    assert {key: after[key] for key in counters} == {key: before[key] for key in counters}
    assert (after["subscriptions"], after["publishers"]) == ({}, [])


async def test_internal_stats_when_asked_for_then_name_subscriptions_and_count_entries(bench: Any) -> None:
    topic = await bench.registry.open(NAME)
    producer, _ = await bench.producer(topic)
    await bench.consumer(topic, "b")
    await bench.consumer(topic, "a")
    producer.publish([0], [bench.entry(0, num_messages_in_batch=5)], num_messages=5)
    internal = topic.internal_stats()
    assert (internal["entriesAddedCounter"], internal["numberOfEntries"]) == (1, 0)
    assert list(internal["cursors"]) == ["a", "b"]
