"""The comparison of a namespace with its counterparts on other clusters, before replication is enabled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.model.adjustments import AdjustmentPlan
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import Conflict, NamespaceNotFound, RemoteClusterUnavailable
from interpulse.model.names import Domain, NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.replication.adjust import Enabling, adjust, compare, preview
from interpulse.replication.change_forms import mismatches, reason_of, remedy_of
from interpulse.replication.connect import connect as connect_to
from interpulse.replication.inventory import Connect, read_namespace, read_remote
from interpulse.rules.comparison import namespace_missing
from interpulse.rules.inventory import NamespaceInventory


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
