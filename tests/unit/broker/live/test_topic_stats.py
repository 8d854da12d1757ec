"""Statistics as Pulsar shows them."""

from __future__ import annotations

from typing import Any


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
