"""Reading what is not in memory; the rest of the feed shows in the tests of subscriptions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.broker.live import entry_metadata
from interpulse.broker.live.api import Delivery, SubType
from interpulse.broker.live.dispatch import entry_feed
from interpulse.broker.live.entry_metadata import EntryMetadataCache
from interpulse.broker.live.registry import upkeep
from interpulse.model.errors import PersistenceError, PulsarError
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.storage.api import NotReadableNow


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


async def test_backlog_of_batches_when_permits_are_few_then_no_more_of_them_are_looked_at(
    bench: Any, monkeypatch: Any
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    producer, _ = await bench.producer(topic)
    for number in range(40):
        producer.publish([number], [bench.entry(number, num_messages_in_batch=10)], num_messages=10)
    await bench.restart()
    topic = await bench.topic()
    looked_at: list[Position] = []
    get = EntryMetadataCache.get

    def counted(cache: EntryMetadataCache, position: Position, entry: bytes) -> Any:
        looked_at.append(position)
        return get(cache, position, entry)

    monkeypatch.setattr(EntryMetadataCache, "get", counted)
    consumer, sink = await bench.consumer(topic, permits=20)
    got = sink.numbers()
    while len(got) < 40:
        consumer.flow(20)
        await bench.settle()
        got += sink.numbers()
    assert got == list(range(40))
    assert len(looked_at) <= 2 * 40  # each of them, and the one behind those that are sent


async def test_backlog_when_it_is_read_then_its_entries_are_looked_at_together(bench: Any, monkeypatch: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    producer, _ = await bench.producer(topic)
    for number in range(40):
        producer.publish([number], [bench.entry(number, num_messages_in_batch=10)], num_messages=10)
    await bench.restart()
    topic = await bench.topic()

    def alone(entry: bytes) -> Any:
        raise AssertionError("an entry is looked at by itself")

    monkeypatch.setattr(entry_metadata, "entry_metadata_of", alone)
    _, sink = await bench.consumer(topic, permits=400)
    assert sink.numbers() == list(range(40))


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

    damage = PersistenceError("damaged")

    async def fail(*_: Any, **__: Any) -> None:
        raise damage

    monkeypatch.setattr(topic.log, "read", fail)
    read_failed, told = topic.read_failed, []

    def note(error: PulsarError) -> None:
        told.append(error)
        read_failed(error)

    monkeypatch.setattr(topic, "read_failed", note)
    _, sink = await bench.consumer(topic)
    assert (sink.closed, told) == ([1], [damage])
    assert await bench.topic() is not topic


@pytest.mark.parametrize("sub_type", [SubType.EXCLUSIVE, SubType.SHARED])
async def test_entries_that_cannot_be_read_now_then_are_delivered_later(
    bench: Any, monkeypatch: Any, sub_type: SubType
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    await bench.restart()
    topic = await bench.topic()
    may_read, told = asyncio.Event(), list[Any]()
    read = topic.log.read

    async def read_later(*arguments: Any, **limits: Any) -> Any:
        if not may_read.is_set():
            raise NotReadableNow("bookies do not answer")
        return await read(*arguments, **limits)

    monkeypatch.setattr(entry_feed, "AGAIN_S", 0.0)
    monkeypatch.setattr(topic.log, "read", read_later)
    monkeypatch.setattr(topic, "read_failed", told.append)
    consumer, sink = await bench.consumer(topic, sub_type=sub_type)
    consumer.flow(1)
    await bench.settle()
    assert sink.numbers() == []
    may_read.set()
    await bench.settle()
    assert (sink.numbers(), told) == ([0, 1, 2, 3, 4], [])


async def test_read_that_waits_when_the_subscription_is_moved_then_ends_with_nothing(
    bench: Any, monkeypatch: Any
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    await bench.restart()
    topic = await bench.topic()
    read = topic.log.read

    async def first_is_away(start: Position, **limits: Any) -> Any:
        if start.entry < 3:
            raise NotReadableNow("bookies do not answer")
        return await read(start, **limits)

    monkeypatch.setattr(entry_feed, "AGAIN_S", 0.0)
    monkeypatch.setattr(topic.log, "read", first_is_away)
    consumer, old_sink = await bench.consumer(topic)
    await consumer.seek(MessageId(1, 3))
    _, sink = await bench.consumer(topic)
    await bench.settle()
    assert old_sink.numbers() == []
    assert sink.numbers() == [3, 4]


async def test_entries_acknowledged_before_a_restart_are_left_out(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, sub_type=bench.SHARED)
    producer, _ = await bench.producer(topic)
    for number in range(6):
        producer.publish([number], [bench.entry(number, num_messages_in_batch=3)], num_messages=3)
    await bench.settle()
    positions = [each.position for each in sink.take()]
    for index in (1, 2, 5):
        consumer.acknowledge(positions[index])
    consumer.acknowledge(positions[3], ack_set=[0b110])
    await bench.restart()
    _, sink = await bench.consumer(await bench.topic(), permits=100)
    deliveries = sink.deliveries
    assert sink.numbers() == [0, 3, 4]
    shown = [(each.redelivery_count, each.ack_set, each.message_count) for each in deliveries]
    assert shown == [(0, (), 3), (0, (0b110,), 2), (0, (), 3)]


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
    producer.publish([0], [bench.entry(0, num_messages_in_batch=3)], num_messages=3)
    for number in (1, 2):
        producer.publish([number], [bench.entry(number)])
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


async def test_feeds_that_begin_and_end_leave_others_their_room_and_give_theirs_back(bench: Any) -> None:
    topic = await bench.topic()
    for name in "abc":
        await topic.create_subscription(name)
    await bench.publish(topic, *range(20))
    await bench.restart()
    topic, limiter = await bench.topic(), bench.registry.read_buffer_limiter
    members = [await bench.consumer(topic, name, permits=1) for name in "ab"]
    held = limiter.bytes_held
    assert held > 0
    for _ in range(2):
        consumer, _ = await bench.consumer(topic, "c", permits=0)
        consumer.close()
        assert limiter.bytes_held == held
    for consumer, sink in members:
        consumer.flow(19)
        assert sink.numbers() == list(range(20))
    assert limiter.bytes_held == topic.reads.kept_bytes


async def test_feed_whose_room_was_needed_then_it_reads_what_is_wanted_until_it_begins_again(bench: Any) -> None:
    other = TopicName.parse("persistent://public/default/other")
    for name in (None, other):
        topic = await bench.topic(*filter(None, [name]))
        await topic.create_subscription("s")
        await bench.publish(topic, *range(20))
    bench.read_bytes_max = 1
    await bench.restart()
    topic = await bench.topic()
    read, asked = topic.log.read, []

    async def note_and_read(start: Position, **limits: int) -> Any:
        asked.append((start.entry, limits["entries_max"]))
        return await read(start, **limits)

    topic.log.read = note_and_read
    consumer, sink = await bench.consumer(topic, permits=1)
    await bench.consumer(await bench.topic(other), permits=1)
    for _ in range(2):
        consumer.flow(2)
        await bench.settle()
    assert sink.numbers() == [0, 1, 2, 3, 4]
    consumer.redeliver()
    consumer.flow(1)
    await bench.settle()
    assert sink.numbers() == [0]
    assert asked == [(0, 1000), (1, 2), (3, 2), (0, 1000)]


async def test_read_that_ends_after_a_seek_then_nothing_of_it_is_delivered(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic)
    await bench.publish(topic, *range(5))
    consumer.acknowledge_cumulative(sink.take()[2].position)
    await bench.restart()
    topic = await bench.topic()
    read, may_read = topic.log.read, asyncio.Event()

    async def wait_and_read(start: Position, **limits: int) -> Any:
        await may_read.wait()
        return await read(start, **limits)

    topic.log.read = wait_and_read
    consumer, _ = await bench.consumer(topic)
    await consumer.seek(MessageId(-1, -1))
    _, sink = await bench.consumer(topic)
    assert sink.numbers() == []
    may_read.set()
    await bench.settle()
    assert sink.numbers() == [0, 1, 2, 3, 4]


async def test_ordinary_entry_when_delivered_then_nothing_is_said_of_it(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, 0)
    _, sink = await bench.consumer(topic)
    assert sink.deliveries == [Delivery(Position(1, 0), bench.entry(0, producer="filler"), 0, (), 1)]


async def test_new_subscription_leaves_alone_what_others_hold(bench: Any) -> None:
    class Other:
        def let_go(self, number: int) -> None:
            raise AssertionError(number)

    topic, limiter, other = await bench.topic(), bench.registry.read_buffer_limiter, Other()
    for _ in range(3):
        limiter.hold(10, other.let_go)
    held = limiter.bytes_held
    await bench.consumer(topic)
    assert limiter.bytes_held == held
