"""Namespace policies as Pulsar's JSON knows them.

The fields this broker acts on are attributes; everything else a peer stored is kept in ``other`` and given back
unchanged, so that a policy written by a newer tool is never lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from interpulse.model.messaging_policies import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    PublishRate,
    SubscribeRate,
)
from interpulse.model.numbers import LONG_MAX
from interpulse.model.permissions import NO_PERMISSIONS, Permissions
from interpulse.model.policy_fields import (
    flag,
    number,
    one_each,
    pairs,
    read_fields,
    record,
    text,
    texts,
    write_fields,
)

__all__ = [
    "DELETE_WHEN_CAUGHT_UP",
    "DELETE_WHEN_NO_SUBSCRIPTIONS",
    "NON_PARTITIONED",
    "PARTITIONED",
    "AutoTopicCreation",
    "InactiveTopicPolicies",
    "NamespacePolicies",
    "RetentionPolicies",
    "TopicType",
]

TopicType = Literal["partitioned", "non-partitioned"]
PARTITIONED: TopicType = "partitioned"
NON_PARTITIONED: TopicType = "non-partitioned"

DELETE_WHEN_NO_SUBSCRIPTIONS: Final = "delete_when_no_subscriptions"
DELETE_WHEN_CAUGHT_UP: Final = "delete_when_subscriptions_caught_up"


@dataclass(frozen=True, slots=True)
class AutoTopicCreation:
    """Whether asking for a missing topic may create it, and as a topic of which type."""

    allowed: bool
    topic_type: str | None = None
    default_partitions: int | None = None
    always_allow_for_replicator: bool | None = None

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"allowAutoTopicCreation": self.allowed}
        optional = {
            "topicType": self.topic_type,
            "defaultNumPartitions": self.default_partitions,
            "alwaysAllowForReplicator": self.always_allow_for_replicator,
        }
        return body | {key: value for key, value in optional.items() if value is not None}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> AutoTopicCreation:
        return cls(
            allowed=bool(body.get("allowAutoTopicCreation", False)),
            topic_type=body.get("topicType"),
            default_partitions=body.get("defaultNumPartitions"),
            always_allow_for_replicator=body.get("alwaysAllowForReplicator"),
        )


@dataclass(frozen=True, slots=True)
class RetentionPolicies:
    """How long acknowledged messages stay: minutes and megabytes, -1 = unlimited, 0 = not at all."""

    time_minutes: int = 0
    size_mb: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"retentionTimeInMinutes": self.time_minutes, "retentionSizeInMB": self.size_mb}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> RetentionPolicies:
        return cls(int(body.get("retentionTimeInMinutes", 0)), int(body.get("retentionSizeInMB", 0)))


@dataclass(frozen=True, slots=True)
class InactiveTopicPolicies:
    """Whether a topic goes by itself when nobody needs it, what counts as need, and how long it stays without."""

    delete_mode: str = DELETE_WHEN_NO_SUBSCRIPTIONS
    max_inactive_seconds: int = 60
    delete_while_inactive: bool = True

    def to_json(self) -> dict[str, Any]:
        return {
            "inactiveTopicDeleteMode": self.delete_mode,
            "maxInactiveDurationSeconds": self.max_inactive_seconds,
            "deleteWhileInactive": self.delete_while_inactive,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> InactiveTopicPolicies:
        """A missing field counts as Pulsar's Java class has it: no time, not deleted."""
        return cls(
            str(body.get("inactiveTopicDeleteMode") or DELETE_WHEN_NO_SUBSCRIPTIONS),
            int(body.get("maxInactiveDurationSeconds", 0)),
            bool(body.get("deleteWhileInactive", False)),
        )


