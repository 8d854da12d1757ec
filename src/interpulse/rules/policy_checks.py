"""Checks of policies that operators send, by the kind of the policy in the catalogue. A refusal names the value.

Front ends have checked the types of the values. Some refusals are stricter than Pulsar, which stores unknown texts,
negative times and empty periods without acting on them. Of a new namespace's policies Pulsar checks only retention and
message TTL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from interpulse.model.errors import InvalidRequest, NotImplementedYet, PartitionCountAboveMaximum, PreconditionFailed
from interpulse.model.names import NamespaceName
from interpulse.model.numbers import INT_MAX
from interpulse.model.permissions import Permissions
from interpulse.model.policies import catalogue as kinds
from interpulse.model.policies.catalogue import OF_NAMESPACES, TOPIC_CREATION
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_kinds import Kind
from interpulse.model.policies.policy_records import (
    DESTINATION_STORAGE,
    NON_PARTITIONED,
    PARTITIONED,
    QUOTA_POLICIES,
    QUOTA_TYPES,
    AutoTopicCreation,
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    Persistence,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)
from interpulse.rules.inactivity import check_inactive_topics
from interpulse.rules.permissions import check_actions, check_subscription_auth_mode

SCHEMA_STRATEGIES: Final = (
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)
_BOOKIES_MAX: Final = 5
"""Pulsar's default of managedLedgerMaxEnsembleSize, managedLedgerMaxWriteQuorum and managedLedgerMaxAckQuorum."""
SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")

_OWN_SENTENCES: Final = {
    "messageTTL": "Invalid value for message TTL, message TTL must >= 0",
    "maxUnackedMessagesOnConsumer": "maxUnackedNum must be 0 or more",
    "maxUnackedMessagesOnSubscription": "maxUnackedNum must be 0 or more",
    "deduplicationSnapshotInterval": "interval must be greater than or equal to 0",
}
"""Pulsar's messages on limits below 0 that do not follow from their names."""
_WHOLE_SENTENCES: Final = {"subscription expiration time": "Invalid value for subscription expiration time"}
"""Sentences that tests of official clients compare as a whole."""

Body = Mapping[str, Any]


def check_auto_topic_creation(body: Mapping[str, Any], *, partitions_max: int) -> AutoTopicCreation:
    """Return the override, with the topic type in lower case.

    Raise PreconditionFailed for a type and a count that do not fit, and PartitionCountAboveMaximum for a count above
    ``partitions_max`` (0 = no limit). An override that switches creation off is only held to the maximum.
    """
    override = AutoTopicCreation.from_json(body)
    override = replace(override, topic_type=override.topic_type and override.topic_type.lower())
    if override.allowed:
        _check_type_and_count(override)
    if 0 < partitions_max < (override.default_partitions or 0):
        raise PartitionCountAboveMaximum(
            f"Number of partitions should be less than or equal to {partitions_max} "
            f"(maxNumPartitionsPerPartitionedTopic), not {override.default_partitions}"
        )
    return override


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
    """Return the refusal in Pulsar's words, which tests of clients compare whole."""
    return PreconditionFailed(f"Invalid configuration for autoTopicCreationOverride. the detail is {detail}")


def check_dispatch_rate(body: Body) -> DispatchRate:
    """Return the rate. Raise InvalidRequest for an empty period."""
    rate = DispatchRate.from_json(body)
    _check_period(rate.period_seconds)
    return rate


def check_subscribe_rate(body: Body) -> SubscribeRate:
    """Return the rate. Raise InvalidRequest for an empty period."""
    rate = SubscribeRate.from_json(body)
    _check_period(rate.period_seconds)
    return rate


def _check_period(seconds: int) -> None:
    if seconds < 1:
        raise InvalidRequest(f"ratePeriodInSecond must be 1 or more, not {seconds}")


def check_delayed_delivery(body: Body) -> DelayedDelivery:
    """Return the policy. Raise InvalidRequest for negative times."""
    policy = DelayedDelivery.from_json(body)
    for name, value in (("tickTime", policy.tick_millis), ("maxDeliveryDelayInMillis", policy.max_delay_millis)):
        if value < 0:
            raise InvalidRequest(f"{name} must be 0 or more, not {value}")
    return policy


