"""The statistics of a persistent topic in Pulsar's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from interpulse.broker.live.compaction.compaction import Compaction
from interpulse.broker.live.compaction.log_positions import LogPositions
from interpulse.broker.live.dispatch.delayed_entries import DelayedEntries
from interpulse.broker.live.dispatch.dispatch_limits import NOT_THROTTLED
from interpulse.broker.live.dispatch.shared import SharedDispatch
from interpulse.broker.live.log_search import bytes_after, publish_time_of
from interpulse.broker.live.metrics import (
    NO_WAY,
    LimitMeasure,
    Measured,
    ReplicationMeasure,
    TrafficMetrics,
    sum_of,
    summed,
)
from interpulse.broker.live.producing.producer import Producer
from interpulse.broker.live.producing.producer_set import ProducerSet
from interpulse.broker.live.topic.backlog_quota import BacklogKeeper
from interpulse.broker.live.topic.publishing import Publishing
from interpulse.broker.live.topic.subscription import Subscription
from interpulse.broker.live.topic.topic_clients import TopicLimits
from interpulse.clock import iso_time
from interpulse.model.errors import NotFound
from interpulse.model.ids import Position
from interpulse.model.topics import SubscriptionMeasure
from interpulse.storage.api import Log
from interpulse.storage.cursors import COMPACTED_LEDGER, COMPACTION_CURSOR, DEDUPLICATION_CURSOR

_NEVER_IN_TOPICS = dict.fromkeys(
    (
        "abortedTxnCount",
        "bytesOutInternalCounter",
        "committedTxnCount",
        "lastOffloadFailureTimeStamp",
        "lastOffloadLedgerId",
        "lastOffloadSuccessTimeStamp",
        "offloadedStorageSize",
        "ongoingTxnCount",
        "systemTopicBytesInCounter",
    ),
    0,
)
"""Pulsar's counters of features that do not exist here: transactions, offloading, system topics."""

_NEVER_IN_SUBSCRIPTIONS = dict.fromkeys(
    (
        "dispatchThrottledBytesEventsByBrokerLimit",
        "dispatchThrottledMsgEventsByBrokerLimit",
        "filterAcceptedMsgCount",
        "filterProcessedMsgCount",
        "filterRejectedMsgCount",
        "filterRescheduledMsgCount",
    ),
    0,
)
"""Fields of features that do not exist here: entry filters, dispatch rates of whole brokers."""

_NO_DRAINING = {"drainingHashesCount": 0, "drainingHashesClearedTotal": 0, "drainingHashesUnackedMessages": 0}

NO_REPLICATION: dict[str, Any] = {
    "msgRateIn": 0.0,
    "msgInCount": 0,
    "msgThroughputIn": 0.0,
    "bytesInCount": 0,
    "msgRateOut": 0.0,
    "msgOutCount": 0,
    "msgThroughputOut": 0.0,
    "bytesOutCount": 0,
    "msgRateExpired": 0.0,
    "msgExpiredCount": 0,
    "replicationBacklog": 0,
    "connected": False,
    "replicationDelayInSeconds": 0,
}
"""``ReplicatorStats`` of a cluster without outbound replication."""


class ShownTopic(Protocol):
    """The interface of a topic for statistics."""

    backlog_keeper: BacklogKeeper
    compaction: Compaction
    created_ms: int
    limits: TopicLimits
    log: Log
    positions: LogPositions
    producers: ProducerSet
    publishing: Publishing
    subscriptions: dict[str, Subscription]

    def remote_of(self, subscription: str) -> str | None: ...


