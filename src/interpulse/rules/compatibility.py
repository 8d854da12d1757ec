"""The differences that keep a namespace from being replicated between two clusters, and their remedies (PIP-433).

`compare` says what keeps replication from working: topics and auto-creation policies. `plan_adjustments` says what has
to change on the remote cluster, the source being the standard; it looks at schema policies too.

Differs from Pulsar on purpose: the switch itself is compared, partition counts only where both sides create
partitioned topics, and nothing where neither creates topics.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from interpulse.model.adjustments import (
    AdjustmentChange,
    AdjustmentConflict,
    AdminRequest,
    ChangeKind,
    ClusterPlan,
    ConflictKind,
)
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.namespace_policies import NON_PARTITIONED, PARTITIONED, AutoTopicCreation
from interpulse.rules.provisioning import deletion_command

__all__ = [
    "NamespaceSnapshot",
    "as_override",
    "compare",
    "joined_plans",
    "namespace_missing",
    "plan_adjustments",
    "plan_policies",
    "plan_topics",
]


@dataclass(frozen=True, slots=True)
class NamespaceSnapshot:
    """One namespace on one cluster: the policies in force, and partition counts by base name (0 = plain).

    ``replicator_may_update_schema`` is true wherever producers may. ``left_over`` are those of the plain topics that
    are nothing but partitions without metadata.
    """

    auto_creation: AutoTopicCreation
    partitions: Mapping[TopicName, int]
    auto_creation_source: Literal["namespace", "broker"] = "broker"
    schema_strategy: str = "FULL"
    auto_update_schema: bool = True
    replicator_may_update_schema: bool = True
    left_over: frozenset[TopicName] = frozenset()


def as_override(policy: AutoTopicCreation) -> AutoTopicCreation:
    """A policy in a form that can be set for a namespace: the type counts in its exact spelling."""
    partitioned = policy.topic_type == PARTITIONED
    return AutoTopicCreation(
        policy.allowed,
        PARTITIONED if partitioned else NON_PARTITIONED,
        policy.default_partitions if partitioned else None,
        policy.always_allow_for_replicator,
    )


def compare(cluster: str, local: NamespaceSnapshot, remote: NamespaceSnapshot) -> list[str]:
    """Every difference that would keep replication to ``cluster`` from working, a sentence each, topics first.

    Topics that exist on one side only are no difference: what is missing remotely is created there.
    """
    topics = [_topic_difference(cluster, *each) for each in _unequal_topics(local, remote)]
    unequal = _unequal_creation(local.auto_creation, remote.auto_creation)
    if not unequal:
        return topics
    return [*topics, f"auto-topic creation policy mismatch with {cluster}: {', '.join(unequal)}"]


def plan_adjustments(
    cluster: str, namespace: NamespaceName, local: NamespaceSnapshot, remote: NamespaceSnapshot | None
) -> ClusterPlan:
    """What has to change on ``cluster``, and what no change there can solve; None = it has no such namespace.

    Only the remote namespace is ever changed: neither the source nor the remote brokers. Partition counts only grow.
    """
    if remote is None:
        return ClusterPlan(cluster, conflicts=(namespace_missing(cluster, namespace),))
    topics = sorted({*local.partitions, *remote.partitions}, key=str)
    policies = plan_policies(cluster, namespace, local, remote)
    return joined_plans(policies, [plan_topics(cluster, topics, local, remote)])


def plan_policies(
    cluster: str, namespace: NamespaceName, local: NamespaceSnapshot, remote: NamespaceSnapshot
) -> ClusterPlan:
    """The part of `plan_adjustments` about the policies of the namespace."""
    return ClusterPlan(cluster, changes=tuple(_policy_changes(namespace, local, remote)))


def plan_topics(
    cluster: str, topics: Iterable[TopicName], local: NamespaceSnapshot, remote: NamespaceSnapshot
) -> ClusterPlan:
    """The part about some topics, in order of their names."""
    growing, conflicts, remote_only = [], [], []
    for topic in topics:
        here, there = local.partitions.get(topic), remote.partitions.get(topic)
        if there is None or here == there:
            continue
        if here is None:
            if not topic.is_system:
                remote_only.append((topic, there))
        elif 0 < there < here:
            growing.append(_grow(topic, here, there))
        else:
            remedy = _way_out(cluster, topic, here, there, left_over=topic in local.left_over)
            conflicts.append(_topic_conflict(cluster, topic, here, there, remedy))
    return ClusterPlan(cluster, tuple(growing), tuple(conflicts), tuple(remote_only))


def joined_plans(policies: ClusterPlan, topics: Sequence[ClusterPlan]) -> ClusterPlan:
    """The whole of the parts."""
    conflicts = chain.from_iterable(each.conflicts for each in topics)
    return ClusterPlan(
        policies.cluster,
        changes=(*policies.changes, *chain.from_iterable(each.changes for each in topics)),
        conflicts=tuple(sorted(conflicts, key=lambda each: each.kind)),
        remote_only=tuple(chain.from_iterable(each.remote_only for each in topics)),
    )


def _by_name(item: tuple[TopicName, int]) -> str:
    return str(item[0])


def _unequal_topics(local: NamespaceSnapshot, remote: NamespaceSnapshot) -> Iterator[tuple[TopicName, int, int]]:
    """Topics of both sides whose counts differ, in order of their names."""
    for topic, count in sorted(local.partitions.items(), key=_by_name):
        if remote.partitions.get(topic, count) != count:
            yield topic, count, remote.partitions[topic]


def _topic_difference(cluster: str, topic: TopicName, local: int, remote: int) -> str:
    if local and remote:
        kind = "__change_events system topic" if topic.local_name == "__change_events" else "topic"
        return (
            f"Partition count mismatch for {kind} '{topic}': local cluster has {local} partitions, "
            f"remote cluster '{cluster}' has {remote} partitions"
        )
    return (
        f"Topic type mismatch for topic '{topic}': local cluster has {_described(local)}, "
        f"but remote cluster '{cluster}' has {_described(remote)}"
    )


def _described(partitions: int) -> str:
    return f"a partitioned topic with {partitions} partitions" if partitions else "a non-partitioned topic"


def _unequal_creation(local: AutoTopicCreation, remote: AutoTopicCreation) -> list[str]:
    if not local.allowed and not remote.allowed:
        return []
    here, there = as_override(local), as_override(remote)
    pairs = [
        ("allowAutoTopicCreation", str(here.allowed).lower(), str(there.allowed).lower()),
        ("topicType", here.topic_type, there.topic_type),
    ]
    if here.topic_type == there.topic_type == PARTITIONED:
        pairs.append(("defaultNumPartitions", str(here.default_partitions), str(there.default_partitions)))
    return [f"{name}: local={ours}, remote={theirs}" for name, ours, theirs in pairs if ours != theirs]


def _policy_changes(
    namespace: NamespaceName, local: NamespaceSnapshot, remote: NamespaceSnapshot
) -> Iterator[AdjustmentChange]:
    if _unequal_creation(local.auto_creation, remote.auto_creation):
        yield _set_creation(namespace, local, remote)
    here = (local.auto_update_schema, local.replicator_may_update_schema)
    there = (remote.auto_update_schema, remote.replicator_may_update_schema)
    if here != there:
        yield _set_auto_update(namespace, here, there)
    if local.schema_strategy != remote.schema_strategy:
        yield AdjustmentChange(
            ChangeKind.SCHEMA_COMPATIBILITY_STRATEGY,
            current=remote.schema_strategy,
            desired=local.schema_strategy,
            request=_policy_request("PUT", namespace, "schemaCompatibilityStrategy", local.schema_strategy),
        )


def _set_creation(namespace: NamespaceName, local: NamespaceSnapshot, remote: NamespaceSnapshot) -> AdjustmentChange:
    desired = as_override(local.auto_creation).to_json()
    return AdjustmentChange(
        ChangeKind.AUTO_TOPIC_CREATION,
        current=as_override(remote.auto_creation).to_json() | {"source": remote.auto_creation_source},
        desired=desired,
        request=_policy_request("POST", namespace, "autoTopicCreation", desired),
    )


def _set_auto_update(
    namespace: NamespaceName, desired: tuple[bool, bool], current: tuple[bool, bool]
) -> AdjustmentChange:
    """Both switches in one call, as they are stored together; each pair is (producers may, replicators may)."""
    query = f"?allowAutoUpdateSchemaWithReplicator={str(desired[1]).lower()}"
    request = _policy_request("POST", namespace, f"isAllowAutoUpdateSchema{query}", desired[0])
    if desired[1] == current[1]:
        return AdjustmentChange(ChangeKind.IS_ALLOW_AUTO_UPDATE_SCHEMA, current[0], desired[0], request)
    return AdjustmentChange(
        ChangeKind.IS_ALLOW_AUTO_UPDATE_SCHEMA, _switches_json(current), _switches_json(desired), request
    )


def _switches_json(switches: tuple[bool, bool]) -> dict[str, bool]:
    allowed, with_replicator = switches
    return {"isAllowAutoUpdateSchema": allowed, "isAllowAutoUpdateSchemaWithReplicator": with_replicator}


def _policy_request(method: str, namespace: NamespaceName, policy: str, body: Any) -> AdminRequest:
    return AdminRequest(method, f"/admin/v2/namespaces/{namespace}/{policy}", body)


def _grow(topic: TopicName, local: int, remote: int) -> AdjustmentChange:
    path = f"/admin/v2/{topic.rest_path}/partitions?updateLocalTopicOnly=true"
    return AdjustmentChange(
        ChangeKind.TOPIC_PARTITIONS,
        current={"partitions": remote},
        desired={"partitions": local},
        request=AdminRequest("POST", path, local),
        topic=topic,
    )


def _topic_conflict(cluster: str, topic: TopicName, local: int, remote: int, remedy: str) -> AdjustmentConflict:
    return AdjustmentConflict(
        ConflictKind.PARTITIONS_CANNOT_SHRINK if local and remote else ConflictKind.TOPIC_TYPE_MISMATCH,
        reason=_topic_difference(cluster, topic, local, remote),
        remedy=remedy,
        topic=topic,
        local={"partitions": local},
        remote={"partitions": remote},
    )


def _way_out(cluster: str, topic: TopicName, local: int, remote: int, *, left_over: bool) -> str:
    """The commands that end a conflict about a topic, to be copied."""
    name = shlex.quote(str(topic))
    if local and remote:
        way = f"expand it here (topics update-partitioned-topic {name} -p {remote})"
    elif left_over:
        way = f"keep what is left of its partitions here (topics create-partitioned-topic {name} -p {remote})"
    else:
        way = f"delete it here ({deletion_command(topic, partitioned=local > 0)})"
    lost = "; what it holds, such as the policies of topics, is deleted with it" if topic.is_system else ""
    there = deletion_command(topic, partitioned=remote > 0)
    return f"{way}, or delete it on {cluster} ({there}), with -f if it is in use or replicated{lost}"


def namespace_missing(cluster: str, namespace: NamespaceName) -> AdjustmentConflict:
    """The other cluster lacks the namespace. A missing tenant is not told apart: Pulsar does not either."""
    return AdjustmentConflict(
        ConflictKind.NAMESPACE_MISSING,
        reason=f"Namespace {namespace} does not exist on cluster {cluster}",
        remedy=f"create it there (namespaces create {namespace}), and before it the tenant if that is missing too "
        f"(tenants create {namespace.tenant})",
    )
