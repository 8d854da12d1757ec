"""Prometheus metrics and the probes of orchestrators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from interpulse.broker.rest.call import Answer, Call, Route
from interpulse.broker.rest.rooms import RestRooms

__all__ = ["ROUTES"]

_Family = CounterMetricFamily | GaugeMetricFamily

_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_TOPIC_LABELS: Final = ["cluster", "namespace", "topic"]
_SUBSCRIPTION_LABELS: Final = [*_TOPIC_LABELS, "subscription"]

_OF_TOPIC: Final = (
    ("pulsar_rate_in", "msgRateIn", "Messages per second that producers publish."),
    ("pulsar_rate_out", "msgRateOut", "Messages per second that consumers get."),
    ("pulsar_throughput_in", "msgThroughputIn", "Bytes per second that producers publish."),
    ("pulsar_throughput_out", "msgThroughputOut", "Bytes per second that consumers get."),
    ("pulsar_in_messages_total", "msgInCounter", "Messages published since the topic was loaded."),
    ("pulsar_in_bytes_total", "bytesInCounter", "Bytes published since the topic was loaded."),
    ("pulsar_out_messages_total", "msgOutCounter", "Messages delivered since the topic was loaded."),
    ("pulsar_out_bytes_total", "bytesOutCounter", "Bytes delivered since the topic was loaded."),
    ("pulsar_storage_size", "storageSize", "Bytes stored."),
    ("pulsar_storage_backlog_size", "backlogSize", "Bytes that some subscription still waits for."),
)
_OF_SUBSCRIPTION: Final = (
    ("pulsar_subscription_back_log", "msgBacklog", "Entries not acknowledged."),
    ("pulsar_subscription_unacked_messages", "unackedMessages", "Messages delivered but not acknowledged."),
    ("pulsar_subscription_msg_rate_out", "msgRateOut", "Messages per second."),
    ("pulsar_subscription_msg_rate_redeliver", "msgRateRedeliver", "Messages per second sent again."),
)
_PRODUCERS: Final = "pulsar_producers_count"
_OF_BROKER: Final = (
    ("pulsar_broker_topics_count", "Topics loaded."),
    ("pulsar_broker_producers_count", "Producers connected."),
    ("pulsar_broker_consumers_count", "Consumers connected."),
    ("pulsar_broker_subscriptions_count", "Subscriptions of loaded topics."),
    ("pulsar_broker_msg_backlog", "Entries not acknowledged."),
)


class _Topics:
    """Reads the statistics of all loaded topics when metrics are asked for."""

    def __init__(self, rooms: RestRooms) -> None:
        self._rooms = rooms

    def collect(self) -> Iterator[Metric]:
        cluster = self._rooms.namespaces.local_cluster
        families = {name: _family(name, text, _TOPIC_LABELS) for name, _, text in _OF_TOPIC}
        families[_PRODUCERS] = _family(_PRODUCERS, "Producers connected.", _TOPIC_LABELS)
        families |= {name: _family(name, text, _SUBSCRIPTION_LABELS) for name, _, text in _OF_SUBSCRIPTION}
        totals: dict[str, float] = defaultdict(float)
        for topic in self._rooms.registry.topics():
            labels = [cluster, str(topic.name.namespace_name), str(topic.name)]
            _add_topic(families, totals, labels, topic.stats())
        yield from families.values()
        for name, text in _OF_BROKER:
            family = GaugeMetricFamily(name, text, labels=["cluster"])
            family.add_metric([cluster], totals[name])
            yield family


def _family(name: str, text: str, labels: list[str]) -> _Family:
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    return kind(name, text, labels=labels)


def _add_topic(
    families: dict[str, _Family], totals: dict[str, float], labels: list[str], stats: dict[str, Any]
) -> None:
    for name, key, _ in _OF_TOPIC:
        families[name].add_metric(labels, stats.get(key, 0))
    producers = len(stats["publishers"])
    families[_PRODUCERS].add_metric(labels, producers)
    totals["pulsar_broker_topics_count"] += 1
    totals["pulsar_broker_producers_count"] += producers
    for subscription, body in stats["subscriptions"].items():
        for name, key, _ in _OF_SUBSCRIPTION:
            families[name].add_metric([*labels, subscription], body.get(key, 0))
        totals["pulsar_broker_subscriptions_count"] += 1
        totals["pulsar_broker_consumers_count"] += len(body["consumers"])
        totals["pulsar_broker_msg_backlog"] += body.get("msgBacklog", 0)


async def get_metrics(call: Call) -> Answer:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Topics(call.rooms))
    return Answer(200, generate_latest(registry), _CONTENT_TYPE)


ROUTES: Final = (Route("GET", "/metrics", get_metrics),)
