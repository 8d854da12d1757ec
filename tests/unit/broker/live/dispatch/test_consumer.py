"""Permits, held entries and counters of one consumer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import pytest

from interpulse.broker.live.api import Delivery, SubscribeRequest
from interpulse.broker.live.dispatch.consumer import (
    Consumer,
    choose_active,
    covered_by,
    share_out,
)
from interpulse.model.errors import ConsumerNotFound
from interpulse.model.ids import MessageId, Position

ONE, TWO = Position(1, 0), Position(1, 1)


async def test_deliver_charges_permits_and_counts(bench: Any) -> None:
    consumer, sink = await bench.consumer(await bench.topic(), permits=5)
    consumer.deliver([Delivery(ONE, b"abc", 0, (), 4), Delivery(TWO, b"de")])
    stats = consumer.stats()
    assert (stats["availablePermits"], stats["msgOutCounter"], stats["bytesOutCounter"]) == (0, 5, 5)
    assert len(sink.deliveries) == 2


async def test_release_when_a_part_is_left_then_that_part_is_still_held(bench: Any) -> None:
    consumer, _ = await bench.consumer(await bench.topic())
    consumer.hold([Delivery(ONE, b"", 0, (), 4), Delivery(TWO, b"")])
    assert consumer.release(ONE, 3)
    assert (consumer.unacknowledged, consumer.pending) == (4, {ONE: 3, TWO: 1})
    assert consumer.release(ONE)
    assert not consumer.release(ONE)
    assert consumer.unacknowledged == 1


async def test_stats_name_the_client(bench: Any) -> None:
    consumer, _ = await bench.consumer(
        await bench.topic(), consumer_name="c", address="/127.0.0.1:5", client_version="v", metadata={"a": "b"}
    )
    stats = consumer.stats()
    assert stats["consumerName"] == "c"
    assert stats["address"] == "/127.0.0.1:5"
    assert stats["clientVersion"] == "v"
    assert stats["metadata"] == {"a": "b"}
    assert stats["connectedSince"] == "1970-01-01T00:16:40.000Z"
    assert consumer.subscription_name == "s"


async def test_acknowledgements_of_both_sorts_are_counted(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic)
    await bench.publish(topic, 0, 1, 2)
    positions = [each.position for each in sink.take()]
    consumer.acknowledge(positions[0])
    consumer.acknowledge_cumulative(positions[1])
    consumer.acknowledge_cumulative(positions[2])
    consumer.tick(2.0)
    assert consumer.stats()["messageAckRate"] == 1.5
    assert consumer.stats()["lastAckedTimestamp"] == bench.clock.time_ms
    consumer.close()
    consumer.acknowledge(positions[0])
    consumer.acknowledge_cumulative(positions[2])
    consumer.tick(1.0)
    assert consumer.stats()["messageAckRate"] == 0


class Owner:
    """A subscription that writes down what its consumers ask for."""

    name = "s"

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.time_ms = 1

    def now_ms(self) -> int:
        return self.time_ms

    def flow_granted(self) -> None:
        self.asked.append("flow_granted")

    def acknowledge(self, consumer: Consumer, positions: Sequence[Position], ack_set: Sequence[int]) -> None:
        self.asked.append(("acknowledge", consumer, positions, ack_set))

    def acknowledge_upto(self, position: Position, ack_set: Sequence[int]) -> None:
        self.asked.append(("acknowledge_upto", position, ack_set))

    def redeliver(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        self.asked.append(("redeliver", consumer, positions))

    async def seek(self, position: MessageId, ack_set: Sequence[int] = ()) -> None:
        self.asked.append(("seek", position, ack_set))

    async def seek_to_time(self, publish_time_ms: int) -> None:
        self.asked.append(("seek_to_time", publish_time_ms))

    async def unsubscribe(self, consumer: Consumer, *, force: bool) -> None:
        self.asked.append(("unsubscribe", consumer, force))

    def remove(self, consumer: Consumer) -> None:
        self.asked.append(("remove", consumer))


async def test_seek_and_unsubscribe_name_everything_and_are_refused_once_it_is_closed() -> None:
    owner: Any = Owner()
    sink: Any = None
    consumer = Consumer(owner, SubscribeRequest(1, "s"), sink)

    async def ask_all() -> None:
        for ask in (
            lambda: consumer.seek(MessageId(3, 4), [0b10]),
            lambda: consumer.seek_to_time(77),
            lambda: consumer.unsubscribe(),
            lambda: consumer.unsubscribe(force=True),
        ):
            if consumer.closed:
                with pytest.raises(ConsumerNotFound):
                    await ask()
            else:
                await ask()

    await ask_all()
    assert owner.asked == [
        ("seek", MessageId(3, 4), [0b10]),
        ("seek_to_time", 77),
        ("unsubscribe", consumer, False),
        ("unsubscribe", consumer, True),
    ]
    owner.asked.clear()
    consumer.close()
    await ask_all()
    assert owner.asked == [("remove", consumer)]


class Sink:
    """A client that writes down what it is sent."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def deliver(self, consumer_id: int, batch: Sequence[Delivery]) -> None:
        self.told.append((consumer_id, list(batch)))

    def consumer_closed(self, consumer_id: int) -> None:
        self.told.append(("closed", consumer_id))


