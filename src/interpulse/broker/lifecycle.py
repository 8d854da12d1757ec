"""The one place where the rules of topics meet the metadata store.

Every operation is the same loop: read a view of the name together with the versions it rests on, ask the rule, and
commit the rule's changes only if nothing of the view has changed meanwhile; else read again. The store answers with
the newest durable values, so a refusal never rests on an old read. Because the versions include those of the namespace
policies, no creation in flight can slip into a namespace that is being deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from interpulse.broker import keys
from interpulse.broker.commits import until_unchanged
from interpulse.broker.config import BrokerConfig
from interpulse.broker.namespaces import Namespaces
from interpulse.broker.remote_shapes import RemoteShapes
from interpulse.model.changes import (
    Change,
    CreatePartitionedMetadata,
    CreateTopicRecord,
    DeletePartitionedMetadata,
    MarkPartitionedMetadataDeleted,
    SetPartitionCount,
)
from interpulse.model.names import Domain, NamespaceName, TopicName, decode_local_name
from interpulse.model.policies import NON_PARTITIONED, AutoTopicCreation, NamespacePolicies
from interpulse.model.topics import Existence, PartitionedTopicMetadata, Requester
from interpulse.rules import topics as rules
from interpulse.rules.decision import Decision
from interpulse.rules.policies import effective_auto_creation, effective_topics_max
from interpulse.storage.api import Change as StoreChange
from interpulse.storage.api import Delete, MetadataStore, Put

__all__ = ["LifecycleSettings", "TopicLifecycle"]

A = TypeVar("A")
_NO_PROPERTIES: Mapping[str, str] = {}
_PULSARS_AUTO_CREATION = AutoTopicCreation(allowed=True, topic_type=NON_PARTITIONED, default_partitions=1)


@dataclass(frozen=True, slots=True)
class LifecycleSettings:
    """The broker's own word on topics where the namespace says nothing."""

    auto_creation: AutoTopicCreation = _PULSARS_AUTO_CREATION
    partitions_max: int = 0
    topics_max: int = 0
    persistent_enabled: bool = True
    non_persistent_enabled: bool = True
    system_topics_enabled: bool = True
    remote_shapes_taken: bool = True

    @classmethod
    def of(cls, config: BrokerConfig) -> LifecycleSettings:
        """The part of the broker's settings that rules of topics look at."""
        return cls(
            config.auto_topic_creation,
            partitions_max=config.max_num_partitions_per_partitioned_topic,
            topics_max=config.max_topics_per_namespace,
            persistent_enabled=config.enable_persistent_topics,
            non_persistent_enabled=config.enable_non_persistent_topics,
            system_topics_enabled=config.system_topic_enabled,
            remote_shapes_taken=config.create_topic_to_remote_cluster_for_replication,
        )


@dataclass(frozen=True, slots=True)
class _Reading:
    """A view, the store's versions of everything in it, and the other clusters of the namespace."""

    view: rules.TopicView
    versions: Mapping[str, int | None]
    remotes: tuple[str, ...] = ()