def stats(topic: ShownTopic) -> dict[str, Any]:
    """Return ``TopicStats``: counters in messages and bytes since the topic was loaded, rates of the last period."""
    subscriptions = {name: topic.subscriptions[name] for name in sorted(topic.subscriptions)}
    sent = sum_of(*(_sent(subscription) for subscription in subscriptions.values()))
    ledgers = topic.log.ledgers
    backlogs = [
        bytes_after(ledgers, subscription.cursor.mark_delete)
        for subscription in subscriptions.values()
        if subscription.durable and subscription.cursor.backlog(topic.positions.durable)
    ]
    return {
        **topic.producers.stats(topic.limits.publish_throttled, topic.created_ms),
        **sent.sent_stats(),
        "averageMsgSize": topic.producers.published_by_all.average_bytes,
        "msgChunkPublished": topic.publishing.chunk_published,
        "storageSize": sum(ledger.size for ledger in ledgers),
        "backlogSize": max(backlogs, default=0),
        **topic.backlog_keeper.stats(),
        "earliestMsgPublishTimeInBacklogs": 0,
        "subscriptions": {
            name: subscription_stats(topic, subscription)
            for name, subscription in subscriptions.items()
            if topic.remote_of(name) is None
        },
        "replication": _replications(topic),
        "deduplicationStatus": "Enabled" if topic.publishing.deduplication is not None else "Disabled",
        "nonContiguousDeletedMessagesRanges": sum(
            sum(1 for _ in subscription.cursor.ranges()) for subscription in subscriptions.values()
        ),
        "nonContiguousDeletedMessagesRangesSerializedSize": 0,
        "delayedMessageIndexSizeInBytes": sum(map(_delayed_bytes, subscriptions.values())),
        **_NEVER_IN_TOPICS,
        "compaction": topic.compaction.stats(),
        "lastPublishTimeStamp": topic.publishing.last_publish_ms,
    } | ({} if topic.publishing.topic_epoch is None else {"topicEpoch": topic.publishing.topic_epoch})


def measure(topic: ShownTopic) -> Measured:
    """Return the metrics."""
    own: dict[str, SubscriptionMeasure] = {}
    replication: dict[str, ReplicationMeasure] = {}
    last = topic.positions.durable
    for name, subscription in topic.subscriptions.items():
        metrics, remote = subscription_measure(subscription, last), topic.remote_of(name)
        if remote is None:
            own[name] = metrics
        else:
            rates = metrics.rate_out, metrics.throughput_out, metrics.rate_expired
            replication[remote] = ReplicationMeasure(
                metrics.backlog, metrics.consumers > 0, not metrics.consumers, *rates
            )
    for producer in topic.producers.by_name.values():
        if (remote := producer.request.remote_cluster) is not None:
            way, published = replication.get(remote, NO_WAY), producer.published
            replication[remote] = way._replace(
                rate_in=way.rate_in + published.message_rate, throughput_in=way.throughput_in + published.byte_rate
            )
    ledgers, written = topic.log.ledgers, topic.log.written
    size, read_rate = sum(ledger.size for ledger in ledgers), topic.log.read_rate
    waiting = [topic.subscriptions[name].cursor.mark_delete for name, metrics in own.items() if metrics.backlog]
    topic_metrics = topic.producers.measure()._replace(
        backlog_bytes=bytes_after(ledgers, min(waiting)) if waiting else 0,
        storage_bytes=size,
        logical_bytes=size,
        write_rate=topic.log.write_rate,
        read_rate=read_rate,
        cache_misses_rate=read_rate,
    )
    limits, compaction = _limits(topic) if topic.limits.measured else None, topic.compaction
    ages = {name: age for name in own if (age := topic.backlog_keeper.age_seconds(name)) >= 0}
    return Measured(
        summed(topic_metrics, own), own, replication, limits, compaction.measure(), compaction.waits_ms, written, ages
    )


def _limits(topic: ShownTopic) -> LimitMeasure:
    backlog = topic.backlog_keeper.stats()
    return LimitMeasure(
        topic.limits.publish_throttled,
        backlog["backlogQuotaLimitSize"],
        backlog["backlogQuotaLimitTime"],
        backlog["oldestBacklogMessageAgeSeconds"],
        topic.backlog_keeper.evictions,
        {
            name: throttled
            for name, subscription in topic.subscriptions.items()
            if (throttled := subscription.throttled) is not None
        },
    )


