"""One topic, or one namespace, as a cluster lists it: the rows of an inventory, and what two of them differ in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from interpulse.model.adjustments import AdminRequest
from interpulse.model.names import NamespaceName, TopicName

__all__ = ["Difference", "DifferenceKind", "ListedKind", "Severity", "TopicRow"]


class ListedKind(StrEnum):
    """What the lists of a cluster make of a base name."""

    PARTITIONED = "PARTITIONED"
    NON_PARTITIONED = "NON_PARTITIONED"
    ORPHAN_PARTITION = "ORPHAN_PARTITION"
    """Partitions without partition metadata."""
    METADATA_ONLY = "METADATA_ONLY"
    """Partition metadata without any partition."""


@dataclass(frozen=True, slots=True)
class TopicRow:
    """One base name. ``indexes`` are those of the stored partitions if they are not 0 to ``partitions`` - 1.

    ``exact``: the count is the recorded one, else that of the partitions. ``schema_hash`` is that of all
    ``schema_versions`` versions; None if there are none, or they were not asked for. ``subscriptions``: None if they
    were not asked for. ``error`` says why nothing is known.
    """

    topic: TopicName
    kind: ListedKind
    partitions: int = 0
    indexes: tuple[int, ...] | None = None
    exact: bool = True
    schema_type: str | None = None
    schema_hash: str | None = None
    subscriptions: tuple[str, ...] | None = None
    error: str | None = None
    schema_versions: int | None = None

    @property
    def is_healthy(self) -> bool:
        """Its records agree with each other."""
        return self.indexes is None and self.kind in (ListedKind.PARTITIONED, ListedKind.NON_PARTITIONED)


class Severity(StrEnum):
    """What a difference means for replication; INFO is told and is no reason to act."""

    ERROR = "ERROR"
    WARNING = "WARNING"
    INFO = "INFO"


class DifferenceKind(StrEnum):
    """What two clusters can differ in; those of a plan are in the order in which it is applied."""

    NAMESPACE_MISSING = "NAMESPACE_MISSING"
    AUTO_TOPIC_CREATION = "AUTO_TOPIC_CREATION"
    IS_ALLOW_AUTO_UPDATE_SCHEMA = "IS_ALLOW_AUTO_UPDATE_SCHEMA"
    SCHEMA_COMPATIBILITY_STRATEGY = "SCHEMA_COMPATIBILITY_STRATEGY"
    DEDUPLICATION = "DEDUPLICATION"
    RETENTION = "RETENTION"
    BACKLOG_QUOTA = "BACKLOG_QUOTA"
    MESSAGE_TTL = "MESSAGE_TTL"
    TOPIC_MISSING = "TOPIC_MISSING"
    TOPIC_PARTITIONS = "TOPIC_PARTITIONS"
    TOPIC_TYPE_MISMATCH = "TOPIC_TYPE_MISMATCH"
    PARTITIONS_CANNOT_SHRINK = "PARTITIONS_CANNOT_SHRINK"
    ORPHAN_PARTITION = "ORPHAN_PARTITION"
    METADATA_ONLY = "METADATA_ONLY"
    MISSING_PARTITION = "MISSING_PARTITION"
    SCHEMA_MISSING = "SCHEMA_MISSING"
    SCHEMA_DIFFERENT = "SCHEMA_DIFFERENT"
    SUBSCRIPTION_MISSING = "SUBSCRIPTION_MISSING"
    PERMISSION = "PERMISSION"
    REPLICATION_CLUSTERS = "REPLICATION_CLUSTERS"
    REMOTE_ONLY_TOPIC = "REMOTE_ONLY_TOPIC"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference; ``source`` and ``target`` are what each side has, as JSON.

    With a ``request`` it can be ended on the target without a decision of an operator. ``field`` is what differs, by
    its name in the documents of the admin API; None: the whole. The origins say where each side's policy comes from,
    ``namespace`` or ``broker``; None where it is no policy.
    """

    severity: Severity
    kind: DifferenceKind
    namespace: NamespaceName
    topic: TopicName | None
    source: Any
    target: Any
    remedy: str
    request: AdminRequest | None = None
    field: str | None = None
    source_origin: str | None = None
    target_origin: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "severity": str(self.severity),
            "kind": str(self.kind),
            "namespace": str(self.namespace),
            "topic": None if self.topic is None else str(self.topic),
            "field": self.field,
            "source": self.source,
            "target": self.target,
            "source_origin": self.source_origin,
            "target_origin": self.target_origin,
            "remedy": self.remedy,
            "request": None if self.request is None else self.request.to_json(),
        }
