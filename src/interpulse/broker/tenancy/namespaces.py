"""Namespaces and their policies: read, change, commit if unchanged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.layout import ALONE, Layout
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.model.changes import Change, SetNamespacePolicies
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import AlreadyExists, ClusterNotFound, NamespaceNotFound, PreconditionFailed
from interpulse.model.names import PUBLIC_DEFAULT, SYSTEM_NAMESPACE, NamespaceName, TopicName
from interpulse.model.policies.namespace_policies import NamespacePolicies
from interpulse.rules.bundles import boundaries_in, boundaries_of, bundles_of_new_namespace
from interpulse.rules.entity_names import check_entity_name
from interpulse.rules.replication import check_namespace_left_by_others, remote_clusters
from interpulse.rules.topic_view import NamespaceStanding
from interpulse.storage.api import Change as StoreChange
from interpulse.storage.api import CommitConflict, Delete, MetadataStore, Put, Versioned
from interpulse.storage.cas import retry_on_conflict

__all__ = ["Namespaces", "bootstrap", "check_cluster"]

_NOTHING: Final[Mapping[str, int | None]] = {}
_ALWAYS_THERE: Final = (PUBLIC_DEFAULT, SYSTEM_NAMESPACE)


class Namespaces:
    """The namespaces of all tenants."""

    def __init__(self, store: MetadataStore, *, local_cluster: str, layout: Layout = ALONE) -> None:
        self.local_cluster = local_cluster
        self._layout = layout
        self._store = store
        self._parsed: dict[NamespaceName, tuple[int, NamespacePolicies]] = {}

    async def list(self, tenant: str) -> list[str]:
        """``tenant/namespace`` of every namespace of the tenant, sorted."""
        names = await self._store.children(keys.tenant(tenant))
        found = await self._store.get_many([keys.namespace_policies(NamespaceName(tenant, name)) for name in names])
        return [f"{tenant}/{name}" for name in names if keys.namespace_policies(NamespaceName(tenant, name)) in found]

    async def find_policies(self, namespace: NamespaceName) -> NamespacePolicies | None:
        """The stored policies, None if there is no such namespace."""
        return self.parsed(namespace, await self._store.get(keys.namespace_policies(namespace)))

    async def versioned_policies(
        self, namespace: NamespaceName
    ) -> tuple[NamespacePolicies | None, Mapping[str, int | None]]:
        """As `find_policies`, with the version of what they are read from, for `unchanged`."""
        key = keys.namespace_policies(namespace)
        stored = await self._store.get(key)
        return self.parsed(namespace, stored), {key: stored.version if stored else None}

    def unchanged(self, versions: Mapping[str, int | None]) -> bool:
        """Whether policies of these versions are known to be in force still; see `MetadataStore.unchanged`."""
        return self._store.unchanged(versions)

    async def get_policies(self, namespace: NamespaceName) -> NamespacePolicies:
        """The stored policies; raises NamespaceNotFound."""
        policies = await self.find_policies(namespace)
        if policies is None:
            raise NamespaceNotFound("Namespace does not exist")
        return policies

    async def update_policies(
        self,
        namespace: NamespaceName,
        change: Callable[[NamespacePolicies], NamespacePolicies],
        *,
        also: Sequence[StoreChange] = (),
    ) -> NamespacePolicies:
        """Store what ``change`` makes of the policies; it may be called again if another change was faster.

        ``also`` is stored with them.

        Raises NamespaceNotFound, and whatever ``change`` raises; then nothing is stored.
        """
        key = keys.namespace_policies(namespace)

        async def attempt() -> NamespacePolicies:
            stored = await self._store.get(key)
            policies = self.parsed(namespace, stored)
            if stored is None or policies is None:
                raise NamespaceNotFound("Namespace does not exist")
            changed = change(policies)
            if changed != policies or also:
                await self._store.commit([Put(key, changed.dump()), *also], {key: stored.version})
            return changed

        return await retry_on_conflict(attempt)

    async def boundaries(self, namespace: NamespaceName) -> tuple[str, ...]:
        """Where the bundles of a namespace begin and end; one bundle for everything where there is no namespace."""
        return (await self.versioned_boundaries(namespace, await self.find_policies(namespace)))[0]

    async def versioned_boundaries(
        self, namespace: NamespaceName, policies: NamespacePolicies | None
    ) -> tuple[tuple[str, ...], Mapping[str, int | None]]:
        """The same, where the policies are known, with the version of what says so besides the policies.

        In a cluster the bundles have a record of their own, which the first broker that asks makes of the policies.
        """
        if policies is None or not self._layout.shared:
            return boundaries_of(policies), {}
        key = keys.local_policies(namespace)

        async def attempt() -> tuple[tuple[str, ...], Mapping[str, int | None]]:
            stored = await self._store.get(key)
            if stored is None:
                await self._store.commit([Put(key, _local_policies({}, boundaries_of(policies)))], {key: None})
                stored = await self._store.get(key)
            if stored is None or not stored.value:
                return boundaries_of(policies), {}
            return boundaries_in(json.loads(stored.value)), {key: stored.version}

        return await retry_on_conflict(attempt)

    async def change_boundaries(
        self,
        namespace: NamespaceName,
        change: Callable[[tuple[str, ...]], tuple[str, ...]],
        *,
        also: Sequence[StoreChange] = (),
        expect: Mapping[str, int | None] = _NOTHING,
    ) -> None:
        """Store what ``change`` makes of the boundaries, as in `update_policies`. Raises NamespaceNotFound.

        Raises CommitConflict if one of the keys ``expect`` has another version, in a cluster.
        """
        if not self._layout.shared:
            assert not expect, "there are no locks"

            def changed(old: NamespacePolicies) -> NamespacePolicies:
                return _with_boundaries(old, change(boundaries_of(old)))

            await self.update_policies(namespace, changed, also=also)
            return
        key = keys.local_policies(namespace)

        async def attempt() -> None:
            policies = await self.get_policies(namespace)
            boundaries, versions = await self.versioned_boundaries(namespace, policies)
            stored = await self._store.get(key)
            body = json.loads(stored.value) if stored and stored.value else {}
            put = Put(key, _local_policies(body, change(boundaries)))
            await self._store.commit([put, *also], {**versions, **expect})

        await retry_on_conflict(attempt, raised_for=expect)

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
        """Create a namespace; without replication clusters it lives on the local one. Raises AlreadyExists.

        Only what concerns the namespace itself is checked; the tenant is the caller's to check.
        """
        check_entity_name("Namespace", namespace.local)
        key = keys.namespace_policies(namespace)
        clusters = policies.replication_clusters or (self.local_cluster,)
        other = {**policies.other, "bundles": bundles_of_new_namespace(policies.other.get("bundles"))}
        created = policies.changed(replication_clusters=clusters, deleted=False, other=other)
        try:
            await self._store.commit([Put(key, created.dump())], {key: None})
        except CommitConflict:
            raise AlreadyExists(f"Namespace already exists: {namespace}") from None

    async def expected_versions(self, namespace: NamespaceName) -> dict[str, int]:
        """The versions for a commit whose records must not outlive the namespace.

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
        """Refuse what `begin_delete` would; raises PreconditionFailed, and NamespaceNotFound."""
        _check_delete(namespace, await self.get_policies(namespace))

    async def begin_delete(self, namespace: NamespaceName, *, forced: bool = False) -> None:
        """From now on no topic of the namespace can be created.

        ``forced``: whatever it holds goes with it; this is remembered until the deletion is finished. Raises
        PreconditionFailed while the namespace is on several clusters.
        """
        remembered = [Put(keys.forced_deletion(namespace), b"")] if forced else []

        def mark(policies: NamespacePolicies) -> NamespacePolicies:
            _check_delete(namespace, policies)
            return policies.changed(deleted=True)

        await self.update_policies(namespace, mark, also=remembered)

    async def give_up_delete(self, namespace: NamespaceName) -> None:
        """Take the mark back, because the namespace still holds something."""
        forgotten = [Delete(keys.forced_deletion(namespace))]
        await self.update_policies(namespace, lambda policies: policies.changed(deleted=False), also=forgotten)

    async def end_delete(self, namespace: NamespaceName) -> None:
        """Forget a namespace that holds nothing any more."""
        own = (keys.namespace_policies, keys.forced_deletion, keys.replication_status)
        shared = [Delete(keys.local_policies(namespace))] if self._layout.shared else []
        await self._store.commit([*(Delete(key(namespace)) for key in own), *shared])

    async def unfinished_deletions(self) -> dict[NamespaceName, bool]:
        """The namespaces whose deletion was begun and not ended, and whether it was forced."""
        found = {}
        for tenant in await self._store.children(keys.POLICIES):
            for name in await self.list(tenant):
                namespace = NamespaceName.parse(name)
                if (await self.get_policies(namespace)).deleted:
                    found[namespace] = await self._store.get(keys.forced_deletion(namespace)) is not None
        return found

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
        """The clusters these policies replicate to from here; none where the local cluster is not listed."""
        return remote_clusters(self.local_cluster, policies.replication_clusters if policies else ())

    def standing(self, policies: NamespacePolicies | None) -> NamespaceStanding:
        """What these policies let topics of this cluster do. An allowed cluster serves too (PIP-321)."""
        if policies is None:
            return NamespaceStanding.MISSING
        if policies.deleted:
            return NamespaceStanding.DELETED
        served = self.local_cluster in (*policies.replication_clusters, *policies.allowed_clusters)
        served = served and not policies.other.get("migrated")
        return NamespaceStanding.SERVED if served else NamespaceStanding.NOT_SERVED


