"""Topics as records: the decisions to create, expand and delete them, and questions for their existence.

The committer runs every decision. The versions that it expects include those of the namespace's policies, so no
creation in flight can slip into a namespace that is being deleted.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import ALONE, Committer, Layout, Records
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.tenancy.cluster_links import RemotePartitions
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.partition_records import internal_info, new_cursors
from interpulse.broker.topics.topic_counts import TopicCounts
from interpulse.broker.topics.topic_reading import (
    AnswerBasis,
    AnswerCache,
    Reading,
    TopicReader,
    count_if_clear,
    parsed_metadata,
)
from interpulse.in_turns import in_turns, sorted_in_turns
from interpulse.model.changes import AskRemotes, Change, CreateTopicRecord, Decision, DeleteSchema, DeleteTopicPolicies
from interpulse.model.errors import MetadataError, PreconditionFailed
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName, TopicName, decode_local_name
from interpulse.model.topics import Existence, PartitionedTopicMetadata, Requester, TopicKind
from interpulse.rules import topics
from interpulse.rules.inactivity import decide_delete_orphaned_metadata
from interpulse.rules.topic_view import Part, TopicView, existence, looked_at, metadata_names
from interpulse.storage.api import Change as StoreChange
from interpulse.storage.api import CommitConflict, MetadataStore, scan_pages
from interpulse.storage.logs.topic_records import decode_record

log = logging.getLogger(__name__)

A = TypeVar("A")
P = ParamSpec("P")
_KEYS_PER_PAGE = 1000
_PARTITION = re.compile("-partition-[0-9]+$")
_NAMES_AT_ONCE = 500
_NO_PROPERTIES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class PartitionedDeletion:
    """The deletion of a partitioned topic: its partitions go together with these changes, if nothing changed."""

    partitions: tuple[TopicName, ...]
    changes: tuple[StoreChange, ...]
    expect: Mapping[str, int | None]


class TopicLifecycle:
    """The existence of topics: decided and recorded here, while the registry loads and closes topics."""

    def __init__(
        self,
        store: MetadataStore,
        namespaces: Namespaces,
        settings: Callable[[], BrokerConfig],
        *,
        loaded: Collection[TopicName] = (),
        remote_partitions: RemotePartitions | None = None,
        layout: Layout = ALONE,
    ) -> None:
        """Create the lifecycle; ``settings`` is read each time, because it may change while the broker runs.

        ``loaded`` is the registry's live view of the loaded topics: a non-persistent topic exists while it is in this
        view.
        """
        self._store = store
        self._namespaces = namespaces
        self._settings = settings
        self._loaded = loaded
        self._layout = layout
        self._committer = Committer(store, layout)
        self._counts = TopicCounts(store)
        self._reader = TopicReader(store, namespaces, settings, loaded, remote_partitions, self._counts)
        basis = AnswerBasis(store, settings, loaded)
        self._cached_partitions = {create: AnswerCache[int](basis) for create in (False, True)}
        self._cached_metadata = {create: AnswerCache[PartitionedTopicMetadata](basis) for create in (False, True)}
        self._cached_servable = AnswerCache[None](basis)

    # --- questions and opening

    async def partitions(self, name: TopicName, *, create: bool) -> int:
        """Return the partition count, 0 = not partitioned; with ``create`` a missing topic may be created.

        A topic that another cluster of its namespace already has gets that cluster's partition count.
        """
        return await self._ask(self._cached_partitions[create], name, topics.decide_partitions, create=create)

    def cached_partitions(self, name: str, *, create: bool) -> int | None:
        """Return the answer of `partitions` for this complete name from the cache; None if it is not cached."""
        decision = self._cached_partitions[create].find(name)
        return None if decision is None else decision.answer

    async def partitions_for_operator(self, name: TopicName, *, create: bool) -> PartitionedTopicMetadata:
        """Return the partition metadata, without properties if ``create``; raises PreconditionFailed if not served."""
        cache = self._cached_metadata[create]
        return await self._ask(cache, name, topics.decide_partitions_for_operator, create=create)

    async def open(self, name: TopicName, *, by: Requester, create: bool) -> None:
        """Check that the topic may be loaded, and create its record if it is missing and may be created."""
        await self._decide(name, topics.decide_open, by=by, create=create)

    async def partitions_to_subscribe(self, name: TopicName) -> int:
        """Return the partition count for operators that create a subscription. Raises PreconditionFailed."""
        return await self._decide(name, topics.decide_partitions_to_subscribe)

    async def check_servable(self, name: TopicName) -> None:
        """Raise TopicNotFound unless the name exists or may be created, as HTTP lookup does."""
        await self._ask(self._cached_servable, name, topics.decide_lookup)

    async def view(self, name: TopicName) -> TopicView:
        """Return the view that rules would get of the name now, with its partition records, to explain an answer."""
        return (await self._reader.read(name, Part.PARTITION_RECORDS)).view

    async def existence(self, name: TopicName) -> Existence:
        """Return the existence of the name: a partitioned topic, one topic, or nothing."""
        return existence((await self._reader.read(name)).view)

    async def existences(self, names: Iterable[TopicName]) -> dict[TopicName, Existence]:
        """Return the existence of many names from one consistent read."""
        records = {name: keys.topic_record(name) for name in names}
        candidates = {keys.partitioned_topic(base): base for name in records for base in metadata_names(name)}
        found = await self._store.get_many([*candidates, *records.values()])
        metadata = {topic: parsed_metadata(key, found[key].value) for key, topic in candidates.items() if key in found}
        views = (
            TopicView(name, metadata=metadata, recorded=key in found if name.is_persistent else name in self._loaded)
            for name, key in records.items()
        )
        return {view.name: existence(view) for view in views}

    async def expected_versions(self, name: TopicName) -> dict[str, int]:
        """Return the versions for a commit whose records must not outlive the namespace; raises NamespaceNotFound."""
        return await self._namespaces.expected_versions(name.namespace_name)

    async def metadata(self, name: TopicName) -> PartitionedTopicMetadata | None:
        """Return the partition metadata stored under exactly this name."""
        key = keys.partitioned_topic(name)
        stored = await self._store.get(key)
        return parsed_metadata(key, stored.value) if stored else None

    async def properties(self, name: TopicName) -> dict[str, str]:
        """Return the properties of a topic; empty for a topic without properties or record."""
        metadata = await self.metadata(name)
        if metadata:
            return dict(metadata.properties)
        stored = await self._store.get(keys.topic_record(name))
        return {} if stored is None else self._recorded_properties(name, stored.value)

    def _recorded_properties(self, name: TopicName, stored: bytes) -> dict[str, str]:
        record = decode_record(self._layout.topic_records, name.log_name, stored)
        return dict(record.other.get("properties") or {})

    async def having_properties(self, names: Iterable[TopicName], wanted: Mapping[str, str]) -> list[TopicName]:
        """Return the topics that have all these properties; a partition has the properties of its topic."""
        having: list[TopicName] = []
        async for some in in_turns(names, _NAMES_AT_ONCE):
            metadata = {name: keys.partitioned_topic(name.base) for name in some}
            records = {name: keys.topic_record(name) for name in some}
            found = await self._store.get_many([*dict.fromkeys(metadata.values()), *records.values()])
            for name in some:
                if (stored := found.get(metadata[name])) is not None:
                    properties = parsed_metadata(metadata[name], stored.value).properties
                else:
                    stored = found.get(records[name])
                    properties = {} if stored is None else self._recorded_properties(name, stored.value)
                if wanted.items() <= properties.items():
                    having.append(name)
        return having

    async def internal_info(self, name: TopicName) -> dict[str, Any]:
        """Return the records of one stored topic, also of one that may not be loaded; raises TopicNotFound."""
        return await internal_info(self._store, name, self._layout)

    async def list_topics(self, namespace: NamespaceName, domain: Domain, *, include_system: bool) -> list[TopicName]:
        """Return all topics and partitions of a namespace, sorted; none for a namespace that does not exist."""
        if domain == "persistent":
            names = await self._names(keys.topic_records(namespace, domain), namespace, domain)
        else:
            names = [
                name
                async for some in in_turns(list(self._loaded))
                for name in some
                if name.domain == domain and name.namespace_name == namespace
            ]
        return await _listed(names, include_system=include_system)

    async def local_names(self, namespace: NamespaceName, domain: Domain) -> AsyncIterator[tuple[str, bool]]:
        """Yield the local names of all stored topics of a namespace, with True for partitioned ones, in stored order.

        Partitions are left out. It costs less than whole names; other tasks get their turn in between.
        """
        encoded = await self._store.children(keys.partitioned_topics(namespace, domain))
        partitioned = set(encoded)
        async for some in in_turns(encoded):
            for local_name in some:
                yield decode_local_name(local_name), True
        async for some in in_turns(await self._store.children(keys.topic_records(namespace, domain))):
            for local_name in some:
                if _PARTITION.sub("", local_name) not in partitioned:
                    yield decode_local_name(local_name), False

    async def list_partitioned(
        self, namespace: NamespaceName, domain: Domain, *, include_system: bool
    ) -> list[TopicName]:
        """Return the base names of all partitioned topics of a namespace, sorted."""
        names = await self._names(keys.partitioned_topics(namespace, domain), namespace, domain)
        return await _listed(names, include_system=include_system)

    async def partition_counts(
        self, namespace: NamespaceName, domain: Domain, *, include_system: bool
    ) -> dict[TopicName, int | None]:
        """Return all partitioned topics of a namespace with their counts, None for an unclear count."""
        counts: dict[TopicName, int | None] = {}
        prefix = f"{keys.partitioned_topics(namespace, domain)}/"
        async for page in scan_pages(self._store, prefix, limit=_NAMES_AT_ONCE):
            async for some in in_turns(page):
                stored = ((keys.topic_of_partitioned_topic(key), key, versioned.value) for key, versioned in some)
                counts |= {topic: count_if_clear(key, value) for topic, key, value in stored if topic is not None}
        listed = await _listed(counts, include_system=include_system)
        return {name: counts[name] async for some in in_turns(listed) for name in some}

    # --- creating and expanding

    async def create_partitioned(
        self,
        name: TopicName,
        partitions: int,
        *,
        properties: Mapping[str, str] = _NO_PROPERTIES,
        local_only: bool = False,
    ) -> None:
        """Create a partitioned topic and all its partitions in one commit."""
        rule = topics.decide_create_partitioned
        await self._decide(name, rule, partitions, properties=properties, local_only=local_only)

    async def create_plain(self, name: TopicName, *, properties: Mapping[str, str] = _NO_PROPERTIES) -> None:
        """Create a topic that is not partitioned, or restore one partition."""
        await self._decide(name, topics.decide_create_plain, properties=properties)

    async def create_missed_partitions(self, name: TopicName) -> None:
        """Restore the partitions that have no record."""
        await self._decide(name, topics.decide_create_missed_partitions)

    async def check_expand(self, name: TopicName, partitions: int, *, force: bool = False) -> None:
        """Refuse unless `expand` would do it."""
        reading = await self._reader.read(name, *looked_at(topics.decide_expand))
        topics.decide_expand(reading.view, partitions, force=force)

    async def expand(self, name: TopicName, partitions: int, *, force: bool = False) -> None:
        """Expand a partitioned topic. New partitions, their subscriptions and the new count are one commit.

        Everything is read again if a partition or a subscription of the first one is created or deleted meanwhile.
        """

        async def propose(records: Records) -> Decision[None]:
            reading = await self._read(records, name, topics.decide_expand)
            stored = reading.stored
            decision = topics.decide_expand(reading.view, partitions, force=force)
            if decision.changes:
                covered = range(reading.view.partitions)
                joined = [*(index for index in covered if index not in stored), *range(len(covered), partitions)]
                prefix = self._settings().replicator_prefix
                records.also += new_cursors(name, stored, joined, replicator_prefix=prefix, layout=self._layout)
                self._claim(records, reading, decision.changes)
            return decision

        await self._committer.decide(propose)

    async def set_properties(self, name: TopicName, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        """Replace the properties of a topic, in the metadata if it is partitioned. Raise TopicNotFound."""

        async def propose(records: Records) -> Decision[None]:
            reading = await self._read(records, name, topics.decide_set_properties)
            old = await self.properties(name)
            return topics.decide_set_properties(reading.view, old, change(dict(old)))

        await self._committer.decide(propose)

    # --- deleting

    async def check_delete_plain(self, name: TopicName, *, force: bool) -> None:
        """Refuse unless this one topic or partition may be deleted."""
        await self._decide(name, topics.decide_delete_plain, force=force)

    async def plan_delete_partitioned(self, name: TopicName) -> PartitionedDeletion:
        """Plan the removal of a partitioned topic with its schemas and policies, without changing anything.

        The schemas stay if, against the rules, an unpartitioned topic of that name exists.
        """
        decision, expect = await self._decide_delete_partitioned(name)
        return PartitionedDeletion(decision.answer, tuple(await self._committer.writes(decision.changes)), expect)

    async def delete_partitioned_metadata(self, name: TopicName) -> None:
        """Remove a partitioned topic whose partitions are deleted. Raise PreconditionFailed if one exists again."""
        absent: dict[str, None] = {}

        async def propose(records: Records) -> Decision[tuple[TopicName, ...]]:
            decision, expect = await self._decide_delete_partitioned(name)
            absent.update(dict.fromkeys(map(keys.topic_record, decision.answer)))
            records.versions |= expect | absent
            return decision

        try:
            await self._committer.decide(propose, raised_for=absent)
        except CommitConflict as conflict:
            raise PreconditionFailed(
                f"A partition of {name} was opened while it was deleted, delete it again: {conflict.key}"
            ) from conflict

    async def _decide_delete_partitioned(
        self, name: TopicName
    ) -> tuple[Decision[tuple[TopicName, ...]], dict[str, int | None]]:
        """Return the decision, whose answer is the partitions, its associated metadata, and the versions."""
        reading = await self._reader.read(name)
        decision = topics.decide_delete_partitioned(reading.view)
        partitions = tuple(name.partition(index) for index in range(decision.answer))
        expect = {key: reading.versions[key] for key in (keys.partitioned_topic(name), keys.topic_record(name))}
        if reading.view.recorded:
            return Decision(partitions, decision.changes), expect
        removal, versions = await self._associated_metadata(name)
        return Decision(partitions, (*decision.changes, *removal)), expect | versions

    async def mark_deleted(self, name: TopicName, *, deleted: bool = True) -> bool:
        """Mark a topic as being deleted, so that no partition comes back, or unmark it. Return True if changed."""

        async def propose(records: Records) -> Decision[bool]:
            key = keys.partitioned_topic(name)
            stored = await records.get(key)
            return topics.decide_mark_deleted(
                name, None if stored is None else parsed_metadata(key, stored.value), deleted=deleted
            )

        return (await self._committer.decide(propose)).answer

    async def associated_metadata(self, name: TopicName) -> tuple[Sequence[StoreChange], Mapping[str, int | None]]:
        """Return the removal of a topic's policies, permissions and schemas, and the versions that it expects.

        The schemas are shared with the topic of that name in the other domain, and stay while it exists.
        """
        removal, expect = await self._associated_metadata(name)
        return await self._committer.writes(removal), expect

    async def _associated_metadata(self, name: TopicName) -> tuple[list[Change], dict[str, int | None]]:
        grants, expect = await self._namespaces.removal_of_grants(name)
        removal: list[Change] = [DeleteTopicPolicies(name), *grants]
        domain: Domain = NON_PERSISTENT if name.is_persistent else PERSISTENT
        twin = TopicName(domain, name.tenant, name.namespace, name.local_name)
        if (await self.existence(twin)).kind is not TopicKind.ABSENT:
            return removal, expect
        absent = {keys.partitioned_topic(twin): None, keys.topic_record(twin): None}
        return [*removal, DeleteSchema(name)], expect | absent

    async def unfinished_deletions(self) -> list[TopicName]:
        """Return the partitioned topics that are marked as being deleted. Unreadable records are logged."""
        found: list[TopicName] = []
        async for page in scan_pages(self._store, f"{keys.PARTITIONED_TOPICS}/", limit=_KEYS_PER_PAGE):
            marked = [key for key, stored in page if _is_marked(key, stored.value)]
            found += filter(None, map(keys.topic_of_partitioned_topic, marked))
        return found

    async def delete_orphaned_metadata(self, name: TopicName) -> bool:
        """Remove a partitioned topic that has no partition left, with its associated metadata.

        Return True if removed.

        No partition can be created in between: this commit requires its record to be absent, and its own the metadata.
        """

        async def propose(records: Records) -> Decision[bool]:
            reading = await self._read(records, name, decide_delete_orphaned_metadata)
            partitions = [name.partition(index) for index in range(reading.view.partitions)]
            loaded = any(partition in self._loaded for partition in partitions)
            decision = decide_delete_orphaned_metadata(reading.view, loaded=loaded)
            if not decision.changes:
                return decision
            removal, versions = await self._associated_metadata(name)
            records.versions |= dict.fromkeys(map(keys.topic_record, partitions)) | versions
            return Decision(decision.answer, (*decision.changes, *removal))

        return (await self._committer.decide(propose)).answer

    # --- rules of topics

    async def _ask(
        self,
        cache: AnswerCache[A],
        name: TopicName,
        rule: Callable[Concatenate[TopicView, P], Decision[A] | AskRemotes],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> A:
        decision = cache.find(str(name))
        if decision is not None:
            return decision.answer
        return await self._decide_noting(cache.add, name, rule, *arguments, **options)

    async def _decide(
        self,
        name: TopicName,
        rule: Callable[Concatenate[TopicView, P], Decision[A] | AskRemotes],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> A:
        return await self._decide_noting(None, name, rule, *arguments, **options)

    async def _decide_noting(
        self,
        note: Callable[[Reading, Decision[A]], None] | None,
        name: TopicName,
        rule: Callable[Concatenate[TopicView, P], Decision[A] | AskRemotes],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> A:
        """Decide by a rule, and pass the decision and its reading to ``note`` unless remote clusters were asked."""

        async def propose(records: Records) -> Decision[A]:
            reading = await self._read(records, name, rule)
            decision = rule(reading.view, *arguments, **options)
            if isinstance(decision, AskRemotes):
                decision = rule(await self._reader.ask_remotes(reading.view), *arguments, **options)
                assert isinstance(decision, Decision)
            elif note is not None:
                note(reading, decision)
            self._claim(records, reading, decision.changes)
            return decision

        return (await self._committer.decide(propose)).answer

    async def _read(self, records: Records, name: TopicName, rule: Callable[..., object]) -> Reading:
        reading = await self._reader.read(name, *looked_at(rule))
        records.versions |= reading.versions
        return reading

    def _claim(self, records: Records, reading: Reading, changes: Sequence[Change]) -> None:
        """Count topics that are being stored for later ones, in a namespace with a limit."""
        created = [change.topic for change in changes if isinstance(change, CreateTopicRecord)]
        if reading.count is not None and created:
            records.claim = self._counts.claim(reading.view.name.namespace_name, created, reading.count)

    async def _names(self, key: str, namespace: NamespaceName, domain: Domain) -> list[TopicName]:
        """Return the names of all children; other tasks get their turn between many."""
        prefix = f"{domain}://{namespace}/"
        return [
            TopicName.parse(f"{prefix}{decode_local_name(encoded)}")
            async for some in in_turns(await self._store.children(key))
            for encoded in some
        ]


def _is_marked(key: str, stored: bytes) -> bool:
    try:
        return b"true" in stored and parsed_metadata(key, stored).deleted
    except MetadataError as error:
        log.error("partition metadata ignored error=%s", error)
        return False


async def _listed(names: Iterable[TopicName], *, include_system: bool) -> list[TopicName]:
    shown = (name for name in names if include_system or not name.is_system)
    return await sorted_in_turns((name for name in shown if not name.is_transaction_internal), key=str)
