"""How single policies travel in admin calls: path, method, and the value in JSON.

The names are those of the attributes of `NamespacePolicies` and `TopicPolicies`, which also say what a value is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from interpulse.model.messaging_policies import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    PublishRate,
    SubscribeRate,
)
from interpulse.model.policies import InactiveTopicPolicies, RetentionPolicies

__all__ = ["NAMESPACE_POLICIES", "TOPIC_POLICIES", "PolicyCall", "QuotaType", "quotas_from_json"]

QuotaType = Literal["destination_storage", "message_age"]

_AUTO_SUBSCRIPTION: Final = "allowAutoSubscriptionCreation"


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class PolicyCall:
    """One policy: ``PUT`` or ``POST`` sets it, ``GET`` reads it, ``DELETE`` takes it away."""

    path: str
    to_json: Callable[[Any], Any] = _same
    from_json: Callable[[Any], Any] = _same
    method: str = "POST"
    emptied_by_post: bool = False
    """Setting nothing takes the policy away; there is no ``DELETE``."""

    in_query: bool = False
    """The value stands in the query, under the name of the path."""


def _record(path: str, kind: Any) -> PolicyCall:
    return PolicyCall(path, lambda value: value.to_json(), kind.from_json)


def _types(path: str) -> PolicyCall:
    return PolicyCall(path, sorted, frozenset)


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
    "subscription_types_enabled": _types("subscriptionTypesEnabled"),
    "subscription_expiration_minutes": PolicyCall("subscriptionExpirationTime"),
    "max_consumers_per_subscription": PolicyCall("maxConsumersPerSubscription"),
    "max_subscriptions": PolicyCall("maxSubscriptionsPerTopic"),
    "schema_validation_enforced": PolicyCall("schemaValidationEnforced"),
    "auto_subscription_creation_allowed": PolicyCall(
        "autoSubscriptionCreation",
        lambda allowed: {_AUTO_SUBSCRIPTION: allowed},
        lambda body: bool(body[_AUTO_SUBSCRIPTION]),
    ),
    "schema_compatibility_strategy": PolicyCall("schemaCompatibilityStrategy", method="PUT"),
}
NAMESPACE_POLICIES: Final[Mapping[str, PolicyCall]] = {
    **_COMMON,
    "message_ttl_seconds": PolicyCall("messageTTL"),
    "max_producers": PolicyCall("maxProducersPerTopic"),
    "max_consumers": PolicyCall("maxConsumersPerTopic"),
    "max_unacked_per_consumer": PolicyCall("maxUnackedMessagesPerConsumer"),
    "max_unacked_per_subscription": PolicyCall("maxUnackedMessagesPerSubscription"),
    "compaction_threshold_bytes": PolicyCall("compactionThreshold", method="PUT"),
    "encryption_required": PolicyCall("encryptionRequired"),
    "deduplication_enabled": PolicyCall("deduplication"),
    "deduplication_snapshot_seconds": PolicyCall("deduplicationSnapshotInterval", emptied_by_post=True),
}
TOPIC_POLICIES: Final[Mapping[str, PolicyCall]] = {
    **_COMMON,
    "message_ttl_seconds": PolicyCall("messageTTL", in_query=True),
    "max_producers": PolicyCall("maxProducers"),
    "max_consumers": PolicyCall("maxConsumers"),
    "max_unacked_per_consumer": PolicyCall("maxUnackedMessagesOnConsumer"),
    "max_unacked_per_subscription": PolicyCall("maxUnackedMessagesOnSubscription"),
    "max_message_size": PolicyCall("maxMessageSize"),
    "compaction_threshold_bytes": PolicyCall("compactionThreshold"),
    "deduplication_enabled": PolicyCall("deduplicationEnabled"),
    "deduplication_snapshot_seconds": PolicyCall("deduplicationSnapshotInterval"),
    "replication_clusters": PolicyCall("replication", list, list),
}


def quotas_from_json(body: Mapping[str, Any] | None) -> dict[str, BacklogQuota]:
    """The quotas of a backlog, by type."""
    return {kind: BacklogQuota.from_json(quota) for kind, quota in (body or {}).items()}
