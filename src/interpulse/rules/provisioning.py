"""Changes that a remote cluster needs before a topic is replicated to it (PIP-433) or expanded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from interpulse.model.changes import (
    CreatePartitionedMetadata,
    CreateTopicRecord,
    DeletePartitionedMetadata,
    DeleteTopic,
    SetPartitionCount,
    TopicAdminChange,
)
from interpulse.model.errors import Conflict, Unprocessable
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, TopicKind


class ProvisioningStep(Enum):
    """Kind of the next step."""

    CONNECT = auto()
    CREATE = auto()
    HOLD = auto()


@dataclass(frozen=True, slots=True)
class Provisioning:
    """Next step. ``change`` creates the topic; a held topic has ``choices`` for the operator.

    One choice expands the smaller topic, two delete it, on the source or on the remote cluster.
    """

    step: ProvisioningStep
    change: CreatePartitionedMetadata | CreateTopicRecord | None = None
    choices: tuple[TopicAdminChange, ...] = ()


def plan_topic(
    base: TopicName, local: Existence, remote: Existence, *, may_create: bool, there: TopicName | None = None
) -> Provisioning:
    """Compare one topic of two clusters, both read without creating anything.

    ``there`` is its name on the remote cluster, if it differs. Neither side is ever changed to match the other: a
    difference holds the topic until an operator decides. The remote cluster's auto-creation policies do not count.
    After a creation that fails with "already exists", plan again.
    """
    there = base if there is None else there
    if local.kind is TopicKind.ABSENT:
        return Provisioning(ProvisioningStep.HOLD)
    if remote.kind is TopicKind.ABSENT:
        if not may_create:
            return Provisioning(ProvisioningStep.HOLD)
        return Provisioning(ProvisioningStep.CREATE, creation(there, local.partitions))
    if (local.kind, local.partitions) == (remote.kind, remote.partitions):
        return Provisioning(ProvisioningStep.CONNECT)
    return Provisioning(ProvisioningStep.HOLD, choices=_choices((base, local), (there, remote)))


def may_grow(local: Existence, remote: Existence) -> bool:
    """Return True if the remote topic can be made equal by expansion. A topic never shrinks."""
    return local.kind is remote.kind is TopicKind.PARTITIONED and remote.partitions < local.partitions


def creation(topic: TopicName, partitions: int) -> CreatePartitionedMetadata | CreateTopicRecord:
    """Return the creation of a topic with this many partitions; 0 = not partitioned."""
    return CreatePartitionedMetadata(topic, partitions) if partitions else CreateTopicRecord(topic)


def deletion(topic: TopicName, partitions: int, *, force: bool = False) -> DeletePartitionedMetadata | DeleteTopic:
    """Return the deletion of a topic with this many partitions. One that is in use or replicated needs ``force``."""
    return DeletePartitionedMetadata(topic, force) if partitions else DeleteTopic(topic, force)


def _choices(*sides: tuple[TopicName, Existence]) -> tuple[TopicAdminChange, ...]:
    if any(existence.kind is not TopicKind.PARTITIONED for _, existence in sides):
        return tuple(deletion(topic, existence.partitions, force=True) for topic, existence in sides)
    (topic, _), (_, larger) = sorted(sides, key=lambda side: side[1].partitions)
    return (SetPartitionCount(topic, larger.partitions),)


# ---- Expansion of a replicated topic

RemoteExpansion = CreatePartitionedMetadata | SetPartitionCount


def plan_remote_expansion(
    name: TopicName, partitions: int, remotes: Mapping[str, Existence], *, creation_allowed: bool
) -> dict[str, RemoteExpansion]:
    """Return the change on each cluster that lacks partitions before a topic is expanded here to ``partitions``.

    ``remotes`` has the existence of the name on each cluster. All are checked before any is changed; in Pulsar the
    local topic has already grown when a remote one cannot. Raise Unprocessable if a remote topic has more partitions,
    Conflict if it is not partitioned, or absent and may not be created from here.
    """
    steps = {cluster: _step(name, partitions, cluster, remote, creation_allowed) for cluster, remote in remotes.items()}
    return {cluster: step for cluster, step in steps.items() if step is not None}


def _step(
    name: TopicName, partitions: int, cluster: str, remote: Existence, creation_allowed: bool
) -> RemoteExpansion | None:
    if remote.kind is TopicKind.NON_PARTITIONED:
        raise Conflict(f"Topic {name} is not partitioned on cluster {cluster}; nothing was changed")
    if remote.kind is TopicKind.ABSENT:
        if creation_allowed:
            return CreatePartitionedMetadata(name, partitions)
        raise Conflict(
            f"Topic {name} does not exist on cluster {cluster}, and createTopicToRemoteClusterForReplication is off; "
            f"create it there with {partitions} partitions, or set updateLocalTopicOnly. Nothing was changed"
        )
    if remote.partitions > partitions:
        raise Unprocessable(
            f"Topic {name} has {remote.partitions} partitions on cluster {cluster}, more than {partitions}; nothing "
            f"was changed"
        )
    return SetPartitionCount(name, partitions) if remote.partitions < partitions else None
