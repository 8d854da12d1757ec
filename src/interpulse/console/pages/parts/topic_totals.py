"""Statistics of a topic, summed over its loaded partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.console.broker_facts import BrokerFacts, LoadedTopic
from interpulse.console.visit import Model
from interpulse.in_turns import Turn
from interpulse.model.names import TopicName

_COUNTERS: Final = ("messages_in", "messages_out", "bytes_in", "bytes_out")
_MEASURED: Final = (
    "producers", "consumers", "rate_in", "rate_out", "throughput_in", "throughput_out", "backlog", *_COUNTERS,
)  # fmt: skip
_IN_STATS: Final = {
    "rate_in": "msgRateIn",
    "rate_out": "msgRateOut",
    "throughput_in": "msgThroughputIn",
    "throughput_out": "msgThroughputOut",
    "storage": "storageSize",
}
_IN_SUBSCRIPTION_STATS: Final = {
    "backlog": "msgBacklog",
    "unacknowledged": "unackedMessages",
    "delayed": "msgDelayed",
    "rate_out": "msgRateOut",
    "rate_redelivered": "msgRateRedeliver",
}


class TopicTotals:
    """Sums over the parts of a topic, and of each of its subscriptions. Rates are per second; a time of 0 is never."""

    def __init__(self) -> None:
        self.sums: dict[str, Any] = dict.fromkeys(("parts", "storage", *_MEASURED), 0)
        self.subscriptions: dict[str, Model] = {}

    def add(self, topic: LoadedTopic) -> None:
        """Add a part that is loaded here."""
        counts, subscriptions = topic.measure()
        self._add({name: getattr(counts, name) for name in _MEASURED} | {"storage": counts.storage_bytes})
        for name, counted in subscriptions.items():
            sums = {field: getattr(counted, field) for field in ("consumers", *_IN_SUBSCRIPTION_STATS)}
            self._add_subscription(
                name, topic.subscription_kind(name), sums, counted.last_acknowledged_ms, blocked=counted.blocked
            )

    def add_stats(self, stats: Mapping[str, Any]) -> None:
        """Add a part at another broker, by its statistics."""
        subscriptions = stats.get("subscriptions", {})
        self._add({name: stats.get(key, 0) for name, key in _IN_STATS.items()})
        self.sums["producers"] += len(stats.get("publishers") or ())
        for name, values in subscriptions.items():
            sums = {field: values.get(key, 0) for field, key in _IN_SUBSCRIPTION_STATS.items()}
            sums["consumers"] = len(values.get("consumers") or ())
            self.sums["consumers"] += sums["consumers"]
            self.sums["backlog"] += sums["backlog"]
            blocked = bool(values.get("blockedSubscriptionOnUnackedMsgs"))
            self._add_subscription(name, values.get("type"), sums, values.get("lastAckedTimestamp", 0), blocked=blocked)

    def _add(self, sums: Mapping[str, float]) -> None:
        self.sums["parts"] += 1
        for name, value in sums.items():
            self.sums[name] += value

    def _add_subscription(
        self, name: str, kind: str | None, sums: Mapping[str, float], last_acknowledged: int, *, blocked: bool
    ) -> None:
        empty = {"name": name, "kind": "", **dict.fromkeys(sums, 0), "last_acknowledged": 0, "blocked": False}
        row = self.subscriptions.setdefault(name, empty)
        row["kind"] = kind or row["kind"]
        row["last_acknowledged"] = max(row["last_acknowledged"], last_acknowledged)
        row["blocked"] = row["blocked"] or blocked
        for field, value in sums.items():
            row[field] += value


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
        return cls(now_ms, backlog=totals.sums["backlog"], **{name: totals.sums[name] for name in _COUNTERS})

    def since(self, before: Sample | None) -> dict[str, float | int | None]:
        """Return the point of the charts: rates since the sample before, None without one."""
        seconds = 0.0 if before is None else (self.time - before.time) / 1000

        def rate(counter: str) -> float | None:
            if before is None or seconds <= 0:
                return None
            gained: int = getattr(self, counter) - getattr(before, counter)
            return round(gained / seconds, 2) if gained >= 0 else None

        return {"time": self.time, **{name: rate(name) for name in _COUNTERS}, "backlog": self.backlog}


def loaded_parts(broker: BrokerFacts, name: TopicName, partitions: int) -> list[LoadedTopic]:
    """Return the topic or its partitions that are loaded here, without loading others."""
    names = [name.partition(index) for index in range(partitions)] if partitions else [name]
    return [topic for name in names if (topic := broker.loaded_topic(name)) is not None]


async def totals_of(topics: Iterable[LoadedTopic]) -> TopicTotals:
    """Return the sums over topics. Yields to other work."""
    totals = TopicTotals()
    turn = Turn()
    for topic in topics:
        totals.add(topic)
        await turn.give_way()
    return totals