class TopicLifecycle:
    """Decides and records what exists; loading and closing topics is the registry's work."""

    def __init__(
        self,
        store: MetadataStore,
        namespaces: Namespaces,
        settings: Callable[[], LifecycleSettings],
        *,
        loaded: Collection[TopicName] = (),
        remote_shapes: RemoteShapes | None = None,
    ) -> None:
        """``settings`` is asked each time, since it may change while the broker runs.

        ``loaded`` are the names of the topics loaded now, a live view of the registry's: non-persistent topics exist
        while they are in it.
        """
        self._store = store
        self._namespaces = namespaces
        self._settings = settings
        self._loaded = loaded
        self._remote_shapes = remote_shapes

    # --- questions and opening

    async def partitions(self, name: TopicName, *, create: bool) -> int:
        """How many partitions the name has, 0 = none; with ``create`` a missing one may become a partitioned topic.

        A topic that another cluster of its namespace has already gets that cluster's shape.
        """
        return await self._decide(name, lambda view: rules.decide_partitions(view, create=create), remotes_asked=create)

    async def open(self, name: TopicName, *, by: Requester, create: bool) -> None:
        """Check that the topic may be loaded, and create its record if it is missing and may be created."""
        await self._decide(name, lambda view: rules.decide_open(view, by=by, create=create))

    async def partitions_to_subscribe(self, name: TopicName) -> int:
        """As `partitions` with creation, for an operator who creates a subscription; raises PreconditionFailed."""
        return await self._decide(name, rules.decide_partitions_to_subscribe, remotes_asked=True)

    async def check_servable(self, name: TopicName) -> None:
        """Refuse a name that neither exists nor may be created, as HTTP lookup does; raises TopicNotFound."""
        await self._decide(name, rules.decide_lookup)

    async def existence(self, name: TopicName) -> Existence:
        """What the name stands for now."""
        return rules.existence((await self._read(name)).view)

    async def existences(self, names: Iterable[TopicName]) -> dict[TopicName, Existence]:
        """The same for many names, from one consistent read."""
        records = {name: keys.topic_record(name) for name in names}
        candidates = {keys.partitioned_topic(each): each for name in records for each in rules.metadata_names(name)}
        found = await self._store.get_many([*candidates, *records.values()])
        metadata = {each: _metadata(found[key].value) for key, each in candidates.items() if key in found}
        views = (
            rules.TopicView(name, metadata=metadata, recorded=key in found if name.is_persistent else name in self._loaded)
            for name, key in records.items()
        )
        return {view.name: rules.existence(view) for view in views}

    async def metadata(self, name: TopicName) -> PartitionedTopicMetadata | None:
        """The partition metadata stored under exactly this name."""
        stored = await self._store.get(keys.partitioned_topic(name))
        return PartitionedTopicMetadata.load(stored.value) if stored else None

    async def properties(self, name: TopicName) -> dict[str, str]:
        """What was given to the topic at its creation; empty for a topic without properties or record."""
        metadata = await self.metadata(name)
        if metadata:
            return dict(metadata.properties)
        record = await self._store.get(keys.topic_record(name))
        return dict(json.loads(record.value).get("properties") or {}) if record else {}

    async def list_topics(self, namespace: NamespaceName, domain: Domain, *, include_system: bool) -> list[TopicName]:
        """All topics and partitions of a namespace, sorted; nothing for a namespace that does not exist."""
        if domain == "persistent":
            names = await self._names(keys.topic_records(namespace, domain), namespace, domain)
        else:
            names = [name for name in self._loaded if name.domain == domain and name.namespace_name == namespace]
        return _listed(names, include_system=include_system)

    async def list_partitioned(
        self, namespace: NamespaceName, domain: Domain, *, include_system: bool
    ) -> list[TopicName]:
        """The base names of all partitioned topics of a namespace, sorted."""
        names = await self._names(keys.partitioned_topics(namespace, domain), namespace, domain)
        return _listed(names, include_system=include_system)

    # --- creating and growing

    async def create_partitioned(
        self,
        name: TopicName,
        partitions: int,
        *,
        properties: Mapping[str, str] = _NO_PROPERTIES,
        local_only: bool = False,
    ) -> None:
        """Create a partitioned topic and all its partitions in one commit."""

        def rule(view: rules.TopicView) -> Decision[None]:
            return rules.decide_create_partitioned(view, partitions, properties=properties, local_only=local_only)

        await self._decide(name, rule, with_partitions=True)

    async def create_plain(self, name: TopicName, *, properties: Mapping[str, str] = _NO_PROPERTIES) -> None:
        """Create a topic that is not partitioned, or restore one partition."""
        await self._decide(name, lambda view: rules.decide_create_plain(view, properties=properties))

    async def create_missed_partitions(self, name: TopicName) -> None:
        """Restore the partitions that have no record."""
        await self._decide(name, rules.decide_create_missed_partitions, with_partitions=True)

    async def expand(
        self, name: TopicName, partitions: int, *, force: bool = False, new_cursor: bytes | None = None
    ) -> None:
        """Let a partitioned topic grow; new partitions, their subscriptions and the new count are one commit.

        ``new_cursor`` is the cursor record that each durable subscription of partition 0 gets on a new partition.
        """

        async def attempt() -> None:
            reading = await self._read(name, with_partitions=True)
            decision = rules.decide_expand(reading.view, partitions, force=force)
            subscriptions = await self._store.children(keys.topic_record(name.partition(0))) if new_cursor else []
            cursors = [
                Put(f"{keys.topic_record(change.topic)}/{subscription}", new_cursor or b"")
                for change in decision.changes
                if isinstance(change, CreateTopicRecord)
                for subscription in subscriptions
            ]
            await self._commit(reading, decision.changes, cursors)

        await until_unchanged(attempt)

    async def set_properties(self, name: TopicName, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        """Replace the properties of a topic, those of a partitioned topic in its metadata; raises TopicNotFound."""

        async def attempt() -> None:
            reading = await self._read(name)
            metadata = reading.view.metadata.get(name)
            if metadata:
                changed = replace(metadata, properties=change(dict(metadata.properties)))
                update = Put(keys.partitioned_topic(name), changed.dump())
            else:
                rules.decide_open(reading.view, by=Requester.ADMIN, create=False)
                record = await self._record(name)
                update = Put(
                    keys.topic_record(name),
                    json.dumps(record | {"properties": change(dict(record.get("properties") or {}))}).encode(),
                )
            await self._store.commit([update], reading.versions)

        await until_unchanged(attempt)

    # --- deleting

    async def check_delete_plain(self, name: TopicName, *, force: bool) -> None:
        """Refuse unless this one topic or partition may be deleted."""
        await self._decide(name, lambda view: rules.decide_delete_plain(view, force=force))

    async def begin_delete_partitioned(self, name: TopicName) -> int:
        """Mark a partitioned topic as being deleted; from now on no partition comes back. How many there are."""
        return await self._decide(name, rules.decide_delete_partitioned)

    async def give_up_delete_partitioned(self, name: TopicName) -> None:
        """Take the mark back, because a partition could not be deleted."""
        await self._decide(name, lambda _: Decision(None, (MarkPartitionedMetadataDeleted(name, deleted=False),)))

    async def end_delete_partitioned(self, name: TopicName) -> None:
        """Remove the metadata of a partitioned topic whose partitions are gone."""
        await self._decide(name, lambda _: Decision(None, (DeletePartitionedMetadata(name),)))

    # --- the loop

    async def _decide(
        self,
        name: TopicName,
        rule: Callable[[rules.TopicView], Decision[A]],
        *,
        with_partitions: bool = False,
        remotes_asked: bool = False,
    ) -> A:
        async def attempt() -> A:
            reading = await self._read(name, with_partitions=with_partitions)
            decision = rule(await self._with_remote_shape(reading) if remotes_asked else reading.view)
            if decision.changes:
                await self._commit(reading, decision.changes)
            return decision.answer

        return await until_unchanged(attempt)

    async def _read(self, name: TopicName, *, with_partitions: bool = False) -> _Reading:
        candidates = {keys.partitioned_topic(each): each for each in rules.metadata_names(name)}
        policies_key, record_key = keys.namespace_policies(name.namespace_name), keys.topic_record(name)
        wanted = [policies_key, record_key, *candidates]
        found = await self._store.get_many(wanted)
        policies = self._namespaces.parsed(name.namespace_name, found.get(policies_key))
        settings = self._settings()
        view = rules.TopicView(
            name,
            namespace=self._namespaces.standing(policies),
            metadata={candidates[key]: _metadata(found[key].value) for key in candidates if key in found},
            recorded=record_key in found if name.is_persistent else name in self._loaded,
            partition_records=await self._partition_records(name) if with_partitions else frozenset(),
            auto_creation=effective_auto_creation(name, policies, settings.auto_creation),
            partitions_max=settings.partitions_max,
            topics_left=await self._topics_left(name.namespace_name, policies, settings),
            domain_enabled=settings.persistent_enabled if name.is_persistent else settings.non_persistent_enabled,
            system_topics_enabled=settings.system_topics_enabled,
        )
        versions = {key: found[key].version if key in found else None for key in wanted}
        remotes = self._namespaces.remotes(policies) if settings.remote_shapes_taken else ()
        return _Reading(view, versions, remotes)

    async def _with_remote_shape(self, reading: _Reading) -> rules.TopicView:
        view = reading.view
        if self._remote_shapes is None or not reading.remotes or not rules.takes_remote_shape(view):
            return view
        return replace(view, remote_shape=await self._remote_shapes.find(view.name, reading.remotes))

    async def _commit(self, reading: _Reading, changes: Iterable[Change], more: Iterable[StoreChange] = ()) -> None:
        expect = dict(reading.versions)
        updates: list[StoreChange] = []
        for change in changes:
            update = _store_change(reading.view, change)
            updates.append(update)
            if isinstance(change, CreatePartitionedMetadata | CreateTopicRecord):
                expect.setdefault(update.key, None)
        updates.extend(more)
        if updates:
            await self._store.commit(updates, expect)

    async def _partition_records(self, name: TopicName) -> frozenset[int]:
        if not name.is_persistent:
            return frozenset()
        names = await self._names(
            keys.topic_records(name.namespace_name, name.domain), name.namespace_name, name.domain
        )
        return frozenset(each.partition_index for each in names if each.is_partition and each.base == name)

    async def _topics_left(
        self, namespace: NamespaceName, policies: NamespacePolicies | None, settings: LifecycleSettings
    ) -> int | None:
        topics_max = effective_topics_max(policies, settings.topics_max)
        if topics_max <= 0:
            return None
        names = await self.list_topics(namespace, "persistent", include_system=False)
        return max(0, topics_max - len(names))

    async def _names(self, key: str, namespace: NamespaceName, domain: Domain) -> list[TopicName]:
        encoded = await self._store.children(key)
        return [TopicName.of(domain, namespace.tenant, namespace.local, decode_local_name(each)) for each in encoded]

    async def _record(self, name: TopicName) -> dict[str, Any]:
        stored = await self._store.get(keys.topic_record(name))
        record: dict[str, Any] = json.loads(stored.value) if stored else {}
        return record


@lru_cache(maxsize=1000)
def _metadata(stored: bytes) -> PartitionedTopicMetadata:
    """Partitions are opened one after another, and each asks for the same metadata."""
    return PartitionedTopicMetadata.load(stored)


def _listed(names: Iterable[TopicName], *, include_system: bool) -> list[TopicName]:
    shown = (name for name in names if include_system or not name.is_system)
    return sorted((name for name in shown if not name.is_transaction_internal), key=str)


def _store_change(view: rules.TopicView, change: Change) -> StoreChange:
    """What a change means in the metadata store; the other interpreter of changes is the admin client."""
    if isinstance(change, CreateTopicRecord):
        record = {"ledgers": [], "properties": dict(change.properties)}
        return Put(keys.topic_record(change.topic), json.dumps(record).encode())
    key = keys.partitioned_topic(change.topic)
    if isinstance(change, CreatePartitionedMetadata):
        return Put(key, PartitionedTopicMetadata(change.partitions, properties=change.properties).dump())
    if isinstance(change, DeletePartitionedMetadata):
        return Delete(key)
    present = view.metadata[change.topic]
    if isinstance(change, SetPartitionCount):
        return Put(key, replace(present, partitions=change.partitions).dump())
    return Put(key, replace(present, deleted=change.deleted).dump())