def check_persistence(body: Body, *, alone: bool) -> Persistence:
    """Return the policy. Raise InvalidRequest beyond Pulsar's limits, in Pulsar's words.

    A broker that is ``alone`` has no bookies: raise NotImplementedYet for more than one copy.
    """
    policy = Persistence.from_json(body)
    copies = (policy.ensemble, policy.write_quorum, policy.ack_quorum)
    for name, value in zip(("Ensemble", "WriteQuorum", "AckQuorum"), copies, strict=True):
        if not 0 < value <= _BOOKIES_MAX:
            raise InvalidRequest(f"Bookkeeper-{name} must be <= {_BOOKIES_MAX} and > 0.")
    if not policy.ensemble >= policy.write_quorum >= policy.ack_quorum:
        raise InvalidRequest("Bookkeeper Ensemble ({}) >= WriteQuorum ({}) >= AckQuorum ({})".format(*copies))
    if alone and copies != (1, 1, 1):
        raise NotImplementedYet(
            "A standalone broker keeps one copy of each entry: bookkeeperEnsemble, bookkeeperWriteQuorum and "
            "bookkeeperAckQuorum can only be 1, not {}, {} and {}. `interpulse broker` keeps more".format(*copies)
        )
    return policy


def check_quota_type(text: str | None) -> str:
    """Return the type of the quota, that of the size by default. Raise InvalidRequest for an unknown type."""
    if text is None:
        return DESTINATION_STORAGE
    if text not in QUOTA_TYPES:
        raise InvalidRequest(f"backlogQuotaType must be {' or '.join(QUOTA_TYPES)}, not {text[:100]}")
    return text


def check_backlog_quota(kind: str, body: Body, *, namespace: NamespaceName | None = None) -> BacklogQuota:
    """Return the quota. Raise InvalidRequest if it has no action, or a limit of 0."""
    if body.get("policy") not in QUOTA_POLICIES:
        raise InvalidRequest(
            f"Set namespace{f'[{namespace}]' if namespace else ''} backlog quota failed because the data validation "
            f"failed. the attribute policy cannot be null: it must be one of {', '.join(QUOTA_POLICIES)}, "
            f"not {body.get('policy')}"
        )
    quota = BacklogQuota.from_json(body)
    name, limit = (
        ("limitSize", quota.limit_bytes) if kind == DESTINATION_STORAGE else ("limitTime", quota.limit_seconds)
    )
    if limit == 0:
        raise InvalidRequest(f"{name} must be above 0, or -1 for no limit: a quota of 0 would stop all publishing")
    return quota


def check_quotas_fit(quotas: Iterable[BacklogQuota], retention: RetentionPolicies | None, refusal: str) -> None:
    """Raise PreconditionFailed if a quota lets the backlog be larger, or older, than retained messages."""
    if retention is None:
        return
    size, seconds = retention.size_mb * 2**20, retention.time_minutes * 60
    for quota in quotas:
        if 0 < size <= quota.limit_bytes:
            raise PreconditionFailed(
                f"{refusal} (limitSize {quota.limit_bytes}, retentionSizeInMB {retention.size_mb})"
            )
        if 0 < seconds <= quota.limit_seconds:
            raise PreconditionFailed(
                f"{refusal} (limitTime {quota.limit_seconds}, retentionTimeInMinutes {retention.time_minutes})"
            )


def check_subscription_types(names: Iterable[str]) -> frozenset[str]:
    """Return the types of subscriptions. Raise InvalidRequest for an unknown type; spelling counts."""
    types = frozenset(names)
    for name in sorted(types.difference(SUBSCRIPTION_TYPES)):
        raise InvalidRequest(f"{name[:100]} is no subscription type; there are {', '.join(SUBSCRIPTION_TYPES)}")
    return types


def check_max_message_size(size: int, *, broker_max: int) -> int:
    """Return a topic's maximum. Raise PreconditionFailed if it is above the broker's."""
    if not 0 <= size <= broker_max:
        raise PreconditionFailed(
            "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the "
            f"broker-level ({broker_max}), not {size}"
        )
    return size


def check_retention(body: Mapping[str, Any]) -> RetentionPolicies:
    """Return the retention policy. Raise InvalidRequest for limits that contradict each other."""
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
    """Return a limit or time to live. Raise PreconditionFailed unless it is from 0 to ``most``.

    A refusal begins with Pulsar's sentence. Tests of clients compare some of these sentences whole.
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
    """Return a schema compatibility strategy. Raise PreconditionFailed unless it is one of ``allowed``."""
    if value not in allowed:
        raise PreconditionFailed(f"Unknown schema compatibility strategy {value}; allowed are {', '.join(allowed)}")
    return str(value)


def check_schema_switch(allowed: bool, with_replicator: bool) -> None:
    """Raise InvalidRequest if all producers but not replicators may register schemas."""
    if allowed and not with_replicator:
        raise InvalidRequest("Can not enable for all producers but denies for replicators, which is meaningless")


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings of the broker that limit policies."""

    partitions_max: int = 0
    """The partitions of a topic; 0 = no limit."""
    message_size_max: int = INT_MAX
    alone: bool = False
    """The broker has no bookies, and keeps one copy of each entry."""


