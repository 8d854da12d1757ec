"""The clusters that are registered here, the local one included, with their failure domains and isolation policies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import ALONE, Committer, Layout, Records
from interpulse.model.changes import Change, ClaimMetadata, Decision, SetCluster
from interpulse.model.clusters import ClusterData, ClusterMigration, FailureDomain
from interpulse.model.errors import ClusterNotFound, InvalidRequest, MetadataError, NotFound, PreconditionFailed
from interpulse.model.isolation import IsolationPolicy, load_policies
from interpulse.model.names import check_entity_name, decode_local_name
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicyRecord
from interpulse.rules.clusters import (
    ClusterView,
    DomainsView,
    decide_create_cluster,
    decide_delete_cluster,
    decide_delete_failure_domain,
    decide_set_failure_domain,
    decide_set_migration,
    decide_set_peers,
    decide_update_cluster,
)
from interpulse.rules.isolation import IsolationView, decide_delete_isolation_policy, decide_set_isolation_policy
from interpulse.storage.api import MetadataStore, Versioned, scan_pages

_HALF_PAIRS: Final = re.compile("[\ud800-\udfff]")  # valid in JSON, invalid in a key
_KEYS_PER_PAGE: Final = 500
_NO_POLICIES: Final = (b"", b"{}")


class Clusters:
    """Reads and changes the registered clusters. Changes return what they changed, previews what they would change."""

    def __init__(self, store: MetadataStore, layout: Layout = ALONE) -> None:
        self._store = store
        self._layout = layout
        self._committer = Committer(store, layout)
        self._migration: tuple[bytes, ClusterMigration] = b"", ClusterMigration()

    async def claim(self, name: str) -> str:
        """Take these metadata for a cluster, for ever; return the name of the cluster that did so first."""

        async def propose(records: Records) -> Decision[str]:
            stored = await records.get(keys.LOCAL_CLUSTER)
            return Decision(name, (ClaimMetadata(name),)) if stored is None else Decision(stored.value.decode())

        return (await self._committer.decide(propose)).answer

    async def list(self) -> list[str]:
        """Return the names of all registered clusters, sorted."""
        return await self._store.children(keys.CLUSTERS)

    async def get(self, name: str) -> ClusterData:
        """Return the record of a cluster; raises ClusterNotFound."""
        stored = await self._store.get(keys.cluster(name))
        if stored is None:
            raise ClusterNotFound(f"Cluster does not exist: {name}")
        return ClusterData.load(stored.value)

    async def registered(self, names: Iterable[str]) -> dict[str, ClusterData]:
        """Return the records of the names that are registered."""
        wanted = {keys.cluster(name): name for name in names if not _HALF_PAIRS.search(name)}
        records = await self._store.get_many(list(wanted))
        return {wanted[key]: ClusterData.load(stored.value) for key, stored in records.items()}

    async def create(self, name: str, cluster: ClusterData, *, previewed: bool = False) -> Sequence[Change]:
        """Register a cluster. Raise PreconditionFailed for an invalid name, or as `decide_create_cluster` does."""
        check_entity_name("Cluster", name)
        return await self._decide(name, partial(decide_create_cluster, cluster=cluster), previewed=previewed)

    async def update(self, name: str, cluster: ClusterData, *, previewed: bool = False) -> Sequence[Change]:
        """Replace the record of a registered cluster. Raises the errors of `decide_update_cluster`."""
        return await self._decide(name, partial(decide_update_cluster, cluster=cluster), previewed=previewed)

    async def put(self, name: str, cluster: ClusterData) -> None:
        """Register a cluster or replace its record, without checks."""

        async def propose(records: Records) -> Decision[None]:
            return Decision(None, (SetCluster(name, cluster),))

        await self._committer.decide(propose)

    async def set_peers(self, name: str, peers: Sequence[str] | None) -> None:
        """Replace the peer clusters; None means never set. Raises the errors of `decide_set_peers`."""

        async def propose(records: Records) -> Decision[None]:
            return decide_set_peers(replace(await self._view(records, name), registered=await self.list()), peers)

        await self._committer.decide(propose)

    async def migration(self, name: str) -> ClusterMigration | None:
        """Return the redirection of the clients of a cluster, None if it was never set."""
        stored = await self._store.get(keys.cluster_migration(name))
        return None if stored is None else self._read_migration(stored)

    def _read_migration(self, stored: Versioned) -> ClusterMigration:
        value, migration = self._migration
        if value != stored.value:
            try:
                migration = ClusterMigration.load(stored.value)
            except (ValueError, AttributeError) as error:
                raise MetadataError(f"The migration of a cluster is invalid: {stored.value[:100]!r}") from error
            self._migration = stored.value, migration
        return migration

    async def set_migration(self, name: str, migration: ClusterMigration) -> None:
        """Redirect the clients of a cluster, or end that. Raises the errors of `decide_set_migration`."""

        async def propose(records: Records) -> Decision[None]:
            return decide_set_migration(await self._view(records, name), migration)

        await self._committer.decide(propose)

    async def delete(self, name: str, *, previewed: bool = False) -> Sequence[Change]:
        """Delete a cluster and its failure domains. Raises the errors of `decide_delete_cluster`."""

        async def propose(records: Records) -> Decision[None]:
            view = await self._view(records, name)
            if view.stored is None:
                return decide_delete_cluster(view)
            isolation = await self._store.get(keys.isolation_policies(name))
            isolated = isolation is not None and isolation.value not in _NO_POLICIES
            user = None if isolated else await self._user(name)
            above = self._layout.failure_domains(name)
            domains = [decode_local_name(domain) for domain in await self._store.children(above)]
            return decide_delete_cluster(replace(view, isolated=isolated, user=user, failure_domains=domains))

        return (await self._committer.decide(propose, previewed=previewed)).changes

    async def _decide(
        self, name: str, rule: Callable[[ClusterView], Decision[None]], *, previewed: bool
    ) -> Sequence[Change]:
        async def propose(records: Records) -> Decision[None]:
            return rule(await self._view(records, name))

        return (await self._committer.decide(propose, previewed=previewed)).changes

    async def _view(self, records: Records, name: str) -> ClusterView:
        stored = await records.get(keys.cluster(name))
        return ClusterView(name, ClusterData.load(stored.value) if stored else None)

    async def _user(self, name: str) -> str | None:
        """Return the name of a namespace or a topic that is on the cluster, None if there is none."""
        async for page in scan_pages(self._store, f"{keys.POLICIES}/", limit=_KEYS_PER_PAGE):
            for key, stored in page:
                namespace = keys.namespace_of_policies_key(key)
                if namespace and name in NamespacePolicies.load(stored.value).replication_clusters:
                    return f"namespace {namespace}"
        async for page in scan_pages(self._store, f"{keys.TOPIC_POLICIES}/", limit=_KEYS_PER_PAGE):
            for key, stored in page:
                topic = keys.topic_of_topic_policies(key)
                if topic is None:
                    continue
                record = TopicPolicyRecord.load(stored.value)
                levels = (record.here.replication_clusters, record.everywhere.replication_clusters)
                if any(name in (clusters or ()) for clusters in levels):
                    return f"topic {topic}"
        return None


class FailureDomains:
    """Reads and changes failure domains: the brokers of a cluster that fail together. No rule here places by them."""

    def __init__(self, store: MetadataStore, clusters: Clusters, layout: Layout = ALONE) -> None:
        self._store = store
        self._clusters = clusters
        self._above = layout.failure_domains
        self._committer = Committer(store, layout)

    async def list(self, cluster: str) -> dict[str, FailureDomain]:
        """Return all domains of a cluster by name; empty if the cluster is not registered."""
        return await self._read(Records(self._store), cluster)

    async def get(self, cluster: str, name: str) -> FailureDomain:
        """Return a domain. Raises NotFound, and PreconditionFailed if the cluster is not registered."""
        try:
            await self._clusters.get(cluster)
        except ClusterNotFound:
            raise PreconditionFailed(f"Cluster {cluster} does not exist.") from None
        stored = await self._store.get(keys.failure_domain(self._above(cluster), name))
        if stored is None:
            raise NotFound(f"Domain {name} for cluster {cluster} does not exist")
        return FailureDomain.load(stored.value)

    async def put(self, cluster: str, name: str, domain: FailureDomain) -> None:
        """Create or replace a domain. Raise InvalidRequest without a name, or as `decide_set_failure_domain` does."""
        if not name:
            raise InvalidRequest("A failure domain needs a name")
        await self._decide(cluster, name, lambda view: decide_set_failure_domain(view, name, domain))

    async def delete(self, cluster: str, name: str) -> None:
        """Delete a domain. Raises the errors of `decide_delete_failure_domain`."""
        await self._decide(cluster, name, lambda view: decide_delete_failure_domain(view, name))

    async def _decide(self, cluster: str, name: str, rule: Callable[[DomainsView], Decision[None]]) -> None:
        async def propose(records: Records) -> Decision[None]:
            registered = await records.get(keys.cluster(cluster)) is not None
            await records.get(keys.failure_domain(self._above(cluster), name))
            return rule(DomainsView(cluster, registered, await self._read(records, cluster)))

        await self._committer.decide(propose)

    async def _read(self, records: Records, cluster: str) -> dict[str, FailureDomain]:
        above = self._above(cluster)
        stored = await records.get_many([f"{above}/{name}" for name in await self._store.children(above)])
        return {decode_local_name(key.rpartition("/")[2]): FailureDomain.load(at.value) for key, at in stored.items()}


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
        stored = await self._store.get(keys.isolation_policies(cluster))
        if stored is None:
            raise NotFound(f"NamespaceIsolationPolicies for cluster {cluster} does not exist")
        return self._read(cluster, stored)

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
