"""Exclusive and Failover subscriptions."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import KeyRange, KeySharing, SubscribeRequest, SubType
from interpulse.broker.live.dispatch.dispatch import fits, make_way
from interpulse.model.errors import ConsumerAssignError, ConsumerBusy, ConsumerNotFound
from interpulse.model.ids import MessageId, Position
from interpulse.model.names import TopicName
from interpulse.wire.hashing import sticky_slot


async def test_exclusive_when_its_consumer_is_alive_then_busy(bench: Any) -> None:
    topic = await bench.topic()
    await bench.consumer(topic)
    with pytest.raises(ConsumerBusy, match="Exclusive consumer is already connected"):
        await bench.consumer(topic)
    with pytest.raises(ConsumerBusy, match="Subscription is of different type"):
        await bench.consumer(topic, sub_type=bench.SHARED)


async def test_exclusive_when_its_consumer_is_dead_then_it_is_taken_over(bench: Any) -> None:
    topic = await bench.topic()
    old, sink = await bench.consumer(topic)
    await bench.publish(topic, 1)
    sink.alive = False
    _, new_sink = await bench.consumer(topic)
    assert old.closed
    assert new_sink.numbers() == [1]


async def test_type_may_change_when_no_consumer_is_connected(bench: Any) -> None:
    topic = await bench.topic()
    consumer, _ = await bench.consumer(topic)
    consumer.close()
    consumer, sink = await bench.consumer(topic, sub_type=bench.SHARED)
    await bench.publish(topic, 1)
    assert sink.numbers() == [1]


async def test_permits_count_messages_and_the_last_entry_may_overdraw(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, permits=15)
    producer, _ = await bench.producer(topic)
    for number in range(4):
        producer.publish([number], [bench.entry(number, num_messages_in_batch=10)], num_messages=10)
    await bench.settle()
    assert sink.numbers() == [0, 1]
    assert consumer.permits == -5
    consumer.flow(5)
    assert sink.numbers() == []
    consumer.flow(1)
    assert sink.numbers() == [2]


async def test_entries_that_came_without_permits_are_delivered_on_flow(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, permits=2)
    await bench.publish(topic, *range(5))
    assert sink.numbers() == [0, 1]
    consumer.flow(2)
    await bench.publish(topic, 5)
    assert sink.numbers() == [2, 3]
    consumer.flow(10)
    assert sink.numbers() == [4, 5]


async def test_unwritable_sink_gets_nothing_until_it_resumes(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic)
    sink.writable = False
    await bench.publish(topic, 1, 2)
    assert sink.numbers() == []
    sink.writable = True
    consumer.resume()
    assert sink.numbers() == [1, 2]


async def test_redeliver_sends_everything_again_that_is_not_acknowledged(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, permits=100)
    await bench.publish(topic, *range(5))
    first = sink.take()
    consumer.acknowledge(first[1].position)
    consumer.redeliver([first[0].position], epoch=3)
    again = sink.deliveries
    assert sink.numbers() == [0, 2, 3, 4]
    assert [each.redelivery_count for each in again] == [0, 0, 0, 0]
    assert consumer.epoch == 3
    assert consumer.permits == 100 - 9


async def test_batch_acknowledged_in_part_comes_back_with_what_is_left(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic)
    producer, _ = await bench.producer(topic)
    for number in range(3):
        producer.publish([number], [bench.entry(number, num_messages_in_batch=3)], num_messages=3)
    await bench.settle()
    first = sink.take()
    consumer.acknowledge(first[0].position, ack_set=[0b101])
    consumer.acknowledge_cumulative(first[1].position, [0b110])
    consumer.redeliver()
    assert [(each.position, each.ack_set) for each in sink.take()] == [(Position(1, 1), (0b110,)), (Position(1, 2), ())]
    consumer.acknowledge(first[1].position, ack_set=[0b001])
    assert topic.mark_delete_position("s") == Position(1, 1)


async def test_acknowledging_what_does_not_exist_yet_is_ignored(bench: Any) -> None:
    topic = await bench.topic()
    consumer, _ = await bench.consumer(topic)
    await bench.publish(topic, 1)
    consumer.acknowledge(Position(1, 5))
    consumer.acknowledge_cumulative(Position(9, 9))
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 1


async def test_closed_consumer_ignores_everything(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic)
    consumer.close()
    consumer.close()
    await bench.publish(topic, 1)
    consumer.flow(5)
    consumer.resume()
    consumer.redeliver()
    consumer.acknowledge(Position(1, 0))
    consumer.acknowledge_cumulative(Position(1, 0))
    assert sink.numbers() == []
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 1
    with pytest.raises(ConsumerNotFound):
        await consumer.unsubscribe()


class TestFailover:
    async def three(self, bench: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        topic = await bench.topic()
        consumers, sinks = {}, {}
        for name in "abc":
            consumers[name], sinks[name] = await bench.consumer(
                topic, consumer_name=name, consumer_id=ord(name), sub_type=bench.FAILOVER
            )
        return topic, consumers, sinks

    def active(self, sinks: dict[str, Any]) -> str:
        [name] = [name for name, sink in sinks.items() if sink.active[-1]]
        return name

    async def test_one_is_active_and_gets_everything(self, bench: Any) -> None:
        topic, _, sinks = await self.three(bench)
        await bench.publish(topic, 1, 2)
        active = self.active(sinks)
        assert {name: sink.numbers() for name, sink in sinks.items()} == {
            name: [1, 2] if name == active else [] for name in "abc"
        }
        assert topic.stats()["subscriptions"]["s"]["activeConsumerName"] == active

    async def test_when_the_active_one_leaves_then_another_gets_what_is_not_acknowledged(self, bench: Any) -> None:
        topic, consumers, sinks = await self.three(bench)
        await bench.publish(topic, 1, 2, 3)
        active = self.active(sinks)
        delivered = sinks[active].take()
        consumers[active].acknowledge_cumulative(delivered[0].position)
        consumers[active].close()
        del sinks[active]
        assert sinks[self.active(sinks)].numbers() == [2, 3]

    async def test_partitions_go_to_consumers_in_the_order_of_their_names(self, bench: Any) -> None:
        for partition, active in enumerate("aba"):
            topic = await bench.topic(TopicName.parse(f"persistent://public/default/p-partition-{partition}"))
            for name in "ba":
                await bench.consumer(topic, consumer_name=name, consumer_id=ord(name), sub_type=bench.FAILOVER)
            assert topic.stats()["subscriptions"]["s"]["activeConsumerName"] == active

    async def test_each_consumer_is_told_once_whenever_it_becomes_active_or_not(self, bench: Any) -> None:
        topic = await bench.topic(TopicName.parse("persistent://public/default/p-partition-0"))
        sinks = {}
        for name in "bac":
            _, sinks[name] = await bench.consumer(
                topic, consumer_name=name, consumer_id=ord(name), sub_type=bench.FAILOVER
            )
        assert {name: sink.active for name, sink in sinks.items()} == {"b": [True, False], "a": [True], "c": [False]}
        assert all(sink.consumer_ids == {ord(name)} for name, sink in sinks.items())

    async def test_ranges_of_keys_are_of_no_matter(self, bench: Any) -> None:
        topic = await bench.topic()
        sharing = KeySharing((HALVES[0],))
        _, sink = await bench.consumer(topic, sub_type=bench.FAILOVER, key_sharing=sharing)
        await keyed(bench, topic, range(30))
        assert sink.numbers() == list(range(30))

    async def test_topics_without_partitions_are_spread_over_consumers(self, bench: Any) -> None:
        active = []
        for number in range(8):
            topic = await bench.topic(TopicName.parse(f"persistent://public/default/t{number}"))
            for name in "ab":
                await bench.consumer(topic, consumer_name=name, consumer_id=ord(name), sub_type=bench.FAILOVER)
            active.append(topic.stats()["subscriptions"]["s"]["activeConsumerName"])
        assert set(active) == {"a", "b"}

    async def test_redelivery_asked_by_one_that_is_not_active_does_nothing(self, bench: Any) -> None:
        topic, consumers, sinks = await self.three(bench)
        await bench.publish(topic, 1)
        active = self.active(sinks)
        assert sinks[active].numbers() == [1]
        next(each for name, each in consumers.items() if name != active).redeliver()
        assert sinks[active].numbers() == []


async def test_entry_acknowledged_while_it_waits_to_be_sent_again_is_not_sent(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, permits=2)
    await bench.publish(topic, 0, 1)
    first = sink.take()
    consumer.redeliver()
    consumer.acknowledge(first[0].position)
    consumer.flow(10)
    assert sink.numbers() == [1]


HALVES = [KeyRange(0, 32767), KeyRange(32768, 65535)]


async def keyed(bench: Any, topic: Any, numbers: range) -> None:
    producer, _ = await bench.producer(topic, "keyed", producer_id=98)
    for number in numbers:
        producer.publish([number], [bench.entry(number, partition_key=str(number))])
    await bench.settle()
    producer.close()


@pytest.mark.parametrize("half", HALVES, ids=["low", "high"])
async def test_exclusive_when_it_names_ranges_then_gets_their_keys_alone_from_the_log_and_as_they_come(
    bench: Any, half: KeyRange
) -> None:
    topic = await bench.topic()
    await keyed(bench, topic, range(30))
    request = {"durable": False, "start_message_id": MessageId(-1, -1), "key_sharing": KeySharing((half,))}
    consumer, sink = await bench.consumer(topic, "reader", permits=1000, **request)
    wanted = [number for number in range(60) if half.start <= sticky_slot(str(number).encode()) <= half.end]
    assert sink.numbers() == [number for number in wanted if number < 30]
    await keyed(bench, topic, range(30, 60))
    assert sink.numbers() == [number for number in wanted if number >= 30]
    assert consumer.permits == 1000 - len(wanted)
    _, other = await bench.consumer(topic, "all", durable=False, start_message_id=MessageId(-1, -1))
    assert other.numbers() == list(range(60))


async def test_exclusive_when_its_range_is_none_then_refused(bench: Any) -> None:
    topic = await bench.topic()
    with pytest.raises(ConsumerAssignError):
        await bench.consumer(topic, key_sharing=KeySharing((KeyRange(5, 4),)))
    await bench.consumer(topic)


STICKY, STICKY_TOO = KeySharing((KeyRange(0, 9),)), KeySharing((KeyRange(10, 19),))
ANY_ORDER = KeySharing((), True)


def request(sub_type: SubType, sharing: KeySharing = KeySharing()) -> SubscribeRequest:  # noqa: B008  # frozen
    return SubscribeRequest(1, "s", sub_type, key_sharing=sharing)


class Connected:
    """A consumer whose client is gone."""

    def __init__(self, first: SubscribeRequest) -> None:
        self.request = first
        self.sink = self
        self.closed = False

    async def is_alive(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("coming", "there", "why"),
    [
        (request(SubType.SHARED), request(SubType.SHARED), ""),
        (request(SubType.SHARED, ANY_ORDER), request(SubType.SHARED), ""),
        (request(SubType.KEY_SHARED, STICKY), request(SubType.KEY_SHARED, STICKY_TOO), ""),
        (request(SubType.KEY_SHARED, ANY_ORDER), request(SubType.KEY_SHARED, ANY_ORDER), ""),
        (
            request(SubType.FAILOVER),
            request(SubType.EXCLUSIVE),
            "type of 'Exclusive' is different than the connecting consumer's type 'Failover'.",
        ),
        (
            request(SubType.KEY_SHARED),
            request(SubType.KEY_SHARED, STICKY),
            "key_shared mode of 'STICKY' is different than the connecting consumer's key_shared mode 'AUTO_SPLIT'.",
        ),
        (
            request(SubType.KEY_SHARED, ANY_ORDER),
            request(SubType.KEY_SHARED),
            "does not allow out of order delivery while the connecting consumer allows it.",
        ),
        (
            request(SubType.KEY_SHARED),
            request(SubType.KEY_SHARED, ANY_ORDER),
            "allows out of order delivery while the connecting consumer does not allow it.",
        ),
    ],
)
async def test_consumers_fit_together_or_learn_why_not(
    coming: SubscribeRequest, there: SubscribeRequest, why: str
) -> None:
    assert fits(coming, there) is (why == "")
    connected: Any = [Connected(there)]
    if not why:
        await make_way(coming, connected)
        return
    with pytest.raises(ConsumerBusy) as refused:
        await make_way(coming, connected)
    assert str(refused.value) == f"Subscription is of different type. Active subscription {why}"


@pytest.mark.parametrize(
    ("sub_type", "wanted", "taken", "expected"),
    [
        (SubType.EXCLUSIVE, KeySharing(), KeySharing(), True),
        (SubType.SHARED, KeySharing(), KeySharing(), False),
        (SubType.SHARED, STICKY, STICKY, False),
        (SubType.KEY_SHARED, STICKY, STICKY, True),
        (SubType.KEY_SHARED, STICKY, STICKY_TOO, False),
        (SubType.KEY_SHARED, KeySharing(), KeySharing(), False),
    ],
)
async def test_consumers_in_the_way_close_if_their_client_is_gone(
    sub_type: SubType, wanted: KeySharing, taken: KeySharing, expected: bool
) -> None:
    connected: Any = [Connected(request(sub_type, taken))]
    await make_way(request(sub_type, wanted), connected)
    assert connected[0].closed is expected
