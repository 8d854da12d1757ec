"""Failure domains: the brokers of a cluster that fail together.

Tools that place namespaces use them; these brokers place none by them.
"""

from __future__ import annotations

from collections.abc import Callable

from interpulse.broker import metadata_paths as keys
from interpulse.broker.metadata.committer import Committer, Records
from interpulse.broker.metadata.layout import ALONE, Layout
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.model.changes import Decision
from interpulse.model.clusters import FailureDomain
from interpulse.model.errors import ClusterNotFound, InvalidRequest, NotFound, PreconditionFailed
from interpulse.model.names import decode_local_name
from interpulse.rules.clusters import DomainsView, decide_delete_failure_domain, decide_set_failure_domain
from interpulse.storage.api import MetadataStore


class FailureDomains:
    """Reads and changes the failure domains of clusters."""

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
