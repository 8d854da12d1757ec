"""Appending, failing, restarting, positions, REST operations, replication cursors, statistics."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from interpulse.broker.live.api import LastMessage, SubType, TopicSettings
from interpulse.broker.live.registry import backlog_operations
from interpulse.model.errors import MetadataError, NotFound, PersistenceError, ServiceNotReady, TopicTerminated
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.policies.policy_records import RetentionPolicies
from interpulse.storage.api import FenceCause, LogFenced
from interpulse.storage.cursors import CursorRecord
from tests.support.waiting import eventually


async def test_failed_log_then_waiting_publishes_are_refused_and_all_clients_sent_away(
    bench: Any, make_entry: Any, settle: Any
) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    _, consumer_sink = await bench.consumer(topic)
    producer.publish([1], [make_entry(1)])
    topic.log.failed(OSError("disk"))
    assert [(number, type(error)) for number, error in sink.failures] == [(1, PersistenceError)]
    assert (sink.closed, consumer_sink.closed) == ([1], [1])
    assert sink.received == []
    with pytest.raises(ServiceNotReady):
        await bench.consumer(topic)
    await settle()
    again = await bench.topic()
    assert again is not topic
    assert again.internal_stats()["numberOfEntries"] == 0


async def test_expire_counts_what_was_published_too_long_ago(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(10))
    bench.clock.time_ms = 1_000 + 5_000
    assert await backlog_operations.expire(topic, "s", 5) == 0
    bench.clock.time_ms += 5
    assert await backlog_operations.expire(topic, "s", 5) == 5
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 5


async def test_last_message(bench: Any) -> None:
    topic = await bench.topic()
    assert await topic.last_message() == LastMessage(EARLIEST, -1)
    producer, _ = await bench.producer(topic)
    producer.publish([0], [bench.entry(0)])
    await bench.settle()
    assert await topic.last_message() == LastMessage(Position(1, 0), -1)
    producer.publish([1], [bench.entry(1, num_messages_in_batch=3)], num_messages=3)
    producer.publish([2], [bench.entry(2, marker_type=10)], marker=True)
    await bench.settle()
    assert await topic.last_message() == LastMessage(Position(1, 1), 2)
    with pytest.raises(NotFound):
        await topic.positions.read_entry(Position(1, 9))


async def test_last_message_when_the_newest_ledger_has_markers_alone_then_is_that_of_an_earlier_one(bench: Any) -> None:
    topic = await bench.topic()
    producer, _ = await bench.producer(topic)
    producer.publish([0], [bench.entry(0)])
    await bench.settle()
    for number in (1, 2):
        await topic.log.roll()
        producer.publish([number], [bench.entry(number, marker_type=10)], marker=True)
        await bench.settle()
    assert topic.log.last_position.ledger > 1
    assert await topic.last_message() == LastMessage(Position(1, 0), -1)


async def test_marker_that_is_published_while_a_group_is_on_its_way_is_never_delivered(bench: Any) -> None:
    topic = await bench.topic()
    _, sink = await bench.consumer(topic)
    producer, _ = await bench.producer(topic)
    producer.publish([0], [bench.entry(0)])
    on_its_way = topic.log.take_pending()
    producer.publish([1], [bench.entry(1, marker_type=10)], marker=True)
    producer.publish([2], [bench.entry(2)])
    bench.journal._store(on_its_way)
    topic.log.committed(on_its_way)
    await bench.settle()
    assert sink.numbers() == [0, 2]


@pytest.mark.parametrize("sub_type", list(SubType))
async def test_terminated_topic_that_is_read_from_the_log_then_its_end_is_told_behind_the_last_entry(
    bench: Any, sub_type: SubType
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, 1, 2)
    await topic.terminate()
    await bench.restart()
    _, sink = await bench.consumer(await bench.topic(), sub_type=sub_type)
    assert (sink.numbers(), sink.ended) == ([1, 2], 1)


async def test_terminate_then_no_more_entries_and_consumers_know_the_end(bench: Any) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    _, reader = await bench.consumer(topic, permits=1)
    await bench.publish(topic, 1, 2)
    assert await topic.terminate() == Position(1, 1)
    assert (sink.closed, producer.closed, sink.failures) == ([1], True, [])
    assert (reader.numbers(), reader.ended) == ([1], 0)
    topic.subscription("s").consumers[0].flow(5)
    topic.subscription("s").consumers[0].flow(5)
    assert (reader.numbers(), reader.ended) == ([2], 1)
    with pytest.raises(TopicTerminated):
        await bench.producer(topic, "q")


async def test_terminate_while_entries_are_on_their_way_then_those_have_receipts_and_no_later_one_has_an_answer(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    gate, terminate = asyncio.Event(), topic.log.terminate

    async def terminate_late() -> Position:
        await gate.wait()
        end: Position = await terminate()
        return end

    monkeypatch.setattr(topic.log, "terminate", terminate_late)
    producer.publish([1], [bench.entry(1)])
    ending = asyncio.ensure_future(topic.terminate())
    await asyncio.sleep(0)
    producer.publish([2], [bench.entry(2)])
    with pytest.raises(ServiceNotReady):
        await bench.producer(topic, "q")
    gate.set()
    assert await ending == Position(1, 0)
    assert ([sequence for sequence, *_ in sink.received], sink.failures, sink.closed) == ([1], [], [1])
    with pytest.raises(TopicTerminated):
        await bench.producer(topic, "q")


async def test_terminate_when_it_cannot_be_stored_then_producers_come_back(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)

    async def fail() -> Position:
        raise MetadataError("no room")

    with monkeypatch.context() as failing:
        failing.setattr(topic.log, "terminate", fail)
        with pytest.raises(MetadataError):
            await topic.terminate()
    assert (sink.closed, producer.closed) == ([1], True)
    await bench.publish(topic, 1)


class TestTrimming:
    async def filled(self, bench: Any) -> Any:
        """Three ledgers of two entries each; the last is the current one."""
        topic = await bench.topic()
        await topic.create_subscription("s")
        for first in (0, 2, 4):
            if first:
                await topic.log.roll()
            await bench.publish(topic, first, first + 1)
        return topic

    def ledgers(self, topic: Any) -> list[int]:
        return [each["ledgerId"] for each in topic.internal_stats()["ledgers"]]

    async def test_ledgers_that_every_cursor_passed_are_dropped(self, bench: Any) -> None:
        topic = await self.filled(bench)
        backlog_operations.skip(topic, "s", 3)
        await backlog_operations.maintain(topic)
        assert self.ledgers(topic) == [2, 3]
        _, sink = await bench.consumer(topic)
        assert sink.numbers() == [3, 4, 5]

    async def test_retention_keeps_what_is_acknowledged(self, bench: Any) -> None:
        bench.settings = TopicSettings(retention=RetentionPolicies(-1, -1))
        topic = await self.filled(bench)
        backlog_operations.clear(topic, "s")
        await backlog_operations.maintain(topic)
        assert self.ledgers(topic) == [1, 2, 3]
        await topic.apply(TopicSettings())
        await backlog_operations.maintain(topic)
        assert self.ledgers(topic) == [3]

    async def test_replication_cursor_keeps_everything(self, bench: Any) -> None:
        topic = await self.filled(bench)
        await topic.create_subscription("pulsar.repl.west")
        topic.subscription("pulsar.repl.west").cursor.reset(EARLIEST)
        backlog_operations.clear(topic, "s")
        await backlog_operations.maintain(topic)
        assert self.ledgers(topic) == [1, 2, 3]

    async def test_snapshot_of_sequence_ids_keeps_what_comes_after_it(self, bench: Any) -> None:
        bench.settings = TopicSettings(deduplication_enabled=True, deduplication_entries_interval=1000)
        topic = await self.filled(bench)
        backlog_operations.clear(topic, "s")
        await backlog_operations.maintain(topic)
        assert self.ledgers(topic) == [1, 2, 3]
        await bench.registry.flush()
        await backlog_operations.maintain(topic)
        assert self.ledgers(topic) == [3]
        await bench.crash()
        assert (await bench.topic()).publishing.deduplication.last_sequence_id("filler") == 5

    async def test_time_to_live_expires_and_then_trims(self, bench: Any) -> None:
        bench.settings = TopicSettings(message_ttl_seconds=1)
        topic = await self.filled(bench)
        bench.clock.time_ms = 2_000 + 4
        await backlog_operations.maintain(topic)
        assert self.ledgers(topic) == [3]
        assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 2


async def test_unloading_when_entries_are_on_their_way_then_those_behind_are_not_answered_but_sent_away(
    bench: Any, make_entry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    begun, go_on, close_log = asyncio.Event(), asyncio.Event(), topic.log.close

    async def close_slowly() -> None:
        begun.set()
        await go_on.wait()
        await close_log()

    monkeypatch.setattr(topic.log, "close", close_slowly)
    producer.publish([1], [make_entry(1)])
    closing = asyncio.create_task(topic.close())
    await begun.wait()
    producer.publish([2], [make_entry(2)])
    assert sink.closed == []
    go_on.set()
    await closing
    assert ([receipt[0] for receipt in sink.received], sink.failures, sink.closed) == ([1], [], [1])
    producer.publish([3], [make_entry(3)])
    assert (len(sink.received), sink.failures) == (1, [])


async def test_log_that_fails_before_its_topic_exists_then_the_topic_is_not_loaded(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = bench.registry._logs
    opened = logs.open

    async def failing(name: str, listener: Any, *, create: bool) -> Any:
        log = await opened(name, listener, create=create)
        listener.on_log_failed(PersistenceError("the disk is gone"))
        return log

    monkeypatch.setattr(logs, "open", failing)
    with pytest.raises(PersistenceError, match="failed while it was loaded"):
        await bench.topic()
    monkeypatch.undo()
    assert not (await bench.topic()).failed


class TakenCursors:
    """Cursors whose records another broker has claimed."""

    def __init__(self, cursors: Any) -> None:
        self._cursors = cursors
        self.flushes: list[bool] = []

    def of(self, log_name: str) -> Any:
        self.load, self.put = self._cursors.of(log_name).load, self._cursors.of(log_name).put
        return self

    async def flush(self, records: Mapping[str, CursorRecord], *, last: bool = False) -> None:
        self.flushes.append(last)
        raise LogFenced("x", "another broker has taken the topic over", FenceCause.OWNED_ELSEWHERE)


@pytest.fixture
def cursors(bench: Any) -> TakenCursors:
    bench.registry.cursor_store = TakenCursors(bench.registry.cursor_store)
    return bench.registry.cursor_store


async def test_topic_when_its_cursors_are_taken_then_goes_without_writing(
    bench: Any, cursors: TakenCursors, join: Any, publish: Any
) -> None:
    topic = await bench.topic()
    await join(topic)
    topic.subscription("s").cursor.changes += 1
    await bench.registry.flush()
    topic.cursors_changed()
    await bench.registry.flush()
    await eventually(lambda: bench.registry.get(topic.name) is None)
    assert topic.failed
    assert cursors.flushes == [False]
    with pytest.raises(ServiceNotReady):
        topic.check_open()


async def test_topic_when_its_log_is_taken_then_stores_no_cursor(bench: Any, cursors: TakenCursors, join: Any) -> None:
    topic = await bench.topic()
    await join(topic)
    topic.subscription("s").cursor.changes += 1
    topic.on_log_failed(LogFenced("x", "another process opened it", FenceCause.OWNED_ELSEWHERE))
    await eventually(lambda: bench.registry.get(topic.name) is None)
    assert cursors.flushes == []


async def test_topic_when_it_is_taken_while_it_is_closed_then_closing_tells(
    bench: Any, cursors: TakenCursors, join: Any
) -> None:
    topic = await bench.topic()
    await join(topic)
    topic.subscription("s").cursor.changes += 1
    with pytest.raises(LogFenced):
        await bench.registry.unload(topic.name)
    assert bench.registry.get(topic.name) is None
    assert cursors.flushes == [True]
