"""One topic: what goes through it, who waits for what, which policies are in force, and who is let in."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Final

from interpulse.broker.console.pages.door import admissions
from interpulse.broker.console.pages.parts.admission import Way
from interpulse.broker.console.pages.parts.paging import PAGES_MAX, PageOf, page_of
from interpulse.broker.console.pages.parts.policy_rows import PolicyRow, policy_rows
from interpulse.broker.console.pages.parts.replication_rows import Row, catch_up, order, row_of
from interpulse.broker.console.pages.parts.topic_figures import (
    Figures,
    Sample,
    SubscriptionRow,
    figures_of,
    loaded_parts,
)
from interpulse.broker.console.visit import Visit
from interpulse.broker.console.web.addresses import namespace_path, topic_path
from interpulse.broker.console.web.response import EventStream
from interpulse.broker.topics.topic_settings import broker_level
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName
from interpulse.model.topics import TopicKind
from interpulse.rules.effective_policies import namespace_level

__all__ = ["TopicModel", "build", "rates"]

_SUBSCRIPTIONS_MAX: Final = 200
_PRODUCERS_MAX: Final = 50
_CHECKED_EVERY_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Total:
    """Sums over what is loaded here."""

    parts: int
    producers: int
    consumers: int
    rate_in: float
    rate_out: float
    throughput_in: float
    throughput_out: float
    backlog: int
    storage: int


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition; figures are 0 where it is not loaded here."""

    name: str
    recorded: bool
    loaded: bool
    rate_in: float
    rate_out: float
    backlog: int
    storage: int


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """One producer that is connected."""

    topic: str
    name: str
    address: str
    rate_in: float
    throughput_in: float
    remote: str
    """The cluster that it copies from; empty for a client."""


@dataclass(frozen=True, slots=True)
class TopicModel:
    """Everything about one name."""

    name: str
    kind: str
    """``partitioned``, ``non-partitioned`` or ``absent``."""

    partitions: int
    missing: int
    """Partitions without a record."""

    total: Total | None
    """None where the visitor may not see statistics, or nothing is loaded."""

    refusal: str
    """Why there are no statistics."""

    subscriptions: list[SubscriptionRow]
    subscriptions_total: int
    partition_page: PageOf[PartitionRow]
    producers: list[ProducerRow]
    producers_total: int
    replication: list[Row]
    policies: list[PolicyRow]
    policies_refusal: str
    door: list[Way]


async def build(visit: Visit) -> TopicModel:
    """For who may ask for the partition metadata; each part needs what its own call needs."""
    name = visit.topic()
    await visit.check("GET", topic_path(name, "/partitions"))
    view = await visit.broker.lifecycle.view(name)
    existence = await visit.broker.lifecycle.existence(name)
    partitions = existence.partitions
    refusal = await visit.refusal("GET", topic_path(name, "/stats"))
    if not refusal and existence.kind is TopicKind.NON_PARTITIONED:
        refusal = (await visit.attempt(topic_path(name, "/stats"))).refusal  # it is loaded, as for any statistics
    figures = Figures() if refusal else await _figures(visit, name, partitions)
    subscriptions = sorted(figures.subscriptions.values(), key=lambda each: (-each.backlog, each.name))
    producers = [] if refusal else await _producers(visit, name, partitions)
    policies, policies_refusal = await _policies(visit, name)
    return TopicModel(
        name=str(name),
        kind=existence.kind.value,
        partitions=partitions,
        missing=partitions - len(view.partition_records & set(range(partitions))) if name.is_persistent else 0,
        total=_total(figures) if figures.parts else None,
        refusal=refusal,
        subscriptions=subscriptions[:_SUBSCRIPTIONS_MAX],
        subscriptions_total=len(subscriptions),
        partition_page=await _partitions(visit, name, partitions, view.partition_records, refused=bool(refusal)),
        producers=producers[:_PRODUCERS_MAX],
        producers_total=len(producers),
        replication=await _replication(visit, name, existence.kind),
        policies=policies,
        policies_refusal=policies_refusal,
        door=await admissions(visit, name),
    )


