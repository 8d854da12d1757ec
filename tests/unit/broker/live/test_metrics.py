"""What metrics show of a topic agrees with its statistics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from interpulse.broker.live.metrics import TrafficMetrics
from interpulse.broker.live.registry import backlog_operations
from interpulse.model.names import TopicName
from interpulse.model.topics import SubscriptionMeasure, TopicMeasure


def test_meter_knows_the_rates_of_the_last_period() -> None:
    meter = TrafficMetrics()
    meter.messages, meter.bytes = 10, 1000
    meter.tick(5)
    assert (meter.message_rate, meter.byte_rate, meter.average_bytes) == (2.0, 200.0, 100.0)
    meter.tick(5)
    assert (meter.message_rate, meter.average_bytes) == (0.0, 0.0)


def test_meter_when_it_absorbs_another_then_its_rates_do_not_jump() -> None:
    total, gone = TrafficMetrics(), TrafficMetrics()
    gone.messages = 7
    gone.tick(1)
    gone.messages = 9
    total.absorb(gone)
    assert total.messages == 9
    total.tick(1)
    assert total.message_rate == 2.0


OF_TOPIC = {
    "rate_in": "msgRateIn",
    "rate_out": "msgRateOut",
    "throughput_in": "msgThroughputIn",
    "throughput_out": "msgThroughputOut",
    "messages_in": "msgInCounter",
    "bytes_in": "bytesInCounter",
    "messages_out": "msgOutCounter",
    "bytes_out": "bytesOutCounter",
    "backlog_bytes": "backlogSize",
    "storage_bytes": "storageSize",
}
OF_SUBSCRIPTION = {
    "backlog": "msgBacklog",
    "rate_out": "msgRateOut",
    "throughput_out": "msgThroughputOut",
    "messages_out": "msgOutCounter",
    "bytes_out": "bytesOutCounter",
}
ONLY_PERSISTENT = {
    "unacknowledged": "unackedMessages",
    "blocked": "blockedSubscriptionOnUnackedMsgs",
    "rate_redelivered": "msgRateRedeliver",
    "rate_acknowledged": "messageAckRate",
    "expired": "totalMsgExpired",
}


def agrees(measure: TopicMeasure | SubscriptionMeasure, stats: dict[str, Any], names: dict[str, str]) -> None:
    assert {name: getattr(measure, name) for name in names} == pytest.approx(
        {name: stats[key] for name, key in names.items()}
    )


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
async def test_measure_of_a_busy_topic_agrees_with_its_statistics(bench: Any, domain: str) -> None:
    topic = await bench.registry.open(TopicName.parse(f"{domain}://public/default/t"))
    gone, _ = await bench.producer(topic, "gone")
    producer, _ = await bench.producer(topic, producer_id=2)
    left, _ = await bench.consumer(topic, "s", sub_type=bench.SHARED, permits=3)
    stays, _ = await bench.consumer(topic, "s", sub_type=bench.SHARED, consumer_id=2)
    await bench.consumer(topic, "slow", permits=0)
    for number in range(10):
        (gone if number % 2 else producer).publish([number], [bench.entry(number)])
        await bench.settle()
    if domain == "persistent":
        stays.redeliver()
        await bench.settle()
        backlog_operations.clear(topic, "s")
    gone.close()
    left.close()
    topic.tick(10)
    found, stats = topic.measure(), topic.stats()
    agrees(found.topic, stats, OF_TOPIC)
    assert (found.topic.subscriptions, found.topic.producers, found.topic.consumers) == (2, 1, 2)
    assert found.topic.backlog == sum(each["msgBacklog"] for each in stats["subscriptions"].values())
    assert found.topic.messages_in == 10
    for name, measure in found.subscriptions.items():
        body = stats["subscriptions"][name]
        agrees(measure, body, OF_SUBSCRIPTION | (ONLY_PERSISTENT if domain == "persistent" else {}))
        assert measure.consumers == len(body["consumers"]) == 1


async def test_measure_keeps_replication_apart(bench: Any) -> None:
    bench.settings = replace(bench.settings, remote_clusters=("west",))
    topic = await bench.topic()
    await bench.publish(topic, 1, 2)
    found = topic.measure()
    assert (found.topic.subscriptions, found.topic.backlog) == (0, 0)
    way = found.replication["west"]
    assert (way.backlog, way.connected, way.disconnected) == (2, False, True)


async def test_measure_of_an_idle_topic_is_all_zero(bench: Any) -> None:
    assert (await bench.topic()).measure().topic == TopicMeasure()
