"""The page of one topic: statistics, subscriptions, policies in force, and admission."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from interpulse.console.broker_facts import ConnectedProducer
from interpulse.console.pages.admission import admissions
from interpulse.console.pages.parts.other_brokers import PartStats, stats_elsewhere
from interpulse.console.pages.parts.paging import PAGES_MAX, PageOf, page_of
from interpulse.console.pages.parts.policy_rows import policy_rows
from interpulse.console.pages.parts.replication_rows import catch_up, order, row_of
from interpulse.console.pages.parts.topic_totals import Sample, TopicTotals, loaded_parts, totals_of
from interpulse.console.visit import Model, ServedElsewhere, Visit
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
_TOTALS: Final = (
    "parts", "producers", "consumers", "rate_in", "rate_out", "throughput_in", "throughput_out", "backlog", "storage",
)  # fmt: skip


async def build(visit: Visit) -> Model:
    """Build the page. Requires permission for the partition metadata; each part needs its own permission."""
    name = visit.topic()
    await visit.check("GET", topic_path(name, "/partitions"))
    view = await visit.broker.view(name)
    existence = await visit.broker.existence(name)
    partitions = existence.partitions
    refusal = await visit.refusal("GET", topic_path(name, "/stats"))
    if not refusal and existence.kind is TopicKind.NON_PARTITIONED:
        try:
            await visit.send("GET", topic_path(name, "/stats"))  # loads the topic, like any statistics
        except ServedElsewhere:
            pass  # that broker is asked below
        except PulsarError as error:
            refusal = str(error)
    absent = bool(refusal) or existence.kind is TopicKind.ABSENT
    elsewhere = CachedResult(PartStats()) if absent else await _elsewhere(visit, name, partitions)
    parts = elsewhere.value or PartStats()
    totals = TopicTotals() if refusal else await totals_of(loaded_parts(visit.broker, name, partitions))
    loaded_here = totals.sums["parts"]
    for stats in parts.stats.values():
        totals.add_stats(stats)
    subscriptions = sorted(totals.subscriptions.values(), key=lambda row: (-row["backlog"], row["name"]))
    producers = [] if refusal else _producers(visit, name, partitions, parts)
    policies, policies_refusal = await _policies(visit, name)
    records = view.partition_records
    return {
        "name": str(name),
        "kind": existence.kind.value,
        "partitions": partitions,
        "missing": partitions - len(records & set(range(partitions))) if name.is_persistent else 0,
        # None if the visitor may not see statistics, or nothing is loaded.
        "total": {total: totals.sums[total] for total in _TOTALS} if totals.sums["parts"] else None,
        "refusal": refusal,
        "known": elsewhere.value is not None,  # False while other brokers are asked for their parts
        "silent": parts.silent,
        "left_out": parts.left_out,
        "loaded_here": loaded_here,  # the charts are of these parts
        "subscriptions": subscriptions[:_SUBSCRIPTIONS_MAX],
        "subscriptions_total": len(subscriptions),
        "partition_page": _partitions(visit, name, partitions, records, None if refusal else parts),
        "producers": producers[:_PRODUCERS_MAX],
        "producers_total": len(producers),
        "replication": await _replication(visit, name, existence.kind),
        "policies": policies,
        "policies_refusal": policies_refusal,
        "door": await admissions(visit, name),
    }


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


async def _elsewhere(visit: Visit, name: TopicName, partitions: int) -> CachedResult[PartStats]:
    """Return the statistics that other brokers hold. They are asked in the background: there may be many."""
    if not visit.broker.shared:
        return CachedResult(PartStats())
    names = [name.partition(index) for index in range(partitions)] if partitions else [name]
    key = ("topic", visit.visitor.role, name)
    return await visit.cache.get(key, lambda: stats_elsewhere(visit, names), fresh_seconds=0.0)


def _producers(visit: Visit, name: TopicName, partitions: int, elsewhere: PartStats) -> list[ConnectedProducer]:
    rows = [producer for topic, stats in elsewhere.stats.items() for producer in _producers_of(topic, stats)]
    rows += [producer for topic in loaded_parts(visit.broker, name, partitions) for producer in topic.producers()]
    return sorted(rows, key=lambda row: (-row.rate_in, row.topic, row.name))


def _producers_of(topic: str, stats: Mapping[str, Any]) -> Iterator[ConnectedProducer]:
    for publisher in stats.get("publishers") or ():
        name, address = str(publisher.get("producerName", "")), str(publisher.get("address", ""))
        rates = float(publisher.get("msgRateIn", 0)), float(publisher.get("msgThroughputIn", 0))
        yield ConnectedProducer(topic, name, address, *rates, "")


def _partitions(
    visit: Visit, name: TopicName, partitions: int, recorded: frozenset[int], elsewhere: PartStats | None
) -> PageOf[Model]:
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
            {
                "name": str(partition),
                "recorded": index in recorded or not name.is_persistent,
                "loaded": totals.sums["parts"] > 0,
                "broker": broker,  # another one that has loaded it
                **{total: totals.sums[total] for total in ("rate_in", "rate_out", "backlog", "storage")},
            }
        )
    return PageOf(rows, page.number, page.total)


async def _replication(visit: Visit, name: TopicName, kind: TopicKind) -> list[Model]:
    if kind is TopicKind.ABSENT:
        return []
    records, _ = await visit.attempt(topic_path(name, "/replication/status"))
    rows = sorted(map(row_of, records or []), key=order)[:_PRODUCERS_MAX]
    return [{**row, "catch_up": catch_up(row["lag_messages"], row["rate_out"], None)} for row in rows]


async def _policies(visit: Visit, name: TopicName) -> tuple[list[Model], str]:
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
