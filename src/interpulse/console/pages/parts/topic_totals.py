"""Statistics of a topic, summed over its loaded partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from interpulse.console.broker_facts import BrokerFacts, LoadedTopic
from interpulse.in_turns import Turn
from interpulse.model.names import TopicName


@dataclass(slots=True)
class SubscriptionRow:
    """One subscription, over all partitions. Rates are per second, times milliseconds since 1970, 0 = never."""

    name: str
    kind: str = ""
    backlog: int = 0
    unacknowledged: int = 0
    delayed: int = 0
    consumers: int = 0
    rate_out: float = 0.0
    rate_redelivered: float = 0.0
    last_acknowledged: int = 0
    blocked: bool = False


@dataclass(slots=True)
class TopicTotals:
    """Totals of the loaded ``parts`` of a topic."""

    parts: int = 0
    producers: int = 0
    consumers: int = 0
    rate_in: float = 0.0
    rate_out: float = 0.0
    throughput_in: float = 0.0
    throughput_out: float = 0.0
    messages_in: int = 0
    messages_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    backlog: int = 0
    storage: int = 0
    subscriptions: dict[str, SubscriptionRow] = field(default_factory=dict)

    def add(self, topic: LoadedTopic) -> None:
        """Add one part."""
        one, subscriptions = topic.measure()
        self.parts += 1
        self.producers += one.producers
        self.consumers += one.consumers
        self.rate_in += one.rate_in
        self.rate_out += one.rate_out
        self.throughput_in += one.throughput_in
        self.throughput_out += one.throughput_out
        self.messages_in += one.messages_in
        self.messages_out += one.messages_out
        self.bytes_in += one.bytes_in
        self.bytes_out += one.bytes_out
        self.backlog += one.backlog
        self.storage += one.storage_bytes
        for name, subscription in subscriptions.items():
            row = self.subscriptions.setdefault(name, SubscriptionRow(name))
            row.kind = topic.subscription_kind(name) or row.kind
            row.backlog += subscription.backlog
            row.unacknowledged += subscription.unacknowledged
            row.delayed += subscription.delayed
            row.consumers += subscription.consumers
            row.rate_out += subscription.rate_out
            row.rate_redelivered += subscription.rate_redelivered
            row.last_acknowledged = max(row.last_acknowledged, subscription.last_acknowledged_ms)
            row.blocked = row.blocked or subscription.blocked

    def add_stats(self, stats: Mapping[str, Any]) -> None:
        """Add one part at another broker, by its statistics."""
        self.parts += 1
        self.producers += len(stats.get("publishers") or ())
        self.rate_in += float(stats.get("msgRateIn", 0))
        self.rate_out += float(stats.get("msgRateOut", 0))
        self.throughput_in += float(stats.get("msgThroughputIn", 0))
        self.throughput_out += float(stats.get("msgThroughputOut", 0))
        self.storage += int(stats.get("storageSize", 0))
        for name, subscription in stats.get("subscriptions", {}).items():
            row = self.subscriptions.setdefault(name, SubscriptionRow(name))
            consumers = len(subscription.get("consumers") or ())
            row.kind = str(subscription.get("type") or row.kind)
            row.backlog += int(subscription.get("msgBacklog", 0))
            row.unacknowledged += int(subscription.get("unackedMessages", 0))
            row.delayed += int(subscription.get("msgDelayed", 0))
            row.consumers += consumers
            row.rate_out += float(subscription.get("msgRateOut", 0))
            row.rate_redelivered += float(subscription.get("msgRateRedeliver", 0))
            row.last_acknowledged = max(row.last_acknowledged, int(subscription.get("lastAckedTimestamp", 0)))
            row.blocked = row.blocked or bool(subscription.get("blockedSubscriptionOnUnackedMsgs"))
            self.consumers += consumers
            self.backlog += int(subscription.get("msgBacklog", 0))


@dataclass(frozen=True, slots=True)
class Sample:
    """One point of the charts. Counters go back to 0 when a topic is loaded again."""

    time: int
    messages_in: int
    messages_out: int
    bytes_in: int
    bytes_out: int
    backlog: int

    @classmethod
    def of(cls, totals: TopicTotals, now_ms: int) -> Sample:
        return cls(now_ms, totals.messages_in, totals.messages_out, totals.bytes_in, totals.bytes_out, totals.backlog)

    def since(self, before: Sample | None) -> dict[str, float | int | None]:
        """Return the point of the charts: rates since the sample before, None without one."""
        seconds = 0.0 if before is None else (self.time - before.time) / 1000

        def rate(field_name: str) -> float | None:
            if before is None or seconds <= 0:
                return None
            gained: int = getattr(self, field_name) - getattr(before, field_name)
            return round(gained / seconds, 2) if gained >= 0 else None

        rates = {name: rate(name) for name in ("messages_in", "messages_out", "bytes_in", "bytes_out")}
        return {"time": self.time, **rates, "backlog": self.backlog}


def loaded_parts(broker: BrokerFacts, name: TopicName, partitions: int) -> Iterable[LoadedTopic]:
    """Return the topic or its partitions that are loaded here, without loading others."""
    names = [name.partition(index) for index in range(partitions)] if partitions else [name]
    return [topic for name in names if (topic := broker.loaded_topic(name)) is not None]


async def totals_of(topics: Iterable[LoadedTopic]) -> TopicTotals:
    """Their sum."""
    totals = TopicTotals()
    turn = Turn()
    for topic in topics:
        totals.add(topic)
        await turn.give_way()
    return totals
