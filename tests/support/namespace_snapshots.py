"""A namespace on one cluster by what counts for its replication, and the plan for two of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from interpulse.model.adjustments import ClusterPlan
from interpulse.model.inventory import ListedKind, TopicRow
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import AutoTopicCreation
from interpulse.replication.adjust import compare, plan_cluster
from interpulse.replication.change_forms import mismatches
from interpulse.rules.inventory import NamespaceInventory, NamespaceState


@dataclass(frozen=True, slots=True)
class NamespaceSnapshot:
    """The policies in force, and partition counts by base name; 0: a plain topic, or left-over partitions."""

    auto_creation: AutoTopicCreation
    partitions: Mapping[TopicName, int]
    auto_creation_source: Literal["namespace", "broker"] = "broker"
    schema_strategy: str = "FULL"
    auto_update_schema: bool = True
    replicator_may_update_schema: bool = True
    left_over: frozenset[TopicName] = frozenset()

    def inventory(self) -> NamespaceInventory:
        creation = self.auto_creation
        policies = NamespacePolicies(
            auto_topic_creation=creation if self.auto_creation_source == "namespace" else None,
            allow_auto_update_schema_with_replicator=self.replicator_may_update_schema,
        )
        settings = {
            "allowAutoTopicCreation": str(creation.allowed).lower(),
            "defaultNumPartitions": str(creation.default_partitions or 1),
            "isAllowAutoUpdateSchemaEnabled": str(self.auto_update_schema).lower(),
            "schemaCompatibilityStrategy": self.schema_strategy,
        }
        if creation.topic_type is not None:
            settings["allowAutoTopicCreationType"] = creation.topic_type
        return NamespaceInventory(
            NamespaceState(policies, settings), {name: self._row(name) for name in self.partitions}
        )

    def _row(self, topic: TopicName) -> TopicRow:
        if topic in self.left_over:
            return TopicRow(topic, ListedKind.ORPHAN_PARTITION, 0, (0,))
        count = self.partitions[topic]
        return TopicRow(topic, ListedKind.PARTITIONED if count else ListedKind.NON_PARTITIONED, count)


def plan_of(
    cluster: str, namespace: NamespaceName, local: NamespaceSnapshot, remote: NamespaceSnapshot | None
) -> ClusterPlan:
    there = NamespaceInventory() if remote is None else remote.inventory()
    return asyncio.run(plan_cluster(cluster, namespace, local.inventory(), there))


def differences(cluster: str, local: NamespaceSnapshot, remote: NamespaceSnapshot) -> list[str]:
    """The sentences with which enabling replication is refused."""
    namespace = NamespaceName("public", "default")
    return mismatches(cluster, *asyncio.run(compare(namespace, local.inventory(), remote.inventory())))
