"""A topic in the admin API: rates, partitions, subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.console.visit import Visit

_ROWS_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    """One subscription."""

    name: str
    kind: str
    backlog: int
    unacked: int
    consumers: int
    rate_out: float


@dataclass(frozen=True, slots=True)
class PartRow:
    """One partition."""

    topic: str
    rate_in: float
    rate_out: float
    backlog: int
    size: int


@dataclass(frozen=True, slots=True)
class RemoteTopicModel:
    """The page."""

    name: str
    partitions: int
    rate_in: float
    rate_out: float
    throughput_in: float
    throughput_out: float
    size: int
    producers: int
    subscriptions: tuple[SubscriptionRow, ...]
    """The subscriptions, the largest backlog first."""

    parts: tuple[PartRow, ...]
    remotes: tuple[tuple[str, int], ...]
    """Other clusters it is replicated to, with the messages that wait for each."""


async def build(visit: Visit) -> RemoteTopicModel:
    """Build the page. Raise TopicNotFound."""
    topic = visit.topic()
    admin = visit.admin.topics
    partitions = 0 if topic.is_partition else (await admin.partitioned_metadata(topic)).partitions
    stats = await (admin.partitioned_stats(topic) if partitions else admin.stats(topic))
    subscriptions = sorted(
        (_subscription(name, found) for name, found in stats.get("subscriptions", {}).items()),
        key=lambda row: (-row.backlog, row.name),
    )
    return RemoteTopicModel(
        str(topic),
        partitions,
        float(stats.get("msgRateIn", 0)),
        float(stats.get("msgRateOut", 0)),
        float(stats.get("msgThroughputIn", 0)),
        float(stats.get("msgThroughputOut", 0)),
        int(stats.get("storageSize", 0)),
        len(stats.get("publishers") or ()),
        tuple(subscriptions[:_ROWS_MAX]),
        tuple(_part(name, found) for name, found in sorted((stats.get("partitions") or {}).items())[:_ROWS_MAX]),
        tuple((name, int(found.get("replicationBacklog", 0))) for name, found in _replication(stats).items()),
    )


def _replication(stats: Mapping[str, Any]) -> Mapping[str, Any]:
    return stats.get("replication") or {}


def _subscription(name: str, found: Mapping[str, Any]) -> SubscriptionRow:
    return SubscriptionRow(
        name,
        str(found.get("type") or ""),
        int(found.get("msgBacklog", 0)),
        int(found.get("unackedMessages", 0)),
        len(found.get("consumers") or ()),
        float(found.get("msgRateOut", 0)),
    )


def _part(name: str, found: Mapping[str, Any]) -> PartRow:
    backlog = sum(
        int(subscription.get("msgBacklog", 0)) for subscription in (found.get("subscriptions") or {}).values()
    )
    rates = float(found.get("msgRateIn", 0)), float(found.get("msgRateOut", 0))
    return PartRow(name, *rates, backlog, int(found.get("storageSize", 0)))
