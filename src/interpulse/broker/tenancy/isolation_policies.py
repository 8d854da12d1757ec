"""Namespace isolation policies of clusters: one record for each cluster, at Pulsar's own place."""

from __future__ import annotations

import json

from interpulse.broker import metadata_paths as keys
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.model.errors import ClusterNotFound, MetadataError, NotFound, PreconditionFailed
from interpulse.model.isolation import IsolationPolicy, load_policies
from interpulse.rules.isolation import check_isolation_policy
from interpulse.storage.api import MetadataStore, Put, Versioned
from interpulse.storage.cas import retry_on_conflict

__all__ = ["IsolationPolicyRecords"]


class IsolationPolicyRecords:
    """Reads and changes them. Policies that are not changed stay as they are stored, with fields unknown here."""

    def __init__(self, store: MetadataStore, clusters: Clusters) -> None:
        self._store = store
        self._clusters = clusters
        self._parsed: dict[str, tuple[bytes, dict[str, IsolationPolicy]]] = {}

    async def in_force(self, cluster: str) -> dict[str, IsolationPolicy]:
        """The policies of a cluster; none if there never were any. Raises MetadataError for an unknown form."""
        stored = await self._store.get(keys.isolation_policies(cluster))
        return {} if stored is None else self._read(cluster, stored)

    async def list(self, cluster: str) -> dict[str, IsolationPolicy]:
        """The same for operators: raises ClusterNotFound, and NotFound if there never were any."""
        await self._clusters.get(cluster)
        return await self._existing(cluster)

    async def of_registered(self, cluster: str) -> dict[str, IsolationPolicy]:
        """The same as `list`, but raises PreconditionFailed if the cluster is not registered."""
        await self._check_cluster(cluster)
        return await self._existing(cluster)

    async def get(self, cluster: str, name: str) -> IsolationPolicy:
        """Raises NotFound, and PreconditionFailed if the cluster is not registered."""
        policies = await self.of_registered(cluster)
        if name not in policies:
            raise NotFound(f"Cannot find NamespaceIsolationPolicy {name} for cluster {cluster}")
        return policies[name]

    async def put(self, cluster: str, name: str, policy: IsolationPolicy) -> IsolationPolicy | None:
        """Create or replace a policy; the one before. Raises InvalidRequest, and PreconditionFailed without cluster."""
        await self._check_cluster(cluster)
        check_isolation_policy(name, policy)
        return await self._change(cluster, name, policy)

    async def delete(self, cluster: str, name: str) -> None:
        """Forget a policy, if there is one. Raises PreconditionFailed if the cluster is not registered."""
        await self._check_cluster(cluster)
        await self._change(cluster, name, None)

    async def _change(self, cluster: str, name: str, policy: IsolationPolicy | None) -> IsolationPolicy | None:
        key = keys.isolation_policies(cluster)

        async def attempt() -> IsolationPolicy | None:
            stored = await self._store.get(key)
            old = {} if stored is None else self._read(cluster, stored)
            record = {} if stored is None else json.loads(stored.value or b"{}")
            if policy is None:
                record.pop(name, None)
            else:
                record[name] = policy.to_json()
            await self._store.commit([Put(key, json.dumps(record).encode())], {key: stored.version if stored else None})
            return old.get(name)

        return await retry_on_conflict(attempt)

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
                raise MetadataError(f"The isolation policies {key} cannot be understood: {error}") from error
            self._parsed[cluster] = (stored.value, policies)
        return policies

    async def _check_cluster(self, cluster: str) -> None:
        try:
            await self._clusters.get(cluster)
        except ClusterNotFound:
            raise PreconditionFailed(f"Cluster {cluster} does not exist.") from None
