"""The clusters of a namespace: compared, stored, and a cursor opened for each remote one before the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

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
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.replication.adjust import Enabling, adjust, compare, preview
from interpulse.replication.change_forms import mismatches, reason_of, remedy_of
from interpulse.replication.connect import connect
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


class ReplicationClusters:
    """Sets the replication clusters and the allowed clusters of namespaces."""

    def __init__(
        self,
        clusters: Clusters,
        tenants: Tenants,
        namespaces: Namespaces,
        lifecycle: TopicLifecycle,
        registry: TopicRegistry,
        config: Callable[[], BrokerConfig],
    ) -> None:
        self._clusters = clusters
        self._tenants = tenants
        self._namespaces = namespaces
        self._registry = registry
        self._config = config
        self._local = LocalReading(lifecycle, namespaces, config)
        self.connect: Connect = connect
        """Returns an admin client of a remote cluster."""

    async def set(self, namespace: NamespaceName, requested: Iterable[str], *, compare: bool) -> None:
        """Replicate a namespace to these clusters from the return of this call on.

        With ``compare`` the added clusters are first compared with this one, and Conflict lists every difference with
        every cluster. Nothing is stored if anything is refused.
        """
        enabling = await self._checked(namespace, requested)
        if compare and enabling.added:
            local = await read_namespace(self._local, namespace)
            added = enabling.added.items()
            by_cluster = await asyncio.gather(*(self._mismatches(*item, namespace, local) for item in added))
            if any(by_cluster):
                raise Conflict("; ".join(sentence for sentences in by_cluster for sentence in sentences))
        await self._store(enabling)

    async def _mismatches(
        self, cluster: str, data: ClusterData, namespace: NamespaceName, local: NamespaceInventory
    ) -> list[str]:
        try:
            remote = await read_remote(cluster, data, namespace, self.connect, only=local.topics.keys())
        except NamespaceNotFound:
            missing = namespace_missing(namespace)
            return [f"{reason_of(missing, cluster)}; {remedy_of(missing, cluster)}"]
        except RemoteClusterUnavailable as error:
            return [str(error)]
        return [] if remote is None else mismatches(cluster, *await compare(namespace, local, remote))

    async def preview(self, namespace: NamespaceName, requested: Iterable[str]) -> AdjustmentPlan:
        """Return the plan of `adjust` without changing anything. Raises the same errors."""
        self._check_plans()
        return await preview(await self._checked(namespace, requested), self._local, self.connect)

    async def adjust(
        self, namespace: NamespaceName, requested: Iterable[str], *, shown: str | None = None
    ) -> AdjustmentPlan:
        """Replicate as `set` does, after adjusting the added clusters where possible (PIP-433).

        With ``shown``, do so only if the plan still has this digest. Raises OperationNotAllowed.
        """
        self._check_plans()
        enabling = await self._checked(namespace, requested)
        return await adjust(enabling, self._local, self.connect, lambda: self._store(enabling), shown=shown)

    def _check_plans(self) -> None:
        if not self._config().supports_replication_preview:
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
        await self._registry.policies_changed(namespace)

    async def set_allowed(self, namespace: NamespaceName, requested: Iterable[str]) -> None:
        """Limit the clusters that a namespace may be on."""
        wanted = tuple(sorted(set(requested)))
        registered = await self._clusters.registered(wanted)
        tenant = await self._tenants.get(namespace.tenant)

        def allow(policies: NamespacePolicies) -> NamespacePolicies:
            check_allowed_clusters(namespace, wanted, registered=registered, policies=policies, tenant=tenant)
            return policies.changed(allowed_clusters=wanted)

        await self._namespaces.update_policies(namespace, allow)
