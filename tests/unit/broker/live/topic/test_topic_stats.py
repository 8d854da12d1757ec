"""Statistics as Pulsar shows them."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import SubType
from interpulse.broker.live.topic import topic_stats
from interpulse.model.ids import Position


async def test_statistics_count_messages_and_internal_ones_entries(bench: Any) -> None:
    topic = await bench.topic()
    producer, _ = await bench.producer(topic)
    _, sink = await bench.consumer(topic)
    for number in range(2):
        producer.publish([number], [bench.entry(number, num_messages_in_batch=10)], num_messages=10)
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


async def test_statistics_show_replicators_that_send_beside_those_that_are_sent_to(bench: Any) -> None:
    topic = await bench.topic()
    await bench.producer(topic, "user", producer_id=1)
    name = "pulsar.repl.west-->east"
    replicator, _ = await bench.producer(topic, name, producer_id=2, remote=True, remote_cluster="west")
    beside, _ = await bench.producer(topic, f"{name}.x", producer_id=3, remote=True, remote_cluster="west")
    replicator.publish([0], [bench.entry(0)])
    await bench.settle()
    topic.tick(10)
    stats = topic.stats()
    assert [each["producerName"] for each in stats["publishers"]] == ["user"]
    (west,) = stats["replication"].values()
    assert (west["connected"], west["replicationBacklog"]) == (False, 0)
    assert (west["msgRateIn"], west["msgInCount"], west["msgOutCount"]) == (0.1, 1, 0)
    assert (west["inboundConnection"], "outboundConnection" in west) == (replicator.request.address, False)
    assert stats["msgInCounter"] == 1
    replicator.close()
    beside.close()
    assert topic.stats()["replication"] == {}


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
    shown = topic_stats.subscription_stats(topic, subscription)
    measured = topic_stats.subscription_measure(subscription, topic.positions.durable)
    assert (shown["msgOutCounter"], shown["msgBacklog"], shown["unackedMessages"], shown["consumers"]) == (4, 0, 0, [])
    assert (measured.messages_out, measured.bytes_out) == (shown["msgOutCounter"], shown["bytesOutCounter"])
    assert shown["type"] == sub_type.label


async def test_cursor_shows_where_it_stands_and_what_was_acknowledged_out_of_order(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    subscription = topic.subscription("s")
    assert topic_stats.cursor_stats(topic, subscription)["readPosition"] == "1:0"
    consumer, sink = await join(topic)
    await bench.publish(topic, *range(5))
    positions = [each.position for each in sink.take()]
    for number in (0, 2, 3):
        consumer.acknowledge(positions[number])
    consumer.redeliver([positions[4]])
    shown = topic_stats.cursor_stats(topic, subscription)
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
