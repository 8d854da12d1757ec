"""Shared and Key_Shared subscriptions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from interpulse.broker.live.api import KeyRange, KeySharing, SubType, TopicSettings
from interpulse.broker.live.cursor import Acknowledgements
from interpulse.broker.live.dispatch import entry_feed
from interpulse.broker.live.dispatch import shared as shared_module
from interpulse.broker.live.entry_metadata import EntryMetadataCache
from interpulse.broker.live.registry import backlog_operations
from interpulse.model.errors import NotAllowed
from interpulse.model.ids import LATEST, Position

ACKNOWLEDGE = Callable[[Any, Sequence[Position]], None]


def _one_by_one(consumer: Any, positions: Sequence[Position]) -> None:
    for each in positions:
        consumer.acknowledge(each)


def _together(consumer: Any, positions: Sequence[Position]) -> None:
    consumer.acknowledge(*positions)


HOW = pytest.mark.parametrize("acknowledge", [_one_by_one, _together], ids=["one by one", "together"])


async def test_entries_are_handed_out_by_permits(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    _, a = await join(topic, "a", 3)
    _, b = await join(topic, "b", 100)
    await bench.publish(topic, *range(8))
    assert (a.numbers(), b.numbers()) == ([0, 1, 2], [3, 4, 5, 6, 7])


async def test_what_a_leaving_consumer_held_goes_to_others_uncounted(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    leaving, a = await join(topic, "a", 3)
    await bench.publish(topic, *range(5))
    leaving.acknowledge(a.take()[1].position)
    _, b = await join(topic, "b")
    assert b.numbers() == [3, 4]
    leaving.close()
    assert [each.redelivery_count for each in b.deliveries] == [0, 0]
    assert b.numbers() == [0, 2]


@pytest.mark.parametrize("sub_type", [SubType.SHARED, SubType.KEY_SHARED])
async def test_what_the_last_consumer_held_is_not_kept_and_comes_anew(bench: Any, join: Any, sub_type: SubType) -> None:
    topic = await bench.topic()
    last, sink = await join(topic, "a", 3, sub_type=sub_type)
    await bench.publish(topic, *range(5))
    last.redeliver([sink.take()[0].position])
    last.close()
    dispatch = topic.subscriptions["s"].dispatch
    assert (dispatch.replaying, list(last.pending)) == (0, [])
    _, heir = await join(topic, "b", sub_type=sub_type)
    assert [each.redelivery_count for each in heir.deliveries] == [0] * 5
    assert heir.numbers() == [0, 1, 2, 3, 4]


async def test_redelivery_is_counted_per_entry(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic)
    await bench.publish(topic, *range(3))
    positions = [each.position for each in sink.take()]
    consumer.redeliver([positions[0], positions[2], Position(7, 7)])
    consumer.redeliver([positions[0]])
    assert [(each.position, each.redelivery_count) for each in sink.take()] == [
        (positions[0], 1),
        (positions[2], 1),
        (positions[0], 2),
    ]
    consumer.redeliver()
    assert [each.redelivery_count for each in sink.take()] == [3, 1, 2]
    assert consumer.redelivered.messages == 6


async def test_entry_named_twice_is_given_back_once(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic)
    await bench.publish(topic, *range(2))
    [first, _] = [each.position for each in sink.take()]
    consumer.redeliver([first, first])
    assert [(each.position, each.redelivery_count) for each in sink.take()] == [(first, 1)]
    assert consumer.redelivered.messages == 1


async def test_batch_acknowledged_in_part_while_it_waits_comes_without_that_part(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic, permits=3, sub_type=bench.KEY_SHARED)
    producer, _ = await bench.producer(topic)
    for number in range(2):
        entry = bench.entry(number, num_messages_in_batch=3, partition_key="k")
        producer.publish([number], [entry], num_messages=3)
    await bench.settle()
    [held] = sink.take()
    waiting = Position(held.position.ledger, held.position.entry + 1)
    consumer.acknowledge(waiting, ack_set=[0b011])
    consumer.flow(3)
    [delivery] = sink.take()
    assert (delivery.position, delivery.ack_set, delivery.message_count) == (waiting, (0b011,), 2)


@pytest.mark.parametrize(
    ("sub_type", "in_replay"),
    [(SubType.SHARED, 2), (SubType.KEY_SHARED, 4)],
    ids=["Shared", "Key_Shared, which read on for other keys"],
)
async def test_entries_that_wait_to_be_sent_again_and_are_skipped_then_only_the_others_are_sent_and_counted(
    bench: Any, join: Any, sub_type: SubType, in_replay: int
) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic, permits=6, sub_type=sub_type)
    await bench.publish(topic, *range(8))
    sink.take()
    consumer.redeliver()
    backlog_operations.skip(topic, "s", 4)
    shown = topic.stats()["subscriptions"]["s"]
    assert (shown["msgInReplay"], shown["msgBacklog"], shown["unackedMessages"]) == (in_replay, 4, 0)
    consumer.flow(10)
    await bench.settle()
    assert [each.redelivery_count for each in sink.deliveries] == [1, 1, 0, 0]
    assert sink.numbers() == [4, 5, 6, 7]


async def test_entries_that_were_not_read_yet_and_are_skipped_then_those_behind_them_are_next(
    bench: Any, join: Any
) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic, permits=2)
    await bench.publish(topic, *range(6))
    assert sink.numbers() == [0, 1]
    backlog_operations.skip(topic, "s", 4)
    consumer.flow(10)
    await bench.settle()
    assert sink.numbers() == [4, 5]


async def test_redelivery_waits_for_permits_and_goes_first(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic, permits=3)
    await bench.publish(topic, *range(6))
    assert sink.numbers() == [0, 1, 2]
    consumer.redeliver()
    assert topic.stats()["subscriptions"]["s"]["msgInReplay"] == 3
    consumer.flow(2)
    consumer.flow(2)
    assert sink.numbers() == [0, 1, 2, 3]


async def test_entry_acknowledged_while_it_waits_to_be_sent_again_is_not_sent(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic, permits=2)
    await bench.publish(topic, 0, 1)
    first = sink.take()
    consumer.redeliver()
    consumer.acknowledge(first[0].position)
    consumer.flow(10)
    assert sink.numbers() == [1]


@HOW
async def test_acknowledgement_by_another_consumer_counts(bench: Any, join: Any, acknowledge: ACKNOWLEDGE) -> None:
    topic = await bench.topic()
    a, sink = await join(topic, "a")
    b, of_b = await join(topic, "b", 0)
    await bench.publish(topic, 1, 2)
    first, second = [each.position for each in sink.take()]
    a.redeliver([first])
    a.close()
    b.flow(10)
    assert {each.position: each.redelivery_count for each in of_b.take()} == {first: 1, second: 0}
    c, _ = await join(topic, "c", 0)
    acknowledge(c, [second, first])
    dispatch = topic.subscriptions["s"].dispatch
    assert (b.unacknowledged, b.pending, dispatch._redeliveries) == (0, {}, {})


@HOW
async def test_redelivery_counts_of_what_is_acknowledged_are_forgotten(
    bench: Any, join: Any, acknowledge: ACKNOWLEDGE
) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic)
    await bench.publish(topic, *range(3))
    positions = [each.position for each in sink.take()]
    consumer.redeliver()
    acknowledge(consumer, positions[:2])
    assert topic.subscriptions["s"].dispatch._redeliveries == {positions[2]: 1}


@HOW
@pytest.mark.parametrize(
    ("limits", "acknowledged", "woken"),
    [
        (TopicSettings(), 2, False),
        (TopicSettings(max_unacked_per_consumer=4), 1, False),
        (TopicSettings(max_unacked_per_consumer=4), 2, True),
        (TopicSettings(max_unacked_per_consumer=9), 2, False),
        (TopicSettings(max_unacked_per_subscription=4), 1, True),
        (TopicSettings(max_unacked_per_subscription=9), 2, False),
    ],
    ids=["no limit", "still blocked", "not blocked any more", "not blocked", "subscription is blocked", "it is not"],
)
async def test_acknowledgement_then_dispatch_looks_again_only_where_a_limit_held_it_back(
    bench: Any, join: Any, acknowledge: ACKNOWLEDGE, limits: TopicSettings, acknowledged: int, woken: bool
) -> None:
    bench.settings = limits
    topic = await bench.topic()
    consumer, sink = await join(topic)
    await bench.publish(topic, *range(4))
    looks: list[None] = []
    topic.subscriptions["s"].dispatch._wake = lambda: looks.append(None)
    acknowledge(consumer, [each.position for each in sink.take()][:acknowledged])
    assert bool(looks) is woken


async def test_part_of_a_batch_acknowledged_then_dispatch_does_not_look_again(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic)
    producer, _ = await bench.producer(topic)
    producer.publish([0], [bench.entry(0, num_messages_in_batch=3)], num_messages=3)
    await bench.settle()
    looks: list[None] = []
    topic.subscriptions["s"].dispatch._wake = lambda: looks.append(None)
    consumer.acknowledge(sink.take()[0].position, ack_set=[0b101])
    assert looks == []


@pytest.mark.parametrize("sub_type", list(SubType))
async def test_entries_that_came_while_their_consumer_did_not_read_go_first(
    bench: Any, join: Any, sub_type: SubType
) -> None:
    topic = await bench.topic()
    _, sink = await join(topic, sub_type=sub_type)
    sink.writable = False
    await bench.publish(topic, 0, 1)
    sink.writable = True
    await bench.publish(topic, 2)
    await bench.publish(topic, 3)
    assert sink.numbers() == [0, 1, 2, 3]


@pytest.mark.parametrize("entries_come", [True, False], ids=["when they come", "when permits come"])
async def test_new_entries_stay_behind_replays_that_are_being_read(
    bench: Any, join: Any, monkeypatch: pytest.MonkeyPatch, entries_come: bool
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, 0, 1)
    await bench.restart()
    topic = await bench.topic()
    consumer, sink = await join(topic)
    assert sink.numbers() == [0, 1]
    read, may_read = topic.log.read, asyncio.Event()

    async def wait_and_read(start: Position, **limits: int) -> Any:
        await may_read.wait()
        return await read(start, **limits)

    monkeypatch.setattr(topic.log, "read", wait_and_read)
    consumer.redeliver()
    sink.writable = entries_come
    await bench.publish(topic, 2)
    sink.writable = True
    consumer.flow(1)
    assert sink.numbers() == []
    may_read.set()
    await bench.settle()
    assert sink.numbers() == [0, 1, 2]


@pytest.mark.parametrize(("waiting", "read_on"), [(2, True), (3, False)], ids=["as many as may wait", "more"])
async def test_new_entries_are_read_until_too_many_wait(
    bench: Any, join: Any, monkeypatch: pytest.MonkeyPatch, waiting: int, read_on: bool
) -> None:
    monkeypatch.setattr(shared_module, "REPLAYS_MAX", 2)
    topic = await bench.topic()
    sharing = [KeySharing((KeyRange(0, 299),)), KeySharing((KeyRange(300, 65535),))]
    await join(topic, "a", 0, sub_type=bench.KEY_SHARED, key_sharing=sharing[0])
    reader, sink = await join(topic, "b", sub_type=bench.KEY_SHARED, key_sharing=sharing[1])
    producer, _ = await bench.producer(topic)
    for number in range(waiting):
        producer.publish([number], [bench.entry(number, partition_key="key1")])  # of a, who has no permits
    await bench.settle()
    sink.writable = False
    producer.publish([9], [bench.entry(9, partition_key="key2")])
    await bench.settle()
    sink.writable = True
    reader.resume()
    assert sink.numbers() == ([9] if read_on else [])


async def test_statistics_of_a_consumer_are_its_own(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    ranges = {"a": KeyRange(0, 299), "b": KeyRange(300, 65535)}
    for name, each in ranges.items():
        await join(topic, name, sub_type=bench.KEY_SHARED, key_sharing=KeySharing((each,)))
    shown = topic.stats()["subscriptions"]["s"]["consumers"]
    assert [each["keyHashRangeArrays"] for each in shown] == [[[0, 299]], [[300, 65535]]]


async def test_batch_that_is_read_again_then_all_its_messages_are_counted(
    bench: Any, join: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    producer, _ = await bench.producer(topic)
    producer.publish([0], [bench.entry(0, num_messages_in_batch=3)], num_messages=3)
    await bench.settle()
    await bench.restart()
    topic = await bench.topic()
    consumer, sink = await join(topic, permits=10)
    [delivery] = sink.take()
    assert (delivery.redelivery_count, delivery.ack_set, delivery.message_count) == (0, (), 3)
    monkeypatch.setattr(topic, "entry_metadata", EntryMetadataCache(LATEST))
    consumer.redeliver()
    await bench.settle()
    assert sink.take() == [delivery._replace(redelivery_count=1)]
    assert consumer.permits == 4


async def test_ordinary_entry_that_is_read_again_looks_as_before(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic)
    await bench.publish(topic, 0)
    delivered = sink.take()
    _, heir = await join(topic, "b")
    consumer.close()
    assert heir.take() == delivered
    assert (delivered[0].redelivery_count, delivered[0].ack_set) == (0, ())


async def test_replays_that_come_one_by_one_then_all_go_before_new_entries(
    bench: Any, join: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_module, "READ_ENTRIES_MAX", 1)
    topic = await bench.topic()
    consumer, sink = await join(topic, permits=3)
    await bench.publish(topic, *range(5))
    assert sink.numbers() == [0, 1, 2]
    consumer.redeliver()
    consumer.flow(10)
    assert sink.numbers() == [0, 1, 2, 3, 4]


async def test_cumulative_acknowledgement_is_refused(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, _ = await join(topic)
    with pytest.raises(NotAllowed, match="not allowed on a Shared subscription"):
        consumer.acknowledge_cumulative(Position(1, 0))


@pytest.mark.parametrize("sub_type", ["SHARED", "FAILOVER"])
async def test_part_of_a_batch_acknowledged_when_send_did_not_count_it_then_the_others_come_again(
    bench: Any, sub_type: str
) -> None:
    """Without a number SEND says one message; the metadata says five."""
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, sub_type=getattr(bench, sub_type))
    producer, _ = await bench.producer(topic)
    producer.publish([0], [bench.entry(0, num_messages_in_batch=5)])
    await bench.settle()
    [delivery] = sink.take()
    consumer.acknowledge(delivery.position, ack_set=[0b01001])
    consumer.redeliver()
    [again] = sink.take()
    assert (again.ack_set, again.message_count) == ((0b01001,), 2)


async def test_part_of_a_batch_acknowledged_then_unacknowledged_messages_fall(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic)
    producer, _ = await bench.producer(topic)
    producer.publish([0], [bench.entry(0, num_messages_in_batch=3)], num_messages=3)
    await bench.settle()
    [delivery] = sink.take()
    assert consumer.unacknowledged == 3
    consumer.acknowledge(delivery.position, ack_set=[0b101])
    assert consumer.unacknowledged == 2
    consumer.redeliver()
    [again] = sink.take()
    assert (again.ack_set, again.message_count, again.redelivery_count) == ((0b101,), 2, 1)
    consumer.redeliver()
    assert sink.take()[0].redelivery_count == 2
    consumer.acknowledge(delivery.position, ack_set=[0b100])
    consumer.redeliver()
    assert sink.take()[0].redelivery_count == 1  # counted anew: a consumer works on it
    consumer.acknowledge(delivery.position)
    assert consumer.unacknowledged == 0


async def test_replays_after_a_restart_are_read_from_the_log(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic)
    await bench.publish(topic, *range(6))
    await bench.restart()
    topic = await bench.topic()
    consumer, sink = await join(topic)
    positions = [each.position for each in sink.take()]
    assert len(positions) == 6
    consumer.redeliver([positions[0], positions[1], positions[4]])
    await bench.settle()
    assert sink.numbers() == [0, 1, 4]


async def test_replays_that_were_trimmed_are_forgotten(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic, permits=4)
    await bench.publish(topic, 0, 1)
    await topic.log.roll()
    await bench.publish(topic, 2, 3)
    assert sink.numbers() == [0, 1, 2, 3]
    consumer.redeliver()
    await topic.log.trim(Position(2, 0))
    consumer.flow(10)
    await bench.settle()
    assert sink.numbers() == [2, 3]
    assert topic.stats()["subscriptions"]["s"]["msgInReplay"] == 0


async def test_replays_larger_than_one_read_are_all_sent(
    bench: Any, join: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_feed, "READ_BYTES_MAX", 300)
    topic = await bench.topic()
    consumer, sink = await join(topic)
    await bench.publish(topic, *range(20))
    await bench.restart()
    topic = await bench.topic()
    consumer, sink = await join(topic)
    assert sink.numbers() == list(range(20))
    consumer.redeliver()
    for _ in range(20):
        await bench.settle()
    assert sink.numbers() == list(range(20))


async def test_key_is_free_when_its_holder_leaves_after_an_operator_skipped_what_it_held(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    holder, _ = await join(topic, "a", sub_type=bench.KEY_SHARED)
    await bench.publish(topic, 0)
    backlog_operations.clear(topic, "s")
    _, heir = await join(topic, "b", sub_type=bench.KEY_SHARED)
    holder.close()
    producer, _ = await bench.producer(topic)
    for number in range(20):
        producer.publish([number], [bench.entry(number, partition_key=f"k{number}", producer="filler")])
    producer.publish([20], [bench.entry(0, producer="filler")])  # the key of what was skipped
    await bench.settle()
    assert heir.numbers() == [*range(20), 0]


async def test_replays_of_a_client_that_does_not_read_do_not_keep_others_from_theirs(
    bench: Any, join: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_module, "READ_ENTRIES_MAX", 3)
    topic = await bench.topic()
    members = {name: await join(topic, name, sub_type=bench.KEY_SHARED) for name in "ab"}
    producer, _ = await bench.producer(topic)
    for number in range(40):
        producer.publish([number], [bench.entry(number, partition_key=f"k{number}")])
    await bench.settle()
    held = {name: [each.position for each in sink.take()] for name, (_, sink) in members.items()}
    deaf, eager = sorted(members, key=lambda name: held[name][0])
    members[deaf][1].writable = False
    members[deaf][0].redeliver()
    members[eager][0].redeliver()
    assert [each.position for each in members[eager][1].take()] == held[eager]


async def test_key_stays_with_its_holder_when_another_entry_of_it_is_acknowledged_late(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    holder, sink = await join(topic, "a", 2, sub_type=bench.KEY_SHARED)
    producer, _ = await bench.producer(topic)
    for number in range(2):
        producer.publish([number], [bench.entry(number, partition_key="k")])
    await bench.settle()
    first, second = [each.position for each in sink.take()]
    holder.redeliver([first])
    holder.acknowledge(first)
    others = [await join(topic, name, sub_type=bench.KEY_SHARED) for name in "bcdefgh"]
    producer.publish([2], [bench.entry(2, partition_key="k")])
    await bench.settle()
    assert [sink.numbers() for _, sink in others] == [[]] * 7
    holder.flow(1)
    holder.acknowledge(second)
    assert sorted([*sink.numbers(), *(number for _, sink in others for number in sink.numbers())]) == [2]


class Walk:
    """Random publishing, joining, leaving, acknowledging and restarting on one subscription."""

    def __init__(self, bench: Any, join: Any, seed: int, sub_type: SubType) -> None:
        self.chance = random.Random(seed)
        self.bench, self.join, self.sub_type = bench, join, sub_type
        self.members: dict[str, tuple[Any, Any]] = {}
        self.keys: dict[Position, str] = {}
        self.acknowledged: set[Position] = set()
        self.joined = 0

    async def begin(self) -> None:
        self.topic = await self.bench.topic()
        self.members = {}
        self.producer, _ = await self.bench.producer(self.topic)

    async def publish(self) -> None:
        for _ in range(self.chance.randint(1, 30)):
            key = f"k{self.chance.randint(0, 9)}"
            self.producer.publish([1], [self.bench.entry(1, partition_key=key)])
            self.keys[self.topic.log.last_appended] = key

    async def enter(self) -> None:
        if len(self.members) < 4:
            self.joined += 1
            name = chr(ord("a") + self.joined % 26)
            self.members[name] = await self.join(self.topic, name, self.chance.randint(0, 20), sub_type=self.sub_type)

    async def leave(self) -> None:
        if self.members:
            self.members.pop(self.chance.choice(sorted(self.members)))[0].close()

    async def flow(self) -> None:
        for consumer, _ in self.members.values():
            consumer.flow(self.chance.randint(0, 15))

    async def acknowledge(self) -> None:
        for consumer, _ in self.members.values():
            positions = self.some_pending(consumer)
            self.acknowledged.update(positions)
            if self.chance.random() < 0.5:
                consumer.acknowledge(*positions, *positions[:2], *self.chance.sample(sorted(self.acknowledged), 1))
                continue
            for position in positions:
                consumer.acknowledge(position)

    async def give_back(self) -> None:
        for consumer, _ in self.members.values():
            consumer.redeliver(self.some_pending(consumer) or [Position(0, 0)])

    async def restart(self) -> None:
        if self.chance.random() < 0.2:
            await self.bench.restart()
            await self.begin()

    async def step(self) -> None:
        steps = [self.publish, self.flow, self.acknowledge]
        await self.chance.choice([*steps, *steps, self.enter, self.leave, self.give_back, self.restart])()
        await self.bench.settle()

    def some_pending(self, consumer: Any) -> list[Position]:
        return self.chance.sample(sorted(consumer.pending), len(consumer.pending) // 2)

    def check(self) -> None:
        held = [position for consumer, _ in self.members.values() for position in consumer.pending]
        assert len(held) == len(set(held))
        assert not self.acknowledged & set(held)
        if self.sub_type is SubType.KEY_SHARED:
            keys = [
                key for consumer, _ in self.members.values() for key in {self.keys[each] for each in consumer.pending}
            ]
            assert len(keys) == len(set(keys))

    async def finish(self) -> None:
        last, _ = await self.join(self.topic, "z", 10_000, sub_type=self.sub_type)
        while self.members:
            await self.leave()
        await self.bench.settle()
        assert set(last.pending) == set(self.keys) - self.acknowledged
        for position in list(last.pending):
            last.acknowledge(position)
        assert self.topic.stats()["subscriptions"]["s"]["msgBacklog"] == 0


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("sub_type", [SubType.SHARED, SubType.KEY_SHARED])
async def test_whatever_happens_then_each_entry_is_held_once_and_none_is_lost(
    bench: Any, join: Any, seed: int, sub_type: SubType
) -> None:
    walk = Walk(bench, join, seed, sub_type)
    await walk.begin()
    await walk.topic.create_subscription("s")
    for _ in range(120):
        await walk.step()
        walk.check()
    await walk.finish()


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


@pytest.mark.parametrize("sub_type", [SubType.SHARED, SubType.KEY_SHARED])
async def test_acknowledged_elsewhere_then_consumers_hold_less_and_get_it_no_more(
    bench: Any, join: Any, sub_type: SubType
) -> None:
    bench.settings = TopicSettings(max_unacked_per_consumer=4)
    topic = await bench.topic()
    consumer, sink = await join(topic, sub_type=sub_type)
    await bench.publish(topic, *range(10))
    assert (sink.numbers(), consumer.unacknowledged, consumer.blocked) == ([0, 1, 2, 3], 4, True)
    acknowledged = Acknowledgements(Position(1, 0), [(1, 2, 2), (1, 6, 6)])
    assert topic.subscription("s").acknowledge_from_elsewhere(acknowledged) == 3
    await bench.settle()
    assert (sink.numbers(), sorted(consumer.pending)) == ([4, 5], [Position(1, entry) for entry in (1, 3, 4, 5)])
    assert consumer.unacknowledged == 4


@pytest.mark.parametrize("sub_type", [SubType.SHARED, SubType.KEY_SHARED])
async def test_acknowledged_elsewhere_when_it_waits_to_be_sent_again_then_is_not(
    bench: Any, join: Any, sub_type: SubType
) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic, permits=6, sub_type=sub_type)
    await bench.publish(topic, *range(6))
    positions = [delivery.position for delivery in sink.take()]
    consumer.redeliver(positions[1:5])
    assert topic.subscription("s").dispatch.replaying == 4
    acknowledged = Acknowledgements(None, [(1, 2, 3)])
    assert topic.subscription("s").acknowledge_from_elsewhere(acknowledged) == 2
    assert topic.subscription("s").dispatch.replaying == 2
    consumer.flow(10)
    await bench.settle()
    assert sink.numbers() == [1, 4]
    assert consumer.unacknowledged == 4


async def test_acknowledged_elsewhere_when_part_of_a_held_batch_then_counts_the_rest(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic, permits=4)
    producer, _ = await bench.producer(topic)
    producer.publish([0], [bench.entry(0, num_messages_in_batch=4)], num_messages=4)
    await bench.settle()
    (delivery,) = sink.take()
    subscription = topic.subscription("s")
    assert subscription.acknowledge_from_elsewhere(Acknowledgements(masks=[(delivery.position, 0b1100)])) == 1
    assert consumer.unacknowledged == 2
    consumer.redeliver([delivery.position])
    assert consumer.unacknowledged == 0
    assert subscription.acknowledge_from_elsewhere(Acknowledgements(masks=[(delivery.position, 0b1000)])) == 1
    consumer.flow(4)
    await bench.settle()
    (again,) = sink.take()
    assert (again.ack_set, again.message_count, consumer.unacknowledged) == ((0b1000,), 1, 1)


async def test_acknowledged_elsewhere_when_the_key_moved_then_its_next_entries_go_on(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    first, held = await join(topic, "a", sub_type=SubType.KEY_SHARED)
    producer, _ = await bench.producer(topic)
    keys = [str(number) for number in range(20)]
    for number, key in enumerate(keys):
        producer.publish([number], [bench.entry(number, partition_key=key)])
    await bench.settle()
    held.take()
    _, sink = await join(topic, "b", sub_type=SubType.KEY_SHARED)
    for number, key in enumerate(keys, 20):
        producer.publish([number], [bench.entry(number, partition_key=key)])
    await bench.settle()
    assert sink.numbers() == []
    assert topic.subscription("s").acknowledge_from_elsewhere(Acknowledgements(Position(1, 19))) == 20
    await bench.settle()
    moved, stayed = sink.numbers(), held.numbers()
    assert moved
    assert sorted(moved + stayed) == list(range(20, 40))
    assert first.unacknowledged == len(stayed)