def opened() -> tuple[Consumer, Any, Any]:
    owner: Any = Owner()
    sink: Any = Sink()
    request = SubscribeRequest(
        7, "s", consumer_name="c", epoch=5, address="/127.0.0.1:5", client_version="v", metadata={"a": "b"}
    )
    return Consumer(owner, request, sink), owner, sink


FOUR, SINGLE = Delivery(ONE, b"abc", 0, (), 4), Delivery(TWO, b"de")


def shown(**changed: object) -> dict[str, object]:
    """Statistics of a consumer that has done nothing yet but for these."""
    return {
        "msgRateOut": 0.0,
        "msgThroughputOut": 0.0,
        "bytesOutCounter": 0,
        "msgOutCounter": 0,
        "msgRateRedeliver": 0.0,
        "messageAckRate": 0.0,
        "chunkedMessageRate": 0.0,
        "consumerName": "c",
        "availablePermits": 0,
        "unackedMessages": 0,
        "avgMessagesPerEntry": 0,
        "blockedConsumerOnUnackedMsgs": False,
        "address": "/127.0.0.1:5",
        "connectedSince": "1970-01-01T00:00:00.001Z",
        "clientVersion": "v",
        "lastAckedTimestamp": 0,
        "lastConsumedTimestamp": 0,
        "firstMessagesSentTimestamp": 0,
        "lastConsumedFlowTimestamp": 0,
        "firstConsumedFlowTimestamp": 0,
        "metadata": {"a": "b"},
        "lastAckedTime": "1970-01-01T00:00:00.000Z",
        "lastConsumedTime": "1970-01-01T00:00:00.000Z",
    } | changed


def test_new_consumer_holds_and_may_get_nothing() -> None:
    consumer, _, _ = opened()
    assert consumer.stats() == shown()
    state = (consumer.permits, consumer.pending, consumer.unacknowledged, consumer.epoch)
    assert state == (0, {}, 0, 5)
    assert (consumer.blocked, consumer.closed, consumer.end_reported) == (False, False, False)


def test_statistics_tell_first_and_last_times_sums_and_rates() -> None:
    consumer, owner, sink = opened()
    for time_ms, permits in ((2, 10), (3, 20)):
        owner.time_ms = time_ms
        consumer.flow(permits)
    for time_ms, batch in ((4, [FOUR, SINGLE]), (5, [SINGLE])):
        owner.time_ms = time_ms
        consumer.deliver(batch)
        consumer.hold(batch)
    consumer.redelivered.messages += 3
    owner.time_ms = 6
    consumer.acknowledge(ONE)
    consumer.acknowledge(TWO, TWO)
    consumer.acknowledge(ONE)
    consumer.acknowledge(TWO)
    consumer.tick(2.0)
    assert sink.told == [(7, [FOUR, SINGLE]), (7, [SINGLE])]
    assert consumer.stats() == shown(
        msgRateOut=3.0,
        msgThroughputOut=3.5,
        bytesOutCounter=7,
        msgOutCounter=6,
        msgRateRedeliver=1.5,
        messageAckRate=2.5,
        availablePermits=24,
        unackedMessages=6,
        avgMessagesPerEntry=2,
        lastAckedTimestamp=6,
        lastConsumedTimestamp=5,
        firstMessagesSentTimestamp=4,
        lastConsumedFlowTimestamp=3,
        firstConsumedFlowTimestamp=2,
        lastAckedTime="1970-01-01T00:00:00.006Z",
        lastConsumedTime="1970-01-01T00:00:00.005Z",
    )


