"""The clusters this one knows, itself included."""

from __future__ import annotations

import re
from typing import Final

from interpulse.broker import keys
from interpulse.broker.commits import until_unchanged
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import AlreadyExists, ClusterNotFound, PreconditionFailed
from interpulse.model.policies import NamespacePolicies
from interpulse.storage.api import CommitConflict, Delete, MetadataStore, Put

__all__ = ["Clusters", "check_entity_name"]

_ENTITY: Final = re.compile(r"[A-Za-z0-9_\-=:.]+", re.ASCII)
_NAME_LENGTH_MAX: Final = 1_000  # names of topics contain it, and go into the line of an HTTP request


def check_entity_name(kind: str, name: str) -> None:
    """Cluster and tenant names are letters, digits and ``_-=:.``; raises PreconditionFailed."""
    if not _ENTITY.fullmatch(name):
        raise PreconditionFailed(f"{kind} name {name[:100]!r} is not valid: letters, digits and _-=:. only")
    if len(name) > _NAME_LENGTH_MAX:
        raise PreconditionFailed(f"{kind} name of {len(name)} characters: it may have {_NAME_LENGTH_MAX}")


class Clusters:
    """Reads and changes the registered clusters."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def claim(self, name: str) -> str:
        """Take this metadata for a cluster, for ever; the name of the cluster that did so first."""
        key = keys.LOCAL_CLUSTER

        async def attempt() -> str:
            stored = await self._store.get(key)
            if stored is None:
                await self._store.commit([Put(key, name.encode())], {key: None})
                return name
            return stored.value.decode()

        return await until_unchanged(attempt)

    async def list(self) -> list[str]:
        """The names of all registered clusters, sorted."""
        return await self._store.children(keys.CLUSTERS)

    async def get(self, name: str) -> ClusterData:
        """How to reach a cluster; raises ClusterNotFound."""
        stored = await self._store.get(keys.cluster(name))
        if stored is None:
            raise ClusterNotFound(f"Cluster {name} does not exist")
        return ClusterData.load(stored.value)

    async def create(self, name: str, cluster: ClusterData) -> None:
        """Register a cluster; raises AlreadyExists."""
        check_entity_name("Cluster", name)
        key = keys.cluster(name)
        try:
            await self._store.commit([Put(key, cluster.dump())], {key: None})
        except CommitConflict:
            raise AlreadyExists(f"Cluster {name} already exists") from None

    async def update(self, name: str, cluster: ClusterData) -> None:
        """Replace the addresses of a registered cluster; raises ClusterNotFound."""
        key = keys.cluster(name)

        async def attempt() -> None:
            stored = await self._store.get(key)
            if stored is None:
                raise ClusterNotFound(f"Cluster {name} does not exist")
            await self._store.commit([Put(key, cluster.dump())], {key: stored.version})

        await until_unchanged(attempt)

    async def put(self, name: str, cluster: ClusterData) -> None:
        """Register a cluster or replace its addresses."""
        await self._store.commit([Put(keys.cluster(name), cluster.dump())])

    async def delete(self, name: str) -> None:
        """Forget a cluster that no tenant is allowed on; raises ClusterNotFound and PreconditionFailed."""
        await self.get(name)
        tenants = await self._store.children(keys.POLICIES)
        for tenant in tenants:
            for namespace in await self._store.children(keys.tenant(tenant)):
                stored = await self._store.get(f"{keys.tenant(tenant)}/{namespace}")
                if stored and name in NamespacePolicies.load(stored.value).replication_clusters:
                    raise PreconditionFailed(f"Cluster {name} is used by namespace {tenant}/{namespace}")
        await self._store.commit([Delete(keys.cluster(name))])
