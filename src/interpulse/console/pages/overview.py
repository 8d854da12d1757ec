"""The first page: the health of the broker, its worst topics, and the way to every tenant, namespace and topic."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from interpulse.console.broker_facts import LoadedTopic
from interpulse.console.pages.parts.other_brokers import links_to_others
from interpulse.console.pages.parts.paging import PAGES_MAX, TopRows, page_of
from interpulse.console.pages.parts.replication_rows import TROUBLED, order, row_of
from interpulse.console.visit import Model, VisibleNamespaces, Visit, to_list_topics, to_see_replication
from interpulse.console.web.addresses import admin_path
from interpulse.model.errors import NamespaceNotFound, PulsarError
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName

_WORST: Final = 5
_MATCHES_MAX: Final = 2_000
_NAMES_MAX: Final = 200
_RATES: Final = ("rate_in", "rate_out", "throughput_in", "throughput_out")


class _LoadedTopics:
    def __init__(self) -> None:
        self._totals: dict[str, float] = {"topics": 0, **dict.fromkeys(_RATES, 0.0), "backlog": 0, "storage": 0}
        self._subscriptions: dict[str, TopRows[Model]] = {
            kind: TopRows(_WORST, lambda row: (-row["backlog"], row["topic"], row["subscription"]))
            for kind in ("abandoned", "behind", "blocked")  # with a backlog and no consumer; with consumers
        }
        self._topics: dict[str, TopRows[Model]] = {
            kind: TopRows(_WORST, lambda row: (-row["figure"], row["topic"])) for kind in ("busiest", "largest")
        }

    def add(self, topic: LoadedTopic) -> None:
        name = str(topic.name)
        counts, subscriptions = topic.measure()
        self._totals["topics"] += 1
        self._totals["storage"] += counts.storage_bytes
        for total in (*_RATES, "backlog"):
            self._totals[total] += getattr(counts, total)
        for kind, figure in (("busiest", counts.rate_in), ("largest", counts.storage_bytes)):
            if figure:
                self._topics[kind].add({"topic": name, "figure": figure})
        for subscription, counted in subscriptions.items():
            row = {
                "topic": name,
                "subscription": subscription,
                "backlog": counted.backlog,
                "consumers": counted.consumers,
            }
            if counted.blocked:
                self._subscriptions["blocked"].add(row)
            if counted.backlog:
                self._subscriptions["behind" if counted.consumers else "abandoned"].add(row)

    def model(self) -> Model:
        worst = {kind: top.rows for kind, top in (self._subscriptions | self._topics).items()}
        totals = {f"{kind}_total": self._subscriptions[kind].total for kind in ("abandoned", "blocked")}
        return {**self._totals, **worst, **totals}


_NOTHING_LOADED: Final = {"loaded": _LoadedTopics().model(), "troubled": [], "troubled_total": 0}
_NO_MATCHES: Final[Model] = {"tenants": [], "namespaces": [], "topics": [], "namespaces_total": 0, "topics_total": 0}


async def build(visit: Visit) -> Model:
    """Build the page for any visitor, with the namespaces whose topics they may list."""
    health, problem = await visit.attempt("/readyz")
    version, _ = await visit.attempt(admin_path("brokers", "version"))
    text, role = visit.text("text").strip(), visit.visitor.role
    result, search = await asyncio.gather(
        visit.cache.get(("overview", role), lambda: _look(visit)),
        visit.cache.get(("search", role, text), lambda: _search(visit, text)),
    )
    matches = search.value or _NO_MATCHES
    return {
        "version": version or "",
        "healthy": health == "ok",
        "problem": problem,
        "broker": await _broker(visit),
        "known": result.value is not None,  # False while all topics are examined for the first time
        "age_seconds": result.age_seconds,
        **(result.value or _NOTHING_LOADED),
        "text": text,
        "searched": search.value is not None,
        "found": matches,
        "page": page_of(matches["topics"], visit.number("page", 0, most=PAGES_MAX)),
        "here": visit.broker.broker_id,
        "others": await links_to_others(visit, "overview"),
    }


async def _look(visit: Visit) -> Model:
    """Examine the loaded topics, and those that do not get through to other clusters. Yields to other work."""
    loaded, listed = _LoadedTopics(), VisibleNamespaces(visit, to_list_topics)
    async for topic in visit.broker.loaded_topics():
        if await listed(topic.name.namespace_name):
            loaded.add(topic)
    troubled: TopRows[Model] = TopRows(_WORST, order)
    async for record in visit.broker.replication_records(VisibleNamespaces(visit, to_see_replication)):
        if record["state"] in TROUBLED:
            troubled.add(row_of(record))
    return {"loaded": loaded.model(), "troubled": troubled.rows, "troubled_total": troubled.total}


async def _broker(visit: Visit) -> Model | None:
    """Return the broker of the console, for visitors who may administer brokers."""
    if await visit.refusal("GET", admin_path("brokers")):
        return None
    brokers = 1
    with suppress(PulsarError):
        brokers = len(await visit.broker.brokers()) or 1
    disk = visit.broker.disk
    return {
        "brokers": brokers,
        "connections": visit.broker.connections,
        "disk_free": disk.free_bytes if disk else None,
        "disk_size": disk.size_bytes if disk else None,
        "disk_problem": disk.problem if disk else "",
    }


async def _search(visit: Visit, text: str) -> Model:
    wanted, allowed = text.casefold(), VisibleNamespaces(visit, to_list_topics)
    tenants: list[str] = []
    namespaces: list[str] = []
    topics: list[str] = []
    namespaces_total = topics_total = 0
    for tenant in await visit.broker.tenants():
        visible = [name for name in await visit.broker.namespaces(tenant) if await allowed(NamespaceName.parse(name))]
        for name in visible:
            if wanted in name.casefold():
                namespaces_total += 1
                namespaces.append(name)
            for domain in (PERSISTENT, NON_PERSISTENT):
                topics_total += await _search_topics(visit, NamespaceName.parse(name), domain, wanted, topics)
        if visible and wanted in tenant.casefold():
            tenants.append(tenant)
    return {
        "tenants": tenants[:_NAMES_MAX],
        "namespaces": namespaces[:_NAMES_MAX],
        "topics": topics,
        "namespaces_total": namespaces_total,
        "topics_total": topics_total,
    }


async def _search_topics(visit: Visit, namespace: NamespaceName, domain: Domain, wanted: str, topics: list[str]) -> int:
    """Return the number of matches, and append the first ones to ``topics``."""
    number, prefix = 0, f"{domain}://{namespace}/"
    in_prefix = wanted in prefix.casefold()
    with suppress(NamespaceNotFound):  # deleted meanwhile
        async for local_name, _ in visit.broker.local_names(namespace, domain):
            if in_prefix or wanted in f"{prefix}{local_name}".casefold():
                number += 1
                if len(topics) < _MATCHES_MAX:
                    topics.append(f"{prefix}{local_name}")
    return number
