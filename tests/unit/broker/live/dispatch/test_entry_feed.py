"""Reading what is not in memory; the rest of the feed shows in the tests of subscriptions."""

from __future__ import annotations

from typing import Any

from interpulse.broker.live.registry import upkeep
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
