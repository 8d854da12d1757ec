"""The page of replication: the job, remote clusters, and topics on their way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from interpulse.console.pages.parts.other_brokers import links_to_others
from interpulse.console.pages.parts.paging import PAGES_MAX, TopRows, page_of
from interpulse.console.pages.parts.replication_rows import Row, Summary, catch_up, order, row_of
from interpulse.console.visit import Model, VisibleNamespaces, Visit, to_see_replication
from interpulse.model.names import TopicName

_ROWS_MAX: Final = 2_000
"""The most urgent rows. The filter finds others."""
_WRITERS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class _Filter:
    cluster: str
    state: str
    text: str

    def matches(self, topic: str, cluster: str, state: str) -> bool:
        return self.cluster in ("", cluster) and self.state in ("", state) and self.text.casefold() in topic.casefold()


@dataclass(frozen=True, slots=True)
class _Examined:
    summaries: dict[str, Summary]
    rows: TopRows[Row]
    writers: TopRows[Row]
    """Producers of other clusters that write into topics of this one now, the busiest first."""


async def build(visit: Visit) -> Model:
    """Build the page for any visitor, with the namespaces whose replication they may see."""
    states = visit.broker.replication_states
    wanted = _Filter(visit.text("cluster"), visit.choice("state", ("", *states)), visit.text("text").strip())
    key = ("replication", visit.visitor.role, wanted)
    result = await visit.cache.get(key, lambda: _examine(visit, wanted))
    examined = result.value or _Examined({}, _first_rows(), _first_writers())
    page = page_of(examined.rows.rows, visit.number("page", 0, most=PAGES_MAX))
    job = visit.broker.replication_job
    allowed = VisibleNamespaces(visit, to_see_replication)
    rows = [_completed(visit, row) for row in page.rows if await allowed(TopicName.parse(row["topic"]).namespace_name)]
    return {
        "known": result.value is not None,  # False while all topics are examined for the first time
        "age_seconds": result.age_seconds,
        "job": {
            "state": job.state,
            "since": job.since_ms,
            "restarts": job.restarts,
            "last_error": job.last_error or "",
            "retry_at": job.retry_at_ms,
        },
        "remotes": [summary.row(job.progress.get(name)) for name, summary in sorted(examined.summaries.items())],
        "page": replace(page, rows=rows),
        "matching": examined.rows.total,  # the page has the first of these rows
        "filter": wanted,
        "states": states,
        "writers": examined.writers.rows,
        "writers_more": examined.writers.total > _WRITERS_MAX,
        "here": visit.broker.broker_id,
        "others": await links_to_others(visit, "replication"),
    }


def _first_rows() -> TopRows[Row]:
    return TopRows(_ROWS_MAX, order)


def _first_writers() -> TopRows[Row]:
    return TopRows(_WRITERS_MAX, lambda writer: (-writer["rate_in"], writer["topic"], writer["producer"]))


async def _examine(visit: Visit, wanted: _Filter) -> _Examined:
    """Examine every topic that is replicated from here or loaded. Yields to other work."""
    examined = _Examined({}, _first_rows(), _first_writers())
    allowed = VisibleNamespaces(visit, to_see_replication)
    async for record in visit.broker.replication_records(allowed):
        examined.summaries.setdefault(record["cluster"], Summary(record["cluster"])).add(record)
        if wanted.matches(record["topic"], record["cluster"], record["state"]):
            examined.rows.add(row_of(record))
    async for topic in visit.broker.loaded_topics():
        for producer in topic.producers():
            if not producer.remote or not wanted.matches(producer.topic, producer.remote, wanted.state):
                continue
            if await allowed(topic.name.namespace_name):
                examined.writers.add(
                    {
                        "topic": producer.topic,
                        "cluster": producer.remote,
                        "producer": producer.name,
                        "address": producer.address,
                        "rate_in": producer.rate_in,
                        "throughput_in": producer.throughput_in,
                    }
                )
    return examined


def _completed(visit: Visit, row: Row) -> Row:
    loaded = visit.broker.loaded_topic(TopicName.parse(row["topic"]))
    if loaded is None and visit.broker.shared and row["lag_messages"]:
        return {**row, "catch_up": {"seconds": None, "text": "unknown here: another broker may have the topic"}}
    rate_in = None if loaded is None else loaded.measure()[0].rate_in
    return {**row, "rate_in": rate_in, "catch_up": catch_up(row["lag_messages"], row["rate_out"], rate_in)}
