"""What two clusters differ in, topic by topic and namespace by namespace, and the request that ends each difference.

No verdict is made here that the broker makes otherwise: counts and policies are compared by `compatibility`, missing
topics are planned by `provisioning`, and records that disagree on one side are found by `topic_diagnosis`. The source
is the standard; only the target is ever changed, and nothing there shrinks or is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from interpulse.model.adjustments import AdjustmentChange, AdjustmentConflict, AdminRequest
from interpulse.model.inventory import Difference, DifferenceKind, ListedKind, Severity, TopicRow
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.namespace_policies import AutoTopicCreation, NamespacePolicies
from interpulse.model.topics import Existence, PartitionedTopicMetadata, TopicKind
from interpulse.rules.compatibility import NamespaceSnapshot, namespace_missing, plan_adjustments
from interpulse.rules.inventory import PLAIN
from interpulse.rules.provisioning import ProvisioningStep, plan_topic
from interpulse.rules.topic_diagnosis import Disagreement, NamespaceTopics, diagnose

__all__ = ["NamespaceState", "namespace_differences", "topic_differences"]

_ANY_CREATION: Final = AutoTopicCreation(allowed=False)
_DIAGNOSED: Final = {
    Disagreement.LOST_METADATA: DifferenceKind.ORPHAN_PARTITION,
    Disagreement.ORPHAN_PARTITIONS: DifferenceKind.ORPHAN_PARTITION,
    Disagreement.BOTH_KINDS: DifferenceKind.TOPIC_TYPE_MISMATCH,
    Disagreement.MISSING_PARTITIONS: DifferenceKind.MISSING_PARTITION,
    Disagreement.UNFINISHED_DELETION: DifferenceKind.MISSING_PARTITION,
    Disagreement.UNFINISHED_EXPANSION: DifferenceKind.MISSING_PARTITION,
}

_FIELDS: Final = {
    DifferenceKind.AUTO_TOPIC_CREATION: "autoTopicCreationOverride",
    DifferenceKind.IS_ALLOW_AUTO_UPDATE_SCHEMA: "is_allow_auto_update_schema",
    DifferenceKind.SCHEMA_COMPATIBILITY_STRATEGY: "schema_compatibility_strategy",
    DifferenceKind.DEDUPLICATION: "deduplicationEnabled",
    DifferenceKind.RETENTION: "retention_policies",
    DifferenceKind.MESSAGE_TTL: "message_ttl_in_seconds",
    DifferenceKind.PERMISSION: "auth_policies",
    DifferenceKind.REPLICATION_CLUSTERS: "replication_clusters",
    DifferenceKind.TOPIC_PARTITIONS: "partitions",
    DifferenceKind.TOPIC_TYPE_MISMATCH: "partitions",
    DifferenceKind.PARTITIONS_CANNOT_SHRINK: "partitions",
    DifferenceKind.ORPHAN_PARTITION: "partitions",
    DifferenceKind.METADATA_ONLY: "partitions",
    DifferenceKind.MISSING_PARTITION: "partitions",
    DifferenceKind.SCHEMA_MISSING: "schema",
    DifferenceKind.SCHEMA_DIFFERENT: "schema",
    DifferenceKind.SUBSCRIPTION_MISSING: "subscriptions",
}
"""What differs: of a namespace by its name in the document of its policies; nothing where the whole is missing."""


def topic_differences(cluster: str, source: TopicRow | None, target: TopicRow | None) -> list[Difference]:
    """Everything that differs in one topic, ``cluster`` being the target; None: it is not there.

    The target's row has the name that the topic has there. Nothing is concluded from a row with an error.
    """
    return [_with_field(each) for each in _topic_differences(cluster, source, target)]


def _with_field(found: Difference) -> Difference:
    return replace(found, field=_FIELDS.get(found.kind))


def _topic_differences(cluster: str, source: TopicRow | None, target: TopicRow | None) -> list[Difference]:
    if any(row is not None and row.error is not None for row in (source, target)):
        return []
    found = [*_own_faults("source", source), *_own_faults(cluster, target)]
    if source is None:
        assert target is not None, "a topic is on one side at least"
        return [*found, *_remote_only(target)]
    name = source.topic if target is None else target.topic
    here, there = _existence(source), _existence(target)
    if here.kind is TopicKind.ABSENT:
        return found
    if there.kind is TopicKind.ABSENT:
        found.append(_missing(name, here))
    else:
        found += _unequal(cluster, name, here, there)
        found += _schema_differences(name, source, target)
        found += _subscription_differences(name, source, target)
    return found


def _existence(row: TopicRow | None) -> Existence:
    """Partitions without metadata are no topic: creating it takes them over."""
    if row is None or row.kind is ListedKind.ORPHAN_PARTITION:
        return Existence(TopicKind.ABSENT)
    if row.kind is ListedKind.NON_PARTITIONED:
        return Existence(TopicKind.NON_PARTITIONED)
    return Existence(TopicKind.PARTITIONED, row.partitions)


def _own_faults(side: str, row: TopicRow | None) -> Iterator[Difference]:
    """Records of one side that disagree with each other."""
    if row is None or row.is_healthy:
        return
    base, indexes = row.topic, row.indexes or ()
    present = frozenset(base if index == PLAIN else base.partition(index) for index in indexes)
    metadata = {} if row.kind is ListedKind.ORPHAN_PARTITION else {base: PartitionedTopicMetadata(row.partitions)}
    remedy = f"interpulse-admin topics doctor {base.namespace_name}, on {side}"
    for finding in diagnose(NamespaceTopics(present, metadata)):
        kind = _DIAGNOSED[finding.kind]
        if kind is DifferenceKind.MISSING_PARTITION and not indexes:
            kind = DifferenceKind.METADATA_ONLY
        state = {"partitions": row.partitions, "indexes": list(indexes)}
        here, there = (state, None) if side == "source" else (None, state)
        sentence = f"{finding.sentence}; {remedy}"
        yield Difference(Severity.ERROR, kind, base.namespace_name, base, here, there, sentence)


def _remote_only(target: TopicRow) -> Iterator[Difference]:
    topic = target.topic
    if not topic.is_system:
        yield Difference(
            Severity.INFO,
            DifferenceKind.REMOTE_ONLY_TOPIC,
            topic.namespace_name,
            topic,
            None,
            {"partitions": target.partitions},
            "nothing is to be done unless it was deleted on the source on purpose",
        )


def _missing(topic: TopicName, here: Existence) -> Difference:
    plan = plan_topic(topic, here, Existence(TopicKind.ABSENT), may_create=True)
    request = AdminRequest("PUT", f"/admin/v2/{topic.rest_path}", {})
    if plan.step is ProvisioningStep.CREATE_PARTITIONED:
        path = f"/admin/v2/{topic.rest_path}/partitions?createLocalTopicOnly=true"
        request = AdminRequest("PUT", path, plan.partitions)
    return Difference(
        Severity.WARNING if topic.is_system else Severity.ERROR,
        DifferenceKind.TOPIC_MISSING,
        topic.namespace_name,
        topic,
        {"partitions": here.partitions},
        None,
        f"{plan.step.value}, as audit apply and the replication job do",
        None if topic.is_system else request,
    )


def _unequal(cluster: str, topic: TopicName, here: Existence, there: Existence) -> Iterator[Difference]:
    snapshots = (NamespaceSnapshot(_ANY_CREATION, {topic: side.partitions}) for side in (here, there))
    plan = plan_adjustments(cluster, topic.namespace_name, *snapshots)
    for change in plan.changes:
        yield _of_change(topic.namespace_name, change, Severity.ERROR)
    for conflict in plan.conflicts:
        yield _of_conflict(topic.namespace_name, conflict)


def _of_change(namespace: NamespaceName, change: AdjustmentChange, severity: Severity) -> Difference:
    remedy = "audit apply makes it equal"
    kind = DifferenceKind(str(change.kind))
    return Difference(severity, kind, namespace, change.topic, change.desired, change.current, remedy, change.request)


def _of_conflict(namespace: NamespaceName, conflict: AdjustmentConflict) -> Difference:
    kind = DifferenceKind(str(conflict.kind))
    sentence = f"{conflict.reason}; {conflict.remedy}"
    return Difference(Severity.ERROR, kind, namespace, conflict.topic, conflict.local, conflict.remote, sentence)


def _schema_differences(topic: TopicName, source: TopicRow, target: TopicRow | None) -> Iterator[Difference]:
    """Schemas are registered by the replication job, in their order, as what the target lets replicators register."""
    if source.schema_hash is None or target is None or source.schema_hash == target.schema_hash:
        return
    missing = target.schema_hash is None
    here, there = (
        {"type": row.schema_type, "hash": row.schema_hash, "versions": row.schema_versions} for row in (source, target)
    )
    yield Difference(
        Severity.WARNING,
        DifferenceKind.SCHEMA_MISSING if missing else DifferenceKind.SCHEMA_DIFFERENT,
        topic.namespace_name,
        topic,
        here,
        None if missing else there,
        "the replication job registers the versions that the source has; see schemas get on both sides",
    )


def _subscription_differences(topic: TopicName, source: TopicRow, target: TopicRow | None) -> Iterator[Difference]:
    """Those that only the target has are its own."""
    if source.subscriptions is None or target is None or target.subscriptions is None:
        return
    there = set(target.subscriptions)
    if missing := [name for name in source.subscriptions if name not in there and not name.startswith(_NOT_USERS)]:
        yield Difference(
            Severity.WARNING,
            DifferenceKind.SUBSCRIPTION_MISSING,
            topic.namespace_name,
            topic,
            missing,
            sorted(there),
            "consumers that move there begin at the end: topics create-subscription, or [subscriptions] of the job",
        )


_NOT_USERS: Final = ("__compaction", "interpulse.", "pulsar.repl.")
"""What the names of cursors begin with that brokers and replication jobs have for themselves."""


@dataclass(frozen=True, slots=True)
class NamespaceState:
    """A namespace on one cluster: what is stored for it, what is in force, and the broker's settings behind that."""

    policies: NamespacePolicies
    in_force: NamespaceSnapshot
    settings: Mapping[str, str] = field(default_factory=dict)


