"""The admin calls of single policies: path, method, and the value in JSON.

The names are those of the attributes of `NamespacePolicies` and `TopicPolicies`, which also define the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from interpulse.client.json_readers import Read, boolean, each, integer, made_by, names, string
from interpulse.model.policies.messaging_policies import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    Persistence,
    PublishRate,
    SubscribeRate,
)
from interpulse.model.policies.namespace_policies import InactiveTopicPolicies, RetentionPolicies

__all__ = ["NAMESPACE_POLICIES", "QUOTAS", "TOPIC_POLICIES", "PolicyCall", "QuotaType"]

QuotaType = Literal["destination_storage", "message_age"]

_AUTO_SUBSCRIPTION: Final = "allowAutoSubscriptionCreation"


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class PolicyCall:
    """One policy: ``PUT`` or ``POST`` sets it, ``GET`` reads it, ``DELETE`` takes it away."""

    path: str
    to_json: Callable[[Any], Any] = _same
    from_json: Read[Any] = _same
    method: str = "POST"
    emptied_by_post: bool = False
    """Setting nothing takes the policy away; there is no ``DELETE``."""

    in_query: bool = False
    """The value stands in the query, under the name of the path."""


def _record(path: str, kind: Any) -> PolicyCall:
    return PolicyCall(path, lambda value: value.to_json(), made_by(kind.from_json))


def _types(path: str) -> PolicyCall:
    return PolicyCall(path, sorted, lambda body: frozenset(names(body)))


def _count(path: str, **form: Any) -> PolicyCall:
    return PolicyCall(path, from_json=integer, **form)


def _switch(path: str) -> PolicyCall:
    return PolicyCall(path, from_json=boolean)


_RATES: Final = {
    "publish_rate": _record("publishRate", PublishRate),
    "dispatch_rate": _record("dispatchRate", DispatchRate),
    "subscription_dispatch_rate": _record("subscriptionDispatchRate", DispatchRate),
    "subscribe_rate": _record("subscribeRate", SubscribeRate),
    "replicator_dispatch_rate": _record("replicatorDispatchRate", DispatchRate),
}
_COMMON: Final = {
    **_RATES,
    "inactive_topics": _record("inactiveTopicPolicies", InactiveTopicPolicies),
    "retention": _record("retention", RetentionPolicies),
    "delayed_delivery": _record("delayedDelivery", DelayedDelivery),
    "persistence": _record("persistence", Persistence),
    "subscription_types_enabled": _types("subscriptionTypesEnabled"),
    "subscription_expiration_minutes": _count("subscriptionExpirationTime"),
    "max_consumers_per_subscription": _count("maxConsumersPerSubscription"),
    "max_subscriptions": _count("maxSubscriptionsPerTopic"),
    "schema_validation_enforced": _switch("schemaValidationEnforced"),
    "auto_subscription_creation_allowed": PolicyCall(
        "autoSubscriptionCreation",
        lambda allowed: {_AUTO_SUBSCRIPTION: allowed},
        made_by(lambda body: bool(body[_AUTO_SUBSCRIPTION])),
    ),
    "schema_compatibility_strategy": PolicyCall("schemaCompatibilityStrategy", from_json=string, method="PUT"),
}
NAMESPACE_POLICIES: Final[Mapping[str, PolicyCall]] = {
    **_COMMON,
    "message_ttl_seconds": _count("messageTTL"),
    "max_producers": _count("maxProducersPerTopic"),
    "max_consumers": _count("maxConsumersPerTopic"),
    "max_unacked_per_consumer": _count("maxUnackedMessagesPerConsumer"),
    "max_unacked_per_subscription": _count("maxUnackedMessagesPerSubscription"),
    "compaction_threshold_bytes": _count("compactionThreshold", method="PUT"),
    "encryption_required": _switch("encryptionRequired"),
    "deduplication_enabled": _switch("deduplication"),
    "deduplication_snapshot_seconds": _count("deduplicationSnapshotInterval", emptied_by_post=True),
}
TOPIC_POLICIES: Final[Mapping[str, PolicyCall]] = {
    **_COMMON,
    "message_ttl_seconds": _count("messageTTL", in_query=True),
    "max_producers": _count("maxProducers"),
    "max_consumers": _count("maxConsumers"),
    "max_unacked_per_consumer": _count("maxUnackedMessagesOnConsumer"),
    "max_unacked_per_subscription": _count("maxUnackedMessagesOnSubscription"),
    "max_message_size": _count("maxMessageSize"),
    "compaction_threshold_bytes": _count("compactionThreshold"),
    "deduplication_enabled": _switch("deduplicationEnabled"),
    "deduplication_snapshot_seconds": _count("deduplicationSnapshotInterval"),
    "replication_clusters": PolicyCall("replication", list, names),
}
QUOTAS: Final = each(made_by(BacklogQuota.from_json))
"""The quotas of a backlog, by type."""
