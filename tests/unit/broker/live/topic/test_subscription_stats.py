"""What a subscription shows goes on counting when consumers leave, and metrics agree with it."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import SubType
from interpulse.broker.live.topic import subscription_stats
from interpulse.model.ids import Position


@pytest.mark.parametrize("sub_type", [SubType.SHARED, SubType.EXCLUSIVE])
async def test_statistics_count_also_what_consumers_did_that_are_gone(bench: Any, join: Any, sub_type: SubType) -> None:
    topic = await bench.topic()
    for number, name in enumerate("ab"):
        consumer, sink = await join(topic, name, sub_type=sub_type)
        await bench.publish(topic, number)
        consumer.redeliver()
        await bench.settle()
        first, again = sink.take()
        assert first.position == again.position
        consumer.acknowledge(again.position)
        consumer.close()
    topic.tick(1)
    subscription = topic.subscription("s")
    shown = subscription_stats.stats(subscription, topic.positions.durable)
    measured = subscription_stats.measure(subscription, topic.positions.durable)
    assert (shown["msgOutCounter"], shown["msgBacklog"], shown["unackedMessages"], shown["consumers"]) == (4, 0, 0, [])
    assert (measured.messages_out, measured.bytes_out) == (shown["msgOutCounter"], shown["bytesOutCounter"])
    assert shown["type"] == sub_type.label


async def test_cursor_shows_where_it_stands_and_what_was_acknowledged_out_of_order(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    subscription = topic.subscription("s")
    assert subscription_stats.internal_stats(subscription)["readPosition"] == "1:0"
    consumer, sink = await join(topic)
    await bench.publish(topic, *range(5))
    positions = [each.position for each in sink.take()]
    for number in (0, 2, 3):
        consumer.acknowledge(positions[number])
    consumer.redeliver([positions[4]])
    shown = subscription_stats.internal_stats(subscription)
    assert (shown["markDeletePosition"], shown["readPosition"]) == ("1:0", "1:5")
    assert shown["individuallyDeletedMessages"] == "[(1:1..1:3]]"
    assert (shown["active"], shown["numberOfEntriesSinceFirstNotAckedMessage"]) == (True, 4)


async def test_replication_cursor_counts_what_the_job_is_done_with(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("pulsar.repl.west")
    await bench.publish(topic, *range(5))
    consumer, sink = await join(topic, "j", subscription="pulsar.repl.west", permits=0, sub_type=SubType.EXCLUSIVE)
    last = topic.positions.durable
    for upto in (Position(last.ledger, 2), Position(last.ledger, 1), last):
        consumer.acknowledge_cumulative(upto)
    topic.tick(2)
    assert sink.take() == []
    shown = topic.stats()["replication"]["west"]
    assert (shown["msgOutCount"], shown["msgRateOut"], shown["replicationBacklog"]) == (5, 2.5, 0)
    (ledger,) = topic.log.ledgers
    assert shown["bytesOutCount"] == ledger.size > 0
    consumer.close()
    measured = topic.measure().replication["west"]
    assert (measured.rate_out, measured.throughput_out) == (2.5, ledger.size / 2)