def namespace_differences(
    cluster: str, namespace: NamespaceName, source: NamespaceState | None, target: NamespaceState | None
) -> list[Difference]:
    """Everything that differs in the policies of one namespace; one that only the target has is no difference."""
    if source is None:
        return []
    if target is None:
        missing = namespace_missing(cluster, namespace)
        request = AdminRequest("PUT", f"/admin/v2/namespaces/{namespace}", {"replication_clusters": [cluster]})
        remedy = f"{missing.reason}; {missing.remedy}"
        kind = DifferenceKind.NAMESPACE_MISSING
        return [Difference(Severity.ERROR, kind, namespace, None, {}, None, remedy, request)]
    changes = plan_adjustments(cluster, namespace, source.in_force, target.in_force).changes
    found = [_of_change(namespace, change, Severity.WARNING) for change in changes]
    for kind, path_end, value in _POLICIES:
        here, there = value(source.policies), value(target.policies)
        if here != there:
            found.append(_policy(kind, namespace, path_end, here, there))
    found += _quotas(namespace, source.policies, target.policies)
    told = (_with_field(each) for each in _told(namespace, source, target))
    return [*(_with_origins(each, source, target) for each in found), *told]


def _with_origins(found: Difference, source: NamespaceState, target: NamespaceState) -> Difference:
    field = found.field or _FIELDS[found.kind]
    here, there = (_origin(side.policies.to_json(), field) for side in (source, target))
    return replace(found, field=field, source_origin=here, target_origin=there)


