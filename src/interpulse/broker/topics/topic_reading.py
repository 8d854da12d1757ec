"""Views of topics for rules, with the versions of all records that they rest on, and a cache of the rules' answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Generic, NamedTuple, TypeVar

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.tenancy.cluster_links import RemotePartitions
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.partition_records import StoredPartition, stored_partitions
from interpulse.broker.topics.topic_counts import TopicCount, TopicCounts
from interpulse.model.changes import Decision
from interpulse.model.errors import MetadataError
from interpulse.model.names import TopicName
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.rules.effective_policies import effective_auto_creation, effective_topics_max
from interpulse.rules.failover_role import suspended_creation
from interpulse.rules.topic_view import Part, TopicView, metadata_names
from interpulse.storage.api import MetadataStore

A = TypeVar("A")
_NAMES_MAX: Final = 20_000
"""Some 500 bytes each."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A view, the store's versions of everything in it, and the settings that it was read with.

    ``stored`` are the records behind `TopicView.partition_records`; ``count`` is there for a namespace with a limit.
    """

    view: TopicView
    versions: Mapping[str, int | None]
    settings: BrokerConfig
    stored: Mapping[int, StoredPartition] = field(default_factory=dict)
    count: TopicCount | None = None


class TopicReader:
    """Reads views; ``settings`` is called each time, ``loaded`` are the topics loaded now."""

    def __init__(
        self,
        store: MetadataStore,
        namespaces: Namespaces,
        settings: Callable[[], BrokerConfig],
        loaded: Collection[TopicName],
        remote_partitions: RemotePartitions | None,
        counts: TopicCounts,
    ) -> None:
        self._store = store
        self._namespaces = namespaces
        self._settings = settings
        self._loaded = loaded
        self._remote_partitions = remote_partitions
        self._counts = counts

    async def read(self, name: TopicName, *parts: Part) -> Reading:
        """Return the current view of a name, with these parts of it (see `rules.topic_view.looks_at`)."""
        stored = await stored_partitions(self._store, name) if Part.PARTITION_RECORDS in parts else {}
        names = metadata_names(name) if Part.RELATED_METADATA in parts else (name.base,)
        candidates = {keys.partitioned_topic(name): name for name in names}
        policies_key, record_key = keys.namespace_policies(name.namespace_name), keys.topic_record(name)
        wanted = [policies_key, record_key, *candidates]
        records = await self._store.get_many(wanted)
        policies = self._namespaces.parsed(name.namespace_name, records.get(policies_key))
        settings = self._settings()
        topics_max = effective_topics_max(policies, settings.max_topics_per_namespace)
        asking = self._remote_partitions is not None and settings.create_topic_to_remote_cluster_for_replication
        count = await self._counts.of(name.namespace_name) if topics_max > 0 else None
        view = TopicView(
            name,
            namespace=self._namespaces.standing(policies),
            metadata={
                candidates[key]: parsed_metadata(key, records[key].value) for key in candidates if key in records
            },
            recorded=record_key in records if name.is_persistent else name in self._loaded,
            partition_records=frozenset(stored),
            auto_creation=effective_auto_creation(name, policies, settings.auto_topic_creation),
            creation_suspended=suspended_creation(name, policies),
            partitions_max=settings.partitions_max,
            topics_left=None if count is None else max(0, topics_max - (count.topics if name.is_persistent else 0)),
            remotes_to_ask=self._namespaces.remotes(policies) if asking else (),
            domain_enabled=settings.enable_persistent_topics
            if name.is_persistent
            else settings.enable_non_persistent_topics,
            system_topics_enabled=settings.system_topic_enabled,
        )
        versions = {key: records[key].version if key in records else None for key in wanted}
        versions |= {keys.topic_record(name.partition(index)): partition.version for index, partition in stored.items()}
        return Reading(view, versions, settings, stored, count)

    async def ask_remotes(self, view: TopicView) -> TopicView:
        """Return the view with the partition count that remote clusters of the namespace have."""
        assert self._remote_partitions is not None
        count = await self._remote_partitions.find(view.name, view.remotes_to_ask)
        return replace(view, remote_partitions=count, remotes_to_ask=())


def parsed_metadata(key: str, stored: bytes) -> PartitionedTopicMetadata:
    """Read a record of partition metadata; raises MetadataError with its topic."""
    try:
        return _loaded_metadata(stored)
    except (ValueError, TypeError, AttributeError) as error:
        name = keys.topic_of_partitioned_topic(key)
        raise MetadataError(
            f"{name or key} has partition metadata that cannot be understood: {stored[:100]!r}"
        ) from error


def count_if_clear(key: str, stored: bytes) -> int | None:
    """Return the partition count; None if the topic is being deleted or its metadata is unreadable."""
    try:
        metadata = parsed_metadata(key, stored)
    except MetadataError:  # reported when the topic itself is read
        return None
    return None if metadata.deleted else metadata.partitions


@lru_cache(maxsize=1000)
def _loaded_metadata(stored: bytes) -> PartitionedTopicMetadata:
    """Parse partition metadata, cached because partitions are opened one after another."""
    return PartitionedTopicMetadata.load(stored)


class AnswerBasis(NamedTuple):
    """The versions and settings that an answer rests on; see `AnswerCache`."""

    store: MetadataStore
    settings: Callable[[], BrokerConfig]
    loaded: Collection[TopicName]


class _CachedAnswer(NamedTuple, Generic[A]):
    decision: Decision[A]
    name: TopicName
    versions: Mapping[str, int | None]
    settings: BrokerConfig
    loaded: bool | None  # None: it does not matter


class AnswerCache(Generic[A]):
    """The answers of one rule about topics, by complete names. With too many names all are dropped.

    A rule is pure: it gives the same answer for the same view. So a cached answer holds while the view is unchanged.
    Each lookup verifies that by comparing everything the view rests on:

    * the policies of the namespace (its standing, its creation policy, its clusters), the partition metadata under the
      base name, and the record of the topic, by their current versions in the metadata store;
    * the settings of the broker;
    * for a non-persistent topic, which has no record: whether it is loaded.

    Any broker may change these without notice. Some answers rest on more and are not cached: refusals, answers of
    remote clusters, and answers with changes, the only ones that depend on the topic limit of a namespace. The front
    ends check permissions before they ask here.
    """

    def __init__(self, basis: AnswerBasis, *, names_max: int = _NAMES_MAX) -> None:
        self._basis = basis
        self._names_max = names_max
        self._answers: dict[str, _CachedAnswer[A]] = {}

    def add(self, reading: Reading, decision: Decision[A]) -> None:
        """Cache a decision that the rule made from this view and nothing else."""
        if decision.changes:
            return
        if len(self._answers) >= self._names_max:
            self._answers.clear()
        name, view = reading.view.name, reading.view
        loaded = None if name.is_persistent else view.recorded
        self._answers[str(name)] = _CachedAnswer(decision, name, reading.versions, reading.settings, loaded)

    def find(self, name: str) -> Decision[A] | None:
        """Return the cached decision if the rule would still make it; it has no changes."""
        cached = self._answers.get(name)
        if cached is None:
            return None
        decision, topic, versions, settings, loaded = cached
        store, current_settings, loaded_topics = self._basis
        holds = (
            store.unchanged(versions)
            and current_settings() is settings
            and (loaded is None or (topic in loaded_topics) is loaded)
        )
        return decision if holds else None
