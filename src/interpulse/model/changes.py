"""Changes of a decision or a plan, and the decision itself, the result of every rule.

The broker's committer applies a `Change` to the metadata store. An `AdminChange` becomes a call of the admin API, a
command or a sentence in `interpulse.replication.change_forms`. `to_json` is the form of previews.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from interpulse.model.names import NamespaceName, TopicName

if TYPE_CHECKING:  # commands load this module and do without the documents
    from interpulse.model.clusters import ClusterData, ClusterMigration, FailureDomain, TenantInfo
    from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicyRecord
    from interpulse.model.schemas import SchemaInfo
    from interpulse.model.topics import PartitionedTopicMetadata

A = TypeVar("A")

# --- topics


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
    """Growth of a partitioned topic to ``partitions``. ``force`` adopts partitions stored beyond its count."""

    topic: TopicName
    partitions: int
    force: bool = False


@dataclass(frozen=True, slots=True)
class SetPartitionedMetadata:
    """New partition metadata of a base name."""

    topic: TopicName
    metadata: PartitionedTopicMetadata


@dataclass(frozen=True, slots=True)
class DeletePartitionedMetadata:
    """Deletion of a partitioned topic; through the admin API with its partitions. ``force``: also if in use."""

    topic: TopicName
    force: bool = False


@dataclass(frozen=True, slots=True)
class SetTopicProperties:
    """New properties of one stored topic or partition."""

    topic: TopicName
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SetTopicPolicies:
    """New policies of one topic. An empty record is removed."""

    topic: TopicName
    policies: TopicPolicyRecord


@dataclass(frozen=True, slots=True)
class DeleteTopicPolicies:
    """Removal of the policies of one topic."""

    topic: TopicName


@dataclass(frozen=True, slots=True)
class DeleteSchema:
    """Removal of the schema history of a topic."""

    topic: TopicName


@dataclass(frozen=True, slots=True)
class AppendSchema:
    """One more version in the schema history of a topic. ``schema`` is None for a deletion marker."""

    topic: TopicName
    version: int
    schema: SchemaInfo | None
    created_ms: int


# --- tenants and clusters


@dataclass(frozen=True, slots=True)
class SetTenant:
    """Creation or replacement of a tenant."""

    name: str
    tenant: TenantInfo


@dataclass(frozen=True, slots=True)
class DeleteTenant:
    """Removal of a tenant."""

    name: str


@dataclass(frozen=True, slots=True)
class ClaimMetadata:
    """Permanent claim of the metadata by this cluster."""

    cluster: str


@dataclass(frozen=True, slots=True)
class SetCluster:
    """Registration of a cluster, or a new record of it."""

    name: str
    cluster: ClusterData


@dataclass(frozen=True, slots=True)
class DeleteCluster:
    """Removal of a cluster with its isolation policies."""

    name: str


@dataclass(frozen=True, slots=True)
class SetClusterMigration:
    """Redirection of the clients of a cluster to another one, or its end."""

    name: str
    migration: ClusterMigration


@dataclass(frozen=True, slots=True)
class SetFailureDomain:
    """Creation or replacement of a failure domain."""

    cluster: str
    name: str
    domain: FailureDomain


@dataclass(frozen=True, slots=True)
class DeleteFailureDomain:
    """Removal of a failure domain."""

    cluster: str
    name: str


@dataclass(frozen=True, slots=True)
class SetIsolationPolicies:
    """New isolation policies of a cluster. ``policies`` is their JSON, by name."""

    cluster: str
    policies: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SetDynamicConfiguration:
    """New values of the settings that were changed at run time, by key."""

    values: Mapping[str, str]


# --- namespaces


@dataclass(frozen=True, slots=True)
class SetNamespacePolicies:
    """Creation of a namespace, or new policies of it."""

    namespace: NamespaceName
    policies: NamespacePolicies


@dataclass(frozen=True, slots=True)
class SetBundles:
    """New bundle boundaries of a namespace, in a separate record."""

    namespace: NamespaceName
    boundaries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetForcedDeletion:
    """Mark of a namespace whose deletion includes its topics, or the end of the mark."""

    namespace: NamespaceName
    forced: bool


@dataclass(frozen=True, slots=True)
class DeleteNamespace:
    """Removal of a namespace."""

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
TenantChange = SetTenant | DeleteTenant
ClusterChange = (
    ClaimMetadata
    | SetCluster
    | DeleteCluster
    | SetClusterMigration
    | SetFailureDomain
    | DeleteFailureDomain
    | SetIsolationPolicies
    | SetDynamicConfiguration
)
NamespaceChange = SetNamespacePolicies | SetBundles | SetForcedDeletion | DeleteNamespace
Change = TopicChange | TenantChange | ClusterChange | NamespaceChange | AppendSchema


@dataclass(frozen=True, slots=True)
class Decision(Generic[A]):
    """Answer for the caller, and the changes to commit before it is returned.

    A rule never changes anything itself. Its caller commits ``changes``, all or none and only if the state that the
    rule read is unchanged, and then returns ``answer``. A preview is a decision whose changes are not applied. A
    refusal is an exception from ``model.errors`` and has no changes.
    """

    answer: A
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class AskRemotes:
    """Request for more information: the decision depends on whether a remote cluster has the topic.

    Call the rule again with a view that has the answer and an empty ``remotes_to_ask``.
    """


# --- changes that only the admin API makes


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


TopicAdminChange = (
    CreatePartitionedMetadata
    | CreateTopicRecord
    | SetPartitionCount
    | DeletePartitionedMetadata
    | CreateMissedPartitions
    | DeleteTopic
)
AdminChange = TopicAdminChange | CreateNamespace | SetNamespacePolicy


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