async def add_earliest_times(topic: ShownTopic, body: dict[str, Any]) -> None:
    """Add the publish time of each subscription's oldest unacknowledged message to `stats`; -1 if there is none."""
    times = []
    for name, subscription in body["subscriptions"].items():
        times.append(await _earliest_time(topic, name))
        subscription["earliestMsgPublishTimeInBacklog"] = times[-1]
    body["earliestMsgPublishTimeInBacklogs"] = min((time for time in times if time >= 0), default=0)


async def _earliest_time(topic: ShownTopic, subscription: str) -> int:
    cursor = topic.subscriptions[subscription].cursor if subscription in topic.subscriptions else None
    if cursor is None or not cursor.backlog(topic.positions.durable):
        return -1
    position = topic.log.next_position(cursor.mark_delete)
    try:
        return -1 if position is None else publish_time_of((await topic.positions.read_entry(position)).entry)
    except NotFound:
        return -1  # acknowledged and trimmed meanwhile


def _replications(topic: ShownTopic) -> dict[str, dict[str, Any]]:
    clusters = {name: topic.remote_of(name) for name in sorted(topic.subscriptions)}
    shown = {
        remote: NO_REPLICATION | _outbound(topic, topic.subscriptions[name])
        for name, remote in clusters.items()
        if remote is not None
    }
    for producer in topic.producers.sorted_by_name():
        remote = producer.request.remote_cluster
        if remote is not None:
            before = shown.get(remote, NO_REPLICATION)
            shown[remote] = before | _inbound(before, producer)
    return shown


def _outbound(topic: ShownTopic, subscription: Subscription) -> dict[str, Any]:
    """Return the traffic of the replication job, and its connection."""
    out = _sent(subscription)
    consumers = subscription.consumers
    return {
        "msgRateOut": out.message_rate,
        "msgThroughputOut": out.byte_rate,
        "msgOutCount": out.messages,
        "bytesOutCount": out.bytes,
        "msgRateExpired": subscription.expired.message_rate,
        "msgExpiredCount": subscription.expired.messages,
        "replicationBacklog": subscription.cursor.backlog(topic.positions.durable),
        "connected": bool(consumers),
        "outboundConnection": consumers[0].request.address if consumers else None,
    }


def _inbound(before: Mapping[str, Any], producer: Producer) -> dict[str, Any]:
    """Return ``before`` with the traffic of a remote replicator, which may have several producers."""
    shown, published = producer.stats(), producer.published
    return {
        "msgRateIn": before["msgRateIn"] + published.message_rate,
        "msgInCount": before["msgInCount"] + published.messages,
        "msgThroughputIn": before["msgThroughputIn"] + published.byte_rate,
        "bytesInCount": before["bytesInCount"] + published.bytes,
        "inboundConnection": shown["address"],
        "inboundConnectedSince": shown["connectedSince"],
    }


