"""The figures of a topic that metrics show: cheap to read, so that thousands of topics can be read at each scrape.

Counters go on from the moment the topic was loaded, rates are per second and those of the last full period.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = [
    "CompactionMeasure",
    "LimitMeasure",
    "Measured",
    "ReplicationMeasure",
    "SubscriptionMeasure",
    "TopicMeasure",
    "summed",
]


class TopicMeasure(NamedTuple):
    """One topic, summed over its producers and subscriptions; those of replication are left out."""

    subscriptions: int = 0
    producers: int = 0
    consumers: int = 0
    rate_in: float = 0.0
    rate_out: float = 0.0
    throughput_in: float = 0.0
    throughput_out: float = 0.0
    messages_in: int = 0
    bytes_in: int = 0
    messages_out: int = 0
    bytes_out: int = 0
    backlog: int = 0
    backlog_bytes: int = 0
    storage_bytes: int = 0


class SubscriptionMeasure(NamedTuple):
    """One subscription."""

    backlog: int
    unacknowledged: int
    blocked: bool
    rate_out: float
    throughput_out: float
    rate_redelivered: float
    rate_acknowledged: float
    consumers: int
    expired: int
    messages_out: int
    bytes_out: int
    delayed: int = 0
    delayed_bytes: int = 0
    replaying: int = 0


class ReplicationMeasure(NamedTuple):
    """The way of one topic to one remote cluster."""

    backlog: int
    connected: bool
    disconnected: bool
    rate_out: float
    throughput_out: float


class LimitMeasure(NamedTuple):
    """The limits of one topic, and how often they held something back."""

    publish_throttled: int = 0
    quota_bytes: int = -1
    quota_seconds: int = -1
    backlog_age_seconds: int = -1
    evictions: Mapping[str, int] = {}
    """By type of quota."""
    throttled: Mapping[str, Mapping[str, int]] = {}
    """By subscription: how often nothing was sent because of which dispatch rate, with the names of statistics."""


class CompactionMeasure(NamedTuple):
    """The last compaction of one topic that ended well, and how many did since the topic was loaded."""

    removed: int
    succeeded: int
    failed: int
    duration_ms: int
    read_rate: float
    """Bytes per second."""
    write_rate: float
    """Bytes per second."""
    entries: int
    size: int


class Measured(NamedTuple):
    """Everything that is shown of one topic."""

    topic: TopicMeasure
    subscriptions: Mapping[str, SubscriptionMeasure]
    replication: Mapping[str, ReplicationMeasure]
    limits: LimitMeasure | None = None
    """None if nothing is limited."""
    compaction: CompactionMeasure | None = None
    """None if nothing was compacted since the topic was loaded."""


def summed(topic: TopicMeasure, subscriptions: Mapping[str, SubscriptionMeasure]) -> TopicMeasure:
    """The measure of a topic with what its subscriptions have filled in."""
    consumers = messages = size = backlog = 0
    rate = throughput = 0.0
    for each in subscriptions.values():
        consumers += each.consumers
        messages += each.messages_out
        size += each.bytes_out
        backlog += each.backlog
        rate += each.rate_out
        throughput += each.throughput_out
    return topic._replace(
        subscriptions=len(subscriptions),
        consumers=consumers,
        rate_out=rate,
        throughput_out=throughput,
        messages_out=messages,
        bytes_out=size,
        backlog=backlog,
    )
