"""Statistics of a loaded topic and of its subscriptions. Rates are per second, over the last full period."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SubscriptionMeasure", "TopicMeasure"]


class TopicMeasure(NamedTuple):
    """Metrics of one topic, summed over its producers and subscriptions, without replication."""

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
    logical_bytes: int = 0
    """Bytes without copies. Pulsar's storage size counts one copy."""
    offloaded_bytes: int = 0
    """Always 0: there is no tiered storage."""
    write_rate: float = 0.0
    """Entries per second. Reads count only entries that were not in memory."""
    read_rate: float = 0.0
    cache_misses_rate: float = 0.0
    delayed_bytes: int = 0


class SubscriptionMeasure(NamedTuple):
    """Metrics of one subscription."""

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
    backlog_not_delayed: int = 0
    rate_expired: float = 0.0
    rate_dropped: float = 0.0
    """Messages per second that no consumer got, on topics that store nothing."""
    last_expired_ms: int = 0
    """Milliseconds since 1970; 0 = never."""
    last_flow_ms: int = 0
    last_sent_ms: int = 0
    last_acknowledged_ms: int = 0
    last_moved_ms: int = 0