def internal_stats(topic: ShownTopic) -> dict[str, Any]:
    """Return ``PersistentTopicInternalStats``. As in Pulsar, the current ledger is listed with 0 entries."""
    ledgers = topic.log.ledgers
    current = ledgers[-1] if ledgers and not topic.log.terminated else None
    cursors = {name: cursor_stats(topic, topic.subscriptions[name]) for name in sorted(topic.subscriptions)}
    if topic.publishing.deduplication is not None:
        position = topic.publishing.deduplication.snapshot_position
        cursors[DEDUPLICATION_CURSOR] = {
            "markDeletePosition": str(position),
            "readPosition": str(Position(position.ledger, position.entry + 1)),
            "individuallyDeletedMessages": "[]",
            "state": "Open",
            "properties": {},
        }
    compacted = topic.log.compacted.current
    if compacted is not None and COMPACTION_CURSOR in cursors:
        cursors[COMPACTION_CURSOR]["properties"] = {COMPACTED_LEDGER: compacted.ledger_id}
    return {
        "entriesAddedCounter": topic.publishing.entries_added,
        "numberOfEntries": sum(ledger.entries for ledger in ledgers),
        "totalSize": sum(ledger.size for ledger in ledgers),
        "currentLedgerEntries": current.entries if current else 0,
        "currentLedgerSize": current.size if current else 0,
        "lastLedgerCreatedTimestamp": iso_time(ledgers[-1].created_ms if ledgers else 0),
        "waitingCursorsCount": sum(1 for subscription in topic.subscriptions.values() if subscription.consumers),
        "pendingAddEntriesCount": topic.publishing.pending_count,
        "lastConfirmedEntry": str(topic.positions.durable),
        "state": "Terminated" if topic.log.terminated else "LedgerOpened",
        "ledgers": [
            {
                "ledgerId": ledger.ledger_id,
                "entries": 0 if ledger is current else ledger.entries,
                "size": 0 if ledger is current else ledger.size,
                "offloaded": False,
                "underReplicated": False,
            }
            for ledger in ledgers
        ],
        "cursors": cursors,
        "schemaLedgers": [],
        "compactedLedger": {
            "ledgerId": compacted.ledger_id if compacted else -1,
            "entries": compacted.entries if compacted else -1,
            "size": compacted.size if compacted else -1,
            "offloaded": False,
            "underReplicated": False,
        },
    }


# --- of one subscription


def subscription_stats(topic: ShownTopic, subscription: Subscription) -> dict[str, Any]:
    """Return ``SubscriptionStats``."""
    consumers, dispatch = subscription.consumers, subscription.dispatch
    backlog = subscription.cursor.backlog(topic.positions.durable)
    out, redelivered, acknowledged, expired = *_traffic(subscription), subscription.expired
    delayed = len(_delayed(subscription) or ())
    body: dict[str, Any] = {
        **out.sent_stats(),
        "msgRateRedeliver": redelivered.message_rate,
        "messageAckRate": acknowledged.message_rate,
        "chunkedMessageRate": 0.0,
        "msgBacklog": backlog,
        "backlogSize": bytes_after(topic.log.ledgers, subscription.cursor.mark_delete) if backlog else 0,
        "earliestMsgPublishTimeInBacklog": 0,
        "oldestBacklogMessageAgeSeconds": topic.backlog_keeper.age_seconds(subscription.name),
        "msgBacklogNoDelayed": max(0, backlog - delayed),
        "blockedSubscriptionOnUnackedMsgs": _blocked(subscription),
        "msgDelayed": delayed,
        "msgInReplay": dispatch.replaying if dispatch else 0,
        "unackedMessages": sum(consumer.unacknowledged for consumer in consumers),
        "msgRateExpired": expired.message_rate,
        "msgExpired": expired.messages,
        "totalMsgExpired": expired.messages,
        "lastExpireTimestamp": subscription.last_expired_ms,
        "lastConsumedFlowTimestamp": subscription.last_flow_ms,
        "lastConsumedTimestamp": max((consumer.last_sent_ms for consumer in consumers), default=0),
        "lastAckedTimestamp": subscription.last_acknowledged_ms,
        "lastMarkDeleteAdvancedTimestamp": subscription.last_moved_ms,
        "consumers": [
            consumer.stats() | _NO_DRAINING | dispatch.consumer_stats(consumer) for consumer in consumers if dispatch
        ],
        "isDurable": subscription.durable,
        "isReplicated": subscription.replicate_state,
        "allowOutOfOrderDelivery": False,
        "consumersAfterMarkDeletePosition": {},
        **_NO_DRAINING,
        **(subscription.throttled or NOT_THROTTLED),
        "nonContiguousDeletedMessagesRanges": sum(1 for _ in subscription.cursor.ranges()),
        "nonContiguousDeletedMessagesRangesSerializedSize": 0,
        "delayedMessageIndexSizeInBytes": _delayed_bytes(subscription),
        "subscriptionProperties": subscription.properties,
        "durable": subscription.durable,
        "replicated": subscription.replicate_state,
        **_NEVER_IN_SUBSCRIPTIONS,
    }
    if dispatch is not None:
        body |= {"type": dispatch.sub_type.label} | dispatch.stats()
    return body


