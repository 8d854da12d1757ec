"""The replication clusters of single topics: checked, a partitioned topic brought to them, then stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.broker.topics.expansion import Remotes
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.model.changes import CreatePartitionedMetadata
from interpulse.model.errors import PreconditionFailed, RemoteClusterUnavailable, Unprocessable
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, TopicKind
from interpulse.rules.provisioning import ProvisioningStep, plan_topic
from interpulse.rules.replication import (
    check_global_topic_clusters,
    check_topic_replication_clusters,
    remote_clusters,
)

__all__ = ["TopicClusters", "TopicCursors"]

log = logging.getLogger(__name__)

_ATTEMPTS_MAX: Final = 3
"""Another caller may create the remote topic in between; once that has happened it is there."""


class TopicCursors(Protocol):
    """The replication cursors of a topic."""

    async def follow_topic(self, name: TopicName) -> None:
        """On return the policies are in force, and every partition keeps all later messages."""


class TopicClusters:
    """Sets and takes away the clusters one topic is replicated to, whatever its namespace says."""

    def __init__(
        self,
        clusters: Clusters,
        tenants: Tenants,
        namespaces: Namespaces,
        records: TopicPolicyRecords,
        lifecycle: TopicLifecycle,
        remotes: Remotes,
        cursors: TopicCursors,
        config: Callable[[], BrokerConfig],
    ) -> None:
        self._clusters = clusters
        self._tenants = tenants
        self._namespaces = namespaces
        self._records = records
        self._lifecycle = lifecycle
        self._remotes = remotes
        self._cursors = cursors
        self._config = config

    async def set(self, name: TopicName, requested: Iterable[str], *, everywhere: bool = False) -> None:
        """Replicate the topic to these clusters from the moment this returns.

        With ``everywhere`` that is said for all clusters of the namespace, and one may be told that it is left out; on
        this cluster it counts where nothing else is set here.

        A partitioned topic is there on every one of them then. Raises PreconditionFailed if its count differs there,
        and RemoteClusterUnavailable; nothing is stored when anything is refused.
        """
        await self._records.record_of_existing(name)
        local, wanted = self._config().cluster_name, tuple(sorted(set(requested)))
        if everywhere:
            check_global_topic_clusters(wanted, await self._namespaces.get_policies(name.namespace_name))
        check_topic_replication_clusters(
            name,
            wanted,
            needed=None if everywhere else local,
            registered=await self._clusters.known(wanted),
            tenant=await self._tenants.get(name.tenant),
        )
        await asyncio.gather(*(self._bring(name, each) for each in remote_clusters(local, wanted)))
        await self._records.update(
            name, lambda policies: policies.changed(replication_clusters=wanted), everywhere=everywhere
        )
        await self._cursors.follow_topic(name)

    async def clear(self, name: TopicName, *, everywhere: bool = False) -> None:
        """Let what is set for all clusters decide again, or the namespace."""
        await self._records.record_of_existing(name)
        await self._records.update(
            name, lambda policies: policies.changed(replication_clusters=None), everywhere=everywhere
        )
        await self._cursors.follow_topic(name)

    async def clear_with_all_policies(self, name: TopicName) -> None:
        """Let the namespace decide everything again, in one step: no cursor is given up that is still wanted."""
        await self._records.clear(name)
        await self._cursors.follow_topic(name)

    async def _bring(self, name: TopicName, cluster: str) -> None:
        """Make sure that a partitioned topic is there with as many partitions; others are left to replication."""
        creation_allowed = self._config().create_topic_to_remote_cluster_for_replication
        for attempt in range(1, _ATTEMPTS_MAX + 2):  # the last one only looks
            local = await self._lifecycle.existence(name)
            if local.kind is not TopicKind.PARTITIONED:
                return
            remote = await self._found(name, cluster, needed=creation_allowed)
            if remote is None or (remote.kind is TopicKind.ABSENT and not creation_allowed):
                return
            if plan_topic(name, local, remote, may_create=True).step is ProvisioningStep.CONNECT:
                return
            if remote.kind is not TopicKind.ABSENT:
                raise PreconditionFailed(_different(name, cluster, local, remote))
            if attempt > _ATTEMPTS_MAX:
                break
            try:
                await self._remotes.expand(cluster, CreatePartitionedMetadata(name, local.partitions))
            except Unprocessable:  # another caller may have been faster: read again
                if attempt == _ATTEMPTS_MAX:
                    raise
        raise RemoteClusterUnavailable(f"Cluster {cluster} takes the creation of {name} and has no such topic then")

    async def _found(self, name: TopicName, cluster: str, *, needed: bool) -> Existence | None:
        """What the name stands for there; None if that cannot be said and nothing depends on it."""
        try:
            return await self._remotes.find(cluster, name)
        except (RemoteClusterUnavailable, Unprocessable) as error:
            if needed:
                raise
            log.warning("partitions not compared topic=%s cluster=%s error=%s", name, cluster, error)
            return None


def _different(name: TopicName, cluster: str, local: Existence, remote: Existence) -> str:
    return (
        f"Topic {name} exists on cluster {cluster} with different partitions: {remote.partitions} there, "
        f"{local.partitions} here; make the counts equal first. Nothing was changed"
    )
