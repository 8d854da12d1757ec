"""The worst five of each kind among the topics that are loaded here, and the totals of all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from interpulse.console.broker_facts import BrokerFacts, LoadedTopic
from interpulse.console.pages.parts.paging import TopRows
from interpulse.console.pages.parts.visible_namespaces import VisibleNamespaces

_WORST: Final = 5


@dataclass(frozen=True, slots=True)
class WorstRow:
    """A topic, and the number that it is listed for."""

    topic: str
    figure: float


@dataclass(frozen=True, slots=True)
class WorstSubscription:
    """A subscription that belongs to the worst of its kind."""

    topic: str
    subscription: str
    backlog: int
    consumers: int


@dataclass(frozen=True, slots=True)
class LoadedTopics:
    """Totals of all loaded topics, and the worst topics of each kind."""

    topics: int = 0
    rate_in: float = 0.0
    rate_out: float = 0.0
    throughput_in: float = 0.0
    throughput_out: float = 0.0
    backlog: int = 0
    storage: int = 0
    abandoned: list[WorstSubscription] = field(default_factory=list)
    """Subscriptions with a backlog and no consumer."""
    abandoned_total: int = 0
    behind: list[WorstSubscription] = field(default_factory=list)
    """With consumers."""
    blocked: list[WorstSubscription] = field(default_factory=list)
    blocked_total: int = 0
    busiest: list[WorstRow] = field(default_factory=list)
    largest: list[WorstRow] = field(default_factory=list)


def _by_backlog(row: WorstSubscription) -> tuple[int, str, str]:
    return -row.backlog, row.topic, row.subscription


def _by_figure(row: WorstRow) -> tuple[float, str]:
    return -row.figure, row.topic


class _Look:
    def __init__(self) -> None:
        self.topics = self.backlog = self.storage = 0
        self.rate_in = self.rate_out = self.throughput_in = self.throughput_out = 0.0
        self.abandoned: TopRows[WorstSubscription] = TopRows(_WORST, _by_backlog)
        self.behind: TopRows[WorstSubscription] = TopRows(_WORST, _by_backlog)
        self.blocked: TopRows[WorstSubscription] = TopRows(_WORST, _by_backlog)
        self.busiest: TopRows[WorstRow] = TopRows(_WORST, _by_figure)
        self.largest: TopRows[WorstRow] = TopRows(_WORST, _by_figure)

    def add(self, topic: LoadedTopic) -> None:
        name = str(topic.name)
        counts, subscriptions = topic.measure()
        self.topics += 1
        self.rate_in += counts.rate_in
        self.rate_out += counts.rate_out
        self.throughput_in += counts.throughput_in
        self.throughput_out += counts.throughput_out
        self.backlog += counts.backlog
        self.storage += counts.storage_bytes
        if counts.rate_in:
            self.busiest.add(WorstRow(name, counts.rate_in))
        if counts.storage_bytes:
            self.largest.add(WorstRow(name, counts.storage_bytes))
        for subscription, counted in subscriptions.items():
            row = WorstSubscription(name, subscription, counted.backlog, counted.consumers)
            if counted.blocked:
                self.blocked.add(row)
            if counted.backlog:
                (self.behind if counted.consumers else self.abandoned).add(row)


async def look_at_loaded(broker: BrokerFacts, allowed: VisibleNamespaces) -> LoadedTopics:
    """Return the totals and the worst topics of the allowed namespaces. Yields to other work between topics."""
    look = _Look()
    async for topic in broker.loaded_topics():
        if await allowed(topic.name.namespace_name):
            look.add(topic)
    return LoadedTopics(
        topics=look.topics,
        rate_in=look.rate_in,
        rate_out=look.rate_out,
        throughput_in=look.throughput_in,
        throughput_out=look.throughput_out,
        backlog=look.backlog,
        storage=look.storage,
        abandoned=look.abandoned.rows,
        abandoned_total=look.abandoned.total,
        behind=look.behind.rows,
        blocked=look.blocked.rows,
        blocked_total=look.blocked.total,
        busiest=look.busiest.rows,
        largest=look.largest.rows,
    )
