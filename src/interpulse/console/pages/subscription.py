"""One subscription: its consumers, position, unacknowledged messages and dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interpulse.console.visit import Visit
from interpulse.model.errors import InvalidRequest, NotFound, PulsarError
from interpulse.model.names import TopicName


@dataclass(frozen=True, slots=True)
class Consumer:
    """One consumer that is connected."""

    name: str
    address: str
    since: str
    rate_out: float
    throughput_out: float
    unacked: int
    permits: int
    blocked: bool
    client: str


@dataclass(frozen=True, slots=True)
class PartState:
    """The cursor of the topic, or of one partition."""

    topic: str
    backlog: int
    delete_position: str = ""
    """The position up to which all entries are acknowledged."""

    gaps: str = ""
    """Acknowledged ranges of entries after the position."""

    gap_count: int = 0


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The dead-letter topic; ``messages`` is None if it is absent or hidden from the visitor."""

    topic: str
    messages: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionModel:
    """The page."""

    topic: str
    subscription: str
    partitioned: bool
    kind: str
    durable: bool
    replicated: bool
    backlog: int
    backlog_size: int | None
    delayed: int
    unacked: int
    blocked: bool
    rate_out: float
    rate_expired: float
    rate_redelivered: float
    last_consumed_ms: int
    last_acknowledged_ms: int
    oldest_ms: int | None
    properties: dict[str, str]
    consumers: tuple[Consumer, ...]
    parts: tuple[PartState, ...]
    dead_letters: DeadLetters
    browse_from: str
    """The first entry that is not acknowledged; empty where there is none, or several topics have one."""


async def build(visit: Visit) -> SubscriptionModel:
    """Build the page. Raise TopicNotFound, and NotFound for a subscription that the topic does not have."""
    topic, name = visit.topic(), visit.text("subscription")
    if not name:
        raise InvalidRequest("The address needs a subscription name")
    admin = visit.admin
    count = 0 if topic.is_partition else (await admin.topics.partitioned_metadata(topic)).partitions
    if count:
        stats = await admin.topics.partitioned_stats(topic, earliest_time_in_backlog=True)
        inside = (await admin.topics.partitioned_internal_stats(topic)).get("partitions", {})
        parts = [_part(part, name, inside.get(part, {}), of) for part, of in sorted(stats["partitions"].items())]
    else:
        stats = await admin.topics.stats(topic, earliest_time_in_backlog=True)
        inside = await admin.topics.internal_stats(topic) if topic.is_persistent else {}
        parts = [_part(str(topic), name, inside, stats)]
    if name not in stats["subscriptions"]:
        raise NotFound(f"{topic} has no subscription {name[:200]}")
    subscription_stats = stats["subscriptions"][name]
    return SubscriptionModel(
        topic=str(topic),
        subscription=name,
        partitioned=bool(count),
        kind=subscription_stats.get("type") or "no consumer since the topic was loaded",
        durable=bool(subscription_stats.get("durable", True)),
        replicated=bool(subscription_stats.get("replicated") or subscription_stats.get("isReplicated")),
        backlog=int(subscription_stats.get("msgBacklog", 0)),
        backlog_size=_or_none(subscription_stats.get("backlogSize")),
        delayed=int(subscription_stats.get("msgDelayed", 0)),
        unacked=int(subscription_stats.get("unackedMessages", 0)),
        blocked=bool(subscription_stats.get("blockedSubscriptionOnUnackedMsgs")),
        rate_out=float(subscription_stats.get("msgRateOut", 0)),
        rate_expired=float(subscription_stats.get("msgRateExpired", 0)),
        rate_redelivered=float(subscription_stats.get("msgRateRedeliver", 0)),
        last_consumed_ms=int(subscription_stats.get("lastConsumedTimestamp", 0)),
        last_acknowledged_ms=int(subscription_stats.get("lastAckedTimestamp", 0)),
        oldest_ms=_or_none(subscription_stats.get("earliestMsgPublishTimeInBacklog")),
        properties=dict(subscription_stats.get("subscriptionProperties") or {}),
        consumers=tuple(_consumer(consumer) for consumer in subscription_stats.get("consumers", ())),
        parts=tuple(parts),
        dead_letters=await _dead_letters(visit, topic, name),
        browse_from="" if count else _behind(parts[0].delete_position),
    )


def _part(topic: str, subscription: str, inside: Mapping[str, Any], stats: Mapping[str, Any]) -> PartState:
    backlog = int(stats.get("subscriptions", {}).get(subscription, {}).get("msgBacklog", 0))
    cursor = inside.get("cursors", {}).get(subscription, {})
    gaps = str(cursor.get("individuallyDeletedMessages") or "")
    gaps = "" if gaps == "[]" else gaps
    return PartState(topic, backlog, str(cursor.get("markDeletePosition", "")), gaps, gaps.count(".."))


def _consumer(found: Mapping[str, Any]) -> Consumer:
    return Consumer(
        str(found.get("consumerName") or ""),
        str(found.get("address") or ""),
        str(found.get("connectedSince") or ""),
        float(found.get("msgRateOut", 0)),
        float(found.get("msgThroughputOut", 0)),
        int(found.get("unackedMessages", 0)),
        int(found.get("availablePermits", 0)),
        bool(found.get("blockedConsumerOnUnackedMsgs")),
        str(found.get("clientVersion") or ""),
    )


async def _dead_letters(visit: Visit, topic: TopicName, subscription: str) -> DeadLetters:
    """Return the default dead-letter topic of official clients, with its backlog."""
    base = topic.base
    try:
        name = TopicName.of(base.domain, base.tenant, base.namespace, f"{base.local_name}-{subscription}-DLQ")
    except PulsarError:
        return DeadLetters("")
    try:
        stats = await visit.admin.topics.stats(name)
    except PulsarError:  # missing or forbidden: the page shows the subscription anyway
        return DeadLetters(str(name))
    return DeadLetters(str(name), int(stats.get("msgInCounter", 0)), int(stats.get("storageSize", 0)))


def _behind(position: str) -> str:
    ledger, _, entry = position.partition(":")
    try:
        return f"{int(ledger)}:{int(entry) + 1}" if int(ledger) >= 0 else "earliest"
    except ValueError:
        return ""


def _or_none(value: Any) -> int | None:
    return int(value) if value and int(value) > 0 else None
