"""One subscription: its consumers, position, unacknowledged messages and dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interpulse.console.visit import Model, Visit
from interpulse.model.errors import InvalidRequest, NotFound, PulsarError
from interpulse.model.names import TopicName


async def build(visit: Visit) -> Model:
    """Build the page. Raise TopicNotFound, and NotFound for a subscription that the topic does not have."""
    topic, name = visit.topic(), visit.text("subscription")
    if not name:
        raise InvalidRequest("The address needs a subscription name")
    admin = visit.admin
    count = 0 if topic.is_partition else (await admin.topics.partitioned_metadata(topic)).partitions
    if count:
        whole = await admin.topics.partitioned_stats(topic, earliest_time_in_backlog=True)
        inside = (await admin.topics.partitioned_internal_stats(topic)).get("partitions", {})
        parts = [_part(part, name, inside.get(part, {}), of) for part, of in sorted(whole["partitions"].items())]
    else:
        whole = await admin.topics.stats(topic, earliest_time_in_backlog=True)
        inside = await admin.topics.internal_stats(topic) if topic.is_persistent else {}
        parts = [_part(str(topic), name, inside, whole)]
    if name not in whole["subscriptions"]:
        raise NotFound(f"{topic} has no subscription {name[:200]}")
    stats = whole["subscriptions"][name]
    return {
        "topic": str(topic),
        "subscription": name,
        "partitioned": bool(count),
        "kind": stats.get("type") or "no consumer since the topic was loaded",
        "durable": bool(stats.get("durable", True)),
        "replicated": bool(stats.get("replicated") or stats.get("isReplicated")),
        "backlog": int(stats.get("msgBacklog", 0)),
        "backlog_size": _or_none(stats.get("backlogSize")),
        "delayed": int(stats.get("msgDelayed", 0)),
        "unacked": int(stats.get("unackedMessages", 0)),
        "blocked": bool(stats.get("blockedSubscriptionOnUnackedMsgs")),
        "rate_out": float(stats.get("msgRateOut", 0)),
        "rate_expired": float(stats.get("msgRateExpired", 0)),
        "rate_redelivered": float(stats.get("msgRateRedeliver", 0)),
        "last_consumed_ms": int(stats.get("lastConsumedTimestamp", 0)),
        "last_acknowledged_ms": int(stats.get("lastAckedTimestamp", 0)),
        "oldest_ms": _or_none(stats.get("earliestMsgPublishTimeInBacklog")),
        "properties": dict(stats.get("subscriptionProperties") or {}),
        "consumers": [_consumer(consumer) for consumer in stats.get("consumers", ())],
        "parts": parts,
        "dead_letters": await _dead_letters(visit, topic, name),
        # The first entry that is not acknowledged; empty where there is none, or several topics have one.
        "browse_from": "" if count else _behind(parts[0]["delete_position"]),
    }


def _part(topic: str, subscription: str, inside: Mapping[str, Any], stats: Mapping[str, Any]) -> Model:
    cursor = inside.get("cursors", {}).get(subscription, {})
    gaps = str(cursor.get("individuallyDeletedMessages") or "")
    gaps = "" if gaps == "[]" else gaps
    return {
        "topic": topic,
        "backlog": int(stats.get("subscriptions", {}).get(subscription, {}).get("msgBacklog", 0)),
        "delete_position": str(cursor.get("markDeletePosition", "")),  # all entries up to it are acknowledged
        "gaps": gaps,
        "gap_count": gaps.count(".."),
    }


def _consumer(stats: Mapping[str, Any]) -> Model:
    return {
        "name": str(stats.get("consumerName") or ""),
        "address": str(stats.get("address") or ""),
        "since": str(stats.get("connectedSince") or ""),
        "rate_out": float(stats.get("msgRateOut", 0)),
        "throughput_out": float(stats.get("msgThroughputOut", 0)),
        "unacked": int(stats.get("unackedMessages", 0)),
        "permits": int(stats.get("availablePermits", 0)),
        "blocked": bool(stats.get("blockedConsumerOnUnackedMsgs")),
        "client": str(stats.get("clientVersion") or ""),
    }


async def _dead_letters(visit: Visit, topic: TopicName, subscription: str) -> Model:
    """Return the default dead-letter topic of official clients, with its backlog; None if absent or hidden."""
    base, name = topic.base, ""
    try:
        letters = TopicName.of(base.domain, base.tenant, base.namespace, f"{base.local_name}-{subscription}-DLQ")
        name = str(letters)
        stats = await visit.admin.topics.stats(letters)
    except PulsarError:  # no valid name, missing or forbidden: the page shows the subscription anyway
        return {"topic": name, "messages": None, "size": None}
    return {"topic": name, "messages": int(stats.get("msgInCounter", 0)), "size": int(stats.get("storageSize", 0))}


def _behind(position: str) -> str:
    ledger, _, entry = position.partition(":")
    try:
        return f"{int(ledger)}:{int(entry) + 1}" if int(ledger) >= 0 else "earliest"
    except ValueError:
        return ""


def _or_none(value: Any) -> int | None:
    return int(value) if value and int(value) > 0 else None
