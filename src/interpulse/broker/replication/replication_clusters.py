"""The clusters of a namespace: checked, stored, and a cursor opened for each remote one before the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.model.adjustments import AdjustmentPlan
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import Conflict, NamespaceNotFound, OperationNotAllowed, RemoteClusterUnavailable
from interpulse.model.names import Domain, NamespaceName, TopicName
from interpulse.model.policies.namespace_policies import NamespacePolicies
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.replication.adjust import Enabling, adjust, compare, preview
from interpulse.replication.change_forms import mismatches, reason_of, remedy_of
from interpulse.replication.connect import connect as connect_to
from interpulse.replication.inventory import Connect, read_namespace, read_remote
from interpulse.rules.comparison import namespace_missing
from interpulse.rules.inventory import NamespaceInventory
from interpulse.rules.replication import check_allowed_clusters, check_replication_clusters


class LocalReading:
    """A `NamespaceReading` of this cluster, without calls over the network."""

    def __init__(self, lifecycle: TopicLifecycle, namespaces: Namespaces, config: Callable[[], BrokerConfig]) -> None:
        self._lifecycle = lifecycle
        self._namespaces = namespaces
        self._config = config

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies:
        return await self._namespaces.get_policies(namespace)

    async def settings(self) -> Mapping[str, str]:
        return self._config().as_text()

    async def partitioned(self, namespace: NamespaceName, domains: Sequence[Domain]) -> Mapping[TopicName, int | None]:
        counts: dict[TopicName, int | None] = {}
        for domain in domains:
            counts |= await self._lifecycle.partition_counts(namespace, domain, include_system=True)
        return counts

    async def stored(self, namespace: NamespaceName, domains: Sequence[Domain]) -> Sequence[TopicName]:
        list_topics = self._lifecycle.list_topics
        return [name for domain in domains for name in await list_topics(namespace, domain, include_system=True)]

    async def metadata(self, topic: TopicName) -> PartitionedTopicMetadata:
        return PartitionedTopicMetadata(await self._lifecycle.partitions(topic, create=False))


class RemoteComparison:
    """The comparison with remote clusters through their admin API."""

    def __init__(self, local: LocalReading, *, connect: Connect = connect_to) -> None:
        self._local = local
        self._connect = connect

    async def check(self, namespace: NamespaceName, added: Mapping[str, ClusterData]) -> None:
        """Raise Conflict that lists every difference with every cluster."""
        if not added:
            return
        local = await read_namespace(self._local, namespace)
        by_cluster = await asyncio.gather(*(self._mismatches(*item, namespace, local) for item in added.items()))
        if any(by_cluster):
            raise Conflict("; ".join(sentence for sentences in by_cluster for sentence in sentences))

    async def preview(self, enabling: Enabling) -> AdjustmentPlan:
        """Return the plan for the added clusters; nothing is changed."""
        return await preview(enabling, self._local, self._connect)

    async def adjust(
        self, enabling: Enabling, store: Callable[[], Awaitable[None]], *, shown: str | None
    ) -> AdjustmentPlan:
        """Apply the plan there, then ``store`` here; see `interpulse.replication.adjust`."""
        return await adjust(enabling, self._local, self._connect, store, shown=shown)

    async def _mismatches(
        self, cluster: str, data: ClusterData, namespace: NamespaceName, local: NamespaceInventory
    ) -> list[str]:
        try:
            remote = await read_remote(cluster, data, namespace, self._connect, only=local.topics.keys())
        except NamespaceNotFound:
            missing = namespace_missing(namespace)
            return [f"{reason_of(missing, cluster)}; {remedy_of(missing, cluster)}"]
        except RemoteClusterUnavailable as error:
            return [str(error)]
        return [] if remote is None else mismatches(cluster, *await compare(namespace, local, remote))


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
