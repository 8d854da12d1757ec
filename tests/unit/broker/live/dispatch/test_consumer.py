"""Permits, held entries and counters of one consumer."""

from __future__ import annotations

from typing import Any

from interpulse.broker.live.api import Delivery
from interpulse.model.ids import Position

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
