"""The page of one topic: statistics, subscriptions, policies in force, and admission."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from interpulse.console.broker_facts import ConnectedProducer
from interpulse.console.pages.admission import admissions
from interpulse.console.pages.parts.other_brokers import Silent
from interpulse.console.pages.parts.paging import PAGES_MAX, PageOf, page_of
from interpulse.console.pages.parts.policy_rows import PolicyRow, policy_rows
from interpulse.console.pages.parts.replication_rows import Row, catch_up, order, row_of
from interpulse.console.pages.parts.rule_answers import Way
from interpulse.console.pages.parts.topic_stats import PartStats, stats_elsewhere
from interpulse.console.pages.parts.topic_totals import (
    Sample,
    SubscriptionRow,
    TopicTotals,
    loaded_parts,
    totals_of,
)
from interpulse.console.visit import ServedElsewhere, Visit
from interpulse.console.web.addresses import namespace_path, topic_path
from interpulse.console.web.response import EventStream
from interpulse.console.web.result_cache import CachedResult
from interpulse.model.errors import NamespaceNotFound, PulsarError
from interpulse.model.names import TopicName
from interpulse.model.topics import TopicKind
from interpulse.rules.effective_policies import namespace_level

_SUBSCRIPTIONS_MAX: Final = 200
_PRODUCERS_MAX: Final = 50
_CHECKED_EVERY_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Total:
    """Sums over the loaded parts at all brokers that answered."""

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
    """One partition; totals are 0 where it is not loaded."""

    name: str
    recorded: bool
    loaded: bool
    broker: str
    """The other broker that has loaded it; empty if it is loaded here or not at all."""

    rate_in: float
    rate_out: float
    backlog: int
    storage: int


@dataclass(frozen=True, slots=True)
class TopicModel:
    """Everything about one name."""

    name: str
    kind: str
    """The kind: ``partitioned``, ``non-partitioned`` or ``absent``."""

    partitions: int
    missing: int
    """Partitions without a record."""

    total: Total | None
    """The totals; None if the visitor may not see statistics, or nothing is loaded."""

    refusal: str
    """The refusal of statistics; empty if the visitor may see them."""

    known: bool
    """False while other brokers are asked for their parts."""

    silent: tuple[Silent, ...]
    """Brokers that did not answer; their topics are missing here."""

    left_out: int
    """Partitions of other brokers that they were not asked about."""

    loaded_here: int
    """Parts that this broker has; the charts are of them."""

    subscriptions: list[SubscriptionRow]
    subscriptions_total: int
    partition_page: PageOf[PartitionRow]
    producers: list[ConnectedProducer]
    producers_total: int
    replication: list[Row]
    policies: list[PolicyRow]
    policies_refusal: str
    door: list[Way]


async def build(visit: Visit) -> TopicModel:
    """Build the page. Requires permission for the partition metadata; each part needs its own permission."""
    name = visit.topic()
    await visit.check("GET", topic_path(name, "/partitions"))
    view = await visit.broker.view(name)
    existence = await visit.broker.existence(name)
    partitions = existence.partitions
    refusal = await visit.refusal("GET", topic_path(name, "/stats"))
    if not refusal and existence.kind is TopicKind.NON_PARTITIONED:
        try:
            await visit.read(topic_path(name, "/stats"))  # loads the topic, like any statistics
        except ServedElsewhere:
            pass  # that broker is asked below
        except PulsarError as error:
            refusal = str(error)
    absent = bool(refusal) or existence.kind is TopicKind.ABSENT
    elsewhere = CachedResult(PartStats()) if absent else await _elsewhere(visit, name, partitions)
    parts = elsewhere.value or PartStats()
    totals = TopicTotals() if refusal else await _totals(visit, name, partitions)
    loaded_here = totals.parts
    for stats in parts.stats.values():
        totals.add_stats(stats)
    subscriptions = sorted(totals.subscriptions.values(), key=lambda row: (-row.backlog, row.name))
    producers = [] if refusal else await _producers(visit, name, partitions, parts)
    policies, policies_refusal = await _policies(visit, name)
    return TopicModel(
        name=str(name),
        kind=existence.kind.value,
        partitions=partitions,
        missing=partitions - len(view.partition_records & set(range(partitions))) if name.is_persistent else 0,
        total=_total(totals) if totals.parts else None,
        refusal=refusal,
        known=elsewhere.value is not None,
        silent=parts.silent,
        left_out=parts.left_out,
        loaded_here=loaded_here,
        subscriptions=subscriptions[:_SUBSCRIPTIONS_MAX],
        subscriptions_total=len(subscriptions),
        partition_page=await _partitions(visit, name, partitions, view.partition_records, None if refusal else parts),
        producers=producers[:_PRODUCERS_MAX],
        producers_total=len(producers),
        replication=await _replication(visit, name, existence.kind),
        policies=policies,
        policies_refusal=policies_refusal,
        door=await admissions(visit, name),
    )


async def rates(visit: Visit) -> EventStream:
    """Stream the samples behind the charts."""
    name = visit.topic()
    path = topic_path(name, "/stats")
    await visit.check("GET", path)
    partitions = await visit.broker.partitions(name)
    before: Sample | None = None
    checked_at = visit.now_ms

    async def take() -> Any:
        nonlocal before
        totals = await totals_of(loaded_parts(visit.broker, name, partitions))
        sample = Sample.of(totals, time.time_ns() // 1_000_000)
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


async def _totals(visit: Visit, name: TopicName, partitions: int) -> TopicTotals:
    return await totals_of(loaded_parts(visit.broker, name, partitions))


def _total(totals: TopicTotals) -> Total:
    return Total(
        totals.parts,
        totals.producers,
        totals.consumers,
        totals.rate_in,
        totals.rate_out,
        totals.throughput_in,
        totals.throughput_out,
        totals.backlog,
        totals.storage,
    )


async def _elsewhere(visit: Visit, name: TopicName, partitions: int) -> CachedResult[PartStats]:
    """Return the statistics that other brokers hold. They are asked in the background: there may be many."""
    if not visit.broker.shared:
        return CachedResult(PartStats())
    names = [name.partition(index) for index in range(partitions)] if partitions else [name]
    key = ("topic", visit.visitor.role, name)
    return await visit.cache.get(key, lambda: stats_elsewhere(visit, names), fresh_seconds=0.0)


def _producers_of(topic: str, stats: Mapping[str, Any]) -> Iterator[ConnectedProducer]:
    for publisher in stats.get("publishers") or ():
        name, address = str(publisher.get("producerName", "")), str(publisher.get("address", ""))
        rates = float(publisher.get("msgRateIn", 0)), float(publisher.get("msgThroughputIn", 0))
        yield ConnectedProducer(topic, name, address, *rates, "")


async def _producers(visit: Visit, name: TopicName, partitions: int, elsewhere: PartStats) -> list[ConnectedProducer]:
    rows = [producer for topic, stats in elsewhere.stats.items() for producer in _producers_of(topic, stats)]
    rows += [producer for topic in loaded_parts(visit.broker, name, partitions) for producer in topic.producers()]
    return sorted(rows, key=lambda row: (-row.rate_in, row.topic, row.name))


async def _partitions(
    visit: Visit, name: TopicName, partitions: int, recorded: frozenset[int], elsewhere: PartStats | None
) -> PageOf[PartitionRow]:
    """Return the partitions; without ``elsewhere`` the visitor may not see statistics."""
    page = page_of(range(partitions), visit.number("page", 0, most=PAGES_MAX))
    rows = []
    for index in page.rows:
        partition = name.partition(index)
        totals, broker = TopicTotals(), ""
        if elsewhere is not None and (loaded := visit.broker.loaded_topic(partition)) is not None:
            totals.add(loaded)
        elif elsewhere is not None and str(partition) in elsewhere.stats:
            totals.add_stats(elsewhere.stats[str(partition)])
            broker = elsewhere.brokers[str(partition)]
        rows.append(
            PartitionRow(
                str(partition),
                index in recorded or not name.is_persistent,
                totals.parts > 0,
                broker,
                totals.rate_in,
                totals.rate_out,
                totals.backlog,
                totals.storage,
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
        record = await visit.broker.topic_policies(name)
        policies = await visit.broker.namespace_policies(name.namespace_name)
        if policies is None:
            raise NamespaceNotFound("Namespace does not exist")
    except PulsarError as error:
        return [], str(error)
    level = namespace_level(policies, cluster=visit.host.cluster)
    return policy_rows(record, level, visit.broker.policies), ""
