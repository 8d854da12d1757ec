"""Metrics of topics, subscriptions and replication, and their sums by namespace and broker.

Each topic and subscription has series of its own while their number is limited. Beyond that, or if
``exposeTopicLevelMetricsInPrometheus`` is false, the names are used for whole namespaces. Never both, so that a sum
over a name counts everything once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import add
from typing import Final

from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.metrics import (
    CompactionMeasure,
    ConsumerMeasure,
    LimitMeasure,
    Measured,
    ReplicationMeasure,
)
from interpulse.broker.live.registry.topic_tasks import AnyTopic, topics_in_turns
from interpulse.broker.replication.replication_status import Survey
from interpulse.model.policies.policy_records import DESTINATION_STORAGE, MESSAGE_AGE
from interpulse.model.topics import SubscriptionMeasure, TopicMeasure
from interpulse.serving.exposition import Exposition, Kind, labelled
from interpulse.storage.meters import Histogram, WrittenEntries

Row = tuple[str, Kind, str]

_LIMITS: Final[tuple[Row, ...]] = (
    ("pulsar_publish_rate_limit_times", "gauge", "Pauses in reading from clients because of the publish rate."),
    ("pulsar_storage_backlog_quota_limit", "gauge", "Bytes that may be unacknowledged; -1 = no limit."),
    ("pulsar_storage_backlog_quota_limit_time", "gauge", "Age in seconds that a backlog may have; -1 = no limit."),
    ("pulsar_storage_backlog_age_seconds", "gauge", "Age of the oldest unacknowledged message; -1 = none."),
)
_TOPIC_EVICTIONS: Final[Row] = (
    "pulsar_storage_backlog_quota_exceeded_evictions_total",
    "counter",
    "Evictions of messages by a backlog quota.",
)
QUOTA_TYPES: Final = ((DESTINATION_STORAGE, "size"), (MESSAGE_AGE, "time"))
"""The types of quotas, and the words of metrics for them."""
_THROTTLED: Final = (("Msg", "msg", "messages"), ("Bytes", "bytes", "bytes"))
"""The units of dispatch rates in the names of events, in those of metrics and in their help."""


def write_limits(page: Exposition, labels: str, limits: LimitMeasure) -> None:
    """Add the limits of one topic; ``labels`` name it."""
    for row, figure in zip(_LIMITS, limits[:4], strict=True):
        page.add(*row, labels, figure)
    for quota_type, label in QUOTA_TYPES:
        page.add(*_TOPIC_EVICTIONS, f"{labels},{labelled(quota_type=label)}", limits.evictions.get(quota_type, 0))
    for subscription, events in limits.throttled.items():
        for unit, word, words in _THROTTLED:
            name = f"pulsar_subscription_dispatch_throttled_{word}_events"
            text = f"Pauses in sending because of a dispatch rate in {words}."
            for owner in ("Subscription", "Topic"):
                reason = labelled(subscription=subscription, reason=owner.lower())
                events_count = events[f"dispatchThrottled{unit}EventsBy{owner}Limit"]
                page.add(name, "gauge", text, f"{labels},{reason}", events_count)


_WAITS: Final = ("le_0_5", "le_1", "le_5", "le_10", "le_20", "le_50", "le_100", "le_200", "le_1000")
_SIZES: Final = ("le_128", "le_512", "le_1_kb", "le_2_kb", "le_4_kb", "le_16_kb", "le_100_kb", "le_1_mb")
_OVERFLOWS: Final = ("overflow", "le_overflow")
"""The bucket above all bounds. Pulsar has one name for waits and the other for sizes; dashboards ask for both."""


class Buckets:
    """The families of one kind of histogram. As in Pulsar, waits are in ms and their sum in microseconds."""

    def __init__(self, page: Exposition, name: str, text: str, bounds: tuple[str, ...], *, sum_factor: int = 1) -> None:
        names = [f"{name}_{bound}" for bound in (*bounds, *_OVERFLOWS, "count", "sum")]
        self._families = [(name, page.family(name, "gauge", text)) for name in names]
        self._sum_factor = sum_factor

    def add(self, labels: str, histogram: Histogram) -> None:
        """Add one histogram with these labels."""
        counts = histogram.counts
        values = (*counts, counts[-1], histogram.count, round(histogram.sum * self._sum_factor))
        for (name, lines), value in zip(self._families, values, strict=True):
            lines.append(f"{name}{{{labels}}} {value}\n")


def wait_buckets(page: Exposition, name: str, text: str) -> Buckets:
    """Return buckets for waits in milliseconds, with the bounds of `interpulse.storage.meters.write_meter.WAIT_MS`."""
    return Buckets(page, name, text, _WAITS, sum_factor=1000)


class WriteFamilies:
    """Families of durable entries, of topics or of namespaces."""

    def __init__(self, page: Exposition) -> None:
        text = "Entries made durable in the last full minute, by their wait in milliseconds; the sum in microseconds."
        self._waits = wait_buckets(page, "pulsar_storage_write_latency", text)
        text = "Entries made durable in the last full minute, by their size in bytes."
        self._sizes = Buckets(page, "pulsar_entry_size", text, _SIZES)

    def add(self, labels: str, written: WrittenEntries) -> None:
        """Add the entries with these labels."""
        self._waits.add(labels, written.waits_ms)
        self._sizes.add(labels, written.sizes)


SERIES_OWNERS_MAX: Final = 20_000
"""Topics and subscriptions that are shown one by one; a page of more takes seconds to make."""

_TIMES: Final = "in milliseconds since 1970, 0 = not since the topic was loaded"

_OF_TOPIC: Final[tuple[Row, ...]] = (
    ("pulsar_subscriptions_count", "gauge", "Subscriptions."),
    ("pulsar_producers_count", "gauge", "Producers connected."),
    ("pulsar_consumers_count", "gauge", "Consumers connected."),
    ("pulsar_rate_in", "gauge", "Messages per second that producers publish."),
    ("pulsar_rate_out", "gauge", "Messages per second that consumers get."),
    ("pulsar_throughput_in", "gauge", "Bytes per second that producers publish."),
    ("pulsar_throughput_out", "gauge", "Bytes per second that consumers get."),
    ("pulsar_in_messages_total", "counter", "Messages published since the topic was loaded."),
    ("pulsar_in_bytes_total", "counter", "Bytes published since the topic was loaded."),
    ("", "counter", ""),  # deliveries are metrics of subscriptions
    ("", "counter", ""),
    ("pulsar_msg_backlog", "gauge", "Entries not acknowledged, summed over subscriptions."),
    ("pulsar_storage_backlog_size", "gauge", "Bytes that some subscription still waits for."),
    ("pulsar_storage_size", "gauge", "Bytes stored."),
    ("pulsar_storage_logical_size", "gauge", "Bytes stored, without copies."),
    ("pulsar_storage_offloaded_size", "gauge", "Always 0: there is no tiered storage."),
    ("pulsar_storage_write_rate", "gauge", "Entries per second made durable, in the last full minute."),
    ("pulsar_storage_read_rate", "gauge", "Entries per second read from storage, in the last full minute."),
    ("pulsar_storage_read_cache_misses_rate", "gauge", "Entries per second that were not in memory."),
    ("pulsar_delayed_message_index_size_bytes", "gauge", "Memory of messages that wait for their delivery time."),
)
_OF_SUBSCRIPTION: Final[tuple[Row, ...]] = (
    ("pulsar_subscription_back_log", "gauge", "Entries not acknowledged."),
    ("pulsar_subscription_unacked_messages", "gauge", "Messages delivered but not acknowledged."),
    (
        "pulsar_subscription_blocked_on_unacked_messages",
        "gauge",
        "1 while consumers together hold too much to get more.",
    ),
    ("pulsar_subscription_msg_rate_out", "gauge", "Messages per second."),
    ("pulsar_subscription_msg_throughput_out", "gauge", "Bytes per second."),
    ("pulsar_subscription_msg_rate_redeliver", "gauge", "Messages per second sent again."),
    ("pulsar_subscription_msg_ack_rate", "gauge", "Messages acknowledged per second."),
    ("pulsar_subscription_consumers_count", "gauge", "Consumers connected."),
    ("pulsar_subscription_total_msg_expired", "gauge", "Messages expired since the topic was loaded."),
    ("pulsar_out_messages_total", "counter", "Messages delivered since the topic was loaded."),
    ("pulsar_out_bytes_total", "counter", "Bytes delivered since the topic was loaded."),
    ("pulsar_subscription_delayed", "gauge", "Messages that wait for their delivery time."),
    ("pulsar_subscription_delayed_message_index_size_bytes", "gauge", "Memory of delayed messages."),
    ("pulsar_subscription_in_replay", "gauge", "Entries that wait to be sent outside the order of the topic."),
    ("pulsar_subscription_back_log_no_delayed", "gauge", "Entries not acknowledged that could be delivered now."),
    ("pulsar_subscription_msg_rate_expired", "gauge", "Messages per second that expire."),
    ("pulsar_subscription_msg_drop_rate", "gauge", "Messages per second lost to consumers, of non-persistent topics."),
    ("pulsar_subscription_last_expire_timestamp", "gauge", f"Time of the last expiry of messages; {_TIMES}."),
    ("pulsar_subscription_last_consumed_flow_timestamp", "gauge", f"Time of the last request; {_TIMES}."),
    ("pulsar_subscription_last_consumed_timestamp", "gauge", f"Time of the last delivery to a consumer; {_TIMES}."),
    ("pulsar_subscription_last_acked_timestamp", "gauge", f"Time of the last acknowledgement; {_TIMES}."),
    (
        "pulsar_subscription_last_mark_delete_advanced_timestamp",
        "gauge",
        f"Time of the last move forward by expiry or by an operator; {_TIMES}.",
    ),
)
_BACKLOG_AGE: Final[Row] = (
    "pulsar_subscription_storage_backlog_age_seconds",
    "gauge",
    "Age of the oldest unacknowledged message at the last check.",
)
_OF_CONSUMER: Final[tuple[Row, ...]] = (
    ("pulsar_consumer_msg_rate_redeliver", "gauge", "Messages per second sent again."),
    ("pulsar_consumer_msg_ack_rate", "gauge", "Messages acknowledged per second."),
    ("pulsar_consumer_unacked_messages", "gauge", "Messages delivered but not acknowledged."),
    ("pulsar_consumer_blocked_on_unacked_messages", "gauge", "1 while the consumer holds too much to get more."),
    ("pulsar_consumer_msg_rate_out", "gauge", "Messages per second."),
    ("pulsar_consumer_msg_throughput_out", "gauge", "Bytes per second."),
    ("pulsar_consumer_available_permits", "gauge", "Messages that the consumer has asked for and not got yet."),
)
_OF_REPLICATION: Final[tuple[Row, ...]] = (
    ("pulsar_replication_backlog", "gauge", "Entries that the remote cluster does not have yet."),
    ("pulsar_replication_connected_count", "gauge", "1 while this topic is copied to the remote cluster, else 0."),
    ("pulsar_replication_disconnected_count", "gauge", "1 while it is not copied there, else 0."),
    ("pulsar_replication_rate_out", "gauge", "Messages per second taken for the remote cluster."),
    ("pulsar_replication_throughput_out", "gauge", "Bytes per second taken for the remote cluster."),
    ("pulsar_replication_rate_expired", "gauge", "Messages per second that expire before the remote cluster has them."),
    ("pulsar_replication_rate_in", "gauge", "Messages per second that come from the remote cluster."),
    ("pulsar_replication_throughput_in", "gauge", "Bytes per second that come from the remote cluster."),
    (
        "pulsar_replication_delay_in_seconds",
        "gauge",
        "Age of the oldest message that the remote cluster does not have yet, as the replication job reports it.",
    ),
)
_OF_COMPACTION: Final[tuple[Row, ...]] = (
    ("pulsar_compaction_removed_event_count", "gauge", "Messages that the last compaction left out."),
    ("pulsar_compaction_succeed_count", "gauge", "Compactions since the topic was loaded."),
    ("pulsar_compaction_failed_count", "gauge", "Compactions that failed or were stopped since the topic was loaded."),
    ("pulsar_compaction_duration_time_in_mills", "gauge", "Milliseconds that the last compaction took."),
    ("pulsar_compaction_read_throughput", "gauge", "Bytes per second read by compactions."),
    ("pulsar_compaction_write_throughput", "gauge", "Bytes per second written by compactions."),
    ("pulsar_compaction_compacted_entries_count", "gauge", "Entries that the last compaction kept."),
    ("pulsar_compaction_compacted_entries_size", "gauge", "Bytes that the last compaction kept."),
)
_COMPACTION_WAITS: Final = "Entries of the last compaction, by write time in milliseconds; the sum in us."
_OF_NAMESPACE: Final[tuple[Row, ...]] = (
    *_OF_TOPIC[:9],
    ("pulsar_out_messages_total", "counter", "Messages delivered since their topics were loaded."),
    ("pulsar_out_bytes_total", "counter", "Bytes delivered since their topics were loaded."),
    *_OF_TOPIC[11:],
)
_NOT_OF_BROKER: Final = ("pulsar_storage_offloaded_size", "pulsar_delayed_message_index_size_bytes")
"""Figures of namespaces that Pulsar does not sum up for the broker."""
_EVICTIONS: Final[Row] = (
    "pulsar_broker_storage_backlog_quota_exceeded_evictions_total",
    "counter",
    "Evictions of messages by backlog quotas, of the topics that are loaded.",
)
_TOPICS: Final[Row] = ("pulsar_topics_count", "gauge", "Topics loaded.")
_LEFT_OUT: Final = "interpulse_metrics_topics_left_out"

assert len(_OF_TOPIC) == len(_OF_NAMESPACE) == len(TopicMeasure._fields)
assert len(_OF_SUBSCRIPTION) == len(SubscriptionMeasure._fields)
assert len(_OF_CONSUMER) == len(ConsumerMeasure._fields)
assert len(_OF_REPLICATION) == len(ReplicationMeasure._fields)
assert len(_OF_COMPACTION) == len(CompactionMeasure._fields)


async def write_topics(
    page: Exposition,
    topics: Sequence[AnyTopic],
    cluster: str,
    *,
    topic_level: bool,
    consumer_level: bool = False,
    survey: Survey | None = None,
) -> None:
    """Add the loaded topics. Yields to other work between topics, so the numbers are not of a single moment.

    ``survey`` is that of replication; None if nothing is replicated.
    """
    found = survey or Survey()
    one_by_one = topic_level and await _owners(topics, consumer_level=consumer_level) <= SERIES_OWNERS_MAX
    sums = _Sums(page, cluster)
    lines = _Lines(page, cluster, consumer_level=consumer_level) if one_by_one else None
    async for topic in topics_in_turns(topics):
        measured = topic.measure().with_status(str(topic.name), found.replicating, found.delays)
        sums.add(str(topic.name.namespace_name), measured)
        if lines is not None:
            lines.add(topic, measured)
    sums.write(one_by_one=one_by_one)
    left_out = 0 if one_by_one or not topic_level else len(topics)
    text = "Topics shown only as part of their namespaces, because of their number."
    page.add(_LEFT_OUT, "gauge", text, labelled(cluster=cluster), left_out)


async def _owners(topics: Sequence[AnyTopic], *, consumer_level: bool) -> int:
    """Return the number of series owners, counted only up to the limit."""
    count = len(topics)
    if count > SERIES_OWNERS_MAX:
        return count
    async for topic in topics_in_turns(topics):
        count += len(topic.subscriptions) + (topic.consumer_count if consumer_level else 0)
    return count


class _Lines:
    """One line for each figure of each topic and subscription."""

    def __init__(self, page: Exposition, cluster: str, *, consumer_level: bool) -> None:
        self._page = page
        self._cluster = cluster
        self._written = WriteFamilies(page)
        self._of_consumer = list(_families(page, _OF_CONSUMER)) if consumer_level else []
        self._of_topic = list(_families(page, _OF_TOPIC))
        self._of_subscription = list(_families(page, _OF_SUBSCRIPTION))
        self._of_replication = list(_families(page, _OF_REPLICATION))
        self._of_compaction = list(_families(page, _OF_COMPACTION))
        self._compaction_waits = wait_buckets(page, "pulsar_compaction_latency", _COMPACTION_WAITS)

    def add(self, topic: AnyTopic, measured: Measured) -> None:
        labels = labelled(cluster=self._cluster, namespace=str(topic.name.namespace_name), topic=str(topic.name))
        _add(self._of_topic, labels, measured.topic)
        if measured.written is not None:
            self._written.add(labels, measured.written)
        for subscription, figures in measured.subscriptions.items():
            of_subscription = f"{labels},{labelled(subscription=subscription)}"
            _add(self._of_subscription, of_subscription, figures)
            if subscription in measured.backlog_ages:
                self._page.add(*_BACKLOG_AGE, of_subscription, measured.backlog_ages[subscription])
            if self._of_consumer:
                self._add_consumers(of_subscription, topic.subscriptions[subscription].consumers)
        for remote, way in measured.replication.items():
            _add(self._of_replication, f"{labels},{labelled(remote_cluster=remote)}", way)
        if measured.limits is not None:
            write_limits(self._page, labels, measured.limits)
        if measured.compaction is not None:
            _add(self._of_compaction, labels, measured.compaction)
            self._compaction_waits.add(labels, measured.compaction_waits_ms)

    def _add_consumers(self, labels: str, consumers: Sequence[Consumer]) -> None:
        for consumer in consumers:
            which = labelled(consumer_name=consumer.name, consumer_id=str(consumer.consumer_id))
            _add(self._of_consumer, f"{labels},{which}", consumer.measure())


_Family = tuple[int, str, list[str]]


def _families(page: Exposition, rows: Sequence[Row]) -> Iterator[_Family]:
    """Yield, for each named row, its field, its name and the family for its lines."""
    return ((index, row[0], page.family(*row)) for index, row in enumerate(rows) if row[0])


def _add(families: Sequence[_Family], labels: str, figures: Sequence[float]) -> None:
    for index, name, lines in families:
        lines.append(f"{name}{{{labels}}} {+figures[index]}\n")


class _Sums:
    """The figures of all namespaces, and of the broker."""

    def __init__(self, page: Exposition, cluster: str) -> None:
        self._page = page
        self._cluster = cluster
        self._topics: dict[str, int] = {}
        self._figures: dict[str, TopicMeasure] = {}
        self._replication: dict[tuple[str, str], ReplicationMeasure] = {}
        self._written: dict[str, WrittenEntries] = {}
        self._evictions: Counter[str] = Counter()

    def add(self, namespace: str, measured: Measured) -> None:
        self._topics[namespace] = self._topics.get(namespace, 0) + 1
        before = self._figures.get(namespace)
        self._figures[namespace] = TopicMeasure._make(_added(before, measured.topic))
        for remote, way in measured.replication.items():
            there = self._replication.get((namespace, remote))
            self._replication[namespace, remote] = way if there is None else there.plus(way)
        if measured.written is not None:
            self._written.setdefault(namespace, WrittenEntries()).merge(measured.written)
        if measured.limits is not None:
            self._evictions.update(measured.limits.evictions)

    def write(self, *, one_by_one: bool) -> None:
        page, cluster = self._page, self._cluster
        for namespace, count in self._topics.items():
            page.add(*_TOPICS, labelled(cluster=cluster, namespace=namespace), count)
        if not one_by_one:
            self._write_namespaces()
        total = TopicMeasure()
        for figures in self._figures.values():
            total = TopicMeasure._make(_added(total, figures))
        labels = labelled(cluster=cluster)
        page.add("pulsar_broker_topics_count", "gauge", "Topics loaded.", labels, sum(self._topics.values()))
        for (name, kind, text), figure in zip(_OF_NAMESPACE, total, strict=True):
            if name not in _NOT_OF_BROKER:
                page.add(name.replace("pulsar_", "pulsar_broker_", 1), kind, text, labels, figure)
        for quota_type, label in QUOTA_TYPES:
            page.add(*_EVICTIONS, f"{labels},{labelled(quota_type=label)}", self._evictions[quota_type])

    def _write_namespaces(self) -> None:
        of_namespace = list(_families(self._page, _OF_NAMESPACE))
        of_replication = list(_families(self._page, _OF_REPLICATION))
        of_writes = WriteFamilies(self._page)
        for namespace, written in self._written.items():
            of_writes.add(labelled(cluster=self._cluster, namespace=namespace), written)
        for namespace, figures in self._figures.items():
            _add(of_namespace, labelled(cluster=self._cluster, namespace=namespace), figures)
        for (namespace, remote), way in self._replication.items():
            labels = labelled(cluster=self._cluster, namespace=namespace, remote_cluster=remote)
            _add(of_replication, labels, way)


def _added(before: Sequence[float] | None, figures: Sequence[float]) -> Iterable[float]:
    return figures if before is None else map(add, before, figures)
