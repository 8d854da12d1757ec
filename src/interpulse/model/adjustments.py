"""The plan of the changes on other clusters that enabling a namespace's replication needs, and its JSON.

Field names are those of the answer to ``POST .../replication?preview=true`` (PIP-433).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from interpulse.model.names import NamespaceName, TopicName

__all__ = [
    "PLAN_LEVELS",
    "AdjustmentChange",
    "AdjustmentConflict",
    "AdjustmentPlan",
    "AdminRequest",
    "ChangeKind",
    "ChangeStatus",
    "ClusterPlan",
    "ConflictKind",
    "Outcome",
]


Array = Callable[[Iterable[Any]], Any]
"""What the arrays about topics, which may be long, become: `list`, or `iter` for who takes turns with them."""
PLAN_LEVELS: Final = 4
"""How deep in the document of a plan the long arrays begin: a plan has clusters, and a cluster its topics."""


class Outcome(StrEnum):
    """What stands between a namespace and its replication."""

    READY = "READY"
    NEEDS_ADJUSTMENT = "NEEDS_ADJUSTMENT"
    CONFLICT = "CONFLICT"


class ChangeKind(StrEnum):
    """What can be adjusted on a remote cluster; in alphabetical order they are applied."""

    AUTO_TOPIC_CREATION = "AUTO_TOPIC_CREATION"
    IS_ALLOW_AUTO_UPDATE_SCHEMA = "IS_ALLOW_AUTO_UPDATE_SCHEMA"
    SCHEMA_COMPATIBILITY_STRATEGY = "SCHEMA_COMPATIBILITY_STRATEGY"
    TOPIC_PARTITIONS = "TOPIC_PARTITIONS"


class ConflictKind(StrEnum):
    """What an operator has to decide."""

    CLUSTER_UNREACHABLE = "CLUSTER_UNREACHABLE"
    NAMESPACE_MISSING = "NAMESPACE_MISSING"
    PARTITIONS_CANNOT_SHRINK = "PARTITIONS_CANNOT_SHRINK"
    TOPIC_TYPE_MISMATCH = "TOPIC_TYPE_MISMATCH"


class ChangeStatus(StrEnum):
    """How far a change came."""

    PENDING = "PENDING"
    DONE = "DONE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class AdminRequest:
    """A call of the admin API; ``path`` is encoded and has its query, ``body`` is sent as JSON."""

    method: str
    path: str
    body: Any

    def to_json(self) -> dict[str, Any]:
        return {"method": self.method, "path": self.path, "body": self.body}


@dataclass(frozen=True, slots=True)
class AdjustmentChange:
    """One change on one remote cluster; ``current`` and ``desired`` are JSON, ``request`` makes it true."""

    kind: ChangeKind
    current: Any
    desired: Any
    request: AdminRequest
    topic: TopicName | None = None
    status: ChangeStatus | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"kind": str(self.kind)} | _topic_json(self.topic)
        body |= {"current": self.current, "desired": self.desired, "request": self.request.to_json()}
        if self.status is not None:
            body["status"] = str(self.status)
        if self.error is not None:
            body["error"] = self.error
        return body


@dataclass(frozen=True, slots=True)
class AdjustmentConflict:
    """What no adjustment can solve, with both sides' state as JSON, the reason, and what would end it."""

    kind: ConflictKind
    reason: str
    remedy: str
    topic: TopicName | None = None
    local: Any = None
    remote: Any = None

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"kind": str(self.kind)} | _topic_json(self.topic)
        sides = {"local": self.local, "remote": self.remote}
        body |= {side: state for side, state in sides.items() if state is not None}
        return body | {"reason": self.reason, "remedy": self.remedy}


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Everything about one cluster. ``remote_only`` are topics there that are not here, with their partition counts."""

    cluster: str
    changes: tuple[AdjustmentChange, ...] = ()
    conflicts: tuple[AdjustmentConflict, ...] = ()
    remote_only: tuple[tuple[TopicName, int], ...] = ()
    skip_reason: str | None = None

    def to_json(self, array: Array = list) -> dict[str, Any]:
        return {
            "cluster": self.cluster,
            "checked": self.skip_reason is None,
            "skipReason": self.skip_reason,
            "changes": array(each.to_json() for each in self.changes),
            "conflicts": array(each.to_json() for each in self.conflicts),
            "info": array(
                {"kind": "REMOTE_ONLY_TOPIC", "topic": str(topic), "partitions": count}
                for topic, count in self.remote_only
            ),
        }


@dataclass(frozen=True, slots=True)
class AdjustmentPlan:
    """The whole document. ``applied`` is None in a preview; ``reason`` says why something was not applied.

    ``digest`` is that of `compared` before anything is applied: equal plans have equal ones, however far they came.
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
        if any(each.conflicts for each in self.clusters):
            return Outcome.CONFLICT
        return Outcome.NEEDS_ADJUSTMENT if any(each.changes for each in self.clusters) else Outcome.READY

    def conflict_reasons(self) -> Iterable[str]:
        """A sentence for every conflict on every cluster."""
        return (f"{each.reason}; {each.remedy}" for cluster in self.clusters for each in cluster.conflicts)

    def to_json(self, array: Array = list) -> dict[str, Any]:
        """As `compared`, with what became of it."""
        body = self.compared(array) | {"digest": self.digest}
        if self.applied is not None:
            body["applied"] = self.applied
        return body if self.reason is None else body | {"reason": self.reason}

    def compared(self, array: Array = list) -> dict[str, Any]:
        """What the plan says of the clusters."""
        return {
            "namespace": str(self.namespace),
            "localCluster": self.local_cluster,
            "requestedClusters": list(self.requested),
            "addedClusters": [each.cluster for each in self.clusters],
            "outcome": str(self.outcome),
            "clusters": [each.to_json(array) for each in self.clusters],
        }


def _topic_json(topic: TopicName | None) -> dict[str, str]:
    return {} if topic is None else {"topic": str(topic)}
