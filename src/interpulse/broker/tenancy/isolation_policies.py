"""Namespace isolation policies of clusters: one record for each cluster, at Pulsar's own place."""

from __future__ import annotations

import json
from collections.abc import Callable

from interpulse.broker import metadata_paths as keys
from interpulse.broker.metadata.committer import Committer, Records
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.model.changes import Decision
from interpulse.model.errors import ClusterNotFound, MetadataError, NotFound, PreconditionFailed
from interpulse.model.isolation import IsolationPolicy, load_policies
from interpulse.rules.isolation import IsolationView, decide_delete_isolation_policy, decide_set_isolation_policy
from interpulse.storage.api import MetadataStore, Versioned


class IsolationPolicyRecords:
    """Reads and changes isolation policies."""

    def __init__(self, store: MetadataStore, clusters: Clusters) -> None:
        self._store = store
        self._clusters = clusters
        self._committer = Committer(store)
        self._parsed: dict[str, tuple[bytes, dict[str, IsolationPolicy]]] = {}

    async def in_force(self, cluster: str) -> dict[str, IsolationPolicy]:
        """Return the policies of a cluster; none if there never were any. Raises MetadataError for an unknown form."""
        stored = await self._store.get(keys.isolation_policies(cluster))
        return {} if stored is None else self._read(cluster, stored)

    async def list(self, cluster: str) -> dict[str, IsolationPolicy]:
        """Return the policies for operators. Raises ClusterNotFound, and NotFound if there never were any."""
        await self._clusters.get(cluster)
        return await self._existing(cluster)

    async def of_registered(self, cluster: str) -> dict[str, IsolationPolicy]:
        """Return the policies for operators. Raise PreconditionFailed if the cluster is not registered."""
        try:
            return await self.list(cluster)
        except ClusterNotFound:
            raise PreconditionFailed(f"Cluster {cluster} does not exist.") from None

    async def get(self, cluster: str, name: str) -> IsolationPolicy:
        """Return a policy. Raises NotFound, and PreconditionFailed if the cluster is not registered."""
        policies = await self.of_registered(cluster)
        if name not in policies:
            raise NotFound(f"Cannot find NamespaceIsolationPolicy {name} for cluster {cluster}")
        return policies[name]

    async def put(self, cluster: str, name: str, policy: IsolationPolicy) -> IsolationPolicy | None:
        """Create or replace a policy and return the earlier one. Raises the errors of `decide_set_isolation_policy`."""
        return await self._decide(cluster, lambda view: decide_set_isolation_policy(view, name, policy))

    async def delete(self, cluster: str, name: str) -> None:
        """Delete a policy if it exists. Raises the errors of `decide_delete_isolation_policy`."""
        await self._decide(cluster, lambda view: decide_delete_isolation_policy(view, name))

    async def _decide(
        self, cluster: str, rule: Callable[[IsolationView], Decision[IsolationPolicy | None]]
    ) -> IsolationPolicy | None:
        async def propose(records: Records) -> Decision[IsolationPolicy | None]:
            registered = await records.get(keys.cluster(cluster)) is not None
            stored = await records.get(keys.isolation_policies(cluster))
            if stored is None:
                return rule(IsolationView(cluster, registered, None, {}))
            policies = self._read(cluster, stored)
            return rule(IsolationView(cluster, registered, json.loads(stored.value or b"{}"), policies))

        return (await self._committer.decide(propose)).answer

    async def _existing(self, cluster: str) -> dict[str, IsolationPolicy]:
        stored = await self._store.get(keys.isolation_policies(cluster))
        if stored is None:
            raise NotFound(f"NamespaceIsolationPolicies for cluster {cluster} does not exist")
        return self._read(cluster, stored)

    def _read(self, cluster: str, stored: Versioned) -> dict[str, IsolationPolicy]:
        value, policies = self._parsed.get(cluster, (None, {}))
        if value != stored.value:
            try:
                policies = load_policies(stored.value)
            except ValueError as error:
                key = keys.isolation_policies(cluster)
                raise MetadataError(f"The isolation policies {key} are invalid: {error}") from error
            self._parsed[cluster] = (stored.value, policies)
        return policies
