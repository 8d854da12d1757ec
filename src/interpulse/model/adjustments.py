"""Differences between two clusters, and the plan that removes them before a namespace is replicated (PIP-433)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from interpulse.model.names import NamespaceName, TopicName

if TYPE_CHECKING:  # clients load this module for `PLAN_LEVELS` and do without the policies behind the changes
    from interpulse.model.changes import AdminChange, TopicAdminChange

PLAN_LEVELS: Final = 4
"""Depth at which the long arrays begin in the document of a plan: a plan has clusters, and a cluster its topics."""


class Severity(StrEnum):
    """Effect of a difference on replication. INFO requires no action."""

    ERROR = "ERROR"
    WARNING = "WARNING"
    INFO = "INFO"


class DifferenceKind(StrEnum):
    """Kinds of differences. Those with a change are in the order in which a plan applies them."""

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
    CLUSTER_UNREACHABLE = "CLUSTER_UNREACHABLE"
    """The cluster cannot be compared. Not part of an audit."""


AUDITED_KINDS: Final = tuple(kind for kind in DifferenceKind if kind is not DifferenceKind.CLUSTER_UNREACHABLE)
"""Kinds of differences that an audit reports."""


class ChangeStatus(StrEnum):
    """Progress of a change."""

    PENDING = "PENDING"
    DONE = "DONE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference, with the state of both sides as JSON.

    ``change`` removes it on the target without a decision of an operator. Without it, the operator makes one of the
    ``choices``: the first on the source, the other on the target. ``field`` is the differing field, by its name in the
    documents of the admin API; None: the whole. The origins say at which level each side's policy is set, ``namespace``
    or ``broker``; None if it is not a policy. ``fault`` is the sentence about records of one side that disagree, or the
    reason why the cluster cannot be compared. ``status`` and ``error`` belong to a change that is being applied.
    """

    severity: Severity
    kind: DifferenceKind
    namespace: NamespaceName
    topic: TopicName | None = None
    source: Any = None
    target: Any = None
    change: AdminChange | None = None
    choices: tuple[TopicAdminChange, ...] = ()
    field: str | None = None
    source_origin: str | None = None
    target_origin: str | None = None
    fault: str = ""
    status: ChangeStatus | None = None
    error: str | None = None


class Outcome(StrEnum):
    """Result of comparing a namespace before its replication."""

    READY = "READY"
    NEEDS_ADJUSTMENT = "NEEDS_ADJUSTMENT"
    CONFLICT = "CONFLICT"


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Differences of one cluster.

    ``changes`` are in the order in which they are applied, ``conflicts`` need a decision of an operator, and
    ``remote_only`` are topics that only this cluster has. ``skip_reason``: the cluster was not compared.
    """

    cluster: str
    changes: tuple[Difference, ...] = ()
    conflicts: tuple[Difference, ...] = ()
    remote_only: tuple[Difference, ...] = ()
    skip_reason: str | None = None


@dataclass(frozen=True, slots=True)
class AdjustmentPlan:
    """Plan for all clusters that are new for a namespace.

    ``digest`` covers the differences before anything is applied, so equal plans have equal digests, whatever their
    progress. ``applied`` is None in a preview; ``reason`` says why something was not applied.
    """

    namespace: NamespaceName
    local_cluster: str
    requested: tuple[str, ...]
    clusters: tuple[ClusterPlan, ...]
    digest: str = ""
    applied: bool | None = None
    reason: str | None = None
    http_status: int = 200

    @property
    def outcome(self) -> Outcome:
        if any(cluster.conflicts for cluster in self.clusters):
            return Outcome.CONFLICT
        return Outcome.NEEDS_ADJUSTMENT if any(cluster.changes for cluster in self.clusters) else Outcome.READY
