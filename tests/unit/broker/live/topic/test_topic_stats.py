"""Statistics as Pulsar shows them."""

from __future__ import annotations

from typing import Any


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
