"""The clusters this one knows, itself included."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.layout import ALONE, Layout
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import AlreadyExists, ClusterNotFound, PreconditionFailed
from interpulse.model.policies.namespace_policies import NamespacePolicies
from interpulse.model.policies.topic_policies import TopicPolicyRecord
from interpulse.rules.clusters import check_cluster_data, check_peers
from interpulse.rules.entity_names import check_entity_name
from interpulse.storage.api import CommitConflict, Delete, MetadataStore, Put, scan_pages
from interpulse.storage.cas import retry_on_conflict

__all__ = ["Clusters"]

_HALF_PAIRS: Final = re.compile("[\ud800-\udfff]")  # JSON may hold them, a key cannot
_KEYS_PER_PAGE: Final = 500
_NO_POLICIES: Final = (b"", b"{}")


class Clusters:
    """Reads and changes the registered clusters."""

    def __init__(self, store: MetadataStore, layout: Layout = ALONE) -> None:
        self._store = store
        self._layout = layout

    async def claim(self, name: str) -> str:
        """Take this metadata for a cluster, for ever; the name of the cluster that did so first."""
        key = keys.LOCAL_CLUSTER

        async def attempt() -> str:
            stored = await self._store.get(key)
            if stored is None:
                await self._store.commit([Put(key, name.encode())], {key: None})
                return name
            return stored.value.decode()

        return await retry_on_conflict(attempt)

    async def list(self) -> list[str]:
        """The names of all registered clusters, sorted."""
        return await self._store.children(keys.CLUSTERS)

    async def get(self, name: str) -> ClusterData:
        """How to reach a cluster; raises ClusterNotFound."""
        stored = await self._store.get(keys.cluster(name))
        if stored is None:
            raise ClusterNotFound(f"Cluster does not exist: {name}")
        return ClusterData.load(stored.value)

    async def known(self, names: Iterable[str]) -> dict[str, ClusterData]:
        """Those of the names that are registered."""
        wanted = {keys.cluster(name): name for name in names if not _HALF_PAIRS.search(name)}
        found = await self._store.get_many(list(wanted))
        return {wanted[key]: ClusterData.load(stored.value) for key, stored in found.items()}

    async def create(self, name: str, cluster: ClusterData) -> None:
        """Register a cluster; raises AlreadyExists, and InvalidRequest for an address that is none."""
        check_entity_name("Cluster", name)
        check_cluster_data(cluster)
        key = keys.cluster(name)
        try:
            await self._store.commit([Put(key, cluster.dump())], {key: None})
        except CommitConflict:
            raise AlreadyExists(f"Cluster already exists: {name}") from None

    async def update(self, name: str, cluster: ClusterData) -> None:
        """Replace the addresses of a registered cluster; raises ClusterNotFound and InvalidRequest."""
        check_cluster_data(cluster)
        key = keys.cluster(name)

        async def attempt() -> None:
            stored = await self._store.get(key)
            if stored is None:
                raise ClusterNotFound(f"Cluster does not exist: {name}")
            await self._store.commit([Put(key, cluster.dump())], {key: stored.version})

        await retry_on_conflict(attempt)

    async def put(self, name: str, cluster: ClusterData) -> None:
        """Register a cluster or replace its addresses."""
        await self._store.commit([Put(keys.cluster(name), cluster.dump())])

    async def set_peers(self, name: str, peers: Sequence[str] | None) -> None:
        """Replace the peer clusters, None = not said; raises ClusterNotFound and PreconditionFailed."""
        key = keys.cluster(name)

        async def attempt() -> None:
            stored = await self._store.get(key)
            check_peers(name, peers or (), registered=await self.list())
            if stored is None:
                raise ClusterNotFound(f"Cluster does not exist: {name}")
            distinct = None if peers is None else tuple(dict.fromkeys(peers))
            changed = replace(ClusterData.load(stored.value), peer_cluster_names=distinct)
            await self._store.commit([Put(key, changed.dump())], {key: stored.version})

        await retry_on_conflict(attempt)

    async def delete(self, name: str) -> None:
        """Forget a cluster that nothing is replicated to; raises ClusterNotFound and PreconditionFailed.

        A real Pulsar forgets it all the same, and then no topic of such a namespace opens.
        """
        await self.get(name)
        isolation = await self._store.get(keys.isolation_policies(name))
        if isolation is not None and isolation.value not in _NO_POLICIES:
            raise PreconditionFailed(f"Cluster {name} has namespace isolation policies; delete them first")
        user = await self._user(name)
        if user is not None:
            raise PreconditionFailed(f"Cluster {name} is used by {user}; take it out of its replication clusters first")
        above = self._layout.failure_domains(name)
        gone = [f"{above}/{domain}" for domain in await self._store.children(above)]
        await self._store.commit(
            [Delete(key) for key in (keys.isolation_policies(name), keys.cluster(name), above, *gone)]
        )

    async def _user(self, name: str) -> str | None:
        """A namespace or a topic that is on the cluster."""
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
