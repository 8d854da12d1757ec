"""The changes of a decision or a plan.

The metadata store of this broker applies a `Change`. An `AdminChange` becomes a call of the admin API,
a command or a sentence in `interpulse.replication.change_forms`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from interpulse.model.names import NamespaceName, TopicName

__all__ = [
    "AdminChange",
    "Change",
    "CreateMissedPartitions",
    "CreateNamespace",
    "CreatePartitionedMetadata",
    "CreateTopicRecord",
    "DeletePartitionedMetadata",
    "DeleteTopic",
    "SetNamespacePolicy",
    "SetPartitionCount",
    "TopicChange",
]


@dataclass(frozen=True, slots=True)
class CreatePartitionedMetadata:
    """Creation of a partitioned topic of ``partitions`` partitions."""

    topic: TopicName
    partitions: int
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopicRecord:
    """Creation of the storage of one topic or partition."""

    topic: TopicName
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetPartitionCount:
    """Growth of a partitioned topic to ``partitions``. ``force`` takes over partitions stored beyond its count."""

    topic: TopicName
    partitions: int
    force: bool = False


@dataclass(frozen=True, slots=True)
class DeletePartitionedMetadata:
    """Deletion of a partitioned topic; through the admin API with its partitions. ``force``: also if in use."""

    topic: TopicName
    force: bool = False


Change = CreatePartitionedMetadata | CreateTopicRecord | SetPartitionCount | DeletePartitionedMetadata


@dataclass(frozen=True, slots=True)
class CreateMissedPartitions:
    """Creation of the partitions that the metadata counts and that are not stored."""

    topic: TopicName


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Deletion of one topic or partition with its entries and subscriptions. ``force``: also if in use."""

    topic: TopicName
    force: bool = False


@dataclass(frozen=True, slots=True)
class CreateNamespace:
    """Creation of a namespace that is replicated to ``clusters``."""

    namespace: NamespaceName
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetNamespacePolicy:
    """A new value of a namespace's policy, as JSON; None removes the policy.

    ``policy`` is its attribute of `NamespacePolicies`. ``key`` names one entry of a policy that is a mapping.
    """

    namespace: NamespaceName
    policy: str
    value: Any
    key: str | None = None


TopicChange = Change | CreateMissedPartitions | DeleteTopic
AdminChange = TopicChange | CreateNamespace | SetNamespacePolicy
