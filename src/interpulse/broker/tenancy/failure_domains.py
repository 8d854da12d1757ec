"""Failure domains: the brokers of a cluster that fail together.

They are kept for tools that place namespaces; the brokers here place none by them.
"""

from __future__ import annotations

from interpulse.broker import metadata_paths as keys
from interpulse.broker.layout import ALONE, Layout
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.model.clusters import FailureDomain
from interpulse.model.errors import ClusterNotFound, InvalidRequest, NotFound, PreconditionFailed
from interpulse.model.names import decode_local_name
from interpulse.rules.clusters import check_failure_domain
from interpulse.storage.api import Delete, MetadataStore, Put
from interpulse.storage.cas import retry_on_conflict

__all__ = ["FailureDomains"]


class FailureDomains:
    """Reads and changes the failure domains of clusters."""

    def __init__(self, store: MetadataStore, clusters: Clusters, layout: Layout = ALONE) -> None:
        self._store = store
        self._clusters = clusters
        self._above = layout.failure_domains

    async def list(self, cluster: str) -> dict[str, FailureDomain]:
        """All domains of a cluster by name; none of a cluster that is not registered."""
        return {name: domain for name, (domain, _) in (await self._read(cluster)).items()}

    async def get(self, cluster: str, name: str) -> FailureDomain:
        """Raises NotFound, and PreconditionFailed if the cluster is not registered."""
        await self._check_cluster(cluster)
        stored = await self._store.get(keys.failure_domain(self._above(cluster), name))
        if stored is None:
            raise NotFound(f"Domain {name} for cluster {cluster} does not exist")
        return FailureDomain.load(stored.value)

    async def put(self, cluster: str, name: str, domain: FailureDomain) -> None:
        """Create or replace a domain; raises Conflict if one of its brokers is in another one."""
        if not name:
            raise InvalidRequest("A failure domain needs a name")
        await self._check_cluster(cluster)
        key = keys.failure_domain(self._above(cluster), name)

        async def attempt() -> None:
            found = await self._read(cluster)
            check_failure_domain(domain, {each: other for each, (other, _) in found.items() if each != name})
            expect: dict[str, int | None] = {
                keys.failure_domain(self._above(cluster), each): found[each][1] for each in found
            }
            await self._store.commit([Put(key, domain.dump())], {key: None} | expect)

        await retry_on_conflict(attempt)

    async def delete(self, cluster: str, name: str) -> None:
        """Raises NotFound, and PreconditionFailed if the cluster is not registered."""
        await self.get(cluster, name)
        await self._store.commit([Delete(keys.failure_domain(self._above(cluster), name))])

    async def _read(self, cluster: str) -> dict[str, tuple[FailureDomain, int]]:
        above = self._above(cluster)
        names = await self._store.children(above)
        stored = await self._store.get_many([f"{above}/{name}" for name in names])
        return {
            decode_local_name(key.rpartition("/")[2]): (FailureDomain.load(found.value), found.version)
            for key, found in stored.items()
        }

    async def _check_cluster(self, cluster: str) -> None:
        try:
            await self._clusters.get(cluster)
        except ClusterNotFound:
            raise PreconditionFailed(f"Cluster {cluster} does not exist.") from None
