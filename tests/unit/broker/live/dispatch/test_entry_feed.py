"""Reading what is not in memory; the rest of the feed shows in the tests of subscriptions."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.registry import upkeep
from interpulse.broker.live.requests import SubType
from interpulse.model.errors import PersistenceError
from interpulse.model.ids import EARLIEST, MessageId


async def test_backlog_is_read_in_pieces_as_permits_come(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(50))
    await bench.restart()
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, permits=3)
    got = sink.numbers()
    assert got == [0, 1, 2]
    while len(got) < 50:
        consumer.flow(4)
        await bench.settle()
        got += sink.numbers()
    assert got == list(range(50))
    await bench.publish(topic, 50)
    assert sink.numbers() == [50]


async def test_read_begun_before_a_seek_is_not_delivered(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    await bench.restart()
    topic = await bench.topic()
    consumer, old_sink = await bench.consumer(topic, permits=0)
    consumer.flow(100)
    await consumer.seek(MessageId(1, 3))
    _, sink = await bench.consumer(topic)
    assert old_sink.numbers() == []
    assert sink.numbers() == [3, 4]


async def test_read_that_fails_then_the_topic_is_loaded_again(bench: Any, monkeypatch: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    await bench.restart()
    topic = await bench.topic()

    async def fail(*_: Any, **__: Any) -> None:
        raise PersistenceError("damaged")

    monkeypatch.setattr(topic.log, "read", fail)
    _, sink = await bench.consumer(topic)
    assert sink.closed == [1]
    assert await bench.topic() is not topic


async def test_entries_acknowledged_before_a_restart_are_left_out(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, sub_type=bench.SHARED)
    producer, _ = await bench.producer(topic)
    for number in range(6):
        producer.publish(number, -1, 3, bench.entry(number, num_messages_in_batch=3))
    await bench.settle()
    positions = [each.position for each in sink.take()]
    for index in (1, 2, 5):
        consumer.acknowledge(positions[index])
    consumer.acknowledge(positions[3], [0b100])
    await bench.restart()
    _, sink = await bench.consumer(await bench.topic(), permits=100)
    deliveries = sink.deliveries
    assert sink.numbers() == [0, 3, 4]
    assert [(each.ack_set, each.message_count) for each in deliveries] == [((), 3), ((0b100,), 1), ((), 3)]


async def test_last_message_when_everything_was_trimmed_is_none(bench: Any) -> None:
    topic = await bench.topic()
    await bench.publish(topic, 1)
    await bench.restart()
    topic = await bench.topic()
    assert (await topic.last_message()).position == (1, 0)
    await upkeep.maintain(topic)
    assert (await topic.last_message()).position == EARLIEST


@pytest.fixture
async def last_acknowledged(bench: Any) -> Any:
    """A topic that was loaded again: a batch of three, a message, and one that is acknowledged already."""
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, sub_type=bench.SHARED)
    producer, _ = await bench.producer(topic)
    producer.publish(0, -1, 3, bench.entry(0, num_messages_in_batch=3))
    for number in (1, 2):
        producer.publish(number, -1, 1, bench.entry(number))
    await bench.settle()
    consumer.acknowledge(sink.take()[2].position)
    await bench.restart()
    return await bench.topic()


@pytest.mark.parametrize("sub_type", list(SubType))
async def test_permits_that_end_before_an_entry_that_is_left_out_then_nothing_before_it_is_lost(
    bench: Any, last_acknowledged: Any, sub_type: SubType
) -> None:
    consumer, sink = await bench.consumer(last_acknowledged, sub_type=sub_type, permits=3)
    assert sink.numbers() == [0]
    consumer.flow(3)
    assert sink.numbers() == [1]


async def test_topic_whose_last_entry_is_left_out_then_its_end_is_told_with_the_last_delivery(
    bench: Any, last_acknowledged: Any
) -> None:
    await last_acknowledged.terminate()
    _, sink = await bench.consumer(last_acknowledged, sub_type=bench.SHARED, permits=4)
    assert (sink.numbers(), sink.ended) == ([0, 1], 1)


async def test_feed_that_begins_then_others_keep_their_room(bench: Any) -> None:
    topic = await bench.topic()
    for name in "abc":
        await topic.create_subscription(name)
    await bench.publish(topic, *range(20))
    await bench.restart()
    topic = await bench.topic()
    for name in "ab":
        await bench.consumer(topic, name, permits=1)
    held = bench.registry.read_buffer_limiter.bytes_held
    assert held > 0
    await bench.consumer(topic, "c", permits=0)
    assert bench.registry.read_buffer_limiter.bytes_held == held
