"""Changes and differences as requests of the admin API, as shell commands, and as sentences.

Rules return changes and differences; these are their only other forms. `broker.topics.lifecycle` applies changes to the
metadata store.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from typing import Any, Final

from interpulse.model.adjustments import Difference, DifferenceKind
from interpulse.model.changes import (
    AdminChange,
    CreateMissedPartitions,
    CreateNamespace,
    CreatePartitionedMetadata,
    CreateTopicRecord,
    DeletePartitionedMetadata,
    DeleteTopic,
    SetNamespacePolicy,
    SetPartitionCount,
    TopicAdminChange,
)
from interpulse.model.names import TopicName
from interpulse.model.operations import AdminRequest, Namespaces, Topics, policy_operations
from interpulse.model.policies.catalogue import NAMESPACE_CALLS
from interpulse.model.topics import Existence, TopicKind
from interpulse.rules.provisioning import Provisioning, creation

# ---- Calls of the admin API


def request_of(change: AdminChange, *, local_only: bool) -> AdminRequest:
    """Return the request that makes the change. With ``local_only`` the broker does not pass it to other clusters."""
    match change:
        case CreatePartitionedMetadata(topic, partitions):
            return Topics.CREATE_PARTITIONED.request(topic, body=partitions, createLocalTopicOnly=local_only)
        case SetPartitionCount(topic, partitions, force):
            forced = {"force": True} if force else {}
            return Topics.EXPAND.request(topic, body=partitions, updateLocalTopicOnly=local_only, **forced)
        case CreateTopicRecord(topic, properties):
            return Topics.CREATE.request(topic, body=dict(properties))
        case CreateMissedPartitions(topic):
            return Topics.CREATE_MISSED_PARTITIONS.request(topic)
        case DeletePartitionedMetadata(topic, force):
            return Topics.DELETE_PARTITIONED.request(topic, force=force, deleteSchema=True)
        case DeleteTopic(topic, force):
            return Topics.DELETE.request(topic, force=force, deleteSchema=True)
        case CreateNamespace(namespace, clusters):
            return Namespaces.CREATE.request(namespace, body={"replication_clusters": list(clusters)})
        case SetNamespacePolicy():
            return _policy_request(change)


def _policy_request(change: SetNamespacePolicy) -> AdminRequest:
    """Return the request for a policy.

    Both switches of schema updates are one request, because they are stored together.
    """
    namespace, value = change.namespace, change.value
    if change.policy == "backlog_quotas":
        operation = Namespaces.REMOVE_QUOTA if value is None else Namespaces.SET_QUOTA
        return operation.request(namespace, body=value, backlogQuotaType=change.key)
    operations = policy_operations(NAMESPACE_CALLS[change.policy])
    if change.policy == "allow_auto_update_schema":
        producers, replicators = value
        return operations.set.request(namespace, body=producers, allowAutoUpdateSchemaWithReplicator=replicators)
    return (operations.remove if value is None else operations.set).request(namespace, body=value)


# ---- Commands


def command_of(change: TopicAdminChange | CreateNamespace) -> str:
    """Return the shell command, without the name of the program."""
    match change:
        case CreatePartitionedMetadata(topic, partitions):
            return f"topics create-partitioned-topic {_quoted(topic)} -p {partitions}"
        case SetPartitionCount(topic, partitions, force):
            return f"topics update-partitioned-topic {_quoted(topic)} -p {partitions}{_forced(force)}"
        case CreateTopicRecord(topic):
            return f"topics create {_quoted(topic)}"
        case CreateMissedPartitions(topic):
            return f"topics create-missed-partitions {_quoted(topic)}"
        case DeletePartitionedMetadata(topic, force):
            return f"topics delete-partitioned-topic {_quoted(topic)}{_forced(force)}"
        case DeleteTopic(topic, force):
            return f"topics delete {_quoted(topic)}{_forced(force)}"
        case CreateNamespace(namespace):
            return f"namespaces create {namespace}"


def _quoted(topic: TopicName) -> str:
    return shlex.quote(str(topic))


def _forced(force: bool) -> str:
    return " -f" if force else ""


# ---- Sentences


def sentence_of(change: TopicAdminChange) -> str:
    """Return the effect of the change as an imperative clause."""
    match change:
        case CreatePartitionedMetadata():
            return "create a partitioned topic"
        case CreateTopicRecord():
            return "create a topic"
        case SetPartitionCount():
            return "expand it"
        case CreateMissedPartitions():
            return "create the missing partitions"
        case DeletePartitionedMetadata() | DeleteTopic():
            return "delete it"


def reason_of(difference: Difference, cluster: str) -> str:
    """Return the reason why the difference with the remote ``cluster`` blocks replication of a namespace."""
    if difference.fault:
        return difference.fault
    topic = difference.topic
    if topic is None:
        if difference.kind is DifferenceKind.NAMESPACE_MISSING:
            return f"Namespace {difference.namespace} does not exist on cluster {cluster}"
        return f"auto-topic creation policy mismatch with {cluster}: {', '.join(_unequal_creation(difference))}"
    local, remote = difference.source["partitions"], difference.target["partitions"]
    if local and remote:
        kind = "__change_events system topic" if topic.local_name == "__change_events" else "topic"
        return (
            f"Partition count mismatch for {kind} '{topic}': local cluster has {local} partitions, "
            f"remote cluster '{cluster}' has {remote} partitions"
        )
    return (
        f"Topic type mismatch for topic '{topic}': local cluster has {_shape(local)}, "
        f"but remote cluster '{cluster}' has {_shape(remote)}"
    )


def _shape(partitions: int) -> str:
    return f"a partitioned topic with {partitions} partitions" if partitions else "a non-partitioned topic"


def _unequal_creation(difference: Difference) -> list[str]:
    here, there = difference.source, difference.target
    names = [
        name
        for name in ("allowAutoTopicCreation", "topicType", "defaultNumPartitions")
        if name in here and name in there and here[name] != there[name]
    ]
    return [f"{name}: local={_plain(here[name])}, remote={_plain(there[name])}" for name in names]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_COMPARED: Final = (
    DifferenceKind.TOPIC_PARTITIONS,
    DifferenceKind.PARTITIONS_CANNOT_SHRINK,
    DifferenceKind.TOPIC_TYPE_MISMATCH,
    DifferenceKind.AUTO_TOPIC_CREATION,
)


def mismatches(cluster: str, policies: Iterable[Difference], topics: Iterable[Difference]) -> list[str]:
    """Return a sentence for each difference that blocks replication to ``cluster``, topics first."""
    return [reason_of(difference, cluster) for difference in (*topics, *policies) if difference.kind in _COMPARED]


_REMEDIES: Final = {
    DifferenceKind.SCHEMA_MISSING: (
        "the replication job registers the versions that the source has; see schemas get on both sides"
    ),
    DifferenceKind.SUBSCRIPTION_MISSING: (
        "consumers that move there begin at the end: topics create-subscription, or [subscriptions] of the job"
    ),
    DifferenceKind.PERMISSION: ("compare namespaces permissions on both sides: only the names of roles are compared"),
    DifferenceKind.REPLICATION_CLUSTERS: (
        "right where messages go one way only; else namespaces set-clusters on the target"
    ),
    DifferenceKind.REMOTE_ONLY_TOPIC: "nothing is to be done unless it was deleted on the source on purpose",
}


def remedy_of(difference: Difference, cluster: str) -> str:
    """Return the remedy for the difference with the remote ``cluster``, with the commands of an operator's choices."""
    kind = difference.kind
    if kind is DifferenceKind.CLUSTER_UNREACHABLE:
        return (
            f"see that {cluster} is up, its address (clusters get {cluster}) and our credentials right, then ask again"
        )
    if difference.fault:
        side = "source" if difference.target is None else cluster
        return f"interpulse-admin topics doctor {difference.namespace}, on {side}"
    if kind is DifferenceKind.NAMESPACE_MISSING:
        created = command_of(CreateNamespace(difference.namespace, (cluster,)))
        tenant = difference.namespace.tenant
        return f"create it there ({created}), and before it the tenant if that is missing too (tenants create {tenant})"
    if difference.choices:
        return _choice(difference, cluster)
    if kind is DifferenceKind.TOPIC_MISSING:
        assert difference.topic is not None, "a missing topic has a name"
        created = sentence_of(creation(difference.topic, difference.source["partitions"]))
        return f"{created}, as audit apply and the replication job do"
    if difference.change is not None:
        return "audit apply makes it equal"
    return _REMEDIES[DifferenceKind.SCHEMA_MISSING if kind is DifferenceKind.SCHEMA_DIFFERENT else kind]