@dataclass(frozen=True, slots=True)
class NamespacePolicies:
    """The policies of one namespace."""

    replication_clusters: tuple[str, ...] = ()
    allowed_clusters: tuple[str, ...] = ()
    auto_topic_creation: AutoTopicCreation | None = None
    auto_subscription_creation_allowed: bool | None = None
    deduplication_enabled: bool | None = None
    inactive_topics: InactiveTopicPolicies | None = None
    retention: RetentionPolicies | None = None
    message_ttl_seconds: int | None = None
    subscription_expiration_minutes: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    """What operators noted; it means nothing to the broker."""

    max_topics_per_namespace: int | None = None
    schema_compatibility_strategy: str = "UNDEFINED"
    allow_auto_update_schema: bool | None = None
    allow_auto_update_schema_with_replicator: bool = True
    schema_validation_enforced: bool = False
    deleted: bool = False
    publish_rates: Mapping[str, PublishRate] = field(default_factory=dict)
    """By cluster, as the four that follow: a replicated namespace may have other rates elsewhere."""

    dispatch_rates: Mapping[str, DispatchRate] = field(default_factory=dict)
    subscription_dispatch_rates: Mapping[str, DispatchRate] = field(default_factory=dict)
    subscribe_rates: Mapping[str, SubscribeRate] = field(default_factory=dict)
    replicator_dispatch_rates: Mapping[str, DispatchRate] = field(default_factory=dict)
    backlog_quotas: Mapping[str, BacklogQuota] = field(default_factory=dict)
    """By type."""

    max_producers: int | None = None
    max_consumers: int | None = None
    max_consumers_per_subscription: int | None = None
    max_subscriptions: int | None = None
    max_unacked_per_consumer: int | None = None
    max_unacked_per_subscription: int | None = None
    delayed_delivery: DelayedDelivery | None = None
    deduplication_snapshot_seconds: int | None = None
    compaction_threshold_bytes: int | None = None
    encryption_required: bool = False
    subscription_types_enabled: frozenset[str] | None = None
    granted: Permissions | None = None
    subscription_auth_mode: str | None = None
    other: Mapping[str, Any] = field(default_factory=dict)

    @property
    def permissions(self) -> Permissions:
        """Who was granted what; nobody anything if that was never said."""
        return self.granted or NO_PERMISSIONS

    def to_json(self) -> dict[str, Any]:
        """Pulsar's JSON with nulls left out; unknown fields come back as they were stored."""
        body: dict[str, Any] = dict(self.other)
        body |= {
            "replication_clusters": sorted(self.replication_clusters),
            "allowed_clusters": sorted(self.allowed_clusters),
            "schema_compatibility_strategy": self.schema_compatibility_strategy,
            "is_allow_auto_update_schema_with_replicator": self.allow_auto_update_schema_with_replicator,
            "schema_validation_enforced": self.schema_validation_enforced,
            "deleted": self.deleted,
        }
        messaging = write_fields(_MESSAGING_FIELDS, self)
        body |= {key: value for key, value in messaging.items() if value or key not in body}
        return body | {key: value for key, value in self._optional_json().items() if value is not None}

    def _optional_json(self) -> dict[str, Any]:
        subscriptions = self.auto_subscription_creation_allowed
        return {
            "autoTopicCreationOverride": self.auto_topic_creation and self.auto_topic_creation.to_json(),
            "autoSubscriptionCreationOverride": None
            if subscriptions is None
            else {"allowAutoSubscriptionCreation": subscriptions},
            "deduplicationEnabled": self.deduplication_enabled,
            "inactive_topic_policies": self.inactive_topics and self.inactive_topics.to_json(),
            "retention_policies": self.retention and self.retention.to_json(),
            "message_ttl_in_seconds": self.message_ttl_seconds,
            "max_topics_per_namespace": self.max_topics_per_namespace,
            "is_allow_auto_update_schema": self.allow_auto_update_schema,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> NamespacePolicies:
        """Read Pulsar's JSON; a missing or null field takes its default."""
        auto_topics = body.get("autoTopicCreationOverride")
        auto_subscriptions = body.get("autoSubscriptionCreationOverride")
        inactive_topics = body.get("inactive_topic_policies")
        retention = body.get("retention_policies")
        with_replicator = body.get("is_allow_auto_update_schema_with_replicator")
        messaging, understood = read_fields(_MESSAGING_FIELDS, body)
        return cls(
            **messaging,
            replication_clusters=tuple(sorted(set(body.get("replication_clusters") or ()))),
            allowed_clusters=tuple(sorted(set(body.get("allowed_clusters") or ()))),
            auto_topic_creation=AutoTopicCreation.from_json(auto_topics) if auto_topics else None,
            auto_subscription_creation_allowed=auto_subscriptions.get("allowAutoSubscriptionCreation")
            if auto_subscriptions
            else None,
            deduplication_enabled=body.get("deduplicationEnabled"),
            inactive_topics=InactiveTopicPolicies.from_json(inactive_topics) if inactive_topics else None,
            retention=RetentionPolicies.from_json(retention) if retention else None,
            message_ttl_seconds=body.get("message_ttl_in_seconds"),
            max_topics_per_namespace=body.get("max_topics_per_namespace"),
            schema_compatibility_strategy=body.get("schema_compatibility_strategy") or "UNDEFINED",
            allow_auto_update_schema=body.get("is_allow_auto_update_schema"),
            allow_auto_update_schema_with_replicator=True if with_replicator is None else bool(with_replicator),
            schema_validation_enforced=bool(body.get("schema_validation_enforced", False)),
            deleted=bool(body.get("deleted", False)),
            other={
                key: value
                for key, value in body.items()
                if key not in _KNOWN_KEYS and key not in understood and value is not None
            },
        )

    def dump(self) -> bytes:
        return json.dumps(self.to_json()).encode()

    @classmethod
    def load(cls, raw: bytes) -> NamespacePolicies:
        return cls.from_json(json.loads(raw))

    def changed(self, **values: Any) -> NamespacePolicies:
        """A copy with some fields replaced."""
        return replace(self, **values)


_MESSAGING_FIELDS: Final = (
    one_each("publishMaxMessageRate", "publish_rates", PublishRate),
    one_each("topicDispatchRate", "dispatch_rates", DispatchRate),
    one_each("subscriptionDispatchRate", "subscription_dispatch_rates", DispatchRate),
    one_each("clusterSubscribeRate", "subscribe_rates", SubscribeRate),
    one_each("replicatorDispatchRate", "replicator_dispatch_rates", DispatchRate),
    one_each("backlog_quota_map", "backlog_quotas", BacklogQuota),
    number("max_producers_per_topic", "max_producers"),
    number("max_consumers_per_topic", "max_consumers"),
    number("max_consumers_per_subscription", "max_consumers_per_subscription"),
    number("max_subscriptions_per_topic", "max_subscriptions"),
    number("max_unacked_messages_per_consumer", "max_unacked_per_consumer"),
    number("max_unacked_messages_per_subscription", "max_unacked_per_subscription"),
    record("delayed_delivery_policies", "delayed_delivery", DelayedDelivery),
    number("subscription_expiration_time_minutes", "subscription_expiration_minutes"),
    pairs("properties", "properties"),
    number("deduplicationSnapshotIntervalSeconds", "deduplication_snapshot_seconds"),
    number("compaction_threshold", "compaction_threshold_bytes", most=LONG_MAX),
    flag("encryption_required", "encryption_required"),
    texts("subscription_types_enabled", "subscription_types_enabled"),
    record("auth_policies", "granted", Permissions),
    text("subscription_auth_mode", "subscription_auth_mode"),
)
_KNOWN_KEYS = frozenset(
    {
        "replication_clusters",
        "allowed_clusters",
        "autoTopicCreationOverride",
        "autoSubscriptionCreationOverride",
        "deduplicationEnabled",
        "inactive_topic_policies",
        "retention_policies",
        "message_ttl_in_seconds",
        "max_topics_per_namespace",
        "schema_compatibility_strategy",
        "is_allow_auto_update_schema",
        "is_allow_auto_update_schema_with_replicator",
        "schema_validation_enforced",
        "deleted",
    }
)
