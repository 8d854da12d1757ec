"""The import of a data directory: all conflicts are reported first, then documents are copied, then topics.

Each step checks the state of the cluster, so an interrupted import is simply run again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.cluster_import.source import DataDirectory
from interpulse.broker.cluster_import.topic_copy import Copied, TopicCopies
from interpulse.broker.committer import ALONE, IN_CLUSTER
from interpulse.broker.stores import Stores
from interpulse.broker.topics.schemas import SchemaStore
from interpulse.model.errors import MetadataError, PersistenceError
from interpulse.model.names import PERSISTENT, SYSTEM_NAMESPACE, TopicName, decode_local_name
from interpulse.rules.schemas import SchemaVersion
from interpulse.storage.api import Put
from interpulse.wire.cursor_promise import REPLICATION_CURSORS

_LISTS: Final = ("allowedClusters", "allowed_clusters", "replication_clusters", "replicationClusters")
_RATES: Final = (
    "clusterDispatchRate",
    "clusterSubscribeRate",
    "publishMaxMessageRate",
    "replicatorDispatchRate",
    "subscriptionDispatchRate",
    "topicDispatchRate",
)
"""Policies keyed by the name of a cluster, or of two: `east->west`."""

_NAMED_MAX: Final = 10
_TOPICS_AT_ONCE: Final = 4
_GLOBAL_CLUSTER: Final = "global"


def renamed(body: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return a document of a tenant, namespace or topic with one cluster name replaced by another."""

    def name_of(cluster: str) -> str:
        return new if cluster == old else cluster

    changed = dict(body)
    for name in _LISTS:
        if isinstance(body.get(name), list):
            changed[name] = list(dict.fromkeys(map(name_of, body[name])))
    for name in _RATES:
        if isinstance(body.get(name), dict):
            changed[name] = {"->".join(map(name_of, key.split("->"))): rate for key, rate in body[name].items()}
    if isinstance(body.get("global"), dict):
        changed["global"] = renamed(body["global"], old, new)
    return changed


class ImportRefused(Exception):
    """A conflict that stops the import before anything is written. One sentence names it and the remedy."""


@dataclass(slots=True)
class Imported:
    """The result of an import: the objects that the cluster now has, and those that could not be copied."""

    topics: int = 0
    entries: int = 0
    size: int = 0
    cursors: int = 0
    failed: dict[TopicName, str] = field(default_factory=dict)

    def add(self, copied: Copied) -> None:
        """Count one topic."""
        self.topics += 1
        self.entries += copied.entries
        self.size += copied.size
        self.cursors += copied.cursors


