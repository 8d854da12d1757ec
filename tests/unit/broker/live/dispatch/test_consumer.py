"""Permits, held entries and counters of one consumer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.requests import SubscribeRequest
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

    @staticmethod
    def now_ms() -> int:
        return 1

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
