"""Pages of a console that has only the admin API: the way to every topic, and one topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from interpulse.console.pages.parts.paging import PAGES_MAX, PageOf, page_of
from interpulse.console.visit import Model, Visit
from interpulse.model.errors import PulsarError
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName

_ROWS_MAX: Final = 500


async def build_overview(visit: Visit) -> Model:
    """Build the first page, with refusals of the cluster in it. Raise InvalidTopicName for a malformed namespace."""
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
    return {
        "version": version,
        "problem": problem,
        "tenants": tenants,
        "tenant": tenant,
        "namespaces": namespaces,
        "namespace": str(namespace or ""),
        "text": text,
        "topics": topics,
        "refusal": refusal,
    }


async def _topics(visit: Visit, namespace: NamespaceName, text: str) -> list[str]:
    domains: tuple[Domain, ...] = (PERSISTENT, NON_PERSISTENT)
    partitioned = set(await visit.admin.topics.list_partitioned(namespace, domains=domains))
    listed = await visit.admin.topics.list(namespace, domains=domains)
    whole = partitioned | {name for name in listed if name.rpartition("-partition-")[0] not in partitioned}
    return sorted(name for name in whole if text in name)


async def build_topic(visit: Visit) -> Model:
    """Build the page of a topic: rates, partitions, subscriptions. Raise TopicNotFound."""
    topic = visit.topic()
    admin = visit.admin.topics
    partitions = 0 if topic.is_partition else (await admin.partitioned_metadata(topic)).partitions
    stats = await (admin.partitioned_stats(topic) if partitions else admin.stats(topic))
    subscriptions = [_subscription(name, values) for name, values in stats.get("subscriptions", {}).items()]
    parts = sorted((stats.get("partitions") or {}).items())
    replication = stats.get("replication") or {}
    return {
        "name": str(topic),
        "partitions": partitions,
        **_rates(stats),
        "throughput_in": float(stats.get("msgThroughputIn", 0)),
        "throughput_out": float(stats.get("msgThroughputOut", 0)),
        "size": int(stats.get("storageSize", 0)),
        "producers": len(stats.get("publishers") or ()),
        "subscriptions": sorted(subscriptions, key=lambda row: (-row["backlog"], row["name"]))[:_ROWS_MAX],
        "parts": [_part(name, values) for name, values in parts[:_ROWS_MAX]],
        "remotes": [(name, int(values.get("replicationBacklog", 0))) for name, values in replication.items()],
    }


def _rates(stats: Mapping[str, Any]) -> Model:
    return {"rate_in": float(stats.get("msgRateIn", 0)), "rate_out": float(stats.get("msgRateOut", 0))}


def _subscription(name: str, stats: Mapping[str, Any]) -> Model:
    return {
        "name": name,
        "kind": str(stats.get("type") or ""),
        "backlog": int(stats.get("msgBacklog", 0)),
        "unacked": int(stats.get("unackedMessages", 0)),
        "consumers": len(stats.get("consumers") or ()),
        "rate_out": float(stats.get("msgRateOut", 0)),
    }


def _part(name: str, stats: Mapping[str, Any]) -> Model:
    subscriptions = (stats.get("subscriptions") or {}).values()
    backlog = sum(int(subscription.get("msgBacklog", 0)) for subscription in subscriptions)
    return {"topic": name, **_rates(stats), "backlog": backlog, "size": int(stats.get("storageSize", 0))}
