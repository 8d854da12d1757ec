"""Namespaces, their policies and their bundles: their records, and the changes of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import ALONE, Committer, Layout, Records
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.model.changes import Change, Decision, DeleteNamespace, SetBundles, SetNamespacePolicies
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import ClusterNotFound, NamespaceNotFound, PreconditionFailed
from interpulse.model.names import PUBLIC_DEFAULT, SYSTEM_NAMESPACE, NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules.bundles import boundaries_in, boundaries_of
from interpulse.rules.namespaces import (
    Boundaries,
    NamespaceView,
    decide_begin_deletion,
    decide_create_namespace,
    decide_create_namespace_of_tenant,
    decide_delete_namespace,
    decide_divide_bundles,
    decide_give_up_deletion,
    decide_policies,
    existing_policies,
)
from interpulse.rules.replication import remote_clusters
from interpulse.rules.topic_view import NamespaceStanding
from interpulse.storage.api import Change as StoreChange
from interpulse.storage.api import MetadataStore, Versioned

A = TypeVar("A")
_NOTHING: Final[Mapping[str, int | None]] = {}
_ALWAYS_THERE: Final = (PUBLIC_DEFAULT, SYSTEM_NAMESPACE)


class Namespaces:
    """The namespaces of all tenants."""

    def __init__(self, store: MetadataStore, *, local_cluster: str, layout: Layout = ALONE) -> None:
        self.local_cluster = local_cluster
        self._layout = layout
        self._store = store
        self._committer = Committer(store, layout)
        self._parsed: dict[NamespaceName, tuple[int, NamespacePolicies]] = {}

    async def list(self, tenant: str) -> list[str]:
        """Return ``tenant/namespace`` of every namespace of the tenant, sorted."""
        names = await self._store.children(keys.tenant(tenant))
        records = await self._store.get_many([keys.namespace_policies(NamespaceName(tenant, name)) for name in names])
        return [f"{tenant}/{name}" for name in names if keys.namespace_policies(NamespaceName(tenant, name)) in records]

    async def find_policies(self, namespace: NamespaceName) -> NamespacePolicies | None:
        """Return the stored policies, None if there is no such namespace."""
        return self.parsed(namespace, await self._store.get(keys.namespace_policies(namespace)))

    async def versioned_policies(
        self, namespace: NamespaceName
    ) -> tuple[NamespacePolicies | None, Mapping[str, int | None]]:
        """Return the stored policies, None if the namespace is missing, and their version for `unchanged`."""
        key = keys.namespace_policies(namespace)
        stored = await self._store.get(key)
        return self.parsed(namespace, stored), {key: stored.version if stored else None}

    def unchanged(self, versions: Mapping[str, int | None]) -> bool:
        """Return True if these policy versions are still in force. See `MetadataStore.unchanged`."""
        return self._store.unchanged(versions)

    async def catch_up(self, namespace: NamespaceName) -> None:
        """Make later reads of the policies see every change that another broker has made before this call."""
        await self._store.sync(keys.namespace_policies(namespace))

    async def get_policies(self, namespace: NamespaceName) -> NamespacePolicies:
        """Return the stored policies; raises NamespaceNotFound."""
        policies = await self.find_policies(namespace)
        if policies is None:
            raise NamespaceNotFound("Namespace does not exist")
        return policies

    async def update_policies(
        self, namespace: NamespaceName, change: Callable[[NamespacePolicies], NamespacePolicies]
    ) -> NamespacePolicies:
        """Store the policies that ``change`` returns. It runs again after a conflict.

        Raises NamespaceNotFound and the errors of ``change``; then nothing is stored.
        """
        return (await self.decide(namespace, lambda view: decide_policies(view, change))).answer

    async def decide(
        self,
        namespace: NamespaceName,
        rule: Callable[[NamespaceView], Decision[A]],
        *,
        previewed: bool = False,
        expect: Mapping[str, int | None] = _NOTHING,
    ) -> Decision[A]:
        """Decide by a rule on the policies of one namespace. See `Committer.decide`; raises the errors of the rule.

        Raise CommitConflict if one of the keys ``expect`` has another version.
        """

        async def propose(records: Records) -> Decision[A]:
            view = await self._view(records, namespace)
            records.versions |= expect
            return rule(view)

        return await self._committer.decide(propose, previewed=previewed, raised_for=expect)

    async def _view(self, records: Records, namespace: NamespaceName) -> NamespaceView:
        stored = await records.get(keys.namespace_policies(namespace))
        return NamespaceView(namespace, self.parsed(namespace, stored))

    async def boundaries(self, namespace: NamespaceName) -> tuple[str, ...]:
        """Return the boundaries of the bundles of a namespace; one bundle for a namespace that does not exist."""
        return (await self.versioned_boundaries(namespace, await self.find_policies(namespace)))[0]

    async def versioned_boundaries(
        self, namespace: NamespaceName, policies: NamespacePolicies | None
    ) -> tuple[tuple[str, ...], Mapping[str, int | None]]:
        """Return the boundaries for these policies, with the version of the record of bundles.

        In a cluster the bundles have a record of their own. The first broker that needs it creates it.
        """
        if policies is None or not self._layout.shared:
            return boundaries_of(policies), {}
        key = keys.local_policies(namespace)
        stored = await self._store.get(key)
        if stored is None:
            await self._create_bundles(namespace, boundaries_of(policies))
            stored = await self._store.get(key)
        if stored is None or not stored.value:
            return boundaries_of(policies), {}
        return boundaries_in(json.loads(stored.value)), {key: stored.version}

    async def _create_bundles(self, namespace: NamespaceName, boundaries: Boundaries) -> None:
        async def propose(records: Records) -> Decision[None]:
            exists = await records.get(keys.local_policies(namespace)) is not None
            return Decision(None, () if exists else (SetBundles(namespace, boundaries),))

        await self._committer.decide(propose)

    async def change_boundaries(
        self,
        namespace: NamespaceName,
        change: Callable[[Boundaries], Boundaries],
        *,
        also: Sequence[StoreChange] = (),
        expect: Mapping[str, int | None] = _NOTHING,
    ) -> None:
        """Store the boundaries that ``change`` returns, in one commit with the locks ``also``.

        Raises NamespaceNotFound, and CommitConflict if one of the keys ``expect`` has another version.
        """

        async def propose(records: Records) -> Decision[None]:
            view = await self._view(records, namespace)
            if self._layout.shared:
                boundaries, versions = await self.versioned_boundaries(namespace, existing_policies(view))
                view = replace(view, boundaries=boundaries)
                records.versions |= versions
            records.versions |= expect
            records.also += also
            return decide_divide_bundles(view, change)

        await self._committer.decide(propose, raised_for=expect)

    async def removal_of_grants(self, topic: TopicName) -> tuple[Sequence[Change], dict[str, int | None]]:
        """Return the changes that remove the permissions on a deleted topic, and the versions they rest on."""
        key = keys.namespace_policies(topic.namespace_name)
        stored = await self._store.get(key)
        policies = self.parsed(topic.namespace_name, stored)
        if stored is None or policies is None:
            return [], {}
        left = policies.permissions.without_topic(topic)
        if left is policies.permissions:
            return [], {}
        changed = policies.changed(granted=left)
        return [SetNamespacePolicies(topic.namespace_name, changed)], {key: stored.version}

    async def create(self, namespace: NamespaceName, policies: NamespacePolicies) -> None:
        """Create a namespace; the caller checks its tenant. Raises the errors of `decide_create_namespace`."""
        local = self.local_cluster
        await self.decide(namespace, lambda view: decide_create_namespace(view, policies, local_cluster=local))

    async def create_of_tenant(
        self, namespace: NamespaceName, policies: NamespacePolicies, *, previewed: bool = False
    ) -> Sequence[Change]:
        """Create a namespace on clusters of its tenant. Raises the errors of `decide_create_namespace_of_tenant`."""
        named = {*policies.replication_clusters, *policies.allowed_clusters, self.local_cluster}

        async def propose(records: Records) -> Decision[None]:
            stored = await records.get(keys.tenant(namespace.tenant))
            view = replace(
                await self._view(records, namespace),
                tenant=TenantInfo.load(stored.value) if stored else None,
                registered=await Clusters(self._store).registered(named),
            )
            return decide_create_namespace_of_tenant(view, policies, local_cluster=self.local_cluster)

        return (await self._committer.decide(propose, previewed=previewed)).changes

    async def expected_versions(self, namespace: NamespaceName) -> dict[str, int]:
        """Return the versions for a commit whose records must not outlive the namespace.

        Raises NamespaceNotFound if there is none, or if it is being deleted.
        """
        key = keys.namespace_policies(namespace)
        stored = await self._store.get(key)
        policies = self.parsed(namespace, stored)
        if stored is None or policies is None:
            raise NamespaceNotFound("Namespace does not exist")
        if policies.deleted:
            raise NamespaceNotFound(f"Namespace {namespace} is being deleted")
        return {key: stored.version}

    async def check_delete(self, namespace: NamespaceName) -> None:
        """Raise the errors of `begin_delete`, PreconditionFailed and NamespaceNotFound, without marking."""
        await self.decide(namespace, decide_delete_namespace, previewed=True)

    async def begin_delete(self, namespace: NamespaceName, *, forced: bool = False) -> bool:
        """Mark a namespace as being deleted. Return False if it was marked. Raises as `decide_begin_deletion`."""
        return (await self.decide(namespace, lambda view: decide_begin_deletion(view, forced=forced))).answer

    async def deletion_mark(self, namespace: NamespaceName) -> Mapping[str, int | None]:
        """Return the versions that the commits of a deletion expect. They hold until the mark is removed.

        Raises NamespaceNotFound if the namespace is not being deleted.
        """
        policies, versions = await self.versioned_policies(namespace)
        if policies is None or not policies.deleted:
            raise NamespaceNotFound(f"Namespace {namespace} is not being deleted")
        return versions

    async def give_up_delete(self, namespace: NamespaceName, mark: Mapping[str, int | None]) -> None:
        """Remove the mark, because the namespace still holds something. Raise CommitConflict if it is another one."""
        await self.decide(namespace, decide_give_up_deletion, expect=mark)

    async def end_delete(self, namespace: NamespaceName, mark: Mapping[str, int | None]) -> None:
        """Remove an empty namespace. Raise CommitConflict if it has another mark."""
        await self.decide(namespace, lambda view: Decision(None, (DeleteNamespace(view.namespace),)), expect=mark)

    async def unfinished_deletions(self) -> Sequence[NamespaceName]:
        """Return the namespaces with an unfinished deletion."""
        deletions = []
        for tenant in await self._store.children(keys.POLICIES):
            for name in await self.list(tenant):
                namespace = NamespaceName.parse(name)
                policies = await self.find_policies(namespace)
                if policies is not None and policies.deleted:
                    deletions.append(namespace)
        return deletions

    def parsed(self, namespace: NamespaceName, stored: Versioned | None) -> NamespacePolicies | None:
        """Read stored policies; parsing is repeated only for a new version."""
        if stored is None:
            self._parsed.pop(namespace, None)
            return None
        version, policies = self._parsed.get(namespace, (None, None))
        if policies is None or version != stored.version:
            policies = NamespacePolicies.load(stored.value)
            self._parsed[namespace] = (stored.version, policies)
        return policies

    def remotes(self, policies: NamespacePolicies | None) -> tuple[str, ...]:
        """Return the clusters that these policies replicate to from here; none if the local cluster is not listed."""
        return remote_clusters(self.local_cluster, policies.replication_clusters if policies else ())

    def standing(self, policies: NamespacePolicies | None) -> NamespaceStanding:
        """Return the standing of these policies on this cluster. An allowed cluster serves too (PIP-321)."""
        if policies is None:
            return NamespaceStanding.MISSING
        if policies.deleted:
            return NamespaceStanding.DELETED
        served = self.local_cluster in (*policies.replication_clusters, *policies.allowed_clusters)
        return NamespaceStanding.SERVED if served else NamespaceStanding.NOT_SERVED


async def bootstrap(store: MetadataStore, *, local_cluster: str, cluster: ClusterData) -> None:
    """Create the cluster, its tenants and namespaces where they are missing, as on a fresh Pulsar standalone.

    The addresses of the local cluster are replaced; everything else that exists stays as it is. Raises
    PreconditionFailed if the metadata belongs to another cluster, whose namespaces this one would not serve.
    """
    owner = await Clusters(store).claim(local_cluster)
    if owner != local_cluster:
        raise PreconditionFailed(f"it belongs to cluster {owner}, not to {local_cluster}")
    await Clusters(store).put(local_cluster, cluster)
    tenants, namespaces = Tenants(store), Namespaces(store, local_cluster=local_cluster)
    for namespace in _ALWAYS_THERE:
        await tenants.ensure(namespace.tenant, TenantInfo(allowed_clusters=(local_cluster,)))
        if await namespaces.find_policies(namespace) is None:
            await namespaces.create(namespace, NamespacePolicies())


async def check_cluster(store: MetadataStore, name: str) -> None:
    """Refuse to serve a cluster that was never initialised here; raises PreconditionFailed."""
    clusters = Clusters(store)
    try:
        await clusters.get(name)
    except ClusterNotFound:
        registered = ", ".join(await clusters.list()) or "none"
        raise PreconditionFailed(
            f"cluster {name} (clusterName) is not registered in this metadata store, which has {registered}: "
            "correct the name, or initialise the cluster with `interpulse cluster init`"
        ) from None
