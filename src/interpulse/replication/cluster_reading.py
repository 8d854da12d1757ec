"""All namespaces of a cluster, read at a limited rate: the input of an audit, and the target of its plan."""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.closing import AsyncCloses
from interpulse.model.adjustments import Difference
from interpulse.model.errors import NamespaceNotFound, NotFound, PulsarError, TenantNotFound
from interpulse.model.inventory import ListedKind, TopicRow
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.adjust import apply
from interpulse.replication.inventory import AdminReading, read_topics
from interpulse.replication.paced_requests import PacedRequests
from interpulse.rules.inventory import SETTINGS, NamespaceInventory, NamespaceState

_SAMPLED: Final = 100
"""Sampling interval: of this many topics with complete partitions, the count of one is requested."""
_QUESTIONS_MAX: Final = 64
"""Maximum number of concurrent requests about single topics, over all namespaces."""


@dataclass(frozen=True, kw_only=True)
class ReadingRules:
    """Extent of an audit's requests.

    ``exact`` selects the topics whose counts are requested if lists lack them: ``all``, ``none``, or ``changed``: those
    that lack partitions, and a sample. ``rate``: requests per second. ``patience_ms``: time limit for repeating a
    request after a temporary failure.
    """

    exact: str = "changed"
    schemas: bool = False
    subscriptions: bool = False
    rate: float = 500.0
    patience_ms: int = 15_000

    def shared(self, tasks: int) -> ReadingRules:
        """Return the rules for one of ``tasks`` tasks that read a cluster at the same time."""
        return replace(self, rate=self.rate / tasks)

    def is_asked(self, row: TopicRow) -> bool:
        """Return True if the count is requested because the lists lack it.

        Differences are read again before they are reported, so a differing count is never missed.
        """
        if self.exact != "changed":
            return self.exact == "all"
        return row.indexes is not None or is_sampled(row.topic)


def is_sampled(topic: TopicName) -> bool:
    """Return True if a topic is in the sample, which is the same in every run."""
    return zlib.crc32(str(topic).encode()) % _SAMPLED == 0


class ClusterReading(AsyncCloses):
    """Reader of many namespaces at a limited rate. It owns the client.

    A namespace that cannot be read becomes an inventory with an error, so that one refusal does not end an audit.
    """

    def __init__(self, admin: AdminClient, rules: ReadingRules, paced: PacedRequests | None = None) -> None:
        """Create a reader; ``paced`` is shared with other requests to the cluster."""
        self._admin = admin
        self._paced = paced or PacedRequests(rules.rate, rules.patience_ms)
        self._reading = AdminReading(admin, read=self._paced)
        self._rules = rules
        self._settings: Mapping[str, str] | None = None
        self._questions = asyncio.Semaphore(_QUESTIONS_MAX)

    async def close(self) -> None:
        await self._admin.close()

    async def namespaces(self) -> list[NamespaceName]:
        """Return all namespaces except those that brokers use internally. Raise the cluster's error."""
        tenants, ask = await self._admin.tenants.list(), self._admin.namespaces.list
        names = [NamespaceName.parse(str(name)) for tenant in tenants for name in await ask(tenant)]
        return [name for name in names if not name.is_heartbeat and str(name) != "pulsar/system"]

    async def namespace(
        self, name: NamespaceName, chosen: Callable[[TopicName], bool] | None = None
    ) -> NamespaceInventory:
        """Return everything about one namespace. With ``chosen``, read only these topics, whatever the rules."""
        try:
            return await self.read(name, chosen)
        except PulsarError as error:
            return NamespaceInventory(error=str(error) or type(error).__name__)

    async def read(self, name: NamespaceName, chosen: Callable[[TopicName], bool] | None = None) -> NamespaceInventory:
        """Return one namespace like :meth:`namespace`. Raise the cluster's error."""

        def is_asked(row: TopicRow) -> bool:
            return self._rules.is_asked(row) if chosen is None else chosen(row.topic)

        async def details(row: TopicRow) -> TopicRow:
            return await self._with_details(row) if chosen is None or chosen(row.topic) else row

        try:
            state = await self._state(name)
            topics = await read_topics(
                self._reading,
                name,
                failed=_with_error,
                is_asked=is_asked,
                details=details if self._rules.schemas or self._rules.subscriptions else None,
                questions=self._questions,
            )
        except (NamespaceNotFound, TenantNotFound):
            return NamespaceInventory()
        return NamespaceInventory(state, topics)

    async def state(self, name: NamespaceName) -> NamespaceState | None:
        """Return only the policies; None if the namespace does not exist. Raise the cluster's error."""
        try:
            return await self._state(name)
        except (NamespaceNotFound, TenantNotFound):
            return None

    async def topic(self, name: TopicName) -> TopicRow | None:
        """Return one topic with its stored count, without checking its partitions. Raise the cluster's error."""
        try:
            count = (await self._reading.metadata(name)).partitions
        except NotFound:
            return None
        kind = ListedKind.PARTITIONED if count else ListedKind.NON_PARTITIONED
        return await self._with_details(TopicRow(name, kind, count))

    async def apply(self, difference: Difference) -> None:
        """Make the change of a difference, at the rate and once. Raise the cluster's error."""
        await self._paced.turn()
        await apply(self._admin, difference)

    async def _state(self, name: NamespaceName) -> NamespaceState:
        policies = await self._reading.policies(name)
        if self._settings is None:
            settings = await self._reading.settings()
            self._settings = {key: settings[key] for key in SETTINGS if key in settings}
        return NamespaceState(policies, self._settings)

    async def _with_details(self, row: TopicRow) -> TopicRow:
        """Read details topic by topic, except for partitions without metadata and topics that are not stored."""
        if row.kind is ListedKind.ORPHAN_PARTITION or not row.topic.is_persistent:
            return row
        if self._rules.schemas:
            row = await self._with_schema(row)
        if self._rules.subscriptions and row.is_healthy:
            async with self._questions:
                names = await self._paced(lambda: self._admin.topics.subscriptions(row.topic))
            row = row._replace(subscriptions=tuple(sorted(names)))
        return row

    async def _with_schema(self, row: TopicRow) -> TopicRow:
        async with self._questions:
            versions = await self._paced(lambda: self._admin.schemas.history(row.topic))
        if not versions:
            return row
        hashed = hashlib.sha256()
        for version in versions:
            hashed.update(f"{version.schema.type.name} {len(version.schema.definition)} ".encode())
            hashed.update(version.schema.definition)
        return row._replace(
            schema_type=versions[-1].schema.type.name,
            schema_hash=hashed.hexdigest()[:16],
            schema_versions=len(versions),
        )


def _with_error(row: TopicRow, error: PulsarError) -> TopicRow:
    return row._replace(error="deleted while it was read" if isinstance(error, NotFound) else str(error))
