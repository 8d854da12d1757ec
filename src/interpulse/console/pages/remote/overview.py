"""The first page of a console that has only the admin API: the way to every tenant, namespace and topic."""

from __future__ import annotations

from dataclasses import dataclass

from interpulse.console.pages.parts.paging import PAGES_MAX, PageOf, page_of
from interpulse.console.visit import Visit
from interpulse.model.errors import PulsarError
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName


@dataclass(frozen=True, slots=True)
class RemoteOverviewModel:
    """The page."""

    version: str
    problem: str
    """The reason why the cluster does not answer; empty if it does."""

    tenants: tuple[str, ...]
    tenant: str
    namespaces: tuple[str, ...]
    namespace: str
    text: str
    topics: PageOf[str] | None
    """The topics of the namespace, partitioned ones without their partitions."""

    refusal: str = ""
    """The refusal of the list; empty if there is none."""


async def build(visit: Visit) -> RemoteOverviewModel:
    """Build the page, with refusals of the cluster in it. Raise InvalidTopicName for a malformed namespace."""
    admin, text = visit.admin, visit.text("text").strip()
    namespace = NamespaceName.parse(visit.text("namespace")) if visit.text("namespace") else None
    tenant = namespace.tenant if namespace else visit.text("tenant")
    version = problem = refusal = ""
    tenants: list[str] = []
    namespaces: list[str] = []
    topics: PageOf[str] | None = None
    try:
        version = await admin.brokers.version()
    except PulsarError as error:
        problem = str(error)
    try:
        tenants = await admin.tenants.list()
        namespaces = await admin.namespaces.list(tenant) if tenant else []
        if namespace is not None:
            topics = page_of(await _topics(visit, namespace, text), visit.number("page", 0, most=PAGES_MAX))
    except PulsarError as error:
        refusal = str(error)
    return RemoteOverviewModel(
        version, problem, tuple(tenants), tenant, tuple(namespaces), str(namespace or ""), text, topics, refusal
    )


async def _topics(visit: Visit, namespace: NamespaceName, text: str) -> list[str]:
    domains: tuple[Domain, ...] = (PERSISTENT, NON_PERSISTENT)
    partitioned = await visit.admin.topics.list_partitioned(namespace, domains=domains)
    listed = await visit.admin.topics.list(namespace, domains=domains)
    known = set(partitioned)
    whole = known | {name for name in listed if name.rpartition("-partition-")[0] not in known}
    return sorted(name for name in whole if text in name)
