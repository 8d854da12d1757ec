"""The changes that a remote cluster needs before a topic can be replicated to it (PIP-433)."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import Enum

from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, TopicKind

__all__ = ["Provisioning", "ProvisioningStep", "deletion_command", "may_grow", "plan_topic"]


class ProvisioningStep(Enum):
    """The next thing to do."""

    CONNECT = "connect"
    CREATE_PLAIN = "create a topic"
    CREATE_PARTITIONED = "create a partitioned topic"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Provisioning:
    """A step, the partition count it concerns, and for a hold the reason and what would end it."""

    step: ProvisioningStep
    partitions: int = 0
    reason: str = ""
    remedy: str = ""


def plan_topic(
    base: TopicName, local: Existence, remote: Existence, *, may_create: bool, there: TopicName | None = None
) -> Provisioning:
    """Compare the partition counts of one topic, both asked without creating anything. ``there``: its name on the
    remote cluster, if it is another one.

    Neither side is ever changed to fit the other: a difference holds the topic until an operator decides. The remote
    cluster's auto-creation policies play no part. A creation that meets "already exists" is to be planned again.
    """
    there = base if there is None else there
    if local.kind is TopicKind.ABSENT:
        return _hold(
            f"{base} does not exist on the source cluster", "delete or recreate the left-over partitions there"
        )
    if remote.kind is TopicKind.ABSENT:
        return _create(local) if may_create else _missing(there, local)
    if (local.kind, local.partitions) == (remote.kind, remote.partitions):
        return Provisioning(ProvisioningStep.CONNECT, local.partitions)
    shown = _described(remote) if there == base else f"{there} is {_described(remote)}"
    return _hold(
        f"{base} is {_described(local)} on the source cluster and {shown} on the remote cluster",
        f"make the partition counts equal: {_way_out((base, local), (there, remote))}",
    )


def may_grow(local: Existence, remote: Existence) -> bool:
    """Whether the remote topic can become equal by growing; none ever shrinks."""
    return local.kind is remote.kind is TopicKind.PARTITIONED and remote.partitions < local.partitions


def _way_out(*sides: tuple[TopicName, Existence]) -> str:
    if any(each.kind is not TopicKind.PARTITIONED for _, each in sides):
        here, there = (
            deletion_command(name, partitioned=each.kind is TopicKind.PARTITIONED, force=True)  # as it is replicated
            for name, each in sides
        )
        return f"delete the one that is wrong ({here}, here; {there}, there)"
    (here_name, local), (there_name, remote) = sides
    name, count, where = (here_name, remote.partitions, "here")
    if remote.partitions < local.partitions:
        name, count, where = (there_name, local.partitions, "there")
    return f"expand the smaller one (topics update-partitioned-topic {shlex.quote(str(name))} -p {count}, {where})"


def deletion_command(topic: TopicName, *, partitioned: bool, force: bool = False) -> str:
    """For a shell; A topic in use or replicated needs ``force``."""
    verb = "delete-partitioned-topic" if partitioned else "delete"
    return f"topics {verb} {shlex.quote(str(topic))}{' -f' if force else ''}"


def _create(local: Existence) -> Provisioning:
    if local.kind is TopicKind.PARTITIONED:
        return Provisioning(ProvisioningStep.CREATE_PARTITIONED, local.partitions)
    return Provisioning(ProvisioningStep.CREATE_PLAIN)


def _missing(there: TopicName, local: Existence) -> Provisioning:
    return _hold(
        f"{there} does not exist on the remote cluster and createTopicToRemoteClusterForReplication is false",
        f"create it there as {_described(local)}",
    )


def _hold(reason: str, remedy: str) -> Provisioning:
    return Provisioning(ProvisioningStep.HOLD, reason=reason, remedy=remedy)


def _described(existence: Existence) -> str:
    if existence.kind is TopicKind.PARTITIONED:
        return f"a partitioned topic of {existence.partitions} partitions"
    return "a topic that is not partitioned"
