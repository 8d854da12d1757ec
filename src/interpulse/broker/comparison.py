"""Compares a namespace here with the same one on other clusters, before replication between them is enabled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from interpulse.broker.config import BrokerConfig
from interpulse.broker.lifecycle import TopicLifecycle
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import Conflict, NamespaceNotFound, NotFound, PulsarError
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName, TopicName
from interpulse.model.policies import AutoTopicCreation, NamespacePolicies
from interpulse.rules.compatibility import NamespaceSnapshot, compare

if TYPE_CHECKING:
    from interpulse.client.admin import AdminClient

__all__ = ["RemoteComparison"]

_DOMAINS: Final[tuple[Domain, ...]] = (PERSISTENT, NON_PERSISTENT)
_QUESTIONS_MAX: Final = 16
_TIMEOUT_MS: Final = 10_000


class RemoteComparison:
    """Asks the remote clusters through their admin API."""

    def __init__(self, lifecycle: TopicLifecycle, config: Callable[[], BrokerConfig]) -> None:
        self._lifecycle = lifecycle
        self._config = config

    async def check(
        self, namespace: NamespaceName, policies: NamespacePolicies, added: Mapping[str, ClusterData]
    ) -> None:
        """Raises Conflict that lists every difference with every cluster."""
        creation = policies.auto_topic_creation or self._config().auto_topic_creation
        local = NamespaceSnapshot(creation, await self._local_partitions(namespace))
        found = await asyncio.gather(*(_differences(name, data, namespace, local) for name, data in added.items()))
        differences = [difference for each in found for difference in each]
        if differences:
            raise Conflict("; ".join(differences))

    async def _local_partitions(self, namespace: NamespaceName) -> dict[TopicName, int]:
        partitions = {}
        for domain in _DOMAINS:
            for name in await self._lifecycle.list_partitioned(namespace, domain, include_system=True):
                partitions[name] = await self._lifecycle.partitions(name, create=False)
        for name in await self._lifecycle.list_topics(namespace, PERSISTENT, include_system=True):
            partitions.setdefault(name.base, 0)
        return partitions


async def _differences(
    cluster: str, data: ClusterData, namespace: NamespaceName, local: NamespaceSnapshot
) -> list[str]:
    if not data.service_url:
        return [f"Cluster {cluster} has no serviceUrl, so it cannot be compared"]
    from interpulse.client.admin import AdminClient  # a broker that never compares starts without the client

    async with AdminClient(data.service_url, timeout_ms=_TIMEOUT_MS) as admin:
        try:
            remote_policies = await admin.namespaces.policies(namespace)
            if cluster not in {*remote_policies.replication_clusters, *remote_policies.allowed_clusters}:
                return []  # one configuration store shared by both clusters: these are our own policies
            remote = NamespaceSnapshot(
                remote_policies.auto_topic_creation or await _broker_auto_creation(admin),
                await _remote_partitions(admin, local.partitions),
            )
        except NamespaceNotFound:
            return [f"Namespace {namespace} does not exist on cluster {cluster}; create it there first"]
        except PulsarError as error:
            return [f"Cluster {cluster} at {data.service_url} cannot be compared: {error}"]
    return compare(cluster, local, remote)


async def _broker_auto_creation(admin: AdminClient) -> AutoTopicCreation:
    settings = await admin.brokers.runtime_configuration()
    return AutoTopicCreation(
        settings.get("allowAutoTopicCreation", "true") == "true",
        settings.get("allowAutoTopicCreationType"),
        int(settings.get("defaultNumPartitions", "1")),
    )


async def _remote_partitions(admin: AdminClient, wanted: Mapping[TopicName, int]) -> dict[TopicName, int]:
    limit = asyncio.Semaphore(_QUESTIONS_MAX)
    partitions: dict[TopicName, int] = {}

    async def ask(topic: TopicName) -> None:
        async with limit:
            try:
                partitions[topic] = (await admin.topics.partitioned_metadata(topic)).partitions
            except NotFound:
                return

    await asyncio.gather(*(ask(topic) for topic in wanted))
    return partitions
