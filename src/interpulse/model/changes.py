"""The changes of a decision: values that say what becomes true of the metadata.

The broker's committer applies them to the metadata store. Those about topics can also be made on another cluster, by
its admin API. `to_json` is the form of previews.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from interpulse.model.clusters import ClusterData, FailureDomain, TenantInfo
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.namespace_policies import NamespacePolicies
from interpulse.model.policies.topic_policies import TopicPolicyRecord
from interpulse.model.schemas import SchemaInfo
from interpulse.model.topics import PartitionedTopicMetadata

__all__ = [
    "AppendSchema",
    "Change",
    "ClaimMetadata",
    "ClusterChange",
    "CreatePartitionedMetadata",
    "CreateTopicRecord",
    "DeleteCluster",
    "DeleteFailureDomain",
    "DeleteNamespace",
    "DeletePartitionedMetadata",
    "DeleteSchema",
    "DeleteTenant",
    "DeleteTopicPolicies",
    "NamespaceChange",
    "SetBundles",
    "SetCluster",
    "SetDynamicConfiguration",
    "SetFailureDomain",
    "SetForcedDeletion",
    "SetIsolationPolicies",
    "SetNamespacePolicies",
    "SetPartitionCount",
    "SetPartitionedMetadata",
    "SetTenant",
    "SetTopicPolicies",
    "SetTopicProperties",
    "TopicChange",
    "to_json",
]

# --- topics


@dataclass(frozen=True, slots=True)
class CreatePartitionedMetadata:
    """The base name becomes a partitioned topic of ``partitions`` partitions."""

    topic: TopicName
    partitions: int
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopicRecord:
    """The storage of one topic or partition comes into being."""

    topic: TopicName
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetPartitionCount:
    """A partitioned topic grows to ``partitions``."""

    topic: TopicName
    partitions: int


@dataclass(frozen=True, slots=True)
class SetPartitionedMetadata:
    """The partition metadata of a base name are replaced."""

    topic: TopicName
    metadata: PartitionedTopicMetadata


@dataclass(frozen=True, slots=True)
class DeletePartitionedMetadata:
    """The base name is no partitioned topic any more."""

    topic: TopicName


@dataclass(frozen=True, slots=True)
class SetTopicProperties:
    """The properties of one stored topic or partition are replaced."""

    topic: TopicName
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SetTopicPolicies:
    """The policies of one topic are replaced; an empty record is removed."""

    topic: TopicName
    policies: TopicPolicyRecord


@dataclass(frozen=True, slots=True)
class DeleteTopicPolicies:
    """The policies of one topic are removed."""

    topic: TopicName


@dataclass(frozen=True, slots=True)
class DeleteSchema:
    """The schema history of a topic is removed."""

    topic: TopicName


@dataclass(frozen=True, slots=True)
class AppendSchema:
    """The schema history of a topic gets one more version; ``schema`` None is a deletion marker."""

    topic: TopicName
    version: int
    schema: SchemaInfo | None
    created_ms: int


# --- tenants and clusters


@dataclass(frozen=True, slots=True)
class SetTenant:
    """A tenant is created or replaced."""

    name: str
    tenant: TenantInfo


@dataclass(frozen=True, slots=True)
class DeleteTenant:
    """A tenant is removed."""

    name: str


@dataclass(frozen=True, slots=True)
class ClaimMetadata:
    """The metadata belong to this cluster, for ever."""

    cluster: str


@dataclass(frozen=True, slots=True)
class SetCluster:
    """A cluster is registered, or its record replaced."""

    name: str
    cluster: ClusterData


@dataclass(frozen=True, slots=True)
class DeleteCluster:
    """A cluster is removed, with its isolation policies."""

    name: str


@dataclass(frozen=True, slots=True)
class SetFailureDomain:
    """A failure domain is created or replaced."""

    cluster: str
    name: str
    domain: FailureDomain


@dataclass(frozen=True, slots=True)
class DeleteFailureDomain:
    """A failure domain is removed."""

    cluster: str
    name: str


@dataclass(frozen=True, slots=True)
class SetIsolationPolicies:
    """The isolation policies of a cluster are replaced; ``policies`` is their JSON, by name."""

    cluster: str
    policies: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SetDynamicConfiguration:
    """The settings that were changed at run time are replaced, by key."""

    values: Mapping[str, str]


# --- namespaces


@dataclass(frozen=True, slots=True)
class SetNamespacePolicies:
    """A namespace is created, or its policies replaced."""

    namespace: NamespaceName
    policies: NamespacePolicies


@dataclass(frozen=True, slots=True)
class SetBundles:
    """The bundles of a namespace are divided at these boundaries, in a record of their own."""

    namespace: NamespaceName
    boundaries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetForcedDeletion:
    """The deletion of a namespace takes along what it holds, or is given up."""

    namespace: NamespaceName
    forced: bool


@dataclass(frozen=True, slots=True)
class DeleteNamespace:
    """A namespace is removed."""

    namespace: NamespaceName


TopicChange = (
    CreatePartitionedMetadata
    | CreateTopicRecord
    | SetPartitionCount
    | SetPartitionedMetadata
    | DeletePartitionedMetadata
    | SetTopicProperties
    | SetTopicPolicies
    | DeleteTopicPolicies
    | DeleteSchema
)
ClusterChange = (
    SetTenant
    | DeleteTenant
    | ClaimMetadata
    | SetCluster
    | DeleteCluster
    | SetFailureDomain
    | DeleteFailureDomain
    | SetIsolationPolicies
    | SetDynamicConfiguration
)
NamespaceChange = SetNamespacePolicies | SetBundles | SetForcedDeletion | DeleteNamespace
Change = TopicChange | ClusterChange | NamespaceChange | AppendSchema


def to_json(change: Change) -> dict[str, Any]:
    """Return the change as JSON: the name of its class as ``change``, and its fields."""
    values = {part.name: _value(getattr(change, part.name)) for part in fields(change)}
    return {"change": type(change).__name__} | values


def _value(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, NamespaceName | TopicName):
        return str(value)
    return dict(value) if isinstance(value, Mapping) else value
