"""Which policy applies: the namespace's if it says something, else the broker's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from interpulse.model.errors import InvalidRequest, PartitionCountAboveMaximum, PreconditionFailed
from interpulse.model.names import TopicName
from interpulse.model.numbers import INT_MAX
from interpulse.model.policies import (
    NON_PARTITIONED,
    PARTITIONED,
    AutoTopicCreation,
    NamespacePolicies,
    RetentionPolicies,
)

__all__ = [
    "EffectiveAutoCreation",
    "check_auto_topic_creation",
    "check_not_negative",
    "check_retention",
    "check_schema_switch",
    "check_strategy",
    "effective_auto_creation",
    "effective_schema_strategy",
    "effective_topics_max",
]

_LEGACY_STRATEGY_FIELD: Final = "schema_auto_update_compatibility_strategy"
_LEGACY_STRATEGIES: Final = {
    "AutoUpdateDisabled": "ALWAYS_INCOMPATIBLE",
    "AlwaysCompatible": "ALWAYS_COMPATIBLE",
    "Backward": "BACKWARD",
    "Forward": "FORWARD",
    "Full": "FULL",
    "BackwardTransitive": "BACKWARD_TRANSITIVE",
    "ForwardTransitive": "FORWARD_TRANSITIVE",
    "FullTransitive": "FULL_TRANSITIVE",
}


_OWN_SENTENCES: Final = {
    "messageTTL": "Invalid value for message TTL, message TTL must >= 0",
    "maxUnackedMessagesOnConsumer": "maxUnackedNum must be 0 or more",
    "maxUnackedMessagesOnSubscription": "maxUnackedNum must be 0 or more",
    "deduplicationSnapshotInterval": "interval must be greater than or equal to 0",
}
"""What Pulsar says of limits below 0 whose sentence is not made of their name."""
_WHOLE_SENTENCES: Final = {"subscription expiration time": "Invalid value for subscription expiration time"}
"""Of those, what tests of clients compare whole."""


@dataclass(frozen=True, slots=True)
class EffectiveAutoCreation:
    """What becomes of a question for a missing topic. ``partitions`` counts only if ``partitioned``."""

    allowed: bool
    partitioned: bool = False
    partitions: int = 0
    replicator_allowed: bool = True


def effective_auto_creation(
    topic: TopicName, namespace: NamespacePolicies | None, broker: AutoTopicCreation
) -> EffectiveAutoCreation:
    """The auto-creation policy for one name.

    A namespace override replaces the broker's settings as a whole, it is not merged with them. Dead-letter and retry
    topics are never created partitioned. The topic type counts only in its exact spelling, as in Pulsar.
    """
    override = namespace.auto_topic_creation if namespace else None
    policy = override or broker
    return EffectiveAutoCreation(
        allowed=policy.allowed,
        partitioned=policy.topic_type == PARTITIONED and not topic.is_dead_letter_or_retry,
        partitions=policy.default_partitions or 0,
        replicator_allowed=policy.always_allow_for_replicator is not False,
    )


def check_auto_topic_creation(body: Mapping[str, Any], *, partitions_max: int) -> AutoTopicCreation:
    """Read an override as an operator sends it; the topic type is lower-cased.

    Raises InvalidRequest for values of another kind, PreconditionFailed for a combination that means nothing and
    PartitionCountAboveMaximum for a count above ``partitions_max`` (0 = no limit). Of an override that switches
    auto-creation off only the maximum is checked.
    """
    topic_type, always = body.get("topicType"), body.get("alwaysAllowForReplicator")
    override = AutoTopicCreation(
        allowed=_truth("allowAutoTopicCreation", body.get("allowAutoTopicCreation")),
        topic_type=None if topic_type is None else str(topic_type).lower(),
        default_partitions=_count("defaultNumPartitions", body.get("defaultNumPartitions")),
        always_allow_for_replicator=None if always is None else _truth("alwaysAllowForReplicator", always),
    )
    if override.allowed:
        _check_type_and_count(override)
    if 0 < partitions_max < (override.default_partitions or 0):
        raise PartitionCountAboveMaximum(
            f"Number of partitions should be less than or equal to {partitions_max} "
            f"(maxNumPartitionsPerPartitionedTopic), not {override.default_partitions}"
        )
    return override


def _truth(name: str, value: Any) -> bool:
    """A truth value as JSON or as text, as Pulsar reads it; nothing counts as false."""
    text = str(value).lower()
    if value is None or text in ("true", "false"):
        return text == "true"
    raise InvalidRequest(f"{name} must be true or false, not {_quoted(value)}")


def _count(name: str, value: Any) -> int | None:
    """An integer of 32 bits as JSON or as text, as Pulsar reads it."""
    digits = str(value).removeprefix("-")
    if value is None:
        return None
    if isinstance(value, int | str) and digits.isdecimal() and digits.isascii() and len(digits) <= 10:
        count = int(value)
        if abs(count) <= INT_MAX:
            return count
    raise InvalidRequest(f"{name} must be an integer up to {INT_MAX}, not {_quoted(value)}")


def _quoted(value: Any) -> str:
    return repr(value)[:100]


def _check_type_and_count(override: AutoTopicCreation) -> None:
    count = override.default_partitions
    if override.topic_type not in (PARTITIONED, NON_PARTITIONED):
        raise _invalid_override(
            f"Unknown topic type [{override.topic_type}]; topicType must be {PARTITIONED} or {NON_PARTITIONED}"
        )
    if override.topic_type == NON_PARTITIONED:
        if count is not None:
            raise _invalid_override("[defaultNumPartitions] is not allowed to be set when the type is non-partition.")
        return
    if count is None:
        raise _invalid_override("[defaultNumPartitions] cannot be null when the type is partitioned.")
    if count < 1:
        raise _invalid_override("[defaultNumPartitions] cannot be less than 1 for partition type.")


def _invalid_override(detail: str) -> PreconditionFailed:
    """Pulsar's sentences: those that say all there is to say stand alone, because clients' tests compare them whole."""
    return PreconditionFailed(f"Invalid configuration for autoTopicCreationOverride. the detail is {detail}")


def effective_schema_strategy(namespace: NamespacePolicies, broker_strategy: str) -> str:
    """How a new schema has to fit the earlier ones; the namespace's older setting counts if the newer says nothing."""
    if namespace.schema_compatibility_strategy != "UNDEFINED":
        return namespace.schema_compatibility_strategy
    return _LEGACY_STRATEGIES.get(str(namespace.other.get(_LEGACY_STRATEGY_FIELD)), broker_strategy)


