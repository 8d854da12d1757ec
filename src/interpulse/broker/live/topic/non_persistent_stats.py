"""The statistics of a non-persistent topic in Pulsar's JSON. Fields on storage are 0 or left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from interpulse.broker.live.api import SubType
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.metrics import TrafficMeter
from interpulse.broker.live.topic.publish_stats import PublishedTopic, publish_stats

_NOTHING_STORED: Final[dict[str, Any]] = {
    "averageMsgSize": 0.0,
    "msgChunkPublished": False,
    "storageSize": 0,
    "backlogSize": 0,
    "earliestMsgPublishTimeInBacklogs": 0,
    "offloadedStorageSize": 0,
    "nonContiguousDeletedMessagesRanges": 0,
    "nonContiguousDeletedMessagesRangesSerializedSize": 0,
    "compaction": {
        "lastCompactionRemovedEventCount": 0,
        "lastCompactionSucceedTimestamp": 0,
        "lastCompactionFailedTimestamp": 0,
        "lastCompactionDurationTimeInMills": 0,
    },
    "lastPublishTimeStamp": 0,
}
_NOTHING_WAITS: Final[dict[str, Any]] = {
    "msgRateRedeliver": 0.0,
    "messageAckRate": 0.0,
    "chunkedMessageRate": 0.0,
    "msgBacklog": 0,
    "backlogSize": 0,
    "earliestMsgPublishTimeInBacklog": 0,
    "oldestBacklogMessageAgeSeconds": -1,
    "msgBacklogNoDelayed": 0,
    "blockedSubscriptionOnUnackedMsgs": False,
    "msgDelayed": 0,
    "msgInReplay": 0,
    "unackedMessages": 0,
    "msgRateExpired": 0.0,
    "msgExpired": 0,
    "totalMsgExpired": 0,
    "lastExpireTimestamp": 0,
    "lastAckedTimestamp": 0,
    "lastMarkDeleteAdvancedTimestamp": 0,
    "isDurable": False,
    "isReplicated": False,
    "allowOutOfOrderDelivery": False,
    "consumersAfterMarkDeletePosition": {},
    "nonContiguousDeletedMessagesRanges": 0,
    "nonContiguousDeletedMessagesRangesSerializedSize": 0,
    "subscriptionProperties": {},
    "durable": False,
    "replicated": False,
}
_NO_CURSOR: Final[dict[str, Any]] = {
    "waitingReadOp": False,
    "pendingReadOps": 0,
    "messagesConsumedCounter": 0,
    "cursorLedger": 0,
    "cursorLedgerLastEntry": 0,
    "active": False,
    "numberOfEntriesSinceFirstNotAckedMessage": 0,
    "totalNonContiguousDeletedMessagesRange": 0,
    "subscriptionHavePendingRead": False,
    "subscriptionHavePendingReplayRead": False,
}


class ShownSubscription(Protocol):
    """The interface of a subscription for statistics."""

    dropped: TrafficMeter
    sub_type: SubType

    @property
    def consumers(self) -> Sequence[Consumer]: ...

    @property
    def out(self) -> TrafficMeter:
        """The traffic of the subscription since its creation."""


class ShownTopic(PublishedTopic, Protocol):
    """The interface of a topic for statistics."""

    entries_added: int
    gone: TrafficMeter
    """The traffic of deleted subscriptions."""

    @property
    def subscriptions(self) -> Mapping[str, ShownSubscription]: ...


def stats(topic: ShownTopic) -> dict[str, Any]:
    """Return ``NonPersistentTopicStats``: counters since the topic was loaded, rates of the last period."""
    shown = {name: subscription_stats(topic.subscriptions[name]) for name in sorted(topic.subscriptions)}
    return _NOTHING_STORED | {
        **publish_stats(topic),
        "msgRateOut": float(sum(subscription["msgRateOut"] for subscription in shown.values())),
        "msgThroughputOut": float(sum(subscription["msgThroughputOut"] for subscription in shown.values())),
        "bytesOutCounter": topic.gone.bytes + sum(subscription["bytesOutCounter"] for subscription in shown.values()),
        "msgOutCounter": topic.gone.messages + sum(subscription["msgOutCounter"] for subscription in shown.values()),
        "msgDropRate": float(sum(subscription["msgDropRate"] for subscription in shown.values())),
        "subscriptions": shown,
        "replication": {},
    }


def subscription_stats(subscription: ShownSubscription) -> dict[str, Any]:
    """Return ``NonPersistentSubscriptionStats``."""
    consumers = subscription.consumers
    out = subscription.out
    return _NOTHING_WAITS | {
        "msgRateOut": out.message_rate,
        "msgThroughputOut": out.byte_rate,
        "bytesOutCounter": out.bytes,
        "msgOutCounter": out.messages,
        "msgDropRate": subscription.dropped.message_rate,
        "type": subscription.sub_type.label,
        "lastConsumedTimestamp": max((consumer.last_sent_ms for consumer in consumers), default=0),
        "consumers": [consumer.stats() for consumer in consumers],
    }


def internal_stats(topic: ShownTopic) -> dict[str, Any]:
    """Return `PersistentTopicInternalStats` of a topic that stores nothing."""
    return {
        "entriesAddedCounter": topic.entries_added,
        "numberOfEntries": 0,
        "totalSize": 0,
        "currentLedgerEntries": 0,
        "currentLedgerSize": 0,
        "waitingCursorsCount": 0,
        "pendingAddEntriesCount": 0,
        "cursors": {name: dict(_NO_CURSOR) for name in sorted(topic.subscriptions)},
    }
