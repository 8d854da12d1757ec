"""Policies in force for one topic: its own, otherwise its namespace's, otherwise the broker's.

The topic's own policy is the local one, otherwise the global one. All levels are first converted to the form of topic
policies. A policy replaces the one of the level above as a whole; "no limit" is a value like others. Backlog quotas are
resolved by type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from interpulse.model.names import TopicName
from interpulse.model.policies.catalogue import OF_NAMESPACES
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies, TopicPolicyRecord
from interpulse.model.policies.policy_records import PARTITIONED, AutoTopicCreation, BacklogQuota

_NOTHING_SET: Final = TopicPolicies()
_NOT_SET: Final = (None, frozenset[str]())
_OF_NAMESPACES: Final = frozenset(field.name for field in fields(NamespacePolicies))
_OF_TOPICS: Final = frozenset(field.name for field in fields(TopicPolicies))
_READ_DIFFERENTLY: Final = frozenset({"other", "schema_compatibility_strategy", "schema_validation_enforced"})
_SHARED: Final = tuple(sorted((_OF_NAMESPACES & _OF_TOPICS) - _READ_DIFFERENTLY))
_RATES: Final = tuple((entry.policy.attribute, entry.attribute) for entry in OF_NAMESPACES if entry.level.plural)
LEGACY_STRATEGY_FIELD: Final = "schema_auto_update_compatibility_strategy"
"""Stored field of the older policy, which ``schemaAutoUpdateCompatibilityStrategy`` reads and sets."""
LEGACY_STRATEGIES: Final = {
    "AutoUpdateDisabled": "ALWAYS_INCOMPATIBLE",
    "AlwaysCompatible": "ALWAYS_COMPATIBLE",
    "Backward": "BACKWARD",
    "Forward": "FORWARD",
    "Full": "FULL",
    "BackwardTransitive": "BACKWARD_TRANSITIVE",
    "ForwardTransitive": "FORWARD_TRANSITIVE",
    "FullTransitive": "FULL_TRANSITIVE",
}
"""Values of the older policy, as schema compatibility strategies."""


def topic_level(record: TopicPolicyRecord, *, everywhere: bool = False) -> TopicPolicies:
    """Return a topic's own policy: the local one, otherwise the global one.

    With ``everywhere``, only the global one.
    """
    if everywhere:
        return record.everywhere
    if record.everywhere == _NOTHING_SET:
        return record.here
    return _joined((record.here, record.everywhere), other=record.here.other)


def namespace_level(policies: NamespacePolicies | None, *, cluster: str) -> TopicPolicies:
    """Return the policies of a namespace that apply to each of its topics on this cluster."""
    if policies is None:
        return _NOTHING_SET
    return TopicPolicies(
        **{name: getattr(policies, name) for name in _SHARED},
        **{rate: getattr(policies, rates).get(cluster) for rate, rates in _RATES},
        schema_compatibility_strategy=effective_schema_strategy(policies, "") or None,
        schema_validation_enforced=policies.schema_validation_enforced or None,
    )


def effective_policies(topic: TopicPolicies, namespace: TopicPolicies, broker: TopicPolicies) -> TopicPolicies:
    """Return the policies in force.

    ``namespace`` comes from `namespace_level`, ``broker`` has the broker's settings.

    One policy is different: lower levels cannot waive a schema that the broker requires.
    """
    joined = _joined((topic, namespace, broker))
    return joined.changed(
        backlog_quotas=joined.backlog_quotas or {},
        schema_validation_enforced=bool(joined.schema_validation_enforced or broker.schema_validation_enforced),
    )


def _joined(levels: Sequence[TopicPolicies], *, other: Mapping[str, Any] | None = None) -> TopicPolicies:
    """Return each policy from the first level that sets it. An empty list of subscription types sets nothing."""
    values = {
        field.name: next((value for level in levels if (value := getattr(level, field.name)) not in _NOT_SET), None)
        for field in fields(TopicPolicies)
        if field.name != "other"
    }
    quotas: dict[str, BacklogQuota] = {}
    for level in reversed(levels):
        quotas |= level.backlog_quotas or {}
    return TopicPolicies(**values | {"backlog_quotas": quotas or None}, other=other or {})


@dataclass(frozen=True, slots=True)
class EffectiveAutoCreation:
    """Auto-creation policy for a missing topic. ``partitions`` counts only if ``partitioned``."""

    allowed: bool
    partitioned: bool = False
    partitions: int = 0
    replicator_allowed: bool = True


def effective_auto_creation(
    topic: TopicName, namespace: NamespacePolicies | None, broker: AutoTopicCreation
) -> EffectiveAutoCreation:
    """Return the auto-creation policy for one name.

    A namespace override replaces the broker's settings as a whole. Dead-letter and retry topics are never created
    partitioned. The topic type counts only in its exact spelling, as in Pulsar.
    """
    override = namespace.auto_topic_creation if namespace else None
    policy = override or broker
    return EffectiveAutoCreation(
        allowed=policy.allowed,
        partitioned=policy.topic_type == PARTITIONED and not topic.is_dead_letter_or_retry,
        partitions=policy.default_partitions or 0,
        replicator_allowed=policy.always_allow_for_replicator is not False,
    )


def effective_schema_strategy(namespace: NamespacePolicies, broker_strategy: str) -> str:
    """Return the schema compatibility strategy. The namespace's older setting counts if the newer one is undefined."""
    if namespace.schema_compatibility_strategy != "UNDEFINED":
        return namespace.schema_compatibility_strategy
    return LEGACY_STRATEGIES.get(str(namespace.other.get(LEGACY_STRATEGY_FIELD)), broker_strategy)


def effective_topics_max(namespace: NamespacePolicies | None, broker_max: int) -> int:
    """Return the maximum number of topics in the namespace; 0 = no limit."""
    override = namespace.max_topics_per_namespace if namespace else None
    return broker_max if override is None else override