def _origin(policies: Mapping[str, Any], field: str) -> str:
    """Where the broker takes the policy from that is in force."""
    name, _, kind = field.partition(".")
    value = policies.get(name)
    if kind and value:
        value = value.get(kind)
    return "broker" if value in (None, {}, "UNDEFINED") else "namespace"


def _policy(kind: DifferenceKind, namespace: NamespaceName, path_end: str, here: Any, there: Any) -> Difference:
    path = f"/admin/v2/namespaces/{namespace}/{path_end}"
    request = AdminRequest("DELETE", path, None) if here is None else AdminRequest("POST", path, here)
    return Difference(Severity.WARNING, kind, namespace, None, here, there, "audit apply makes it equal", request)


_POLICIES: Final[tuple[tuple[DifferenceKind, str, Callable[[NamespacePolicies], Any]], ...]] = (
    (DifferenceKind.DEDUPLICATION, "deduplication", lambda policies: policies.deduplication_enabled),
    (
        DifferenceKind.RETENTION,
        "retention",
        lambda policies: None if policies.retention is None else policies.retention.to_json(),
    ),
    (DifferenceKind.MESSAGE_TTL, "messageTTL", lambda policies: policies.message_ttl_seconds),
)
"""Policies whose value is set by one call; the kind, the end of the path, and the value as JSON."""


def _quotas(namespace: NamespaceName, source: NamespacePolicies, target: NamespacePolicies) -> Iterator[Difference]:
    for each in sorted({*source.backlog_quotas, *target.backlog_quotas}):
        here, there = (side.backlog_quotas.get(each) for side in (source, target))
        if here != there:
            path_end = f"backlogQuota?backlogQuotaType={each}"
            values = (None if quota is None else quota.to_json() for quota in (here, there))
            found = _policy(DifferenceKind.BACKLOG_QUOTA, namespace, path_end, *values)
            yield replace(found, field=f"backlog_quota_map.{each}")


def _told(namespace: NamespaceName, source: NamespaceState, target: NamespaceState) -> Iterator[Difference]:
    """What an operator may have made different on purpose."""
    here, there = (sorted(side.policies.permissions.namespace) for side in (source, target))
    if here != there:
        remedy = "compare namespaces permissions on both sides: only the names of roles are compared"
        yield Difference(Severity.WARNING, DifferenceKind.PERMISSION, namespace, None, here, there, remedy)
    here, there = (sorted(side.policies.replication_clusters) for side in (source, target))
    if here != there and max(len(here), len(there)) > 1:  # one that is not replicated lists its own cluster alone
        remedy = "right where messages go one way only; else namespaces set-clusters on the target"
        yield Difference(Severity.INFO, DifferenceKind.REPLICATION_CLUSTERS, namespace, None, here, there, remedy)