def check_value(kind: Kind, name: str, value: Any, limits: Limits) -> Any:
    """Return the policy in ``value``, JSON of the type that its kind needs.

    Raise InvalidRequest, PreconditionFailed or another error of the kind's check, which calls the policy ``name``.
    """
    check = _CHECKS.get(kind)
    return check(name, value, limits) if check else value


def _check_number(name: str, value: int, limits: Limits) -> int:
    return check_not_negative(name, value)


def _topic_strategy(value: Any) -> str | None:
    return None if value in (None, "", "UNDEFINED") else check_strategy(value, SCHEMA_STRATEGIES)


def _check_granted(body: Mapping[str, Any]) -> None:
    """Hold the permissions of a new namespace to the rule of grants."""
    granted = Permissions.from_json(body)
    for roles in (granted.namespace, *granted.topics.values()):
        for actions in filter(None, roles.values()):
            check_actions(actions)


def _check_backlog_quotas(quotas: Mapping[str, Mapping[str, Any]]) -> None:
    for kind, quota in quotas.items():
        check_backlog_quota(check_quota_type(kind), quota)


_CHECKS: Final[Mapping[Kind, Callable[[str, Any, Limits], Any]]] = {
    **dict.fromkeys((kinds.COUNT, kinds.SECONDS, kinds.MINUTES, kinds.INTERVAL), _check_number),
    kinds.BYTES: lambda name, value, limits: check_not_negative(name, value, most=kinds.BYTES.most),
    kinds.MESSAGE_SIZE: lambda name, value, limits: check_max_message_size(value, broker_max=limits.message_size_max),
    kinds.SUBSCRIPTION_CREATION: lambda name, body, limits: bool(body.get("allowAutoSubscriptionCreation")),
    kinds.STRATEGY: lambda name, value, limits: check_strategy(value, ("UNDEFINED", *SCHEMA_STRATEGIES)),
    kinds.TOPIC_STRATEGY: lambda name, value, limits: _topic_strategy(value),
    kinds.TYPES: lambda name, value, limits: check_subscription_types(value),
    kinds.RETENTION: lambda name, body, limits: check_retention(body),
    kinds.INACTIVE_TOPICS: lambda name, body, limits: check_inactive_topics(body),
    kinds.TOPIC_CREATION: lambda name, body, limits: check_auto_topic_creation(
        body, partitions_max=limits.partitions_max
    ),
    kinds.PUBLISH_RATE: lambda name, body, limits: PublishRate.from_json(body),
    kinds.DISPATCH_RATE: lambda name, body, limits: check_dispatch_rate(body),
    kinds.SUBSCRIBE_RATE: lambda name, body, limits: check_subscribe_rate(body),
    kinds.DELAYED_DELIVERY: lambda name, body, limits: check_delayed_delivery(body),
    kinds.PERSISTENCE: lambda name, body, limits: check_persistence(body, alone=limits.alone),
    kinds.BACKLOG_QUOTAS: lambda name, quotas, limits: _check_backlog_quotas(quotas),
    kinds.PERMISSIONS: lambda name, body, limits: _check_granted(body),
    kinds.AUTH_MODE: lambda name, value, limits: check_subscription_auth_mode(value),
}


def check_new_policies(body: Mapping[str, Any], limits: Limits) -> NamespacePolicies:
    """Return the policies of a new namespace. The values in ``body`` have the types of Pulsar's fields.

    Raise the error of the rule of the first invalid policy.
    """
    policies = NamespacePolicies.from_json(body)
    for entry in OF_NAMESPACES:
        key, kind = entry.level.key, entry.policy.kind
        if key not in body:
            continue
        if entry.level.plural:
            for value in body[key].values():
                check_value(kind, key, value, limits)
        else:
            value = check_value(kind, key, body[key], limits)
            if kind is TOPIC_CREATION:  # an empty override is one too
                policies = policies.changed(auto_topic_creation=value)
    if policies.allow_auto_update_schema is not None:
        check_schema_switch(policies.allow_auto_update_schema, policies.allow_auto_update_schema_with_replicator)
    return policies
