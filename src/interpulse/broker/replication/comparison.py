"""Compares a namespace here with the same one on other clusters, before replication between them is enabled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.model.adjustments import AdjustmentPlan
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import Conflict, NamespaceNotFound, RemoteClusterUnavailable
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName, TopicName
from interpulse.model.policies.namespace_policies import NamespacePolicies
from interpulse.replication.adjust import Enabling, adjust, preview
from interpulse.replication.connect import connect as connect_to
from interpulse.replication.snapshot import Connect, differing, read_namespace, read_remote
from interpulse.rules.compatibility import NamespaceSnapshot, compare, namespace_missing

__all__ = ["LocalReading", "RemoteComparison"]

_DOMAINS: Final[tuple[Domain, ...]] = (PERSISTENT, NON_PERSISTENT)


class LocalReading:
    """Reads this cluster's namespaces as `NamespaceReading` wants them, without asking over the network."""

    def __init__(self, lifecycle: TopicLifecycle, namespaces: Namespaces, config: Callable[[], BrokerConfig]) -> None:
        self._lifecycle = lifecycle
        self._namespaces = namespaces
        self._config = config

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies:
        return await self._namespaces.get_policies(namespace)

    async def settings(self) -> Mapping[str, str]:
        """The broker's configuration in force, by Pulsar's keys."""
        return self._config().as_text()

    async def partitioned(self, namespace: NamespaceName) -> Mapping[TopicName, int | None]:
        """Partitioned topics of both domains, system topics included."""
        counts: dict[TopicName, int | None] = {}
        for domain in _DOMAINS:
            counts |= await self._lifecycle.partition_counts(namespace, domain, include_system=True)
        return counts

    async def stored(self, namespace: NamespaceName) -> Sequence[TopicName]:
        """Persistent topics and partitions, system topics included."""
        return list(await self._lifecycle.list_topics(namespace, PERSISTENT, include_system=True))

    async def partitions(self, topic: TopicName) -> int:
        """Raises TopicNotFound."""
        return await self._lifecycle.partitions(topic, create=False)


class RemoteComparison:
    """Asks the remote clusters through their admin API."""

    def __init__(self, local: LocalReading, *, connect: Connect = connect_to) -> None:
        self._local = local
        self._connect = connect

    async def check(self, namespace: NamespaceName, added: Mapping[str, ClusterData]) -> None:
        """Raises Conflict that lists every difference with every cluster."""
        if not added:
            return
        local = await read_namespace(self._local, namespace)
        found = await asyncio.gather(*(self._differences(*each, namespace, local) for each in added.items()))
        differences = [difference for each in found for difference in each]
        if differences:
            raise Conflict("; ".join(differences))

    async def preview(self, enabling: Enabling) -> AdjustmentPlan:
        """What would have to change on the added clusters; nothing is changed."""
        return await preview(enabling, self._local, self._connect)

    async def adjust(
        self, enabling: Enabling, store: Callable[[], Awaitable[None]], *, shown: str | None
    ) -> AdjustmentPlan:
        """Make it true there, then ``store`` here; see `interpulse.replication.adjust`."""
        return await adjust(enabling, self._local, self._connect, store, shown=shown)

    async def _differences(
        self, cluster: str, data: ClusterData, namespace: NamespaceName, local: NamespaceSnapshot
    ) -> list[str]:
        try:
            remote = await read_remote(cluster, data, namespace, self._connect, only=local.partitions.keys())
        except NamespaceNotFound:
            missing = namespace_missing(cluster, namespace)
            return [f"{missing.reason}; {missing.remedy}"]
        except RemoteClusterUnavailable as error:
            return [str(error)]
        return [] if remote is None else compare(cluster, *await differing(local, remote))
