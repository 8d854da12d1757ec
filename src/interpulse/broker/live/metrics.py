"""Counters, rates and metrics of a topic, cheap enough to read for thousands of topics at each scrape.

Counters start when the topic is loaded. Rates are per second, over the last full period.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import add
from typing import Any, Final, NamedTuple

from interpulse.model.topics import SubscriptionMeasure, TopicMeasure
from interpulse.storage.meters import WAIT_MS, Histogram, WrittenEntries


class TrafficMetrics:
    """A counter of messages, entries and bytes, with their rates in the last full period."""

    __slots__ = ("_bytes_before", "_messages_before", "byte_rate", "bytes", "entries", "message_rate", "messages")

    def __init__(self) -> None:
        self.messages = self.entries = self.bytes = 0
        self.message_rate = self.byte_rate = 0.0
        self._messages_before = self._bytes_before = 0

    def tick(self, seconds: float) -> None:
        """End a period of this length."""
        moved = self.messages != self._messages_before or self.bytes != self._bytes_before
        if not moved and not self.message_rate and not self.byte_rate:
            return  # most topics are idle most of the time
        self.message_rate = (self.messages - self._messages_before) / seconds
        self.byte_rate = (self.bytes - self._bytes_before) / seconds
        self._messages_before, self._bytes_before = self.messages, self.bytes

    def absorb(self, other: TrafficMetrics) -> None:
        """Add the counts of a meter that ends."""
        self.messages += other.messages
        self.entries += other.entries
        self.bytes += other.bytes
        self._messages_before += other._messages_before
        self._bytes_before += other._bytes_before

    def sent_stats(self) -> dict[str, Any]:
        """Return the fields of what was sent, in Pulsar's JSON."""
        return {
            "msgRateOut": self.message_rate,
            "msgThroughputOut": self.byte_rate,
            "bytesOutCounter": self.bytes,
            "msgOutCounter": self.messages,
        }

    @property
    def average_bytes(self) -> float:
        """Bytes per message in the last full period."""
        return self.byte_rate / self.message_rate if self.message_rate else 0.0


def sum_of(*meters: TrafficMetrics) -> TrafficMetrics:
    """Return the sum of counts and rates."""
    total = TrafficMetrics()
    for meter in meters:
        total.absorb(meter)
        total.message_rate += meter.message_rate
        total.byte_rate += meter.byte_rate
    return total


class ConsumerMeasure(NamedTuple):
    """Metrics of one consumer."""

    rate_redelivered: float
    rate_acknowledged: float
    unacknowledged: int
    blocked: bool
    rate_out: float
    throughput_out: float
    permits: int


class ReplicationMeasure(NamedTuple):
    """Metrics of the replication of one topic to one remote cluster."""

    backlog: int
    connected: bool
    disconnected: bool
    rate_out: float
    throughput_out: float
    rate_expired: float = 0.0
    rate_in: float = 0.0
    """The inbound rate."""
    throughput_in: float = 0.0
    delay_seconds: float = 0.0
    """The age of the oldest message that the remote cluster lacks, as the replication job reports it."""

    def plus(self, other: ReplicationMeasure) -> ReplicationMeasure:
        """Return both directions as one; the longer delay counts."""
        total = ReplicationMeasure._make(map(add, self, other))
        return total._replace(delay_seconds=max(self.delay_seconds, other.delay_seconds))


NO_WAY: Final = ReplicationMeasure(0, False, False, 0.0, 0.0)
"""The metrics of a cluster without outbound replication."""


class LimitMeasure(NamedTuple):
    """The limits of one topic, and how often each took effect."""

    publish_throttled: int = 0
    quota_bytes: int = -1
    quota_seconds: int = -1
    backlog_age_seconds: int = -1
    evictions: Mapping[str, int] = {}
    """Evictions, by type of quota."""
    throttled: Mapping[str, Mapping[str, int]] = {}
    """Throttled deliveries by subscription and dispatch rate, with the names of statistics."""


class CompactionMeasure(NamedTuple):
    """The last successful compaction of one topic, and the number of them since the topic was loaded."""

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
    """All metrics of one topic."""

    topic: TopicMeasure
    subscriptions: Mapping[str, SubscriptionMeasure]
    replication: Mapping[str, ReplicationMeasure]
    limits: LimitMeasure | None = None
    """Metrics of limits; None if there are none."""
    compaction: CompactionMeasure | None = None
    """Metrics of compaction; None if nothing was compacted since the topic was loaded."""
    compaction_waits_ms: Histogram = Histogram(WAIT_MS)
    """Write latencies of the last compaction's entries."""
    written: WrittenEntries | None = None
    """Entries that became durable in the last full minute; None if there were none."""
    backlog_ages: Mapping[str, int] = {}
    """Age in seconds of the oldest message of each subscription, where it is known."""

    def with_status(
        self, topic: str, replicating: Collection[tuple[str, str]], delays: Mapping[tuple[str, str], float]
    ) -> Measured:
        """Add the status of replication, given by topic and remote cluster.

        Replication is connected while the job reads the topic and its status is REPLICATING. ``delays`` are in seconds.
        """
        if not self.replication:
            return self
        ways: dict[str, ReplicationMeasure] = {}
        for remote, way in self.replication.items():
            connected = way.connected and (topic, remote) in replicating
            ways[remote] = way._replace(
                connected=connected,
                disconnected=(way.connected or way.disconnected) and not connected,
                delay_seconds=delays.get((topic, remote), 0.0),
            )
        return self._replace(replication=ways)


def summed(topic: TopicMeasure, subscriptions: Mapping[str, SubscriptionMeasure]) -> TopicMeasure:
    """Return the metrics of a topic with the sums over its subscriptions."""
    consumers = messages = size = backlog = delayed = 0
    rate = throughput = 0.0
    for subscription in subscriptions.values():
        consumers += subscription.consumers
        messages += subscription.messages_out
        size += subscription.bytes_out
        backlog += subscription.backlog
        delayed += subscription.delayed_bytes
        rate += subscription.rate_out
        throughput += subscription.throughput_out
    return topic._replace(
        subscriptions=len(subscriptions),
        consumers=consumers,
        rate_out=rate,
        throughput_out=throughput,
        messages_out=messages,
        bytes_out=size,
        backlog=backlog,
        delayed_bytes=delayed,
    )
