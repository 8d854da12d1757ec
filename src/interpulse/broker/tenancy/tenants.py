"""Tenants: the owners of namespaces, and the clusters that these may be on."""

from __future__ import annotations

from collections.abc import Sequence

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import Committer, Records
from interpulse.model.changes import Change, Decision, SetTenant
from interpulse.model.clusters import TenantInfo
from interpulse.model.errors import TenantNotFound
from interpulse.model.names import NamespaceName, check_entity_name
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules.tenants import TenantView, decide_create_tenant, decide_delete_tenant, decide_update_tenant
from interpulse.storage.api import MetadataStore


class Tenants:
    """Reads and changes tenants. Changes return what they changed, previews what they would change."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._committer = Committer(store)

    async def list(self) -> list[str]:
        """Return the names of all tenants, sorted."""
        names = await self._store.children(keys.POLICIES)
        records = await self._store.get_many([keys.tenant(name) for name in names])
        return [name for name in names if keys.tenant(name) in records]

    async def get(self, name: str) -> TenantInfo:
        """Return the administrators of the tenant, and its clusters; raises TenantNotFound."""
        stored = await self._store.get(keys.tenant(name))
        if stored is None:
            raise TenantNotFound("Tenant does not exist")
        return TenantInfo.load(stored.value)

    async def create(self, name: str, tenant: TenantInfo, *, previewed: bool = False) -> Sequence[Change]:
        """Create a tenant. Raises PreconditionFailed for an invalid name, and the errors of `decide_create_tenant`."""
        check_entity_name("Tenant", name)

        async def propose(records: Records) -> Decision[None]:
            return decide_create_tenant(await self._view(records, name), tenant)

        return (await self._committer.decide(propose, previewed=previewed)).changes

    async def ensure(self, name: str, tenant: TenantInfo) -> None:
        """Create the tenant unless it exists; its clusters need not be registered."""

        async def propose(records: Records) -> Decision[None]:
            exists = await records.get(keys.tenant(name)) is not None
            return Decision(None, () if exists else (SetTenant(name, tenant),))

        await self._committer.decide(propose)

    async def update(self, name: str, tenant: TenantInfo, *, previewed: bool = False) -> Sequence[Change]:
        """Replace roles and clusters. Raises the errors of `decide_update_tenant`."""

        async def propose(records: Records) -> Decision[None]:
            return decide_update_tenant(await self._view(records, name, replacement=tenant), tenant)

        return (await self._committer.decide(propose, previewed=previewed)).changes

    async def delete(self, name: str, *, with_namespaces: bool = False, previewed: bool = False) -> Sequence[Change]:
        """Delete a tenant. Raises the errors of `decide_delete_tenant`. ``with_namespaces`` is for previews only."""
        assert previewed or not with_namespaces, "namespaces are deleted one by one, with their topics"

        async def propose(records: Records) -> Decision[None]:
            return decide_delete_tenant(await self._view(records, name), with_namespaces=with_namespaces)

        return (await self._committer.decide(propose, previewed=previewed)).changes

    async def _view(self, records: Records, name: str, *, replacement: TenantInfo | None = None) -> TenantView:
        """Read a tenant, with the policies of its namespaces if ``replacement`` has fewer clusters."""
        stored = await records.get(keys.tenant(name))
        tenant = TenantInfo.load(stored.value) if stored else None
        namespaces = [NamespaceName(name, local) for local in await self._store.children(keys.tenant(name))]
        policies = {}
        if tenant and replacement and not set(tenant.allowed_clusters) <= set(replacement.allowed_clusters):
            places = {keys.namespace_policies(namespace): namespace for namespace in namespaces}
            stored_policies = await self._store.get_many(list(places))
            records.versions |= {key: stored.version for key, stored in stored_policies.items()}
            policies = {places[key]: NamespacePolicies.load(stored.value) for key, stored in stored_policies.items()}
        return TenantView(name, tenant, await self._store.children(keys.CLUSTERS), namespaces, policies)
