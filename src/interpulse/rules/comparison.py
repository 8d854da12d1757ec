"""Differences between two clusters, by topic and namespace, each with the change that removes it.

The source is the reference. Only the target is changed, and nothing there shrinks or is deleted. An audit reports all
differences; the plan that enables a namespace's replication (PIP-433) takes those of the policies in force and of
partition counts.

Differs from Pulsar on purpose: the switch of auto-creation itself is compared, partition counts only if both sides
create partitioned topics, and nothing if neither creates topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from interpulse.model.adjustments import Difference, DifferenceKind, Severity
from interpulse.model.changes import (
    CreateNamespace,
    CreatePartitionedMetadata,
    SetNamespacePolicy,
    SetPartitionCount,
    TopicAdminChange,
)
from interpulse.model.inventory import ListedKind, TopicRow
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import PARTITIONED, AutoTopicCreation, BacklogQuota, RetentionPolicies
from interpulse.rules.inventory import NamespaceInventory, NamespaceState, PoliciesInForce, as_override
from interpulse.rules.provisioning import creation, deletion
from interpulse.rules.topic_diagnosis import Disagreement, diagnose

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
"""Name of the differing field; for a namespace, its name in the policies document. None if the whole is missing."""

# ---- Topics

_FAULTS: Final = {
    Disagreement.LOST_METADATA: DifferenceKind.ORPHAN_PARTITION,
    Disagreement.ORPHAN_PARTITIONS: DifferenceKind.ORPHAN_PARTITION,
    Disagreement.BOTH_KINDS: DifferenceKind.TOPIC_TYPE_MISMATCH,
    Disagreement.MISSING_PARTITIONS: DifferenceKind.MISSING_PARTITION,
    Disagreement.UNFINISHED_DELETION: DifferenceKind.MISSING_PARTITION,
    Disagreement.UNFINISHED_EXPANSION: DifferenceKind.MISSING_PARTITION,
}
_NOT_USERS: Final = ("__compaction", "interpulse.", "pulsar.repl.")
"""Prefixes of internal cursors of brokers and replication jobs."""


def inventory_differences(
    cluster: str, namespace: NamespaceName, source: NamespaceInventory, target: NamespaceInventory
) -> list[Difference]:
    """Return all differences of one namespace, with ``cluster`` as the target; none if one side could not be read.

    The topics of the source are listed under their names on the target.
    """
    if source.error is not None or target.error is not None:
        return []
    differences = namespace_differences(cluster, namespace, source.state, target.state)
    for topic in sorted(source.topics.keys() | target.topics.keys(), key=str):
        differences += topic_differences(source.topics.get(topic), target.topics.get(topic))
    return differences


def topic_differences(source: TopicRow | None, target: TopicRow | None) -> list[Difference]:
    """Return all differences of one topic; None: it is absent.

    Both rows have the topic's name on the target. A row with an error yields no differences.
    """
    if any(row is not None and row.error is not None for row in (source, target)):
        return []
    differences = [*_faults(source, is_source=True), *_faults(target, is_source=False)]
    if source is None or source.kind is not ListedKind.ORPHAN_PARTITION:
        differences += _between(source, target)
    return [replace(difference, field=_FIELDS.get(difference.kind)) for difference in differences]


def _between(source: TopicRow | None, target: TopicRow | None) -> Iterator[Difference]:
    if source is not None and (target is None or target.kind is ListedKind.ORPHAN_PARTITION):
        yield _missing(source if target is None else target, source.partitions)
        return
    assert target is not None, "a topic is on one side at least"
    if source is None:
        yield from _remote_only(target)
        return
    if (counts := count_difference(source, target)) is not None:
        yield counts
    yield from _schema_differences(source, target)
    yield from _subscription_differences(source, target)


def _faults(row: TopicRow | None, *, is_source: bool) -> Iterator[Difference]:
    """Yield the disagreements between the records of one side."""
    if row is None or row.is_healthy:
        return
    indexes = list(row.indexes or ())
    state = {"partitions": row.partitions, "indexes": indexes}
    source, target = (state, None) if is_source else (None, state)
    for finding in diagnose(row):
        kind = _FAULTS[finding.kind]
        if kind is DifferenceKind.MISSING_PARTITION and not indexes:
            kind = DifferenceKind.METADATA_ONLY
        yield _of_topic(Severity.ERROR, kind, row, source, target, fault=finding.sentence)


def _of_topic(
    severity: Severity, kind: DifferenceKind, row: TopicRow, source: Any, target: Any, **more: Any
) -> Difference:
    return Difference(severity, kind, row.topic.namespace_name, row.topic, source, target, **more)


def _missing(row: TopicRow, partitions: int) -> Difference:
    """Yield the missing topic. Partitions without metadata are not a topic: creating it adopts them."""
    system = row.topic.is_system
    return _of_topic(
        Severity.WARNING if system else Severity.ERROR,
        DifferenceKind.TOPIC_MISSING,
        row,
        {"partitions": partitions},
        None,
        change=None if system else creation(row.topic, partitions),
    )


def count_difference(source: TopicRow | None, target: TopicRow | None) -> Difference | None:
    """Return the difference between the partition counts of one topic; None if only the source has it.

    On the target, partitions without metadata are not a topic. On the source they mean a non-partitioned topic.
    """
    if target is None or target.kind is ListedKind.ORPHAN_PARTITION:
        return None
    if source is None:
        return next(_remote_only(target), None)
    topic, here, there = target.topic, source.partitions, target.partitions
    if here == there:
        return None
    sides = {"partitions": here}, {"partitions": there}
    if 0 < there < here:
        change = SetPartitionCount(topic, here)
        return _of_topic(Severity.ERROR, DifferenceKind.TOPIC_PARTITIONS, target, *sides, change=change)
    both = here and there
    kind = DifferenceKind.PARTITIONS_CANNOT_SHRINK if both else DifferenceKind.TOPIC_TYPE_MISMATCH
    way: TopicAdminChange = SetPartitionCount(topic, there) if both else deletion(topic, here)
    if source.kind is ListedKind.ORPHAN_PARTITION:
        way = CreatePartitionedMetadata(topic, there)
    return _of_topic(Severity.ERROR, kind, target, *sides, choices=(way, deletion(topic, there)))


def _remote_only(row: TopicRow) -> Iterator[Difference]:
    if not row.topic.is_system:
        kind = DifferenceKind.REMOTE_ONLY_TOPIC
        yield _of_topic(Severity.INFO, kind, row, None, {"partitions": row.partitions})


def _schema_differences(source: TopicRow, target: TopicRow) -> Iterator[Difference]:
    """Yield the schema differences.

    Only the replication job registers schemas, in order, if the target allows replicators.
    """
    if source.schema_hash is None or source.schema_hash == target.schema_hash:
        return
    here, there = (
        {"type": row.schema_type, "hash": row.schema_hash, "versions": row.schema_versions} for row in (source, target)
    )
    missing = target.schema_hash is None
    kind = DifferenceKind.SCHEMA_MISSING if missing else DifferenceKind.SCHEMA_DIFFERENT
    yield _of_topic(Severity.WARNING, kind, target, here, None if missing else there)


def _subscription_differences(source: TopicRow, target: TopicRow) -> Iterator[Difference]:
    """Yield the subscriptions that only the source has. Those of the target alone are its own."""
    if source.subscriptions is None or target.subscriptions is None:
        return
    there = set(target.subscriptions)
    if missing := [name for name in source.subscriptions if name not in there and not name.startswith(_NOT_USERS)]:
        yield _of_topic(Severity.WARNING, DifferenceKind.SUBSCRIPTION_MISSING, target, missing, sorted(there))


# ---- Namespaces


def namespace_differences(
    cluster: str, namespace: NamespaceName, source: NamespaceState | None, target: NamespaceState | None
) -> list[Difference]:
    """Return all policy differences of one namespace. One that exists only on the target is not a difference."""
    if source is None:
        return []
    if target is None:
        return [replace(namespace_missing(namespace), source={}, change=CreateNamespace(namespace, (cluster,)))]
    differences = [
        *in_force_differences(namespace, source.in_force(), target.in_force()),
        *_stored_differences(namespace, source.policies, target.policies),
    ]
    stored = [side.policies.to_json() for side in (source, target)]
    for index, difference in enumerate(differences):
        field = difference.field or _FIELDS[difference.kind]
        here, there = (_origin(policies, field) for policies in stored)
        differences[index] = replace(difference, field=field, source_origin=here, target_origin=there)
    return [*differences, *_on_purpose(namespace, source.policies, target.policies)]


def namespace_missing(namespace: NamespaceName) -> Difference:
    """Return the difference if the target lacks the namespace. Pulsar does not distinguish a missing tenant."""
    return Difference(Severity.ERROR, DifferenceKind.NAMESPACE_MISSING, namespace)


def in_force_differences(
    namespace: NamespaceName, source: PoliciesInForce, target: PoliciesInForce
) -> Iterator[Difference]:
    """Yield the differences of the policies that both clusters must share before replication works."""
    if _creates_otherwise(source.auto_creation, target.auto_creation):
        here, there = (as_override(side.auto_creation).to_json() for side in (source, target))
        there |= {"source": target.auto_creation_source}
        yield _of_policy(
            DifferenceKind.AUTO_TOPIC_CREATION, namespace, here, there, policy="auto_topic_creation", value=here
        )
    here_allowed, there_allowed = (
        (side.auto_update_schema, side.replicator_may_update_schema) for side in (source, target)
    )
    if here_allowed != there_allowed:
        kind = DifferenceKind.IS_ALLOW_AUTO_UPDATE_SCHEMA
        keys = ("isAllowAutoUpdateSchema", "isAllowAutoUpdateSchemaWithReplicator")
        sides: list[Any] = [dict(zip(keys, allowed, strict=True)) for allowed in (here_allowed, there_allowed)]
        if here_allowed[1] == there_allowed[1]:  # that of the producers alone
            sides = [here_allowed[0], there_allowed[0]]
        yield _of_policy(kind, namespace, *sides, policy="allow_auto_update_schema", value=here_allowed)
    strategies = source.schema_strategy, target.schema_strategy
    if strategies[0] != strategies[1]:
        kind = DifferenceKind.SCHEMA_COMPATIBILITY_STRATEGY
        yield _of_policy(kind, namespace, *strategies, policy="schema_compatibility_strategy")


def _creates_otherwise(source: AutoTopicCreation, target: AutoTopicCreation) -> bool:
    if not source.allowed and not target.allowed:
        return False
    here, there = as_override(source), as_override(target)
    return (here.allowed, here.topic_type) != (there.allowed, there.topic_type) or (
        here.topic_type == PARTITIONED and here.default_partitions != there.default_partitions
    )


def _of_policy(
    kind: DifferenceKind,
    namespace: NamespaceName,
    source: Any,
    target: Any,
    *,
    policy: str,
    value: Any = None,
    key: str | None = None,
) -> Difference:
    """Return a difference whose change sets ``value``, by default the state of the source."""
    change = SetNamespacePolicy(namespace, policy, source if value is None else value, key)
    return Difference(Severity.WARNING, kind, namespace, None, source, target, change)


def _stored_differences(
    namespace: NamespaceName, source: NamespacePolicies, target: NamespacePolicies
) -> Iterator[Difference]:
    """Yield the differences of policies whose stored value counts and that one call sets."""
    for kind, policy in (
        (DifferenceKind.DEDUPLICATION, "deduplication_enabled"),
        (DifferenceKind.RETENTION, "retention"),
        (DifferenceKind.MESSAGE_TTL, "message_ttl_seconds"),
    ):
        here, there = (_as_json(getattr(side, policy)) for side in (source, target))
        if here != there:
            yield _of_policy(kind, namespace, here, there, policy=policy)
    for quota in sorted({*source.backlog_quotas, *target.backlog_quotas}):
        here, there = (_as_json(side.backlog_quotas.get(quota)) for side in (source, target))
        if here != there:
            kind = DifferenceKind.BACKLOG_QUOTA
            difference = _of_policy(kind, namespace, here, there, policy="backlog_quotas", key=quota)
            yield replace(difference, field=f"backlog_quota_map.{quota}")


def _as_json(value: Any) -> Any:
    return value.to_json() if isinstance(value, RetentionPolicies | BacklogQuota) else value


def _origin(policies: Mapping[str, Any], field: str) -> str:
    """Return the level at which the policy in force is set."""
    name, _, key = field.partition(".")
    value = policies.get(name)
    if key and value:
        value = value.get(key)
    return "broker" if value in (None, {}, "UNDEFINED") else "namespace"


def _on_purpose(namespace: NamespaceName, source: NamespacePolicies, target: NamespacePolicies) -> Iterator[Difference]:
    """Yield differences that may be intended."""
    kind = DifferenceKind.PERMISSION
    here, there = (sorted(side.permissions.namespace) for side in (source, target))
    if here != there:
        yield Difference(Severity.WARNING, kind, namespace, None, here, there, field=_FIELDS[kind])
    kind = DifferenceKind.REPLICATION_CLUSTERS
    here, there = (sorted(side.replication_clusters) for side in (source, target))
    if here != there and max(len(here), len(there)) > 1:  # one that is not replicated lists its own cluster alone
        yield Difference(Severity.INFO, kind, namespace, None, here, there, field=_FIELDS[kind])
