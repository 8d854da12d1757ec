"""Consumers and subscriptions that hold too many unacknowledged messages get no more until half is acknowledged."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import SubType, TopicSettings

TYPES = pytest.mark.parametrize("sub_type", [SubType.SHARED, SubType.KEY_SHARED])


def flags(topic: Any) -> tuple[int, bool, list[tuple[int, bool, int]]]:
    """Of the subscription: unacknowledged, blocked; of its consumers: unacknowledged, blocked, permits granted."""
    shown = topic.stats()["subscriptions"]["s"]
    consumers = [
        (each["unackedMessages"], each["blockedConsumerOnUnackedMsgs"], each["availablePermits"])
        for each in shown["consumers"]
    ]
    return shown["unackedMessages"], shown["blockedSubscriptionOnUnackedMsgs"], consumers


@TYPES
async def test_consumer_is_blocked_at_its_limit_and_goes_on_at_half_of_it(
    bench: Any, join: Any, sub_type: SubType
) -> None:
    bench.settings = TopicSettings(max_unacked_per_consumer=4)
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(20))
    consumer, sink = await join(topic, permits=100, sub_type=sub_type)
    held = sink.take()
    assert len(held) == 4
    assert flags(topic) == (4, False, [(4, True, 96)])
    consumer.acknowledge(held[0].position)
    assert sink.take() == []
    assert flags(topic) == (3, False, [(3, True, 96)])
    consumer.acknowledge(held[1].position)
    assert len(sink.take()) == 2
    assert flags(topic) == (4, False, [(4, True, 94)])


@TYPES
async def test_one_below_the_limit_no_consumer_is_blocked(bench: Any, join: Any, sub_type: SubType) -> None:
    bench.settings = TopicSettings(max_unacked_per_consumer=4, max_unacked_per_subscription=4)
    topic = await bench.topic()
    _, sink = await join(topic, permits=100, sub_type=sub_type)
    await bench.publish(topic, *range(3))
    assert len(sink.take()) == 3
    assert flags(topic) == (3, False, [(3, False, 97)])


@TYPES
async def test_subscription_whose_limit_is_one_then_nothing_comes_beside_what_is_held(
    bench: Any, join: Any, sub_type: SubType
) -> None:
    bench.settings = TopicSettings(max_unacked_per_subscription=1)
    topic = await bench.topic()
    consumer, sink = await join(topic, permits=100, sub_type=sub_type)
    await bench.publish(topic, 0)
    await bench.publish(topic, 1)
    [held] = sink.deliveries
    assert sink.numbers() == [0]
    consumer.acknowledge(held.position)
    assert sink.numbers() == [1]


async def test_others_get_what_a_blocked_consumer_cannot(bench: Any, join: Any) -> None:
    bench.settings = TopicSettings(max_unacked_per_consumer=2)
    topic = await bench.topic()
    _, of_a = await join(topic, "a", 100)
    b, of_b = await join(topic, "b", 100)
    for number in range(8):
        await bench.publish(topic, number)
        for delivery in of_b.take():
            b.acknowledge(delivery.position)
    assert len(of_a.take()) == 2
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 2


async def test_batch_may_overdraw_and_its_messages_count(bench: Any, join: Any) -> None:
    bench.settings = TopicSettings(max_unacked_per_consumer=5)
    topic = await bench.topic()
    consumer, sink = await join(topic)
    producer, _ = await bench.producer(topic)
    for number in range(5):
        producer.publish([number], [bench.entry(number, num_messages_in_batch=3)], num_messages=3)
    await bench.settle()
    first, _ = sink.take()
    assert flags(topic) == (6, False, [(6, True, 994)])
    consumer.acknowledge(first.position, ack_set=[0b100])
    assert sink.take() == []
    consumer.acknowledge(first.position, ack_set=[0b000])
    assert sink.take() == []
    assert flags(topic)[0] == 3
    assert topic.stats()["subscriptions"]["s"]["consumers"][0]["blockedConsumerOnUnackedMsgs"]


async def test_redelivery_unblocks(bench: Any, join: Any) -> None:
    bench.settings = TopicSettings(max_unacked_per_consumer=2)
    topic = await bench.topic()
    consumer, sink = await join(topic)
    await bench.publish(topic, *range(4))
    assert sink.numbers() == [0, 1]
    consumer.redeliver()
    assert sink.numbers() == [0, 1]


async def test_consumers_of_a_subscription_are_blocked_together_and_go_on_below_half(bench: Any, join: Any) -> None:
    bench.settings = TopicSettings(max_unacked_per_subscription=4)
    topic = await bench.topic()
    a, of_a = await join(topic, "a", 2)
    b, of_b = await join(topic, "b", 2)
    await bench.publish(topic, *range(20))
    held = [(a, each) for each in of_a.take()] + [(b, each) for each in of_b.take()]
    assert len(held) == 4
    assert flags(topic)[:2] == (4, True)
    assert topic.measure().subscriptions["s"].blocked
    a.flow(10)
    b.flow(10)
    for consumer, delivery in held[:2]:
        consumer.acknowledge(delivery.position)
    assert of_a.take() == of_b.take() == []
    assert flags(topic)[:2] == (2, True)
    consumer, delivery = held[2]
    consumer.acknowledge(delivery.position)
    assert of_a.take() + of_b.take()


async def test_subscription_goes_on_when_the_consumer_that_held_everything_leaves(bench: Any, join: Any) -> None:
    bench.settings = TopicSettings(max_unacked_per_subscription=2)
    topic = await bench.topic()
    a, of_a = await join(topic, "a", 2)
    await bench.publish(topic, *range(4))
    _, of_b = await join(topic, "b", 10)
    assert (len(of_a.take()), of_b.take()) == (2, [])
    a.close()
    assert of_b.numbers()[:2] == [0, 1]


@pytest.mark.parametrize(
    "changed", [TopicSettings(), TopicSettings(max_unacked_per_consumer=9, max_unacked_per_subscription=9)]
)
async def test_higher_limit_counts_at_once(bench: Any, join: Any, changed: TopicSettings) -> None:
    bench.settings = TopicSettings(max_unacked_per_consumer=2, max_unacked_per_subscription=2)
    topic = await bench.topic()
    _, sink = await join(topic)
    await bench.publish(topic, *range(6))
    assert len(sink.take()) == 2
    await topic.apply(changed)
    assert len(sink.take()) == 4


async def test_lower_limit_counts_for_what_is_held_already(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic)
    await bench.publish(topic, *range(6))
    held = sink.take()
    await topic.apply(TopicSettings(max_unacked_per_consumer=4))
    await bench.publish(topic, 6)
    assert sink.take() == []
    for delivery in held[:4]:
        consumer.acknowledge(delivery.position)
    assert sink.numbers() == [6]


@pytest.mark.parametrize("sub_type", [SubType.EXCLUSIVE, SubType.FAILOVER])
async def test_types_that_acknowledge_in_order_are_not_limited(bench: Any, join: Any, sub_type: SubType) -> None:
    bench.settings = TopicSettings(max_unacked_per_consumer=2, max_unacked_per_subscription=2)
    topic = await bench.topic()
    _, sink = await join(topic, sub_type=sub_type)
    await bench.publish(topic, *range(6))
    assert len(sink.take()) == 6
