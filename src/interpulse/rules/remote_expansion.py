"""A partitioned topic of a replicated namespace is expanded: what has to happen on the other clusters first."""

from __future__ import annotations

from collections.abc import Mapping

from interpulse.model.changes import CreatePartitionedMetadata, SetPartitionCount
from interpulse.model.errors import Conflict, Unprocessable
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, TopicKind

__all__ = ["RemoteExpansion", "plan_remote_expansion"]

RemoteExpansion = CreatePartitionedMetadata | SetPartitionCount


def plan_remote_expansion(
    name: TopicName, partitions: int, remotes: Mapping[str, Existence], *, creation_allowed: bool
) -> dict[str, RemoteExpansion]:
    """What to change on which cluster, so that all have as many partitions; nothing where it is so already.

    ``remotes`` says what the name stands for there. Looked at before anything is changed, here or there, unlike in
    Pulsar, where the local topic has grown already when a remote one cannot. Raises Unprocessable if a remote topic has
    more partitions, Conflict if it is not partitioned, or absent and may not be created from here.
    """
    steps = {cluster: _step(name, partitions, cluster, found, creation_allowed) for cluster, found in remotes.items()}
    return {cluster: step for cluster, step in steps.items() if step is not None}


def _step(
    name: TopicName, partitions: int, cluster: str, found: Existence, creation_allowed: bool
) -> RemoteExpansion | None:
    if found.kind is TopicKind.NON_PARTITIONED:
        raise Conflict(f"Topic {name} is not partitioned on cluster {cluster}; nothing was changed")
    if found.kind is TopicKind.ABSENT:
        if creation_allowed:
            return CreatePartitionedMetadata(name, partitions)
        raise Conflict(
            f"Topic {name} does not exist on cluster {cluster}, and createTopicToRemoteClusterForReplication is off; "
            f"create it there with {partitions} partitions, or set updateLocalTopicOnly. Nothing was changed"
        )
    if found.partitions > partitions:
        raise Unprocessable(
            f"Topic {name} has {found.partitions} partitions on cluster {cluster}, more than {partitions}; nothing was "
            f"changed"
        )
    return SetPartitionCount(name, partitions) if found.partitions < partitions else None