async def rates(visit: Visit) -> EventStream:
    """The stream of events behind the charts."""
    name = visit.topic()
    path = topic_path(name, "/stats")
    await visit.check("GET", path)
    partitions = await visit.broker.lifecycle.partitions(name, create=False)
    before: Sample | None = None
    checked_at = visit.now_ms

    async def take() -> Any:
        nonlocal before
        figures = await figures_of(loaded_parts(visit.broker.registry, name, partitions))
        sample = Sample.of(figures, time.time_ns() // 1_000_000)
        shown = sample.since(before)
        before = sample
        return shown

    async def check() -> str:
        nonlocal checked_at
        now_ms = time.time_ns() // 1_000_000
        if now_ms - checked_at < _CHECKED_EVERY_MS:
            return ""
        checked_at = now_ms
        return await visit.refusal("GET", path)

    return visit.samples.watch(("topic", str(name), partitions), take, check)


async def _figures(visit: Visit, name: TopicName, partitions: int) -> Figures:
    return await figures_of(loaded_parts(visit.broker.registry, name, partitions))


def _total(figures: Figures) -> Total:
    return Total(
        figures.parts,
        figures.producers,
        figures.consumers,
        figures.rate_in,
        figures.rate_out,
        figures.throughput_in,
        figures.throughput_out,
        figures.backlog,
        figures.storage,
    )


async def _producers(visit: Visit, name: TopicName, partitions: int) -> list[ProducerRow]:
    rows = [
        ProducerRow(
            str(topic.name),
            producer.name,
            producer.request.address or "",
            producer.published.message_rate,
            producer.published.byte_rate,
            producer.request.remote_cluster or "",
        )
        for topic in loaded_parts(visit.broker.registry, name, partitions)
        for producer in topic.producers.by_name.values()
    ]
    return sorted(rows, key=lambda row: (-row.rate_in, row.topic, row.name))


async def _partitions(
    visit: Visit, name: TopicName, partitions: int, recorded: frozenset[int], *, refused: bool
) -> PageOf[PartitionRow]:
    page = page_of(range(partitions), visit.number("page", 0, most=PAGES_MAX))
    rows = []
    for index in page.rows:
        partition = name.partition(index)
        loaded = None if refused else visit.broker.registry.get(partition)
        one = loaded.measure().topic if loaded is not None else None
        rows.append(
            PartitionRow(
                str(partition),
                index in recorded or not name.is_persistent,
                one is not None,
                one.rate_in if one is not None else 0.0,
                one.rate_out if one is not None else 0.0,
                one.backlog if one is not None else 0,
                one.storage_bytes if one is not None else 0,
            )
        )
    return PageOf(rows, page.number, page.total)


async def _replication(visit: Visit, name: TopicName, kind: TopicKind) -> list[Row]:
    if kind is TopicKind.ABSENT:
        return []
    records = (await visit.attempt(topic_path(name, "/replication/status"))).value or []
    rows = sorted(map(row_of, records), key=order)[:_PRODUCERS_MAX]
    return [replace(row, catch_up=catch_up(row.lag_messages, row.rate_out, None)) for row in rows]


async def _policies(visit: Visit, name: TopicName) -> tuple[list[PolicyRow], str]:
    refusal = await visit.refusal("GET", namespace_path(name.namespace_name))
    if refusal:
        return [], refusal
    try:
        record = await visit.broker.topic_policies.record(name)
        policies = await visit.broker.namespaces.get_policies(name.namespace_name)
    except PulsarError as error:
        return [], str(error)
    config = visit.broker.dynamic.config
    return policy_rows(record, namespace_level(policies, cluster=config.cluster_name), broker_level(config)), ""
