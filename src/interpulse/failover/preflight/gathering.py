"""Gathering of the facts of one site over its admin API, at a limited rate.

A topic costs two requests: its statistics and its schemas. The rest is a few requests a namespace.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any, Final, TypeVar

from interpulse.clock import now_ms
from interpulse.failover.pair_config import FILE, HOOK, REDIRECT, PairConfig
from interpulse.failover.preflight.clients import tied_topics
from interpulse.failover.preflight.facts import (
    CheckLimits,
    PairFacts,
    Refusal,
    SiteFacts,
    TopicFacts,
    WayRecord,
    is_checked,
    topic_facts,
)
from interpulse.failover.preflight.judgement import Preflight, judge
from interpulse.failover.site import SiteAccess
from interpulse.in_turns import concurrently
from interpulse.model.errors import AuthenticationError, AuthorizationError, DataLoss, NotFound
from interpulse.model.ids import Position
from interpulse.model.inventory import ListedKind, TopicRow
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.cluster_reading import ClusterReading, ReadingRules
from interpulse.replication.paced_requests import PacedRequests
from interpulse.rules.failover_role import ROLE_PROPERTY, Role, stored_role
from interpulse.rules.inventory import NamespaceInventory
from interpulse.wire.stamps import source_positions

T = TypeVar("T")
_AT_ONCE: Final = 64
_PATIENCE_MS: Final = 10_000
_SAMPLED_COPIES: Final = 16
"""Topics whose newest copies are read: a replicator of one release writes all copies alike."""

_TIED_MAX: Final = 100
"""Topics whose ledger numbers are read; more of them do not change the finding."""

_OURS: Final = "interpulse"


async def preflight(
    config: PairConfig,
    a: SiteAccess,
    b: SiteAccess,
    *,
    accepted: Iterable[str] = (),
    limits: CheckLimits | None = None,
) -> Preflight:
    """Compare both sites before ``b`` takes over from ``a``. Nothing is changed.

    Raise the error of a cluster that cannot be asked.
    """
    pace = config.limits.requests_per_second
    sites = SiteGathering(a, b.cluster, pace), SiteGathering(b, a.cluster, pace)
    here, there = await asyncio.gather(*(site.facts() for site in sites))
    tied = tied_topics(here)[:_TIED_MAX]
    ledgers = await asyncio.gather(*(site.last_ledgers(tied) for site in sites))
    here, there = (replace(site, last_ledgers=last) for site, last in zip((here, there), ledgers, strict=True))
    limits = limits or CheckLimits()
    moves = config.clients.move
    limits = replace(
        limits,
        lag_messages_max=config.limits.lag_messages_max,
        redirects=REDIRECT in moves,
        moves_otherwise=FILE in moves or HOOK in moves,
    )
    return judge(PairFacts(here, there, limits), frozenset(accepted))


async def serving_site(config: PairConfig, sites: Iterable[SiteAccess]) -> str:
    """Return the name of the site that serves: the active one of the highest epoch, else the first of the pair.

    Raise the error of a cluster that cannot be asked.
    """
    best, name = -1, config.sites[0]
    for access in sites:
        for namespace in access.namespaces:
            properties = await access.admin.namespaces.properties(namespace)
            role, _ = stored_role(properties)
            if ROLE_PROPERTY in properties and role.role is Role.ACTIVE and role.epoch > best:
                best, name = role.epoch, access.name
    return name


class SiteGathering:
    """Requests to one site. ``other`` is the cluster of the other site."""

    def __init__(self, access: SiteAccess, other: str, requests_per_second: float) -> None:
        self.paced = PacedRequests(requests_per_second, _PATIENCE_MS)
        self._access = access
        self._admin = access.admin
        self._other = other
        self._refusals: list[Refusal] = []

    async def facts(self) -> SiteFacts:
        """Return the facts of the site. Raise the error of a cluster that cannot be asked."""
        version, clock_ms = await self._clock()
        settings = await self._allowed("reading the configuration", self._admin.brokers.runtime_configuration)
        inventories = await self._inventories()
        topics = await self._topics(inventories.values())
        is_ours = _OURS in version
        await self._try_binary(topics)
        return SiteFacts(
            name=self._access.name,
            cluster=self._access.cluster,
            admin_url=self._access.address.admin_url,
            is_ours=is_ours,
            settings=settings or {},
            namespaces=inventories,
            topics=topics,
            ways=await self._ways() if is_ours else {},
            unmarked_copies=await self._unmarked_copies(topics),
            disk=await self._disk() if is_ours else None,
            clock_ms=clock_ms,
            refusals=tuple(self._refusals),
        )

    async def last_ledgers(self, topics: Iterable[TopicName]) -> dict[TopicName, int]:
        """Return the newest ledger of each topic-partition that exists."""

        async def ask(topic: TopicName) -> tuple[TopicName, int] | None:
            try:
                stats = await self.paced(lambda: self._admin.topics.internal_stats(topic))
            except NotFound:
                return None
            return topic, Position.parse(str(stats["lastConfirmedEntry"])).ledger

        return dict(filter(None, await concurrently(ask, topics, limit=_AT_ONCE)))

    async def _allowed(self, what: str, call: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T | None:
        """Return the answer of a call; None if the site refuses it for want of permission, which is noted."""
        try:
            return await self.paced(lambda: call(*args, **options))
        except (AuthorizationError, AuthenticationError) as error:
            self._refusals.append(Refusal(what, str(error)))
            return None

    async def _clock(self) -> tuple[str, int]:
        """Return the version of the broker, and the difference of its clock in milliseconds."""
        version = await self.paced(self._admin.brokers.version)
        began_ms = now_ms()
        theirs_ms = await self.paced(self._admin.brokers.time_ms)
        return version, theirs_ms - (began_ms + now_ms()) // 2

    async def _inventories(self) -> dict[NamespaceName, NamespaceInventory]:
        rules = ReadingRules(schemas=True, patience_ms=_PATIENCE_MS)
        reading = ClusterReading(self._admin, rules, self.paced)

        async def one(name: NamespaceName) -> tuple[NamespaceName, NamespaceInventory]:
            try:
                return name, await reading.read(name)
            except (AuthorizationError, AuthenticationError) as error:
                self._refusals.append(Refusal(f"reading {name}", str(error)))
                return name, NamespaceInventory(error=str(error))

        return dict(await concurrently(one, self._access.namespaces))

    async def _topics(self, inventories: Iterable[NamespaceInventory]) -> dict[TopicName, TopicFacts]:
        rows = [row for inventory in inventories for row in inventory.topics.values() if _has_stats(row)]
        found: dict[TopicName, TopicFacts] = {}
        for some in await concurrently(self._stats, rows, limit=_AT_ONCE):
            found |= {TopicName.parse(name): topic_facts(stats) for name, stats in some.items()}
        return found

    async def _stats(self, row: TopicRow) -> dict[str, Any]:
        """Return the statistics of the topic or of its partitions; none if it was deleted meanwhile."""
        topics, name = self._admin.topics, row.topic
        try:
            if row.kind is ListedKind.PARTITIONED:
                whole = await self._allowed(f"reading statistics of {name}", topics.partitioned_stats, name)
                return dict((whole or {}).get("partitions") or {})
            stats = await self._allowed(f"reading statistics of {name}", topics.stats, name)
            return {} if stats is None else {str(name): stats}
        except NotFound:
            return {}

    async def _ways(self) -> dict[tuple[TopicName, str], WayRecord]:
        ask = self._admin.namespaces.replication_status
        found: dict[tuple[TopicName, str], WayRecord] = {}
        for namespace in self._access.namespaces:
            try:
                records = await self._allowed(f"reading the replication status of {namespace}", ask, namespace)
            except NotFound:
                continue
            found |= {(TopicName.parse(each["topic"]), each["cluster"]): WayRecord.of(each) for each in records or ()}
        return found

    async def _disk(self) -> tuple[float, float] | None:
        metrics = await self._allowed("reading metrics", self._admin.brokers.metrics) or ""
        free, size = (_gauge(metrics, f"interpulse_data_directory_{name}_bytes") for name in ("free", "size"))
        return None if free is None or size is None else (free, size)

    async def _unmarked_copies(self, topics: dict[TopicName, TopicFacts]) -> tuple[TopicName, ...]:
        """Return those topics of a sample whose newest entry is a copy without a source position."""
        arriving = [topic for topic, facts in topics.items() if self._arrives(facts)][:_SAMPLED_COPIES]
        unmarked = await concurrently(self._is_unmarked, arriving)
        return tuple(topic for topic, is_unmarked in zip(arriving, unmarked, strict=True) if is_unmarked)

    def _arrives(self, facts: TopicFacts) -> bool:
        replicator = facts.replicators.get(self._other)
        return replicator is not None and replicator.receives

    async def _is_unmarked(self, topic: TopicName) -> bool:
        """Look at the whole entry: the messages of a batch do not have the properties of their entry."""
        try:
            entry = await self._allowed(f"reading an entry of {topic}", self._access.newest_entry, topic)
        except (NotFound, DataLoss):
            return False  # deleted or trimmed meanwhile
        if entry is None:
            return False
        metadata = entry.parsed.metadata
        return metadata.replicated_from == self._other and not source_positions(metadata)

    async def _try_binary(self, topics: Iterable[TopicName]) -> None:
        """Look a topic up through the binary protocol, as the fence and the lease do."""
        look_up = self._access.client.get_partitions_for_topic
        for topic in sorted(topics, key=str)[:1]:
            await self._allowed(f"looking up {topic}", look_up, str(topic), create=False)


def _gauge(metrics: str, name: str) -> float | None:
    """Return the value of a metric without labels of its own from the text of Prometheus."""
    found = re.search(rf"^{name}(?:{{[^}}\n]*}})? (\S+)", metrics, re.MULTILINE)
    return None if found is None else float(found[1])


def _has_stats(row: TopicRow) -> bool:
    return is_checked(row.topic) and row.kind in (ListedKind.PARTITIONED, ListedKind.NON_PARTITIONED)
