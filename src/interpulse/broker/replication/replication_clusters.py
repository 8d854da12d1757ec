"""The clusters of a namespace: checked, stored, and a cursor opened for each remote one before the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.model.adjustments import AdjustmentPlan
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import OperationNotAllowed
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.replication.adjust import Enabling
from interpulse.rules.replication import (
    check_allowed_clusters,
    check_replication_clusters,
)


class ReplicationCursors(Protocol):
    """The replication cursors of a namespace's topics."""

    async def follow(self, namespace: NamespaceName) -> None:
        """Open and close cursors: on return, topics keep all later messages for the stored clusters alone."""


class ClusterComparison(Protocol):
    """Compares a namespace with its counterparts on other clusters."""

    async def check(self, namespace: NamespaceName, added: Mapping[str, ClusterData]) -> None:
        """Refuse clusters that differ; raises Conflict, which lists the differences that prevent replication."""

    async def preview(self, enabling: Enabling) -> AdjustmentPlan:
        """Return the plan of changes on the added clusters."""

    async def adjust(
        self, enabling: Enabling, store: Callable[[], Awaitable[None]], *, shown: str | None
    ) -> AdjustmentPlan:
        """Make these changes, then ``store``; return the plan with its outcome. ``shown``: its digest, if any."""


class ReplicationClusters:
    """Sets the replication clusters and the allowed clusters of namespaces."""

    def __init__(
        self,
        clusters: Clusters,
        tenants: Tenants,
        namespaces: Namespaces,
        cursors: ReplicationCursors,
        comparison: ClusterComparison,
        plans: Callable[[], bool],
    ) -> None:
        """Create the operations; ``plans`` returns True if previews and adjustments are supported."""
        self._clusters = clusters
        self._tenants = tenants
        self._namespaces = namespaces
        self._cursors = cursors
        self._comparison = comparison
        self._plans = plans

    async def set(self, namespace: NamespaceName, requested: Iterable[str], *, compare: bool) -> None:
        """Replicate a namespace to these clusters from the return of this call on.

        With ``compare`` the added clusters are first compared with this one. Nothing is stored if anything is refused.
        """
        enabling = await self._checked(namespace, requested)
        if compare:
            await self._comparison.check(namespace, enabling.added)
        await self._store(enabling)

    async def preview(self, namespace: NamespaceName, requested: Iterable[str]) -> AdjustmentPlan:
        """Return the plan of `adjust` without changing anything. Raises the same errors."""
        self._check_plans()
        return await self._comparison.preview(await self._checked(namespace, requested))

    async def adjust(
        self, namespace: NamespaceName, requested: Iterable[str], *, shown: str | None = None
    ) -> AdjustmentPlan:
        """Replicate as `set` does, after adjusting the added clusters where possible (PIP-433).

        With ``shown``, do so only if the plan still has this digest. Raises OperationNotAllowed.
        """
        self._check_plans()
        enabling = await self._checked(namespace, requested)
        return await self._comparison.adjust(enabling, lambda: self._store(enabling), shown=shown)

    def _check_plans(self) -> None:
        if not self._plans():
            raise OperationNotAllowed("Preview and adjustment are switched off by supportsReplicationPreview=false")

    async def _checked(self, namespace: NamespaceName, requested: Iterable[str]) -> Enabling:
        wanted = tuple(sorted(set(requested)))
        registered = await self._clusters.registered(wanted)
        policies = await self._namespaces.find_policies(namespace)
        tenant = await self._tenants.get(namespace.tenant) if policies else None
        check_replication_clusters(namespace, wanted, registered=registered, policies=policies, tenant=tenant)
        local = self._namespaces.local_cluster
        old = policies.replication_clusters if policies else ()
        added = sorted(set(wanted) - set(old) - {local}) if local in wanted else []
        return Enabling(namespace, local, wanted, {name: registered[name] for name in added})

    async def _store(self, enabling: Enabling) -> None:
        namespace, wanted = enabling.namespace, enabling.requested
        await self._namespaces.update_policies(namespace, lambda old: old.changed(replication_clusters=wanted))
        await self._cursors.follow(namespace)

    async def set_allowed(self, namespace: NamespaceName, requested: Iterable[str]) -> None:
        """Limit the clusters that a namespace may be on."""
        wanted = tuple(sorted(set(requested)))
        registered = await self._clusters.registered(wanted)
        tenant = await self._tenants.get(namespace.tenant)

        def allow(policies: NamespacePolicies) -> NamespacePolicies:
            check_allowed_clusters(namespace, wanted, registered=registered, policies=policies, tenant=tenant)
            return policies.changed(allowed_clusters=wanted)

        await self._namespaces.update_policies(namespace, allow)


class RegistryReplicationCursors:
    """Opens and closes cursors through the loaded topics, which follow their policies.

    Other topics do so when they are loaded, before they accept a message.
    """

    def __init__(self, registry: TopicRegistry) -> None:
        self._registry = registry

    async def follow(self, namespace: NamespaceName) -> None:
        """Adapt the replication cursors of a namespace to its stored clusters.

        When this returns, every topic keeps later messages for these clusters and for no others.
        """
        await self._registry.policies_changed(namespace)

    async def follow_topic(self, name: TopicName) -> None:
        """Adapt the replication cursors of one topic and its partitions."""
        await self._registry.policies_changed(name.namespace_name, name.base)