async def bootstrap(store: MetadataStore, *, local_cluster: str, cluster: ClusterData) -> None:
    """Make sure that the cluster, its tenants and namespaces are there, as on a fresh Pulsar standalone.

    The addresses of the local cluster are brought up to date, everything else that exists stays as it is. Raises
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
        known = ", ".join(await clusters.list()) or "none"
        raise PreconditionFailed(
            f"cluster {name} (clusterName) is not registered in this metadata store, which has {known}: "
            "correct the name, or initialise the cluster with `interpulse cluster init`"
        ) from None


def _with_boundaries(policies: NamespacePolicies, boundaries: tuple[str, ...]) -> NamespacePolicies:
    bundles = {"boundaries": list(boundaries), "numBundles": len(boundaries) - 1}
    return policies.changed(other={**policies.other, "bundles": bundles})


def _local_policies(body: Mapping[str, Any], boundaries: tuple[str, ...]) -> bytes:
    """The record with these bundles; whatever else it holds stays."""
    bundles = {"boundaries": list(boundaries), "numBundles": len(boundaries) - 1}
    return json.dumps({"migrated": False, **body, "bundles": bundles}, separators=(",", ":")).encode()


def _check_delete(namespace: NamespaceName, policies: NamespacePolicies) -> None:
    if namespace == SYSTEM_NAMESPACE:
        raise PreconditionFailed(f"Cannot delete the namespace {namespace}: the broker needs it")
    check_namespace_left_by_others(namespace, policies)
