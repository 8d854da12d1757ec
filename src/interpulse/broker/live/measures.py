"""The figures of a topic that metrics show: cheap to read, so that thousands of topics can be read at each scrape.

Counters go on from the moment the topic was loaded, rates are per second and those of the last full period.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import add
from typing import Final, NamedTuple

from interpulse.storage.meters.histogram import Histogram
from interpulse.storage.meters.write_meter import WAIT_MS, WrittenEntries

__all__ = [
    "NO_WAY",
    "CompactionMeasure",
    "ConsumerMeasure",
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
    logical_bytes: int = 0
    """Without copies; Pulsar's storage size counts one."""
    offloaded_bytes: int = 0
    """Always 0: there is no tiered storage."""
    write_rate: float = 0.0
    """Entries per second; those read are the ones that were not in memory."""
    read_rate: float = 0.0
    cache_misses_rate: float = 0.0
    delayed_bytes: int = 0


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
    backlog_not_delayed: int = 0
    rate_expired: float = 0.0
    rate_dropped: float = 0.0
    """Messages per second that nobody got; of topics that keep nothing."""
    last_expired_ms: int = 0
    """Since 1970; 0 = never."""
    last_flow_ms: int = 0
    last_sent_ms: int = 0
    last_acknowledged_ms: int = 0
    last_moved_ms: int = 0


class ConsumerMeasure(NamedTuple):
    """One consumer."""

    rate_redelivered: float
    rate_acknowledged: float
    unacknowledged: int
    blocked: bool
    rate_out: float
    throughput_out: float
    permits: int


class ReplicationMeasure(NamedTuple):
    """The way of one topic to one remote cluster."""

    backlog: int
    connected: bool
    disconnected: bool
    rate_out: float
    throughput_out: float
    rate_expired: float = 0.0
    rate_in: float = 0.0
    """What comes from there."""
    throughput_in: float = 0.0
    delay_seconds: float = 0.0
    """The age of the oldest message that the remote cluster does not have yet, as the replication job tells it."""

    def plus(self, other: ReplicationMeasure) -> ReplicationMeasure:
        """Both ways together; the longer delay counts."""
        total = ReplicationMeasure._make(map(add, self, other))
        return total._replace(delay_seconds=max(self.delay_seconds, other.delay_seconds))


NO_WAY: Final = ReplicationMeasure(0, False, False, 0.0, 0.0)
"""Of a cluster that nothing goes to."""


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
    compaction_waits_ms: Histogram = Histogram(WAIT_MS)
    """How long the entries of the last compaction took to be written."""
    written: WrittenEntries | None = None
    """What became durable in the last full minute; None if nothing did since it began."""
    backlog_ages: Mapping[str, int] = {}
    """Seconds that the oldest message of a subscription has waited, of those where it is known."""

    def with_status(
        self, topic: str, replicating: Collection[tuple[str, str]], delays: Mapping[tuple[str, str], float]
    ) -> Measured:
        """Complete the ways of replication by the status of each, which is given by topic and remote cluster.

        A way is connected while the job reads the topic and its status is REPLICATING. ``delays`` are in seconds.
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
    """The measure of a topic with what its subscriptions have filled in."""
    consumers = messages = size = backlog = delayed = 0
    rate = throughput = 0.0
    for each in subscriptions.values():
        consumers += each.consumers
        messages += each.messages_out
        size += each.bytes_out
        backlog += each.backlog
        delayed += each.delayed_bytes
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
        delayed_bytes=delayed,
    )
