"""The expansion of a partitioned topic: first on the other clusters of its namespace, then here.

All refusals come before the first change. Repeating a call repeats its remote steps harmlessly, so a cluster that fails
midway leaves nothing to repair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.tenancy.cluster_links import ClusterLinks
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.model.errors import (
    NamespaceNotFound,
    PulsarError,
    RemoteClusterUnavailable,
    TenantNotFound,
    Unprocessable,
)
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence
from interpulse.replication.change_forms import request_of
from interpulse.replication.provision import partition_metadata
from interpulse.rules.provisioning import RemoteExpansion, plan_remote_expansion
from interpulse.rules.replication import effective_replication_clusters, remote_clusters

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

T = TypeVar("T")
_NOT_LET_IN: Final = (401, 403)
_ATTEMPTS_MAX: Final = 3
"""Attempts per cluster. Another caller may create or expand the remote topic in between; it exists afterwards."""


class Remotes(Protocol):
    """Access to other clusters. Both methods raise RemoteClusterUnavailable, or Unprocessable for refusals."""

    async def find(self, cluster: str, name: TopicName) -> Existence:
        """Return the existence of the name on the cluster without creating it. Refused if the namespace is missing."""

    async def expand(self, cluster: str, change: RemoteExpansion) -> None:
        """Create or expand the topic on that cluster only."""


class Expansion:
    """Expands partitioned topics here and on other clusters."""

    def __init__(
        self,
        lifecycle: TopicLifecycle,
        namespaces: Namespaces,
        topic_policies: TopicPolicyRecords,
        remotes: Remotes,
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
    """Reaches other clusters through their admin API."""

    def __init__(self, links: ClusterLinks) -> None:
        self._links = links

    async def find(self, cluster: str, name: TopicName) -> Existence:

        async def ask(admin: AdminClient) -> Existence:
            try:
                return await partition_metadata(admin, name)
            except (NamespaceNotFound, TenantNotFound) as error:
                raise Unprocessable(f"{error}; create namespace {name.namespace_name} there first") from error

        return await self._call(cluster, ask)

    async def expand(self, cluster: str, change: RemoteExpansion) -> None:

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
