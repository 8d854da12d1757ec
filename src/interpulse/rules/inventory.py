"""Inventory of a namespace on one cluster: the policies in force, and its topics from the cluster's lists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from interpulse.model.inventory import PLAIN, ListedKind, TopicRow
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import NON_PARTITIONED, PARTITIONED, AutoTopicCreation
from interpulse.rules.effective_policies import effective_schema_strategy

SETTINGS: Final = (
    "allowAutoTopicCreation",
    "allowAutoTopicCreationType",
    "defaultNumPartitions",
    "isAllowAutoUpdateSchemaEnabled",
    "schemaCompatibilityStrategy",
)
"""Broker settings that apply if a namespace has no policy."""


@dataclass(frozen=True, slots=True)
class PoliciesInForce:
    """Policies that two clusters of a namespace must share.

    ``replicator_may_update_schema`` is true if producers may.
    """

    auto_creation: AutoTopicCreation
    auto_creation_source: Literal["namespace", "broker"] = "broker"
    schema_strategy: str = "FULL"
    auto_update_schema: bool = True
    replicator_may_update_schema: bool = True


@dataclass(frozen=True, slots=True)
class NamespaceState:
    """Stored policies of a namespace, and its broker's SETTINGS, by Pulsar's keys."""

    policies: NamespacePolicies
    settings: Mapping[str, str] = field(default_factory=dict)

    def in_force(self) -> PoliciesInForce:
        """Return the stored policies, with the broker's settings where the namespace has none of its own."""
        policies, settings = self.policies, self.settings
        override = policies.auto_topic_creation
        updates = policies.allow_auto_update_schema
        if updates is None:
            updates = settings.get("isAllowAutoUpdateSchemaEnabled", "true") == "true"
        return PoliciesInForce(
            _auto_creation(override, settings),
            auto_creation_source="broker" if override is None else "namespace",
            schema_strategy=effective_schema_strategy(policies, settings.get("schemaCompatibilityStrategy", "FULL")),
            auto_update_schema=updates,
            replicator_may_update_schema=updates or policies.allow_auto_update_schema_with_replicator,
        )


@dataclass(frozen=True, slots=True)
class NamespaceInventory:
    """Namespace on one cluster. Without ``state`` and ``error`` it does not exist."""

    state: NamespaceState | None = None
    topics: Mapping[TopicName, TopicRow] = field(default_factory=dict)
    error: str | None = None


def needs_settings(override: AutoTopicCreation | None) -> bool:
    """Return True if the broker's settings count too.

    Pulsar takes the partition count from them if an override has none.
    """
    return override is None or (override.topic_type == PARTITIONED and override.default_partitions is None)


def _auto_creation(override: AutoTopicCreation | None, settings: Mapping[str, str]) -> AutoTopicCreation:
    if override and not needs_settings(override):
        return override
    broker = broker_auto_creation(settings)
    return replace(override, default_partitions=broker.default_partitions) if override else broker


def broker_auto_creation(settings: Mapping[str, str]) -> AutoTopicCreation:
    """Return the broker's policy for namespaces without an override, from its configuration."""
    return AutoTopicCreation(
        settings.get("allowAutoTopicCreation", "true") == "true",
        settings.get("allowAutoTopicCreationType"),
        int(settings.get("defaultNumPartitions", "1")),
    )


def as_override(policy: AutoTopicCreation) -> AutoTopicCreation:
    """Return the policy in a form that can be set for a namespace. The type counts in its exact spelling."""
    partitioned = policy.topic_type == PARTITIONED
    return AutoTopicCreation(
        policy.allowed,
        PARTITIONED if partitioned else NON_PARTITIONED,
        policy.default_partitions if partitioned else None,
        policy.always_allow_for_replicator,
    )


class TopicLists:
    """Topics of a namespace, collected from lists in any portions, as ``rows`` by base name.

    The rows are complete when `join` has processed all `bases`.
    """

    def __init__(self) -> None:
        self.rows: dict[TopicName, TopicRow] = {}
        self._counts: dict[TopicName, int | None] = {}
        self._indexes: dict[TopicName, list[int]] = {}

    def add_partitioned(self, counts: Iterable[tuple[TopicName, int | None]]) -> None:
        """Add partitioned topics. If the list has no count (None), it follows from the partitions."""
        self._counts.update(counts)

    def add_stored(self, names: Iterable[TopicName]) -> None:
        """Add topics and partitions. Non-persistent ones are those that are loaded."""
        for name in names:
            if name.partition_index == PLAIN:
                self.rows[name] = TopicRow(name, ListedKind.NON_PARTITIONED)
            else:
                self._indexes.setdefault(name.base, []).append(name.partition_index)

    @property
    def partitioned_count(self) -> int:
        return len(self._counts)

    def bases(self) -> Iterator[TopicName]:
        """Yield the base names that have partition metadata or partitions, each once."""
        yield from self._counts
        yield from (base for base in self._indexes if base not in self._counts)

    def join(self, bases: Iterable[TopicName]) -> Iterator[TopicRow]:
        """Store and yield the rows of some `bases`."""
        for base in bases:
            indexes = self._indexes.get(base, [])
            if base in self.rows:
                indexes = [*indexes, PLAIN]
            if base in self._counts:
                row = _partitioned(base, self._counts[base], indexes)
            else:
                row = TopicRow(base, ListedKind.ORPHAN_PARTITION, 0, tuple(sorted(indexes)))
            self.rows[base] = row
            yield row


def _partitioned(base: TopicName, count: int | None, indexes: Collection[int]) -> TopicRow:
    kind = ListedKind.PARTITIONED if indexes or not base.is_persistent else ListedKind.METADATA_ONLY
    seen = max(indexes, default=-1) + 1
    complete = bool(indexes) and _is_run(indexes, seen)
    row = TopicRow(base, kind, seen, None if complete else tuple(sorted(indexes)), exact=False)
    return row if count is None else with_count(row, count)


def with_count(row: TopicRow, count: int, *, deleted: bool = False) -> TopicRow:
    """Return the row of a partitioned topic with its stored count. A non-persistent partition is never missing."""
    indexes = range(row.partitions) if row.indexes is None else row.indexes
    complete = _is_run(indexes, count)
    if not row.topic.is_persistent:
        complete = all(0 <= index < count for index in indexes)
    shown = None if complete and not deleted else tuple(sorted(indexes))
    return row._replace(partitions=count, indexes=shown, exact=True, deleted=deleted)


def _is_run(indexes: Collection[int], count: int) -> bool:
    """Return True if the indexes are 0 to ``count`` - 1. The range is never expanded: a count can be hostile."""
    return len(indexes) == count and min(indexes, default=0) >= 0 and max(indexes, default=-1) < count
