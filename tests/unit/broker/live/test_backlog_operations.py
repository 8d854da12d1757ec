"""What operators do with a backlog. Truncating: each entry goes, nobody is sent away, a crash leaves all or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live import backlog_operations
from interpulse.broker.live.settings import TopicSettings
from interpulse.model.errors import MetadataError, NotFound, SubscriptionNotFound
from interpulse.model.ids import Position


async def test_peek_skip_and_clear_count_what_is_not_acknowledged(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(10))
    topic.subscription("s").cursor.acknowledge(Position(1, 1))
    assert (await backlog_operations.peek(topic, "s", 2)).position == Position(1, 2)
    with pytest.raises(NotFound):
        await backlog_operations.peek(topic, "s", 10)
    assert backlog_operations.skip(topic, "s", 2) == 2
    assert topic.mark_delete_position("s") == Position(1, 2)
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 7
    assert backlog_operations.clear(topic, "s") == 7
    assert backlog_operations.clear(topic, "s") == 0
    with pytest.raises(SubscriptionNotFound):
        backlog_operations.clear(topic, "other")


async def test_truncate_then_every_entry_is_gone_and_subscriptions_stand_at_the_end(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, 0, 1)
    await topic.log.roll()
    await bench.publish(topic, 2, 3)
    await backlog_operations.truncate(topic)
    assert topic.log.first_position is None
    assert topic.internal_stats()["numberOfEntries"] == 0
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 0
    with pytest.raises(NotFound):
        await backlog_operations.peek(topic, "s", 1)
    await bench.publish(topic, 4)
    _, sink = await bench.consumer(topic)
    assert sink.numbers() == [4]


async def test_truncate_of_an_empty_topic_changes_nothing(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await backlog_operations.truncate(topic)
    await backlog_operations.truncate(topic)
    await bench.publish(topic, 1)
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 1


@pytest.mark.parametrize("kind", ["EXCLUSIVE", "FAILOVER", "SHARED", "KEY_SHARED"])
async def test_truncate_while_clients_are_connected_then_they_stay_and_get_what_comes_next(
    bench: Any, kind: str, settle: Any
) -> None:
    topic = await bench.topic()
    sub_type = type(bench.SHARED)[kind]
    consumer, sink = await bench.consumer(topic, permits=2, sub_type=sub_type)
    producer, receipts = await bench.producer(topic)
    for number in range(5):
        producer.publish(number, -1, 1, bench.entry(number))
    await settle()
    producer.publish(5, -1, 1, bench.entry(5))  # still on its way to the disk
    await backlog_operations.truncate(topic)
    assert [each[0] for each in receipts.received] == [0, 1, 2, 3, 4, 5]
    assert (sink.closed, receipts.closed) == ([], [])
    assert sink.numbers() == [0, 1]
    consumer.acknowledge(Position(1, 0))
    consumer.redeliver([Position(1, 1)])
    consumer.flow(10)
    producer.publish(6, -1, 1, bench.entry(6))
    await settle()
    assert sink.numbers() == [6]
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 1


async def test_truncate_then_a_crash_brings_nothing_back(bench: Any) -> None:
    bench.settings = TopicSettings(deduplication_enabled=True)
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    topic.subscription("s").cursor.acknowledge(Position(1, 3))
    await backlog_operations.truncate(topic)
    await bench.crash()
    topic = await bench.topic()
    assert topic.internal_stats()["numberOfEntries"] == 0
    assert topic.deduplication.last_sequence_id("filler") == 4
    await bench.publish(topic, 5)
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 1


async def test_truncate_when_cursors_were_not_stored_then_a_crash_brings_nothing_back(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    topic.subscription("s").cursor.acknowledge(Position(1, 3))
    topic.cursor_changed(topic.subscription("s"))
    await bench.registry.flush()
    monkeypatch.setattr(topic.subscription("s"), "skip_to", _crash)
    with pytest.raises(_Crash):
        await backlog_operations.truncate(topic)
    await bench.crash()
    topic = await bench.topic()
    await bench.publish(topic, 5)
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 1
    _, sink = await bench.consumer(topic)
    assert sink.numbers() == [5]


async def test_truncate_when_the_record_cannot_be_written_then_everything_is_there(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    await topic.log.roll()

    async def refuse(*_: Any) -> None:
        raise MetadataError("disk full")

    with monkeypatch.context() as failing:
        failing.setattr(bench.metadata, "commit", refuse)
        with pytest.raises(MetadataError):
            await backlog_operations.truncate(topic)
    _, sink = await bench.consumer(topic)
    assert sink.numbers() == [0, 1, 2, 3, 4]
    await bench.crash()
    assert (await bench.topic()).internal_stats()["numberOfEntries"] == 5


async def test_truncate_of_a_terminated_topic_leaves_its_end(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, permits=1)
    await bench.publish(topic, 1, 2)
    end = await topic.terminate()
    await backlog_operations.truncate(topic)
    assert (sink.numbers(), sink.ended) == ([1], 1)
    assert topic.internal_stats()["numberOfEntries"] == 0
    consumer.close()
    await bench.restart()
    topic = await bench.topic()
    assert (topic.log.terminated, topic.places.durable) == (True, end)
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 0
    _, sink = await bench.consumer(topic)
    assert (sink.numbers(), sink.ended) == ([], 1)


class _Crash(Exception):
    """The process is gone."""


def _crash(*_: Any) -> int:
    raise _Crash
