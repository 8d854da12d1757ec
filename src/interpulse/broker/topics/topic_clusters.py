"""The replication clusters of single topics: checked, prepared on the other clusters, then stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeVar

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.tenancy.cluster_links import ClusterLinks
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.model.changes import CreatePartitionedMetadata
from interpulse.model.errors import (
    NamespaceNotFound,
    PreconditionFailed,
    PulsarError,
    RemoteClusterUnavailable,
    TenantNotFound,
    Unprocessable,
)
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, TopicKind
from interpulse.replication.change_forms import request_of
from interpulse.replication.provision import partition_metadata
from interpulse.rules.provisioning import ProvisioningStep, RemoteExpansion, plan_remote_expansion, plan_topic
from interpulse.rules.replication import (
    check_global_topic_clusters,
    check_topic_replication_clusters,
    effective_replication_clusters,
    remote_clusters,
)

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

T = TypeVar("T")
_NOT_LET_IN: Final = (401, 403)
_ATTEMPTS_MAX: Final = 3
"""Attempts per cluster. Another caller may create or expand the remote topic in between; it exists afterwards."""

log = logging.getLogger(__name__)
"""Attempts per cluster. Another caller may create the remote topic in between; it exists afterwards."""


class Expansion:
    """Expands partitioned topics here and on other clusters."""

    def __init__(
        self,
        lifecycle: TopicLifecycle,
        namespaces: Namespaces,
        topic_policies: TopicPolicyRecords,
        remotes: AdminRemotes,
        config: Callable[[], BrokerConfig],
    ) -> None:
        self._lifecycle = lifecycle
        self._namespaces = namespaces
        self._topic_policies = topic_policies
        self._remotes = remotes
        self._config = config

    async def expand(self, name: TopicName, partitions: int, *, force: bool = False, local_only: bool = False) -> None:
        """Expand the topic to ``partitions``; ``local_only`` leaves the other clusters unchanged."""
        await self._lifecycle.check_expand(name, partitions, force=force)
        if not local_only:
            await self._expand_remotes(name, partitions)
        await self._lifecycle.expand(name, partitions, force=force)

    async def _expand_remotes(self, name: TopicName, partitions: int) -> None:
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            steps = await self._steps(name, partitions)
            try:
                for cluster, change in steps.items():
                    await self._remotes.expand(cluster, change)
            except Unprocessable:  # another caller may have been faster
                if attempt == _ATTEMPTS_MAX:
                    raise
            else:
                return

    async def _steps(self, name: TopicName, partitions: int) -> dict[str, RemoteExpansion]:
        policies = await self._namespaces.find_policies(name.namespace_name)
        effective = effective_replication_clusters(await self._topic_policies.find(name), policies)
        clusters = remote_clusters(self._namespaces.local_cluster, effective)
        existences = await asyncio.gather(*(self._remotes.find(cluster, name) for cluster in clusters))
        creation_allowed = self._config().create_topic_to_remote_cluster_for_replication
        remotes = dict(zip(clusters, existences, strict=True))
        return plan_remote_expansion(name, partitions, remotes, creation_allowed=creation_allowed)


class AdminRemotes:
    """Access to other clusters. Both methods raise RemoteClusterUnavailable, or Unprocessable for refusals."""

    def __init__(self, links: ClusterLinks) -> None:
        self._links = links

    async def find(self, cluster: str, name: TopicName) -> Existence:
        """Return the existence of the name on the cluster without creating it. Refused if the namespace is missing."""

        async def ask(admin: AdminClient) -> Existence:
            try:
                return await partition_metadata(admin, name)
            except (NamespaceNotFound, TenantNotFound) as error:
                raise Unprocessable(f"{error}; create namespace {name.namespace_name} there first") from error

        return await self._call(cluster, ask)

    async def expand(self, cluster: str, change: RemoteExpansion) -> None:
        """Create or expand the topic on that cluster only."""

        async def apply(admin: AdminClient) -> None:
            await admin.send(request_of(change, local_only=True))

        await self._call(cluster, apply)

    async def _call(self, cluster: str, call: Callable[[AdminClient], Awaitable[T]]) -> T:
        async def named(admin: AdminClient) -> T:
            try:
                return await call(admin)
            except PulsarError as error:
                away = error.http_status >= 500 or error.http_status in _NOT_LET_IN
                kind = RemoteClusterUnavailable if away else Unprocessable
                raise kind(f"Cluster {cluster} at {admin.web_url}: {error}") from error

        return await self._links.use(cluster, named)


class TopicClusters:
    """Sets and removes the replication clusters of single topics, which override those of the namespace."""

    def __init__(
        self,
        clusters: Clusters,
        tenants: Tenants,
        namespaces: Namespaces,
        records: TopicPolicyRecords,
        lifecycle: TopicLifecycle,
        remotes: AdminRemotes,
        registry: TopicRegistry,
        config: Callable[[], BrokerConfig],
    ) -> None:
        self._clusters = clusters
        self._tenants = tenants
        self._namespaces = namespaces
        self._records = records
        self._lifecycle = lifecycle
        self._remotes = remotes
        self._registry = registry
        self._config = config

    async def set(self, name: TopicName, requested: Iterable[str], *, everywhere: bool = False) -> None:
        """Replicate the topic to these clusters from the return of this call on.

        With ``everywhere`` the setting is for all clusters of the namespace, and may leave a cluster out; a setting of
        this cluster overrides it.

        A partitioned topic exists on each of these clusters afterwards. Raises PreconditionFailed if its partition
        count differs there, and RemoteClusterUnavailable. Nothing is stored if anything is refused.
        """
        await self._records.record_of_existing(name)
        local, wanted = self._config().cluster_name, tuple(sorted(set(requested)))
        if everywhere:
            check_global_topic_clusters(wanted, await self._namespaces.get_policies(name.namespace_name))
        check_topic_replication_clusters(
            name,
            wanted,
            needed=None if everywhere else local,
            registered=await self._clusters.registered(wanted),
            tenant=await self._tenants.get(name.tenant),
        )
        await asyncio.gather(*(self._bring(name, remote_cluster) for remote_cluster in remote_clusters(local, wanted)))
        await self._records.update(
            name, lambda policies: policies.changed(replication_clusters=wanted), everywhere=everywhere
        )
        await self._registry.policies_changed(name.namespace_name, name.base)

    async def clear(self, name: TopicName, *, everywhere: bool = False) -> None:
        """Remove the setting, so that the one for all clusters, or the namespace, decides again."""
        await self._records.record_of_existing(name)
        await self._records.update(
            name, lambda policies: policies.changed(replication_clusters=None), everywhere=everywhere
        )
        await self._registry.policies_changed(name.namespace_name, name.base)

    async def clear_with_all_policies(self, name: TopicName) -> None:
        """Remove all policies of the topic in one step. Cursors that the namespace still needs stay."""
        await self._records.clear(name)
        await self._registry.policies_changed(name.namespace_name, name.base)

    async def _bring(self, name: TopicName, cluster: str) -> None:
        """Ensure that a partitioned topic exists there with this many partitions. Replication creates other topics."""
        creation_allowed = self._config().create_topic_to_remote_cluster_for_replication
        for attempt in range(1, _ATTEMPTS_MAX + 2):  # the last one only checks
            local = await self._lifecycle.existence(name)
            if local.kind is not TopicKind.PARTITIONED:
                return
            remote = await self._found(name, cluster, needed=creation_allowed)
            if remote is None or (remote.kind is TopicKind.ABSENT and not creation_allowed):
                return
            if plan_topic(name, local, remote, may_create=True).step is ProvisioningStep.CONNECT:
                return
            if remote.kind is not TopicKind.ABSENT:
                raise PreconditionFailed(
                    f"Topic {name} exists on cluster {cluster} with different partitions: {remote.partitions} there, "
                    f"{local.partitions} here; make the counts equal first. Nothing was changed"
                )
            if attempt > _ATTEMPTS_MAX:
                break
            try:
                await self._remotes.expand(cluster, CreatePartitionedMetadata(name, local.partitions))
            except Unprocessable:  # another caller may have been faster
                if attempt == _ATTEMPTS_MAX:
                    raise
        raise RemoteClusterUnavailable(
            f"Cluster {cluster} accepts the creation of {name}, but the topic does not exist afterwards"
        )

    async def _found(self, name: TopicName, cluster: str, *, needed: bool) -> Existence | None:
        """Return the existence of the name there; None if it is unavailable and not ``needed``."""
        try:
            return await self._remotes.find(cluster, name)
        except (RemoteClusterUnavailable, Unprocessable) as error:
            if needed:
                raise
            log.warning("partition counts not compared topic=%s cluster=%s error=%s", name, cluster, error)
            return None
