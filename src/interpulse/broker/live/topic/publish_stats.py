"""The statistics of a topic's producers, persistent or not."""

from __future__ import annotations

from typing import Any, Protocol

from interpulse.broker.live.metrics import TrafficMeter, sum_of
from interpulse.broker.live.producing.producer import Producer
from interpulse.broker.live.producing.producer_set import ProducerSet
from interpulse.broker.live.topic.topic_clients import TopicLimits
from interpulse.model.topics import TopicMeasure


class PublishedTopic(Protocol):
    """The interface of a topic for these statistics."""

    created_ms: int
    limits: TopicLimits
    producers: ProducerSet

    @property
    def published(self) -> TrafficMeter:
        """The traffic of closed producers."""


def producers_by_name(topic: PublishedTopic) -> list[Producer]:
    """Return the open producers, in the order of their names."""
    return sorted(topic.producers.by_name.values(), key=lambda producer: producer.name)


def published_by_all(topic: PublishedTopic) -> TrafficMeter:
    """Return the traffic of open and closed producers."""
    return sum_of(topic.published, *(producer.published for producer in topic.producers.by_name.values()))


def publish_stats(topic: PublishedTopic) -> dict[str, Any]:
    """Return the producer fields of ``TopicStats``; replicators are left out of the list."""
    published = published_by_all(topic)
    return {
        "msgRateIn": published.message_rate,
        "msgThroughputIn": published.byte_rate,
        "bytesInCounter": published.bytes,
        "msgInCounter": published.messages,
        "publishRateLimitedTimes": topic.limits.publish_throttled,
        "publishers": [
            producer.stats() for producer in producers_by_name(topic) if producer.request.remote_cluster is None
        ],
        "waitingPublishers": len(topic.producers.waiting),
        "topicCreationTimeStamp": topic.created_ms,
    }


def publish_measure(topic: PublishedTopic) -> TopicMeasure:
    """Return the metrics of producers."""
    published = published_by_all(topic) if topic.producers.by_name else topic.published
    return TopicMeasure(
        producers=len(topic.producers.by_name),
        rate_in=published.message_rate,
        throughput_in=published.byte_rate,
        messages_in=published.messages,
        bytes_in=published.bytes,
    )
