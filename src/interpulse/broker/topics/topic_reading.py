"""Views of topics for rules, with the versions of all records that they rest on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.remote_partitions import RemotePartitions
from interpulse.broker.topics.partition_records import StoredPartition, stored_partitions
from interpulse.broker.topics.topic_counts import TopicCount, TopicCounts
from interpulse.model.errors import MetadataError
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import NON_PARTITIONED, AutoTopicCreation
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.rules.effective_policies import effective_auto_creation, effective_topics_max
from interpulse.rules.topic_view import Part, TopicView, metadata_names
from interpulse.storage.api import MetadataStore

_DEFAULT_AUTO_CREATION = AutoTopicCreation(allowed=True, topic_type=NON_PARTITIONED, default_partitions=1)


@dataclass(frozen=True, slots=True)
class LifecycleSettings:
    """Settings of the broker for topics whose namespace sets none."""

    auto_creation: AutoTopicCreation = _DEFAULT_AUTO_CREATION
    partitions_max: int = 0
    topics_max: int = 0
    persistent_enabled: bool = True
    non_persistent_enabled: bool = True
    system_topics_enabled: bool = True
    remote_partitions_taken: bool = True
    replicator_prefix: str = "pulsar.repl"

    @classmethod
    def of(cls, config: BrokerConfig) -> LifecycleSettings:
        """Return the settings that rules of topics depend on."""
        return cls(
            config.auto_topic_creation,
            partitions_max=config.partitions_max,
            topics_max=config.max_topics_per_namespace,
            persistent_enabled=config.enable_persistent_topics,
            non_persistent_enabled=config.enable_non_persistent_topics,
            system_topics_enabled=config.system_topic_enabled,
            remote_partitions_taken=config.create_topic_to_remote_cluster_for_replication,
            replicator_prefix=config.replicator_prefix,
        )

    @classmethod
    def following(cls, config: Callable[[], BrokerConfig]) -> Callable[[], LifecycleSettings]:
        """Return a function for the current settings. They are read again only after a change."""
        latest = config()
        settings = cls.of(latest)

        def current() -> LifecycleSettings:
            nonlocal latest, settings
            if config() is not latest:
                latest = config()
                settings = cls.of(latest)
            return settings

        return current


@dataclass(frozen=True, slots=True)
class Reading:
    """A view, the store's versions of everything in it, and the settings that it was read with.

    ``stored`` are the records behind `TopicView.partition_records`; ``count`` is there for a namespace with a limit.
    """

    view: TopicView
    versions: Mapping[str, int | None]
    settings: LifecycleSettings
    stored: Mapping[int, StoredPartition] = field(default_factory=dict)
    count: TopicCount | None = None


class TopicReader:
    """Reads views; ``settings`` is called each time, ``loaded`` are the topics loaded now."""

    def __init__(
        self,
        store: MetadataStore,
        namespaces: Namespaces,
        settings: Callable[[], LifecycleSettings],
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
        topics_max = effective_topics_max(policies, settings.topics_max)
        count = await self._counts.of(name.namespace_name) if topics_max > 0 else None
        view = TopicView(
            name,
            namespace=self._namespaces.standing(policies),
            metadata={
                candidates[key]: parsed_metadata(key, records[key].value) for key in candidates if key in records
            },
            recorded=record_key in records if name.is_persistent else name in self._loaded,
            partition_records=frozenset(stored),
            auto_creation=effective_auto_creation(name, policies, settings.auto_creation),
            partitions_max=settings.partitions_max,
            topics_left=None if count is None else max(0, topics_max - (count.topics if name.is_persistent else 0)),
            remotes_to_ask=self._remotes_to_ask(policies, settings),
            domain_enabled=settings.persistent_enabled if name.is_persistent else settings.non_persistent_enabled,
            system_topics_enabled=settings.system_topics_enabled,
        )
        versions = {key: records[key].version if key in records else None for key in wanted}
        return Reading(view, versions, settings, stored, count)

    def _remotes_to_ask(self, policies: NamespacePolicies | None, settings: LifecycleSettings) -> tuple[str, ...]:
        if self._remote_partitions is None or not settings.remote_partitions_taken:
            return ()
        return self._namespaces.remotes(policies)

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