def test_entries_released_together_then_those_that_it_held_are_named_once_and_make_room() -> None:
    consumer, _, _ = opened()
    consumer.hold_at_most(5)
    consumer.flow(20)
    consumer.hold([FOUR, SINGLE])
    assert (consumer.unacknowledged, consumer.release_all([]), consumer.unacknowledged) == (5, [], 5)
    consumer.release(TWO)
    assert list(consumer.release_all([TWO, ONE, ONE])) == [ONE]
    assert (consumer.pending, consumer.unacknowledged, consumer.permits, consumer.blocked) == ({}, 0, 5, False)
    consumer.hold([FOUR, SINGLE])
    assert list(consumer.release_all([TWO, ONE])) == [TWO, ONE]
    assert (consumer.pending, consumer.unacknowledged) == ({}, 0)


def test_calls_are_passed_on_with_everything_they_name() -> None:
    consumer, owner, _ = opened()
    consumer.flow(1)
    consumer.resume()
    consumer.acknowledge(ONE, ack_set=[0b1])
    consumer.acknowledge(ONE)
    consumer.acknowledge(ONE, TWO)
    consumer.acknowledge_cumulative(TWO, [0b10])
    consumer.acknowledge_cumulative(TWO)
    consumer.redeliver([ONE])
    assert consumer.epoch == 5
    consumer.redeliver(epoch=6)
    assert consumer.epoch == 6
    assert owner.asked == [
        "flow_granted",
        "flow_granted",
        ("acknowledge", consumer, (ONE,), [0b1]),
        ("acknowledge", consumer, (ONE,), ()),
        ("acknowledge", consumer, (ONE, TWO), ()),
        ("acknowledge_upto", TWO, [0b10]),
        ("acknowledge_upto", TWO, ()),
        ("redeliver", consumer, [ONE]),
        ("redeliver", consumer, ()),
    ]


def test_close_by_broker_tells_the_client_once() -> None:
    consumer, owner, sink = opened()
    for _ in range(2):
        consumer.close_by_broker()
    assert (consumer.closed, owner.asked, sink.told) == (True, [("remove", consumer)], [("closed", 7)])


def test_permits_follow_what_is_held_up_to_the_limit_and_down_to_its_half() -> None:
    consumer, _, _ = opened()
    consumer.flow(10)
    assert (consumer.permits, consumer.blocked) == (10, False)
    consumer.hold_at_most(4)
    assert consumer.permits == 4
    consumer.hold([FOUR])
    consumer.deliver([FOUR])
    assert (consumer.permits, consumer.blocked) == (0, True)
    consumer.release(ONE, 3)
    assert (consumer.permits, consumer.blocked) == (0, True)
    consumer.release(ONE, 2)
    assert (consumer.permits, consumer.blocked) == (2, False)
    consumer.hold([SINGLE])
    consumer.give_up([TWO])
    assert (consumer.permits, consumer.unacknowledged) == (2, 2)
    consumer.forget_held()
    assert (consumer.permits, consumer.unacknowledged, consumer.pending) == (4, 0, {})
    consumer.hold_at_most(0)
    assert (consumer.permits, consumer.blocked) == (6, False)


def receiver(name: str, permits: int = 0, priority_level: int = 0) -> Consumer:
    consumer = Consumer(Mock(), SubscribeRequest(1, "s", consumer_name=name, priority_level=priority_level), Mock())
    consumer.permits = permits
    return consumer


