"""Metrics of topics under PIP-264's names."""

from interpulse.broker.live.metrics import CompactionMeasure, LimitMeasure, Measured, ReplicationMeasure
from interpulse.broker.telemetry.exported_metrics import TOPIC_INSTRUMENTS, TopicMetrics
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import DESTINATION_STORAGE
from interpulse.model.topics import SubscriptionMeasure, TopicMeasure

TOPIC = TopicName.parse("persistent://shop/orders/placed-partition-1")
OF_TOPIC = {
    "pulsar.domain": "persistent",
    "pulsar.tenant": "shop",
    "pulsar.namespace": "shop/orders",
    "pulsar.topic": "persistent://shop/orders/placed",
    "pulsar.partition.index": 1,
}
OF_NAMESPACE = {name: OF_TOPIC[name] for name in ("pulsar.domain", "pulsar.tenant", "pulsar.namespace")}
WAITING = SubscriptionMeasure(1, 0, False, 0.0, 0.0, 0.0, 0.0, 1, 0, 5, 50, delayed=3)
EVERYTHING = Measured(
    TopicMeasure(subscriptions=1, producers=2, consumers=1, messages_in=7, bytes_in=70, messages_out=5, bytes_out=50),
    {"s": WAITING},
    {"west": ReplicationMeasure(4, True, False, 0.0, 0.0, delay_seconds=1.5)},
    LimitMeasure(publish_throttled=2, quota_bytes=100, backlog_age_seconds=9, evictions={DESTINATION_STORAGE: 6}),
    CompactionMeasure(1, 2, 3, 4, 5.0, 6.0, 7, 8),
)


def test_metrics_when_of_a_topic_then_have_its_name_and_every_instrument_has_one() -> None:
    collected = TopicMetrics(by_namespace=False)
    collected.add(TOPIC, EVERYTHING)
    found = collected.finish()
    assert found["pulsar.broker.topic.message.incoming.count"] == [(7, OF_TOPIC)]
    assert found["pulsar.broker.topic.subscription.delayed"] == [(3, OF_TOPIC)]
    assert found["pulsar.broker.replication.message.age"] == [
        (1.5, OF_TOPIC | {"pulsar.replication.remote.cluster.name": "west"})
    ]
    assert found["pulsar.broker.topic.storage.backlog.quota.exceeded.eviction.count"] == [
        (6, OF_TOPIC | {"pulsar.backlog.quota.type": "size"}),
        (0, OF_TOPIC | {"pulsar.backlog.quota.type": "time"}),
    ]
    empty = [name for name, points in found.items() if not points]
    assert empty == ["pulsar.broker.topic.storage.backlog.quota.limit.time"]
    assert found.keys() == {instrument.name for instrument in TOPIC_INSTRUMENTS}


def test_metrics_when_added_up_then_are_of_namespaces_and_leave_gauges_out() -> None:
    collected = TopicMetrics(by_namespace=True)
    for name in (TOPIC, TopicName.parse("shop/orders/other")):
        collected.add(name, EVERYTHING)
    found = collected.finish()
    assert found["pulsar.broker.topic.message.incoming.count"] == [(14, OF_NAMESPACE)]
    assert found["pulsar.broker.topic.compaction.failed.count"] == [(6, OF_NAMESPACE)]
    assert found["pulsar.broker.topic.storage.backlog.age"] == []
