"""The page of replication: the job, remote clusters, and topics on their way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from interpulse.console.pages.parts.other_brokers import BrokerLink, links_to_others
from interpulse.console.pages.parts.paging import PAGES_MAX, PageOf, TopRows, page_of
from interpulse.console.pages.parts.replication_rows import (
    Batch,
    CatchUp,
    Row,
    Summary,
    batch_of,
    catch_up,
    order,
    row_of,
)
from interpulse.console.pages.parts.visible_namespaces import VisibleNamespaces, to_see_replication
from interpulse.console.visit import Visit
from interpulse.model.names import TopicName

_ROWS_MAX: Final = 2_000
"""The most urgent rows. The filter finds others."""
_WRITERS_MAX: Final = 200
_ANY: Final = ""


@dataclass(frozen=True, slots=True)
class Remote:
    """One remote cluster."""

    cluster: str
    states: dict[str, int]
    troubled: int
    lag_messages: int
    lag_seconds: float
    rate_out: float
    throughput_out: float
    catch_up: CatchUp
    batch: Batch | None


@dataclass(frozen=True, slots=True)
class Job:
    """The replication job of this broker."""

    state: str
    since: int
    restarts: int
    last_error: str
    retry_at: int | None


@dataclass(frozen=True, slots=True)
class Writer:
    """Another cluster that writes into a topic of this one now."""

    topic: str
    cluster: str
    producer: str
    address: str
    rate_in: float
    throughput_in: float


@dataclass(frozen=True, slots=True)
class Filter:
    """The filter of rows. Empty fields match any row."""

    cluster: str
    state: str
    text: str


@dataclass(frozen=True, slots=True)
class ReplicationModel:
    """The job, each remote cluster, and the topics on their way there and from there."""

    known: bool
    """False while all topics are examined for the first time."""

    age_seconds: float
    job: Job
    remotes: list[Remote]
    page: PageOf[Row]
    matching: int
    """Rows that the filter lets through; `page` has the first of them."""

    filter: Filter
    states: tuple[str, ...]
    writers: list[Writer]
    writers_more: bool
    here: str
    """This broker, which those writers are connected to."""

    others: tuple[BrokerLink, ...]
    """The other brokers of the cluster."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The result of one examination of all topics."""

    summaries: dict[str, Summary]
    rows: list[Row]
    matching: int
    writers: list[Writer]
    writers_more: bool


async def build(visit: Visit) -> ReplicationModel:
    """Build the page for any visitor, with the namespaces whose replication they may see."""
    states = visit.broker.replication_states
    wanted = Filter(visit.text("cluster"), visit.choice("state", (_ANY, *states)), visit.text("text").strip())
    key = ("replication", visit.visitor.role, wanted)
    result = await visit.cache.get(key, lambda: _look(visit, wanted))
    found = result.value or _Found({}, [], 0, [], False)
    page = page_of(found.rows, visit.number("page", 0, most=PAGES_MAX))
    job = visit.broker.replication_job
    allowed = VisibleNamespaces(visit, to_see_replication)
    rows = [_completed(visit, row) for row in page.rows if await allowed(TopicName.parse(row.topic).namespace_name)]
    return ReplicationModel(
        known=result.value is not None,
        age_seconds=result.age_seconds,
        job=Job(job.state, job.since_ms, job.restarts, job.last_error or "", job.retry_at_ms),
        remotes=[_remote(found.summaries[name], job.progress.get(name)) for name in sorted(found.summaries)],
        page=replace(page, rows=rows),
        matching=found.matching,
        filter=wanted,
        states=states,
        writers=found.writers,
        writers_more=found.writers_more,
        here=visit.broker.broker_id,
        others=await links_to_others(visit, "replication"),
    )


async def _look(visit: Visit, wanted: Filter) -> _Found:
    """Examine every topic that is replicated from here or loaded. Yields to other work."""
    summaries: dict[str, Summary] = {}
    first_rows = TopRows(_ROWS_MAX, order)
    allowed = VisibleNamespaces(visit, to_see_replication)
    async for record in visit.broker.replication_records(allowed):
        summaries.setdefault(record["cluster"], Summary(record["cluster"])).add(record)
        if _matches(record["topic"], record["cluster"], record["state"], wanted):
            first_rows.add(row_of(record))
    writers, more = await _writers(visit, wanted, allowed)
    return _Found(summaries, first_rows.rows, first_rows.total, writers, more)


def _matches(topic: str, cluster: str, state: str, wanted: Filter) -> bool:
    return (
        wanted.cluster in (_ANY, cluster)
        and wanted.state in (_ANY, state)
        and wanted.text.casefold() in topic.casefold()
    )


async def _writers(visit: Visit, wanted: Filter, allowed: VisibleNamespaces) -> tuple[list[Writer], bool]:
    """Return the replicators of other clusters, the busiest first, and True if there are more."""
    first_rows: TopRows[Writer] = TopRows(_WRITERS_MAX, lambda writer: (-writer.rate_in, writer.topic, writer.producer))
    async for topic in visit.broker.loaded_topics():
        for producer in topic.producers():
            cluster = producer.remote
            if not cluster or not _matches(producer.topic, cluster, wanted.state, wanted):
                continue
            if await allowed(topic.name.namespace_name):
                rates = producer.rate_in, producer.throughput_in
                first_rows.add(Writer(producer.topic, cluster, producer.name, producer.address, *rates))
    return first_rows.rows, first_rows.total > _WRITERS_MAX


def _completed(visit: Visit, row: Row) -> Row:
    loaded = visit.broker.loaded_topic(TopicName.parse(row.topic))
    rate_in = None if loaded is None else loaded.measure()[0].rate_in
    if loaded is None and visit.broker.shared and row.lag_messages:
        return replace(row, catch_up=CatchUp(None, "unknown here: another broker may have the topic"))
    return replace(row, rate_in=rate_in, catch_up=catch_up(row.lag_messages, row.rate_out, rate_in))


def _remote(summary: Summary, line: object) -> Remote:
    """Return the totals of a remote cluster. The estimate ignores messages that are published meanwhile."""
    return Remote(
        summary.cluster,
        dict(sorted(summary.states.items())),
        summary.troubled,
        summary.lag_messages,
        summary.lag_seconds,
        summary.rate_out,
        summary.throughput_out,
        catch_up(summary.lag_messages, summary.rate_out, 0.0),
        batch_of(line if isinstance(line, dict) else None),
    )