def batch(*message_counts: int) -> list[Delivery]:
    return [Delivery(Position(1, entry), b"", 0, (), count) for entry, count in enumerate(message_counts)]


@pytest.mark.parametrize(
    ("counts", "permits", "covered"),
    [((1, 1, 1), 3, 3), ((1, 1, 1), 2, 2), ((1, 1), 0, 0), ((10, 10), 1, 1), ((10, 10), 10, 1), ((10, 10), 11, 2)],
)
def test_covered_by_counts_messages_and_overdraws_by_one_entry(
    counts: tuple[int, ...], permits: int, covered: int
) -> None:
    assert covered_by(batch(*counts), permits) == covered


def shares(entries: int, *receivers: Consumer, turn: int = 0) -> dict[str, list[int]]:
    parts, _ = share_out(batch(*[1] * entries), receivers, [each.permits for each in receivers], turn)
    return {consumer.name: [each.position.entry for each in part] for consumer, part in parts}


def test_share_out_gives_each_receiver_some_entries_in_turn() -> None:
    shared = shares(50, receiver("a", 1000), receiver("b", 1000))
    assert shared == {"a": [*range(20), *range(40, 50)], "b": list(range(20, 40))}


def test_share_out_goes_round_all_receivers() -> None:
    shared = shares(70, *(receiver(name, 1000) for name in "abc"))
    assert shared == {"a": [*range(20), *range(60, 70)], "b": list(range(20, 40)), "c": list(range(40, 60))}


def test_share_out_begins_with_the_turn() -> None:
    assert shares(5, receiver("a", 9), receiver("b", 9), turn=1) == {"b": [0, 1, 2, 3, 4]}


def test_share_out_when_permits_end_then_the_rest_stays() -> None:
    assert shares(9, receiver("a", 2), receiver("b", 1)) == {"a": [0, 1], "b": [2]}


@pytest.mark.parametrize(("turn", "first"), [(0, "b"), (1, "b"), (2, "d"), (3, "d"), (4, "b")])
def test_share_out_when_the_one_in_turn_lacks_permits_then_the_next_one_is(turn: int, first: str) -> None:
    receivers = [receiver("a", 0), receiver("b", 9), receiver("c", 0), receiver("d", 9)]
    assert shares(5, *receivers, turn=turn) == {first: [0, 1, 2, 3, 4]}


def test_share_out_serves_the_lowest_priority_level_first() -> None:
    shared = shares(9, receiver("low", 100, 1), receiver("high", 4, 0))
    assert shared == {"high": [0, 1, 2, 3], "low": [4, 5, 6, 7, 8]}


def test_choose_active_hands_partitions_out_in_the_order_of_names() -> None:
    consumers = [receiver("b"), receiver("a")]
    chosen = [choose_active(consumers, f"t-partition-{index}", index) for index in range(4)]
    assert [each.name for each in chosen if each] == ["a", "b", "a", "b"]
    first = [choose_active(consumers, f"t{number}-partition-0", 0) for number in range(10)]
    assert [each.name for each in first if each] == ["a"] * 10


def test_choose_active_prefers_the_lowest_priority_level() -> None:
    consumers = [receiver("a", priority_level=2), receiver("b", priority_level=1)]
    for partition in (-1, 0, 1):
        chosen = choose_active(consumers, "t", partition)
        assert chosen is consumers[1]


def test_choose_active_when_another_leaves_then_the_chosen_one_stays() -> None:
    consumers = [receiver(name) for name in "abcdef"]
    chosen = choose_active(consumers, "topic", -1)
    assert chosen is not None
    for leaving in consumers:
        if leaving is not chosen:
            assert choose_active([each for each in consumers if each is not leaving], "topic", -1) is chosen
    assert choose_active([], "topic", -1) is None


def test_choose_active_spreads_topics_over_consumers() -> None:
    consumers = [receiver("a"), receiver("b")]
    chosen = [choose_active(consumers, f"topic-{number}", -1) for number in range(100)]
    assert 20 < sum(each is consumers[0] for each in chosen) < 80
