"""The first page: is the broker well, and if not, where? And the way to every tenant, namespace and topic."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from interpulse.console.pages.parts.loaded_topics import LoadedTopics, look_at_loaded
from interpulse.console.pages.parts.other_brokers import BrokerLink, links_to_others
from interpulse.console.pages.parts.paging import PAGES_MAX, PageOf, TopRows, page_of
from interpulse.console.pages.parts.replication_rows import Row, order, row_of
from interpulse.console.pages.parts.visible_namespaces import VisibleNamespaces, to_list_topics, to_see_replication
from interpulse.console.visit import Visit
from interpulse.console.web.addresses import admin_path
from interpulse.model.errors import NamespaceNotFound, PulsarError
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName

_WORST: Final = 5
_FOUND_MAX: Final = 2_000
_PLACES_MAX: Final = 200
_TROUBLED: Final = ("HELD", "DISCONNECTED")


@dataclass(frozen=True, slots=True)
class Broker:
    """The broker of the console, for visitors who may administer brokers."""

    brokers: int
    connections: int
    disk_free: int | None
    disk_size: int | None
    disk_problem: str


@dataclass(frozen=True, slots=True)
class Found:
    """The names with the searched text that the visitor may see."""

    tenants: list[str] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    namespaces_total: int = 0
    topics_total: int = 0


@dataclass(frozen=True, slots=True)
class OverviewModel:
    """The broker, its loaded topics, and the search result."""

    version: str
    healthy: bool
    problem: str
    broker: Broker | None
    known: bool
    """False while all topics are examined for the first time."""

    age_seconds: float
    loaded: LoadedTopics
    troubled: list[Row]
    troubled_total: int
    text: str
    searched: bool
    found: Found
    page: PageOf[str]
    here: str
    """This broker, which has loaded those topics."""

    others: tuple[BrokerLink, ...]
    """The other brokers of the cluster, which have loaded others."""


@dataclass(frozen=True, slots=True)
class _Looked:
    loaded: LoadedTopics
    troubled: list[Row]
    troubled_total: int


async def build(visit: Visit) -> OverviewModel:
    """Build the page for any visitor, with the namespaces whose topics they may list."""
    health = await visit.attempt("/readyz")
    version = await visit.attempt(admin_path("brokers", "version"))
    text, role = visit.text("text").strip(), visit.visitor.role
    result, search = await asyncio.gather(
        visit.cache.get(("overview", role), lambda: _look(visit)),
        visit.cache.get(("search", role, text), lambda: _search(visit, text)),
    )
    looked = result.value or _Looked(LoadedTopics(), [], 0)
    found = search.value or Found()
    return OverviewModel(
        version=version.value or "",
        healthy=health.value == "ok",
        problem=health.refusal,
        broker=await _broker(visit),
        known=result.value is not None,
        age_seconds=result.age_seconds,
        loaded=looked.loaded,
        troubled=looked.troubled,
        troubled_total=looked.troubled_total,
        text=text,
        searched=search.value is not None,
        found=found,
        page=page_of(found.topics, visit.number("page", 0, most=PAGES_MAX)),
        here=visit.broker.broker_id,
        others=await links_to_others(visit, "overview"),
    )


async def _look(visit: Visit) -> _Looked:
    loaded = await look_at_loaded(visit.broker, VisibleNamespaces(visit, to_list_topics))
    troubled: TopRows[Row] = TopRows(_WORST, order)
    async for record in visit.broker.replication_records(VisibleNamespaces(visit, to_see_replication)):
        if record["state"] in _TROUBLED:
            troubled.add(row_of(record))
    return _Looked(loaded, troubled.rows, troubled.total)


async def _broker(visit: Visit) -> Broker | None:
    if await visit.refusal("GET", admin_path("brokers")):
        return None
    brokers = 1
    with suppress(PulsarError):
        brokers = len(await visit.broker.brokers()) or 1
    disk = visit.broker.disk
    free, size, problem = (None, None, "") if disk is None else (disk.free_bytes, disk.size_bytes, disk.problem)
    return Broker(brokers, visit.broker.connections, free, size, problem)


async def _search(visit: Visit, text: str) -> Found:
    wanted, allowed = text.casefold(), VisibleNamespaces(visit, to_list_topics)
    found = Found()
    namespaces = topics = 0
    for tenant in await visit.broker.tenants():
        seen = False
        for name in await visit.broker.namespaces(tenant):
            namespace = NamespaceName.parse(name)
            if not await allowed(namespace):
                continue
            seen = True
            if wanted in name.casefold():
                namespaces += 1
                if len(found.namespaces) < _PLACES_MAX:
                    found.namespaces.append(name)
            for domain in (PERSISTENT, NON_PERSISTENT):
                topics += await _search_topics(visit, namespace, domain, wanted, found.topics)
        if seen and wanted in tenant.casefold() and len(found.tenants) < _PLACES_MAX:
            found.tenants.append(tenant)
    return Found(found.tenants, found.namespaces, found.topics, namespaces, topics)


async def _search_topics(visit: Visit, namespace: NamespaceName, domain: Domain, wanted: str, found: list[str]) -> int:
    """Return the number of matches, and append the first ones to ``found``."""
    number, prefix = 0, f"{domain}://{namespace}/"
    in_prefix = wanted in prefix.casefold()
    with suppress(NamespaceNotFound):  # deleted meanwhile
        async for local_name, _ in visit.broker.local_names(namespace, domain):
            if in_prefix or wanted in f"{prefix}{local_name}".casefold():
                number += 1
                if len(found) < _FOUND_MAX:
                    found.append(f"{prefix}{local_name}")
    return number
