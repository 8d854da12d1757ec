"""The statistics of one subscription of a persistent topic, in Pulsar's JSON and for metrics."""

from __future__ import annotations

from typing import Any

from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.dispatch.delayed_entries import DelayedEntries
from interpulse.broker.live.dispatch.dispatch_choice import Dispatch
from interpulse.broker.live.dispatch.dispatch_limits import NOT_THROTTLED
from interpulse.broker.live.dispatch.shared import SharedDispatch
from interpulse.broker.live.metrics import TrafficMeter, sum_of
from interpulse.broker.live.topic.subscription import Subscription
from interpulse.model.ids import Position
from interpulse.model.topics import SubscriptionMeasure

_NO_DRAINING = {"drainingHashesCount": 0, "drainingHashesClearedTotal": 0, "drainingHashesUnackedMessages": 0}


def stats(subscription: Subscription, last: Position) -> dict[str, Any]:
    """Return ``SubscriptionStats``; ``last`` is the topic's last durable entry. The topic adds its own fields."""
    consumers, dispatch = subscription.consumers, subscription.dispatch
    backlog = subscription.cursor.backlog(last)
    out, expired = sent(subscription), subscription.expired
    delayed = len(_delayed(subscription) or ())
    body: dict[str, Any] = {
        "msgRateOut": out.message_rate,
        "msgThroughputOut": out.byte_rate,
        "bytesOutCounter": out.bytes,
        "msgOutCounter": out.messages,
        "msgRateRedeliver": _redelivered(subscription).message_rate,
        "messageAckRate": _acknowledged(subscription).message_rate,
        "chunkedMessageRate": 0.0,
        "msgBacklog": backlog,
        "backlogSize": 0,
        "earliestMsgPublishTimeInBacklog": 0,
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
        "consumers": [_consumer_stats(consumer, dispatch) for consumer in consumers],
        "isDurable": subscription.durable,
        "isReplicated": subscription.replicate_state,
        "allowOutOfOrderDelivery": False,
        "consumersAfterMarkDeletePosition": {},
        **_NO_DRAINING,
        **(subscription.throttled or NOT_THROTTLED),
        "nonContiguousDeletedMessagesRanges": sum(1 for _ in subscription.cursor.ranges()),
        "nonContiguousDeletedMessagesRangesSerializedSize": 0,
        "delayedMessageIndexSizeInBytes": delayed_bytes(subscription),
        "subscriptionProperties": subscription.properties,
        "durable": subscription.durable,
        "replicated": subscription.replicate_state,
    }
    if dispatch is not None:
        body |= {"type": dispatch.sub_type.label} | dispatch.stats()
    return body


def measure(subscription: Subscription, last: Position) -> SubscriptionMeasure:
    """Return the metrics; ``last`` is the topic's last durable entry."""
    consumers, dispatch = subscription.consumers, subscription.dispatch
    out, redelivered, acknowledged = subscription.out, subscription.redelivered, subscription.acknowledged
    if consumers or subscription.replicated.messages:
        out, redelivered, acknowledged = sent(subscription), _redelivered(subscription), _acknowledged(subscription)
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
        delayed_bytes(subscription),
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


def internal_stats(subscription: Subscription) -> dict[str, Any]:
    """Return ``CursorStats``. The topic adds its own fields."""
    cursor, dispatch, connected = subscription.cursor, subscription.dispatch, bool(subscription.consumers)
    read = dispatch.read_position if dispatch else cursor.mark_delete
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
    }


def sent(subscription: Subscription) -> TrafficMeter:
    """Return the traffic to all consumers, closed ones included, and to the replication job."""
    return sum_of(subscription.out, subscription.replicated, *(consumer.out for consumer in subscription.consumers))


def delayed_bytes(subscription: Subscription) -> int:
    """Return the memory of delayed entries."""
    delayed = _delayed(subscription)
    return delayed.memory_bytes if delayed is not None else 0


def _redelivered(subscription: Subscription) -> TrafficMeter:
    return sum_of(subscription.redelivered, *(consumer.redelivered for consumer in subscription.consumers))


def _acknowledged(subscription: Subscription) -> TrafficMeter:
    return sum_of(subscription.acknowledged, *(consumer.acknowledged for consumer in subscription.consumers))


def _delayed(subscription: Subscription) -> DelayedEntries | None:
    """Return the number of delayed entries; None where delays are off."""
    return subscription.dispatch.delayed if subscription.dispatch is not None else None


def _blocked(subscription: Subscription) -> bool:
    """Return True if no consumer gets anything because all of them together hold too much."""
    return isinstance(subscription.dispatch, SharedDispatch) and subscription.dispatch.blocked


def _consumer_stats(consumer: Consumer, dispatch: Dispatch | None) -> dict[str, Any]:
    assert dispatch is not None
    return consumer.stats() | _NO_DRAINING | dispatch.consumer_stats(consumer)