def advice_of(difference: Difference, cluster: str) -> str:
    """Return the remedy of an audit's row, with the reason if the row itself does not show it."""
    remedy = remedy_of(difference, cluster)
    if difference.fault or difference.choices or difference.kind is DifferenceKind.NAMESPACE_MISSING:
        return f"{reason_of(difference, cluster)}; {remedy}"
    return remedy


def _choice(difference: Difference, cluster: str) -> str:
    here, there = difference.choices
    assert difference.topic is not None, "only topics have choices"
    way = "keep what is left of its partitions" if isinstance(here, CreatePartitionedMetadata) else sentence_of(here)
    lost = "; what it holds, such as the policies of topics, is deleted with it" if difference.topic.is_system else ""
    return (
        f"{way} here ({command_of(here)}), or {sentence_of(there)} on {cluster} ({command_of(there)}), "
        f"with -f if it is in use or replicated{lost}"
    )


def hold_texts(
    base: TopicName, local: Existence, there: TopicName, remote: Existence, plan: Provisioning
) -> tuple[str, str]:
    """Return the reason why the topic ``base`` is held, and the remedy. ``there`` is its name on the remote cluster."""
    if local.kind is TopicKind.ABSENT:
        return f"{base} does not exist on the source cluster", "delete or recreate the left-over partitions there"
    if remote.kind is TopicKind.ABSENT:
        return (
            f"{there} does not exist on the remote cluster and createTopicToRemoteClusterForReplication is false",
            f"create it there as {_described(local)}",
        )
    shown = _described(remote) if there == base else f"{there} is {_described(remote)}"
    reason = f"{base} is {_described(local)} on the source cluster and {shown} on the remote cluster"
    if len(plan.choices) > 1:
        one, other = map(command_of, plan.choices)
        way = f"delete the one that is wrong ({one}, here; {other}, there)"
    else:
        where = "here" if remote.partitions > local.partitions else "there"
        way = f"expand the smaller one ({command_of(plan.choices[0])}, {where})"
    return reason, f"make the partition counts equal: {way}"


def _described(existence: Existence) -> str:
    if existence.kind is TopicKind.PARTITIONED:
        return f"a partitioned topic of {existence.partitions} partitions"
    return "a topic that is not partitioned"