class ClusterImport:
    """An import of a data directory into the stores of a cluster, whose name is ``cluster``."""

    def __init__(
        self,
        source: DataDirectory,
        stores: Stores,
        cluster: str,
        *,
        without_compacted: bool = False,
        say: Callable[[str], None],
    ) -> None:
        """``without_compacted`` leaves compacted ledgers behind. ``say`` gets a line for each step."""
        assert stores.schemas is not None, "in a cluster schemas have a store of their own"
        self._source = source
        self._metadata = stores.metadata
        self._schemas: SchemaStore = stores.schemas
        self._copies = TopicCopies(source, stores.metadata, stores.logs.journal, without_compacted=without_compacted)
        self._cluster = cluster
        self._say = say

    async def run(self) -> Imported:
        """Import everything. A topic that cannot be copied is part of the result, and the others are copied.

        Raises ImportRefused before anything is written, and MetadataError and PersistenceError of documents.
        """
        topics = await self._source.topics()
        there = await self._check(topics)
        await self._copy_documents()
        await self._copy_schemas()
        imported = Imported()
        left = iter(topics)

        async def copy() -> None:
            for topic in left:
                await self._copy_topic(topic, topic in there, imported)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(_TOPICS_AT_ONCE):
                tasks.create_task(copy())
        return imported

    # ---- What stands in the way

    async def _check(self, topics: Sequence[TopicName]) -> set[TopicName]:
        """Return the topics that an earlier import has copied. Raise ImportRefused for conflicts."""
        await self._check_cluster()
        there = await self._copies.there(topics)
        _refuse(
            "the cluster has these topics already, with other content",
            [str(topic) for topic in topics if topic in there and not await self._copies.looks_copied(topic)],
            "delete them there, or import into a cluster without them",
        )
        await self._check_partitions()
        await self._check_schemas()
        if self._source.cluster == self._cluster:
            _refuse(
                f"the cluster has the name of the old one, {self._cluster}, and these topics are replicated: other "
                "clusters would take what is sent under new positions for what they have",
                [str(topic) for topic in topics if await self._is_replicated(topic)],
                "initialise the cluster with a name of its own",
            )
        return there

    async def _is_replicated(self, topic: TopicName) -> bool:
        return any(name.startswith(REPLICATION_CURSORS) for name in await self._source.cursors(topic))

    async def _check_cluster(self) -> None:
        if await self._metadata.get(keys.cluster(self._cluster)) is None:
            registered = ", ".join(await self._metadata.children(keys.CLUSTERS)) or "none"
            raise ImportRefused(
                f"cluster {self._cluster} (clusterName) is not registered in this metadata store, "
                f"which has {registered}: "
                "correct the name, or initialise the cluster with `interpulse cluster init`"
            )
        remote = await self._source.metadata.get(keys.cluster(self._cluster))
        if remote is not None and self._source.cluster != self._cluster:
            raise ImportRefused(
                f"the data directory is of cluster {self._source.cluster}, which knows another cluster with the name "
                f"{self._cluster}: initialise the cluster with a name of its own"
            )
        _refuse(
            "brokers of the cluster are running",
            await self._metadata.children(keys.LOAD_REPORTS),
            "stop them for the time of the import",
        )

    async def _check_partitions(self) -> None:
        differing = []
        async for key, value in self._source.values(f"{keys.PARTITIONED_TOPICS}/"):
            stored = await self._metadata.get(key)
            topic = keys.topic_of_partitioned_topic(key)
            if topic is not None and stored is not None and json.loads(stored.value) != json.loads(value):
                differing.append(str(topic))
        _refuse(
            "the cluster has these partitioned topics already, with other partitions or properties",
            differing,
            "delete them there, or import into a cluster without them",
        )

    async def _check_schemas(self) -> None:
        differing = []
        for topic in await self._topics_with_schemas():
            wanted, existing = await self._source.schemas.read(topic), await self._schemas.read(topic)
            if _unnamed(existing.versions) != _unnamed(wanted.versions[: len(existing.versions)]):
                differing.append(str(topic))
        _refuse(
            "the cluster has other schemas of these topics already",
            differing,
            "delete them there, or import into a cluster without them",
        )

    # ---- Documents

    async def _copy_documents(self) -> None:
        async for key, value in self._source.values(f"{keys.CLUSTERS}/"):
            if key not in (keys.cluster(name) for name in (self._source.cluster, _GLOBAL_CLUSTER)):
                await self._put(key, value, f"cluster {key.rpartition('/')[2]}", keep=True)
        system = {keys.tenant(SYSTEM_NAMESPACE.tenant), keys.namespace_policies(SYSTEM_NAMESPACE)}
        async for key, value in self._source.values(f"{keys.POLICIES}/"):
            namespace = keys.namespace_of_policies_key(key)
            if key in system:
                continue
            if namespace is not None:
                await self._put(key, self._renamed(value), f"namespace {namespace}")
            elif key.count("/") == keys.tenant("t").count("/"):
                await self._put_tenant(key, json.loads(self._renamed(value)))
        async for key, value in self._source.values(f"{keys.PARTITIONED_TOPICS}/"):
            await self._put(key, value, f"partitions of {keys.topic_of_partitioned_topic(key)}", keep=True)
        async for key, value in self._source.values(f"{keys.TOPIC_POLICIES}/"):
            await self._put(key, self._renamed(value), f"policies of {keys.topic_of_topic_policies(key)}")
        await self._copy_failure_domains()
        await self._copy_dynamic_configuration()

    async def _copy_failure_domains(self) -> None:
        for cluster in await self._source.metadata.children(keys.CLUSTERS):
            name_there = self._cluster if cluster == self._source.cluster else cluster
            async for key, value in self._source.values(f"{ALONE.failure_domains(cluster)}/"):
                domain = decode_local_name(key.rpartition("/")[2])
                there = keys.failure_domain(IN_CLUSTER.failure_domains(name_there), domain)
                await self._put(there, value, f"failure domain {domain} of {name_there}", keep=True)

    async def _copy_dynamic_configuration(self) -> None:
        """Copy dynamic settings. The cluster's own values stay."""
        stored = await self._source.metadata.get(keys.CONFIGURATION)
        if stored is None or not json.loads(stored.value or b"{}"):
            return
        there = await self._metadata.get(keys.CONFIGURATION)
        joined = {**json.loads(stored.value), **json.loads(there.value or b"{}" if there is not None else b"{}")}
        await self._put(keys.CONFIGURATION, json.dumps(joined).encode(), "dynamic configuration")

    async def _put_tenant(self, key: str, body: Mapping[str, Any]) -> None:
        """Store a tenant. One that the cluster has is merged: it allows what either allows."""
        stored = await self._metadata.get(key)
        old = json.loads(stored.value) if stored is not None and stored.value else {}
        names = ("allowedClusters", "adminRoles")
        both = {name: list(dict.fromkeys([*(old.get(name) or ()), *(body.get(name) or ())])) for name in names}
        await self._put(key, json.dumps({**old, **body, **both}).encode(), f"tenant {key.rpartition('/')[2]}")

    async def _put(self, key: str, value: bytes, what: str, *, keep: bool = False) -> None:
        """Store a document and replace the cluster's, unless ``keep`` says to keep that one."""
        stored = await self._metadata.get(key)
        there = None if stored is None or not stored.value else json.loads(stored.value)
        if there == json.loads(value):
            return
        if there is not None and keep:
            self._say(f"{what}: the cluster has its own, which stays")
            return
        await self._metadata.commit([Put(key, value)])
        self._say(f"{what}: {'copied' if there is None else 'replaced'}")

    def _renamed(self, value: bytes) -> bytes:
        return json.dumps(renamed(json.loads(value), self._source.cluster, self._cluster)).encode()

    # ---- Schemas

    async def _topics_with_schemas(self) -> list[TopicName]:
        topics = []
        async for key, _ in self._source.values(f"{keys.SCHEMAS}/"):
            tenant, namespace, local = key.removeprefix(f"{keys.SCHEMAS}/").split("/")
            topics.append(TopicName.of(PERSISTENT, tenant, namespace, decode_local_name(local)))
        return topics

    async def _copy_schemas(self) -> None:
        for topic in await self._topics_with_schemas():
            wanted = (await self._source.schemas.read(topic)).versions
            there = len((await self._schemas.read(topic)).versions)
            for version in wanted[there:]:
                await self._schemas.append(topic, await self._schemas.read(topic), version, {})
            if _unnamed((await self._schemas.read(topic)).versions) != _unnamed(wanted):
                raise PersistenceError(f"the schemas of {topic} that were read back are not those that were copied")
            if there < len(wanted):
                self._say(f"schemas of {topic}: {len(wanted)} copied")

    # ---- Topics

    async def _copy_topic(self, topic: TopicName, is_there: bool, imported: Imported) -> None:
        try:
            copied = await (self._copies.compare(topic) if is_there else self._copies.copy(topic))
        except (MetadataError, PersistenceError) as error:
            imported.failed[topic] = str(error)
            self._say(f"{topic}: FAILED: {error}")
            return
        imported.add(copied)
        done = "compared, was there already" if is_there else "copied and compared"
        self._say(f"{topic}: {copied.entries} entries, {copied.cursors} cursors {done}")


def _refuse(what: str, names: Collection[str], remedy: str) -> None:
    if names:
        shown = sorted(names)[:_NAMED_MAX]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        raise ImportRefused(f"{what}: {', '.join(shown)}{more}; {remedy}")


def _unnamed(versions: Sequence[SchemaVersion]) -> list[SchemaVersion]:
    """Return the schema without its name, which no cluster stores."""
    return [
        replace(version, schema=replace(version.schema, name="") if version.schema else None) for version in versions
    ]
