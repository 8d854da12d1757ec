"""Acknowledging, seeking, unsubscribing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from interpulse.broker.live import cursor as cursor_module
from interpulse.broker.live.api import SubType, TopicSettings
from interpulse.broker.live.cursor import Acknowledgements
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.topic.subscription import CursorPromises
from interpulse.model.errors import MetadataError
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.wire.cursor_promise import HELD_S
from tests.support.fake_clock import FakeClock

ANY = MessageId(*EARLIEST)


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


async def test_seek_into_a_batch_when_the_broker_crashes_then_only_the_rest_of_it_comes(
    bench: Any, publish: Any
) -> None:
    topic = await bench.topic()
    producer, _ = await bench.producer(topic)
    await publish(producer, 0, num_messages_in_batch=3)
    consumer, _ = await bench.consumer(topic)
    await consumer.seek(MessageId(1, 0), (0b110,))
    await bench.crash()
    _, sink = await bench.consumer(await bench.topic())
    (delivery,) = sink.take()
    assert delivery.ack_set == (0b110,)


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


async def test_resets_are_counted_and_survive_a_crash(bench: Any) -> None:
    topic = await bench.topic()
    await bench.publish(topic, *range(3))
    consumer, _ = await bench.consumer(topic)
    subscription = topic.subscription("s")
    assert subscription.cursor.resets == 0
    subscription.skip_to(Position(1, 1))
    await consumer.seek(MessageId(1, 2))
    await subscription.seek_to_time(1_001)
    await backlog_operations.reset(topic, "s", ANY, excluded=False)
    await bench.crash()
    assert (await bench.topic()).subscription("s").cursor.resets == 3


async def test_rollback_when_a_consumer_asks_for_it_then_counts_as_a_reset(bench: Any) -> None:
    topic = await bench.topic()
    await bench.consumer(topic, start_rollback_seconds=10)
    assert topic.subscription("s").cursor.resets == 1


def elsewhere(
    mark_delete: int | None = None, ranges: Sequence[tuple[int, int]] = (), masks: Mapping[int, int] | None = None
) -> Acknowledgements:
    """Acknowledgements in ledger 1."""
    return Acknowledgements(
        None if mark_delete is None else Position(1, mark_delete),
        [(1, first, last) for first, last in ranges],
        [(Position(1, entry), mask) for entry, mask in (masks or {}).items()],
    )


@pytest.mark.parametrize("sub_type", ["EXCLUSIVE", "FAILOVER", "SHARED", "KEY_SHARED"])
async def test_acknowledged_elsewhere_then_only_what_is_left_comes_whatever_the_type(bench: Any, sub_type: str) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, sub_type=SubType[sub_type], permits=4)
    await bench.publish(topic, *range(10))
    assert sink.numbers() == [0, 1, 2, 3]
    subscription = topic.subscription("s")
    assert subscription.acknowledge_from_elsewhere(elsewhere(1, [(3, 3), (5, 6)])) == 5
    assert subscription.acknowledge_from_elsewhere(elsewhere(1, [(3, 3), (5, 6)])) == 0
    assert (consumer.closed, consumer.acknowledged.messages) == (False, 0)
    consumer.flow(10)
    assert sink.numbers() == [4, 7, 8, 9]
    consumer.redeliver()
    await bench.settle()
    consumer.flow(10)
    assert sink.numbers() == [2, 4, 7, 8, 9]


async def test_acknowledged_elsewhere_then_survives_a_crash_when_stored(bench: Any) -> None:
    topic = await bench.topic()
    await bench.consumer(topic)
    await bench.publish(topic, *range(6))
    acknowledged = elsewhere(0, [(2, 3)])
    assert (await backlog_operations.acknowledge(topic, "s", acknowledged, resets=0)).new == 3
    await bench.crash()
    _, sink = await bench.consumer(await bench.topic())
    assert sink.numbers() == [1, 4, 5]


async def test_acknowledged_elsewhere_when_part_of_a_batch_then_the_rest_of_it_comes(bench: Any, publish: Any) -> None:
    topic = await bench.topic()
    producer, _ = await bench.producer(topic)
    consumer, sink = await bench.consumer(topic, permits=0)
    subscription = topic.subscription("s")
    await publish(producer, 0, 1, 2, num_messages_in_batch=4)
    assert subscription.acknowledge_from_elsewhere(elsewhere(masks={0: 0b0110, 1: 0})) == 2
    assert subscription.acknowledge_from_elsewhere(elsewhere(masks={0: 0b1110, 1: 0b1})) == 0
    assert subscription.acknowledge_from_elsewhere(elsewhere(masks={0: 0b0011, 2: 0b1110})) == 2
    consumer.flow(20)
    assert [(each.position.entry, each.ack_set) for each in sink.take()] == [(0, (0b0010,)), (2, (0b1110,))]


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


async def test_skip_when_a_consumer_is_connected_then_it_goes_on_behind(bench: Any) -> None:
    topic = await bench.topic()
    _, sink = await bench.consumer(topic, permits=0)
    await bench.publish(topic, *range(5))
    backlog_operations.skip(topic, "s", 3)
    topic.subscription("s").consumers[0].flow(10)
    assert sink.numbers() == [3, 4]


async def test_skip_when_settled_then_survives_a_crash(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    backlog_operations.skip(topic, "s", 3)
    await topic.subscription("s").settled()
    await bench.crash()
    _, sink = await bench.consumer(await bench.topic())
    assert sink.numbers() == [3, 4]


async def test_markers_are_never_delivered_and_leave_no_backlog(bench: Any) -> None:
    topic = await bench.topic()
    producer, _ = await bench.producer(topic)
    consumer, sink = await bench.consumer(topic)
    for number, marker in enumerate([False, True, True, False, True]):
        metadata = {"marker_type": 10} if marker else {}
        producer.publish([number], [bench.entry(number, **metadata)], marker=marker)
    await bench.settle()
    deliveries = sink.deliveries
    assert sink.numbers() == [0, 3]
    assert consumer.permits == 998
    for each in deliveries:
        consumer.acknowledge(each.position)
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 0


@pytest.mark.parametrize("sub_type", ["EXCLUSIVE", "SHARED"])
async def test_acknowledge_of_several_then_as_one_by_one(bench: Any, sub_type: str) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, sub_type=getattr(SubType, sub_type))
    await bench.publish(topic, *range(5))
    positions = [each.position for each in sink.take()]
    beyond = Position(positions[-1].ledger, 99)
    consumer.acknowledge(positions[3], positions[0], positions[0], beyond)
    cursor = topic.subscription("s").cursor
    assert (cursor.mark_delete, list(cursor.ranges())) == (positions[0], [(positions[3].ledger, 3, 3)])
    assert consumer.acknowledged.messages == 4
    assert list(consumer.pending) == ([positions[1], positions[2], positions[4]] if sub_type == "SHARED" else [])
    consumer.close()
    consumer.acknowledge(*positions)
    assert cursor.mark_delete == positions[0]


@pytest.mark.parametrize("crash", [False, True], ids=["orderly", "crash"])
async def test_thousands_of_entries_acknowledged_out_of_order_stay_so_when_started_again(
    bench: Any, join: Any, crash: bool
) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic, permits=10_000)
    await bench.publish(topic, *range(4000))
    for delivery in sink.take()[1::2]:
        consumer.acknowledge(delivery.position)
    assert topic.stats()["subscriptions"]["s"]["nonContiguousDeletedMessagesRanges"] == 2000
    if crash:
        await bench.registry.flush()
        await bench.crash()
    else:
        await bench.restart()
    topic = await bench.topic()
    _, sink = await join(topic, permits=10_000)
    for _ in range(5):
        await bench.settle()
    assert sink.numbers() == list(range(0, 4000, 2))


async def test_ranges_beyond_what_is_stored_come_again(bench: Any, join: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor_module, "RANGES_PERSISTED_MAX", 2)
    topic = await bench.topic()
    consumer, sink = await join(topic)
    await bench.publish(topic, *range(10))
    for delivery in sink.take()[1::2]:
        consumer.acknowledge(delivery.position)
    await bench.restart()
    _, sink = await join(await bench.topic())
    assert sink.numbers() == [0, 2, 4, 5, 6, 7, 8, 9]


CURSOR = "pulsar.repl.west"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def promises(clock: FakeClock) -> CursorPromises:
    """Those of a topic that was loaded a while ago."""
    made = CursorPromises(clock)
    clock.now += 10
    return made


def test_cursor_when_moved_under_a_promise_then_waits_for_its_end(clock: FakeClock, promises: CursorPromises) -> None:
    promises.give()
    clock.now += 0.5
    promises.cursor_moved()
    assert promises.seconds_left == HELD_S - 0.5
    clock.now += HELD_S
    assert promises.seconds_left == 0


def test_promise_when_given_after_the_cursor_moved_then_holds_nothing_back(promises: CursorPromises) -> None:
    """The task has heard the new position."""
    promises.cursor_moved()
    promises.give()
    assert promises.seconds_left == 0


def test_cursor_when_just_loaded_then_the_promise_of_another_broker_may_still_hold(clock: FakeClock) -> None:
    promises = CursorPromises(clock)
    promises.cursor_moved()
    assert promises.seconds_left == HELD_S


async def test_position_of_a_replication_cursor_is_promised_and_that_of_no_other_subscription(bench: Any) -> None:
    bench.settings = TopicSettings(remote_clusters=("west",))
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, 0, 1, 2)
    assert topic.promised_position("s") is None
    assert topic.promised_position(CURSOR).entry == -1
    backlog_operations.clear(topic, CURSOR)
    assert topic.promised_position(CURSOR).entry == 2
    assert topic.subscription(CURSOR).promises.seconds_left > 0
    assert topic.subscription("s").promises is None
