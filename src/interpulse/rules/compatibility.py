"""Whether a namespace can be replicated between two clusters: topics and auto-creation policies compared (PIP-433).

Differs from Pulsar on purpose: the switch itself is compared, partition counts only where both sides create
partitioned topics, and nothing where neither creates topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from interpulse.model.names import TopicName
from interpulse.model.policies import NON_PARTITIONED, PARTITIONED, AutoTopicCreation

__all__ = ["NamespaceSnapshot", "compare"]


@dataclass(frozen=True, slots=True)
class NamespaceSnapshot:
    """One namespace on one cluster: effective auto-creation policy, and partition counts by base name (0 = plain)."""

    auto_creation: AutoTopicCreation
    partitions: Mapping[TopicName, int]


def compare(cluster: str, local: NamespaceSnapshot, remote: NamespaceSnapshot) -> list[str]:
    """Every difference that would keep replication to ``cluster`` from working, a sentence each, topics first.

    Topics that exist on one side only are no difference: what is missing remotely is created there.
    """
    topics = [
        _topic_difference(cluster, topic, count, remote.partitions[topic])
        for topic, count in sorted(local.partitions.items(), key=lambda item: str(item[0]))
        if topic in remote.partitions and remote.partitions[topic] != count
    ]
    return topics + _policy_differences(cluster, local.auto_creation, remote.auto_creation)


def _topic_difference(cluster: str, topic: TopicName, local: int, remote: int) -> str:
    if local and remote:
        return f"Partition count mismatch for {topic}: local={local}, {cluster}={remote}"
    return f"Topic type mismatch for {topic}: local={_shape(local)}, {cluster}={_shape(remote)}"


def _shape(partitions: int) -> str:
    return f"{partitions} partitions" if partitions else NON_PARTITIONED


def _policy_differences(cluster: str, local: AutoTopicCreation, remote: AutoTopicCreation) -> list[str]:
    if not local.allowed and not remote.allowed:
        return []
    pairs = [("allowAutoTopicCreation", str(local.allowed).lower(), str(remote.allowed).lower())]
    kinds = (local.topic_type or NON_PARTITIONED, remote.topic_type or NON_PARTITIONED)
    pairs.append(("topicType", *kinds))
    if kinds == (PARTITIONED, PARTITIONED):
        pairs.append(("defaultNumPartitions", str(local.default_partitions), str(remote.default_partitions)))
    unequal = [f"{name}: local={here}, remote={there}" for name, here, there in pairs if here != there]
    return [f"auto-topic creation policy mismatch with {cluster}: {', '.join(unequal)}"] if unequal else []