def effective_topics_max(namespace: NamespacePolicies | None, broker_max: int) -> int:
    """How many topics the namespace may hold; 0 = no limit."""
    override = namespace.max_topics_per_namespace if namespace else None
    return broker_max if override is None else override


def check_retention(body: Mapping[str, Any]) -> RetentionPolicies:
    """Read a retention policy as an operator sends it; raises InvalidRequest for limits that mean nothing together."""
    retention = RetentionPolicies.from_json(body)
    limits = (("time limit", retention.time_minutes), ("size limit", retention.size_mb))
    for name, value in limits:
        if value < -1:
            raise InvalidRequest(f"Invalid retention policy: {name} must be >= -1")
    if (retention.time_minutes == 0) != (retention.size_mb == 0):
        raise InvalidRequest(
            "Invalid retention policy: Setting a single time or size limit to 0 is invalid when one of the limits has "
            "a non-zero value. Use the value of -1 instead of 0 to ignore a specific limit. To disable retention both "
            "limits must be set to 0."
        )
    return retention


def check_not_negative(name: str, value: int, *, most: int = INT_MAX) -> int:
    """Limits and times to live are 0 or more, and what a Java client can read; raises PreconditionFailed.

    A refusal begins with Pulsar's sentence. Where that names the setting it stands alone: tests of clients compare it.
    """
    if value < 0 and name not in _OWN_SENTENCES:
        if name in _WHOLE_SENTENCES:
            raise PreconditionFailed(_WHOLE_SENTENCES[name])
        raise PreconditionFailed(f"{name} must be 0 or more")
    if not 0 <= value <= most:
        sentence = _OWN_SENTENCES.get(name, f"Invalid value for {name}")
        raise PreconditionFailed(f"{sentence}: it must be 0 or more, and at most {most}, not {value}")
    return value


def check_strategy(value: Any, allowed: Sequence[str]) -> str:
    """The name of a schema compatibility strategy, spelled exactly; raises PreconditionFailed with those allowed."""
    if value not in allowed:
        raise PreconditionFailed(f"Unknown schema compatibility strategy {value}; allowed are {', '.join(allowed)}")
    return str(value)


def check_schema_switch(allowed: bool, with_replicator: bool) -> None:
    """Whoever lets all producers bring schemas cannot keep replicators from it; raises InvalidRequest."""
    if allowed and not with_replicator:
        raise InvalidRequest("Can not enable for all producers but denies for replicators, which is meaningless")