def subscription_measure(subscription: Subscription, last: Position) -> SubscriptionMeasure:
    """Return the metrics; ``last`` is the topic's last durable entry."""
    consumers, dispatch = subscription.consumers, subscription.dispatch
    out, redelivered, acknowledged = subscription.out, subscription.redelivered, subscription.acknowledged
    if consumers or subscription.replicated.messages:
        out, redelivered, acknowledged = _traffic(subscription)
    backlog, delayed = subscription.cursor.backlog(last), len(_delayed(subscription) or ())
    return SubscriptionMeasure(
        backlog,
        sum(consumer.unacknowledged for consumer in consumers),
        _blocked(subscription),
        out.message_rate,
        out.byte_rate,
        redelivered.message_rate,
        acknowledged.message_rate,
        len(consumers),
        subscription.expired.messages,
        out.messages,
        out.bytes,
        delayed,
        _delayed_bytes(subscription),
        dispatch.replaying if dispatch else 0,
        max(0, backlog - delayed),
        subscription.expired.message_rate,
        0.0,
        subscription.last_expired_ms,
        subscription.last_flow_ms,
        max((consumer.last_sent_ms for consumer in consumers), default=0),
        subscription.last_acknowledged_ms,
        subscription.last_moved_ms,
    )


def cursor_stats(topic: ShownTopic, subscription: Subscription) -> dict[str, Any]:
    """Return ``CursorStats``. As in Pulsar, ``messagesConsumedCounter`` is negative while older entries wait."""
    cursor, dispatch, connected = subscription.cursor, subscription.dispatch, bool(subscription.consumers)
    read = dispatch.feed.after if dispatch else cursor.mark_delete
    ranges = list(cursor.ranges())
    texts = [f"({ledger}:{start - 1}..{ledger}:{end}]" for ledger, start, end in ranges]
    return {
        "markDeletePosition": str(cursor.mark_delete),
        "readPosition": str(Position(read.ledger, read.entry + 1)),
        "waitingReadOp": connected,
        "pendingReadOps": 0,
        "cursorLedger": -1,
        "cursorLedgerLastEntry": -1,
        "individuallyDeletedMessages": f"[{','.join(texts)}]",
        "state": "Open",
        "active": connected,
        "numberOfEntriesSinceFirstNotAckedMessage": max(0, read.entry - cursor.mark_delete.entry),
        "totalNonContiguousDeletedMessagesRange": len(ranges),
        "subscriptionHavePendingRead": connected,
        "subscriptionHavePendingReplayRead": bool(dispatch and dispatch.replaying),
        "properties": {},
        "messagesConsumedCounter": topic.publishing.entries_added - cursor.backlog(topic.positions.durable),
    }


def _traffic(subscription: Subscription) -> tuple[TrafficMetrics, TrafficMetrics, TrafficMetrics]:
    """Return what was sent, redelivered and acknowledged, closed consumers included."""
    consumers = subscription.consumers
    return (
        _sent(subscription),
        sum_of(subscription.redelivered, *(consumer.redelivered for consumer in consumers)),
        sum_of(subscription.acknowledged, *(consumer.acknowledged for consumer in consumers)),
    )


def _sent(subscription: Subscription) -> TrafficMetrics:
    """Return the traffic to all consumers, closed ones included, and to the replication job."""
    return sum_of(subscription.out, subscription.replicated, *(consumer.out for consumer in subscription.consumers))


def _delayed_bytes(subscription: Subscription) -> int:
    delayed = _delayed(subscription)
    return delayed.memory_bytes if delayed is not None else 0


def _delayed(subscription: Subscription) -> DelayedEntries | None:
    return subscription.dispatch.delayed if subscription.dispatch is not None else None


def _blocked(subscription: Subscription) -> bool:
    """Return True if no consumer gets anything because all of them together hold too much."""
    return isinstance(subscription.dispatch, SharedDispatch) and subscription.dispatch.blocked
