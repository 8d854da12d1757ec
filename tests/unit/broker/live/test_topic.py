"""Appending, failing, restarting, positions, REST operations, replication cursors, statistics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from interpulse.broker.live.api import InitialPosition, LastMessage, TopicSettings
from interpulse.model.errors import (
    AlreadyExists,
    MetadataError,
    NotAllowed,
    NotFound,
    PersistenceError,
    PreconditionFailed,
    ServiceNotReady,
    SubscriptionNotFound,
    TopicTerminated,
)
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.policies import RetentionPolicies
from interpulse.storage.api import Put

ANY = MessageId(*EARLIEST)


async def test_failed_log_then_waiting_publishes_are_refused_and_all_clients_sent_away(
    bench: Any, make_entry: Any, settle: Any
) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    _, consumer_sink = await bench.consumer(topic)
    producer.publish(1, -1, 1, make_entry(1))
    topic.log.failed(OSError("disk"))
    assert [(number, type(error)) for number, error in sink.failures] == [(1, PersistenceError)]
    assert (sink.closed, consumer_sink.closed) == ([1], [1])
    assert sink.receipts == []
    with pytest.raises(ServiceNotReady):
        await bench.consumer(topic)
    await settle()
    again = await bench.topic()
    assert again is not topic
    assert again.internal_stats()["numberOfEntries"] == 0


async def test_acknowledgements_survive_an_orderly_restart(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic)
    await bench.publish(topic, *range(6))
    positions = [each.position for each in sink.take()]
    for index in (0, 1, 4):
        consumer.acknowledge(positions[index])
    await bench.restart()
    _, sink = await bench.consumer(await bench.topic())
    assert sink.numbers() == [2, 3, 5]


async def test_acknowledgements_when_flushed_survive_a_crash(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic)
    await bench.publish(topic, *range(4))
    consumer.acknowledge_cumulative(sink.take()[1].position)
    await bench.registry.flush()
    await bench.crash()
    _, sink = await bench.consumer(await bench.topic())
    assert sink.numbers() == [2, 3]


async def test_new_subscription_survives_a_crash_at_once(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s", initial=InitialPosition.EARLIEST)
    await bench.publish(topic, 1)
    await bench.crash()
    _, sink = await bench.consumer(await bench.topic())
    assert sink.numbers() == [1]


async def test_damaged_cursor_record_then_the_topic_cannot_be_loaded(bench: Any) -> None:
    topic = await bench.topic()
    await bench.registry.unload(topic.name)
    await bench.metadata.commit([Put(f"/managed-ledgers/{topic.name.log_name}/s", b"{}")])
    with pytest.raises(MetadataError, match="cursor s of"):
        await bench.topic()


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (ANY, [0, 1, 2, 3, 4]),
        (MessageId(*LATEST), []),
        (MessageId(1, -1), [0, 1, 2, 3, 4]),
        (MessageId(1, 0), [0, 1, 2, 3, 4]),
        (MessageId(1, 2), [2, 3, 4]),
        (MessageId(1, 2, -1, 0), [2, 3, 4]),
        (MessageId(1, 4), [4]),
        (MessageId(1, 77), []),
        (MessageId(99, 0), []),
        (MessageId(0, 3), [0, 1, 2, 3, 4]),
    ],
)
async def test_position_as_seen_on_a_real_broker(bench: Any, target: MessageId, expected: list[int]) -> None:
    """A reader starts at its position, that entry included; a seek does the same."""
    topic = await bench.topic()
    await bench.publish(topic, *range(5))
    _, sink = await bench.consumer(topic, "reader", durable=False, start_message_id=target)
    assert sink.numbers() == expected
    consumer, _ = await bench.consumer(topic, "s")
    await consumer.seek(target)
    _, sink = await bench.consumer(topic, "s")
    assert sink.numbers() == expected


async def test_seek_closes_the_consumers_before_it_is_done(bench: Any) -> None:
    topic = await bench.topic()
    await bench.publish(topic, *range(3))
    consumer, sink = await bench.consumer(topic)
    await consumer.seek(ANY)
    assert sink.closed == [1]
    await bench.crash()
    _, sink = await bench.consumer(await bench.topic())
    assert sink.numbers() == [0, 1, 2]


async def test_seek_of_a_reader_then_its_cursor_waits_for_it_to_come_back(bench: Any, settle: Any) -> None:
    topic = await bench.topic()
    await bench.publish(topic, *range(5))
    consumer, _ = await bench.consumer(topic, "r", durable=False, start_message_id=ANY)
    await consumer.seek_to_time(1_003)
    await settle()
    again, sink = await bench.consumer(topic, "r", durable=False)
    assert sink.numbers() == [3, 4]
    again.close()
    await settle()
    assert topic.subscriptions == {}


async def test_reader_that_never_came_back_is_dropped_after_a_minute(bench: Any) -> None:
    topic = await bench.topic()
    consumer, _ = await bench.consumer(topic, "r", durable=False)
    await consumer.seek(ANY)
    await topic.maintain()
    assert "r" in topic.subscriptions
    bench.clock.time_ms += 61_000
    await topic.maintain()
    assert topic.subscriptions == {}


@pytest.mark.parametrize(("time_ms", "expected"), [(0, [0, 1, 2, 3]), (1_002, [2, 3]), (1_003, [3]), (9_999, [])])
async def test_seek_to_time(bench: Any, time_ms: int, expected: list[int]) -> None:
    topic = await bench.topic()
    await bench.publish(topic, 0, 1)
    await topic.log.roll()
    await bench.publish(topic, 2, 3)
    consumer, _ = await bench.consumer(topic)
    await consumer.seek_to_time(time_ms)
    _, sink = await bench.consumer(topic)
    assert sink.numbers() == expected


async def test_reader_with_rollback_starts_so_long_ago(bench: Any) -> None:
    bench.clock.time_ms = 5_000
    topic = await bench.topic()
    producer, _ = await bench.producer(topic)
    for number in range(5):
        producer.publish(number, -1, 1, bench.entry(number, publish_time=number * 1000))
    await bench.settle()
    _, sink = await bench.consumer(topic, "r", durable=False, start_rollback_seconds=2)
    assert sink.numbers() == [3, 4]


async def test_initial_position_counts_only_for_new_subscriptions(bench: Any) -> None:
    topic = await bench.topic()
    await bench.publish(topic, 1)
    earliest = {"initial_position": InitialPosition.EARLIEST}
    consumer, sink = await bench.consumer(topic, "a", **earliest)
    assert sink.numbers() == [1]
    consumer.close()
    first, _ = await bench.consumer(topic, "b")
    first.close()
    _, sink = await bench.consumer(topic, "b", **earliest)
    assert sink.numbers() == []


async def test_subscription_of_the_other_kind_of_durability_is_refused(bench: Any) -> None:
    topic = await bench.topic()
    await bench.consumer(topic, "d")
    await bench.consumer(topic, "n", durable=False)
    with pytest.raises(NotAllowed, match=r"^Durable subscription with the same name already exists\.$"):
        await bench.consumer(topic, "d", durable=False)
    with pytest.raises(NotAllowed, match=r"^NonDurable subscription"):
        await bench.consumer(topic, "n")


@pytest.mark.parametrize("name", ["", " ", "pulsar.dedup"])
async def test_subscription_with_a_name_that_cannot_be_is_refused(bench: Any, name: str) -> None:
    topic = await bench.topic()
    with pytest.raises(NotAllowed):
        await bench.consumer(topic, name)
    with pytest.raises(NotAllowed):
        await topic.create_subscription(name)


async def test_subscription_when_creation_is_off_then_not_found_but_readers_work(bench: Any) -> None:
    bench.settings = TopicSettings(auto_subscription_creation_allowed=False)
    topic = await bench.topic()
    with pytest.raises(SubscriptionNotFound):
        await bench.consumer(topic)
    await bench.consumer(topic, "r", durable=False)


async def test_subscriptions_by_rest(bench: Any) -> None:
    topic = await bench.topic()
    await bench.publish(topic, *range(3))
    await topic.create_subscription("s", position=MessageId(1, 1), properties={"a": "b"})
    with pytest.raises(AlreadyExists):
        await topic.create_subscription("s")
    assert topic.subscription_names() == ["s"]
    assert topic.mark_delete_position("s") == Position(1, 0)
    assert topic.stats()["subscriptions"]["s"]["subscriptionProperties"] == {"a": "b"}
    consumer, _ = await bench.consumer(topic)
    with pytest.raises(PreconditionFailed):
        await topic.delete_subscription("s")
    await topic.delete_subscription("s", force=True)
    assert consumer.closed
    with pytest.raises(SubscriptionNotFound):
        await topic.delete_subscription("s")
    await bench.restart()
    assert (await bench.topic()).subscription_names() == []


async def test_unsubscribe_when_others_are_connected_then_only_by_force(bench: Any) -> None:
    topic = await bench.topic()
    shared = {"sub_type": bench.SHARED}
    one, _ = await bench.consumer(topic, **shared)
    _, other_sink = await bench.consumer(topic, consumer_id=2, **shared)
    with pytest.raises(MetadataError, match="Unconnected or shared consumer attempting to unsubscribe"):
        await one.unsubscribe()
    await one.unsubscribe(force=True)
    assert other_sink.closed == [2]
    assert topic.subscription_names() == []


async def test_backlog_operations(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(10))
    topic.subscription("s").cursor.acknowledge(Position(1, 1))
    assert (await topic.peek("s", 2)).position == Position(1, 2)
    with pytest.raises(NotFound):
        await topic.peek("s", 10)
    assert await topic.skip("s", 2) == 2
    assert topic.mark_delete_position("s") == Position(1, 2)
    bench.clock.time_ms = 1_000 + 5_000
    assert await topic.expire("s", 5) == 0
    bench.clock.time_ms += 5
    assert await topic.expire("s", 5) == 2
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 5
    assert topic.clear_backlog("s") == 5
    assert topic.clear_backlog("s") == 0
    with pytest.raises(SubscriptionNotFound):
        topic.clear_backlog("other")


async def test_skip_when_a_consumer_is_connected_then_it_goes_on_behind(bench: Any) -> None:
    topic = await bench.topic()
    _, sink = await bench.consumer(topic, permits=0)
    await bench.publish(topic, *range(5))
    await topic.skip("s", 3)
    topic.subscription("s").consumers[0].flow(10)
    assert sink.numbers() == [3, 4]


async def test_last_message(bench: Any) -> None:
    topic = await bench.topic()
    assert await topic.last_message() == LastMessage(EARLIEST, -1)
    producer, _ = await bench.producer(topic)
    producer.publish(0, -1, 1, bench.entry(0))
    await bench.settle()
    assert await topic.last_message() == LastMessage(Position(1, 0), -1)
    producer.publish(1, -1, 3, bench.entry(1, num_messages_in_batch=3))
    producer.publish(2, -1, 1, bench.entry(2, marker_type=10), False, True)
    await bench.settle()
    assert await topic.last_message() == LastMessage(Position(1, 1), 2)
    with pytest.raises(NotFound):
        await topic.read_entry(Position(1, 9))


async def test_terminate_then_no_more_entries_and_consumers_know_the_end(bench: Any, make_entry: Any) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    _, reader = await bench.consumer(topic, permits=1)
    await bench.publish(topic, 1, 2)
    assert await topic.terminate() == Position(1, 1)
    producer.publish(3, -1, 1, make_entry(3))
    assert [type(error) for _, error in sink.failures] == [TopicTerminated]
    assert (reader.numbers(), reader.ended) == ([1], 0)
    topic.subscription("s").consumers[0].flow(5)
    topic.subscription("s").consumers[0].flow(5)
    assert (reader.numbers(), reader.ended) == ([2], 1)
    with pytest.raises(TopicTerminated):
        await bench.producer(topic, "q")


async def test_markers_are_never_delivered_and_leave_no_backlog(bench: Any) -> None:
    topic = await bench.topic()
    producer, _ = await bench.producer(topic)
    consumer, sink = await bench.consumer(topic)
    for number, marker in enumerate([False, True, True, False, True]):
        metadata = {"marker_type": 10} if marker else {}
        producer.publish(number, -1, 1, bench.entry(number, **metadata), False, marker)
    await bench.settle()
    deliveries = sink.deliveries
    assert sink.numbers() == [0, 3]
    assert consumer.permits == 998
    for each in deliveries:
        consumer.acknowledge(each.position)
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 0


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
        await topic.skip("s", 3)
        await topic.maintain()
        assert self.ledgers(topic) == [2, 3]
        _, sink = await bench.consumer(topic)
        assert sink.numbers() == [3, 4, 5]

    async def test_retention_keeps_what_is_acknowledged(self, bench: Any) -> None:
        bench.settings = TopicSettings(retention=RetentionPolicies(-1, -1))
        topic = await self.filled(bench)
        topic.clear_backlog("s")
        await topic.maintain()
        assert self.ledgers(topic) == [1, 2, 3]
        await topic.apply(TopicSettings())
        await topic.maintain()
        assert self.ledgers(topic) == [3]

    async def test_replication_cursor_keeps_everything(self, bench: Any) -> None:
        topic = await self.filled(bench)
        await topic.open_replication_cursor("west")
        topic.subscription("pulsar.repl.west").cursor.reset(EARLIEST)
        topic.clear_backlog("s")
        await topic.maintain()
        assert self.ledgers(topic) == [1, 2, 3]

    async def test_snapshot_of_sequence_ids_keeps_what_comes_after_it(self, bench: Any) -> None:
        bench.settings = TopicSettings(deduplication_enabled=True, deduplication_entries_interval=1000)
        topic = await self.filled(bench)
        topic.clear_backlog("s")
        await topic.maintain()
        assert self.ledgers(topic) == [1, 2, 3]
        await bench.registry.flush()
        await topic.maintain()
        assert self.ledgers(topic) == [3]
        await bench.crash()
        assert (await bench.topic()).deduplication.last_sequence_id("filler") == 5

    async def test_time_to_live_expires_and_then_trims(self, bench: Any) -> None:
        bench.settings = TopicSettings(message_ttl_seconds=1)
        topic = await self.filled(bench)
        bench.clock.time_ms = 2_000 + 4
        await topic.maintain()
        assert self.ledgers(topic) == [3]
        assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 2


class TestReplicationCursors:
    async def test_policy_opens_and_closes_them(self, bench: Any) -> None:
        topic = await bench.topic()
        await bench.publish(topic, 1)
        await topic.apply(replace(topic.settings, remote_clusters=("west", "north")))
        await bench.publish(topic, 2)
        stats = topic.stats()
        assert {name: each["replicationBacklog"] for name, each in stats["replication"].items()} == {
            "west": 1,
            "north": 1,
        }
        assert stats["subscriptions"] == {}
        assert topic.subscription_names() == []
        await topic.apply(replace(topic.settings, remote_clusters=("west",)))
        assert list(topic.stats()["replication"]) == ["west"]

    async def test_new_topic_has_them_before_anything_is_published(self, bench: Any) -> None:
        bench.settings = TopicSettings(remote_clusters=("west",))
        topic = await bench.topic()
        await bench.publish(topic, 1)
        await bench.crash()
        topic = await bench.topic()
        consumer, sink = await bench.consumer(topic, "pulsar.repl.west")
        assert topic.stats()["replication"]["west"]["connected"]
        [delivery] = sink.take()
        consumer.acknowledge_cumulative(delivery.position)
        assert topic.stats()["replication"]["west"]["replicationBacklog"] == 0

    async def test_closing_one_that_is_not_there_does_nothing(self, bench: Any) -> None:
        topic = await bench.topic()
        await topic.close_replication_cursor("west")
        await topic.open_replication_cursor("west")
        await topic.open_replication_cursor("west")
        await topic.close_replication_cursor("west")
        assert topic.subscriptions == {}


async def test_statistics_count_messages_and_internal_ones_entries(bench: Any) -> None:
    topic = await bench.topic()
    producer, _ = await bench.producer(topic)
    _, sink = await bench.consumer(topic)
    for number in range(2):
        producer.publish(number, -1, 10, bench.entry(number, num_messages_in_batch=10))
    await bench.settle()
    topic.tick(10)
    stats = topic.stats()
    assert (stats["msgInCounter"], stats["msgOutCounter"], stats["msgRateIn"]) == (20, 20, 2.0)
    assert stats["bytesInCounter"] == stats["storageSize"] == sum(len(each.entry) for each in sink.take())
    assert stats["publishers"][0]["producerName"] == "p"
    assert stats["subscriptions"]["s"]["msgBacklog"] == 2
    assert stats["backlogSize"] == stats["storageSize"]
    assert stats["subscriptions"]["s"]["consumers"][0]["availablePermits"] == 980
    internal = topic.internal_stats()
    assert (internal["numberOfEntries"], internal["currentLedgerEntries"]) == (2, 2)
    assert internal["lastConfirmedEntry"] == "1:1"
    assert internal["ledgers"] == [
        {"ledgerId": 1, "entries": 0, "size": 0, "offloaded": False, "underReplicated": False}
    ]
    assert internal["cursors"]["s"]["readPosition"] == "1:2"
    producer.close()
    assert topic.stats()["msgInCounter"] == 20
