"""Tenants: the owners of namespaces, and the clusters that these may be on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from interpulse.broker import metadata_paths as keys
from interpulse.model.clusters import TenantInfo
from interpulse.model.errors import AlreadyExists, NotEmpty, TenantNotFound
from interpulse.model.names import NamespaceName
from interpulse.model.policies.namespace_policies import NamespacePolicies
from interpulse.rules.entity_names import check_entity_name
from interpulse.rules.tenants import check_clusters_kept, check_tenant
from interpulse.storage.api import CommitConflict, Delete, MetadataStore, Put
from interpulse.storage.cas import retry_on_conflict

__all__ = ["Tenants"]


class Tenants:
    """Reads and changes tenants."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def list(self) -> list[str]:
        """The names of all tenants, sorted."""
        names = await self._store.children(keys.POLICIES)
        found = await self._store.get_many([keys.tenant(name) for name in names])
        return [name for name in names if keys.tenant(name) in found]

    async def get(self, name: str) -> TenantInfo:
        """The administrators of the tenant, and its clusters; raises TenantNotFound."""
        stored = await self._store.get(keys.tenant(name))
        if stored is None:
            raise TenantNotFound("Tenant does not exist")
        return TenantInfo.load(stored.value)

    async def create(self, name: str, tenant: TenantInfo) -> None:
        """Raises AlreadyExists, and PreconditionFailed for a bad name or a cluster that is not registered."""
        check_entity_name("Tenant", name)
        check_tenant(tenant, registered=await self._store.children(keys.CLUSTERS))
        key = keys.tenant(name)
        try:
            await self._store.commit([Put(key, tenant.dump())], {key: None})
        except CommitConflict:
            raise AlreadyExists(f"Tenant already exists: {name}") from None

    async def ensure(self, name: str, tenant: TenantInfo) -> None:
        """Create the tenant unless it is there, whatever it allows."""
        key = keys.tenant(name)
        if await self._store.get(key) is None:
            await self._store.commit([Put(key, tenant.dump())], {key: None})

    async def update(self, name: str, tenant: TenantInfo) -> None:
        """Replace roles and clusters; raises TenantNotFound and PreconditionFailed."""
        check_tenant(tenant, registered=await self._store.children(keys.CLUSTERS))
        key = keys.tenant(name)

        async def attempt() -> None:
            stored = await self._store.get(key)
            if stored is None:
                raise TenantNotFound("Tenant does not exist")
            old = TenantInfo.load(stored.value)
            removed = set(old.allowed_clusters) - set(tenant.allowed_clusters)
            versions = await self._check_kept(name, removed) if removed else {}
            changed = replace(tenant, other={**old.other, **tenant.other})
            await self._store.commit([Put(key, changed.dump())], {key: stored.version} | versions)

        await retry_on_conflict(attempt)

    async def delete(self, name: str) -> None:
        """Forget a tenant without namespaces; raises TenantNotFound and NotEmpty."""
        key = keys.tenant(name)

        async def attempt() -> None:
            stored = await self._store.get(key)
            if stored is None:
                raise TenantNotFound("Tenant does not exist")
            if await self._store.children(key):
                raise NotEmpty(f"The tenant still has active namespaces: {name}")
            await self._store.commit([Delete(key)], {key: stored.version})

        await retry_on_conflict(attempt)

    async def _check_kept(self, name: str, removed: Collection[str]) -> dict[str, int | None]:
        """Refuse while a namespace is on one of these clusters; the versions of all that were looked at."""
        names = [NamespaceName(name, local) for local in await self._store.children(keys.tenant(name))]
        found = await self._store.get_many([keys.namespace_policies(namespace) for namespace in names])
        policies = {key: NamespacePolicies.load(stored.value) for key, stored in found.items()}
        by_name = [(each, policies[key]) for each in names if (key := keys.namespace_policies(each)) in policies]
        check_clusters_kept(name, removed, by_name)
        return {key: stored.version for key, stored in found.items()}
