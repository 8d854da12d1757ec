"""Namespace policies as Pulsar's JSON knows them.

A policy this broker acts on is an attribute and a line of the table `_FIELDS`; everything else a peer stored is kept in
``other`` and given back unchanged, so that a policy written by a newer tool is never lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from interpulse.model.numbers import LONG_MAX
from interpulse.model.permissions import NO_PERMISSIONS, Permissions
from interpulse.model.policies.messaging_policies import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    Persistence,
    PublishRate,
    SubscribeRate,
)
from interpulse.model.policies.policy_fields import (
    flag,
    flag_in_object,
    names,
    number,
    one_each,
    override,
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
    """Whether inactive topics are deleted, what counts as activity, and how long a topic stays without."""

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
    """The properties set by operators, without a meaning to the broker."""

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
    persistence: Persistence | None = None
    deduplication_snapshot_seconds: int | None = None
    compaction_threshold_bytes: int | None = None
    encryption_required: bool = False
    subscription_types_enabled: frozenset[str] | None = None
    granted: Permissions | None = None
    subscription_auth_mode: str | None = None
    other: Mapping[str, Any] = field(default_factory=dict)

    @property
    def permissions(self) -> Permissions:
        """The permissions on the namespace and its topics; none if they were never set."""
        return self.granted or NO_PERMISSIONS

    def to_json(self) -> dict[str, Any]:
        """Pulsar's JSON with nulls left out; unknown fields come back as they were stored."""
        known = write_fields(_FIELDS, self)
        unread = {key for key, value in known.items() if key in self.other and value == _DEFAULTS.get(key)}
        return dict(self.other) | {key: value for key, value in known.items() if key not in unread}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> NamespacePolicies:
        """Read Pulsar's JSON; a missing or null field takes its default."""
        values, understood = read_fields(_FIELDS, body)
        other = {key: value for key, value in body.items() if key not in understood and value is not None}
        return cls(**values, other=other)

    def dump(self) -> bytes:
        return json.dumps(self.to_json()).encode()

    @classmethod
    def load(cls, raw: bytes) -> NamespacePolicies:
        return cls.from_json(json.loads(raw))

    def changed(self, **values: Any) -> NamespacePolicies:
        """A copy with some fields replaced."""
        return replace(self, **values)


_FIELDS: Final = (
    names("replication_clusters", "replication_clusters"),
    names("allowed_clusters", "allowed_clusters"),
    override("autoTopicCreationOverride", "auto_topic_creation", AutoTopicCreation),
    flag_in_object(
        "autoSubscriptionCreationOverride", "auto_subscription_creation_allowed", "allowAutoSubscriptionCreation"
    ),
    flag("deduplicationEnabled", "deduplication_enabled"),
    override("inactive_topic_policies", "inactive_topics", InactiveTopicPolicies),
    override("retention_policies", "retention", RetentionPolicies),
    number("message_ttl_in_seconds", "message_ttl_seconds"),
    number("max_topics_per_namespace", "max_topics_per_namespace"),
    text("schema_compatibility_strategy", "schema_compatibility_strategy"),
    flag("is_allow_auto_update_schema", "allow_auto_update_schema"),
    flag("is_allow_auto_update_schema_with_replicator", "allow_auto_update_schema_with_replicator"),
    flag("schema_validation_enforced", "schema_validation_enforced"),
    flag("deleted", "deleted"),
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
    record("persistence", "persistence", Persistence),
    number("subscription_expiration_time_minutes", "subscription_expiration_minutes"),
    pairs("properties", "properties"),
    number("deduplicationSnapshotIntervalSeconds", "deduplication_snapshot_seconds"),
    number("compaction_threshold", "compaction_threshold_bytes", most=LONG_MAX),
    flag("encryption_required", "encryption_required"),
    texts("subscription_types_enabled", "subscription_types_enabled"),
    record("auth_policies", "granted", Permissions),
    text("subscription_auth_mode", "subscription_auth_mode"),
)
"""Every policy this broker acts on: one line."""

_DEFAULTS: Final = write_fields(_FIELDS, NamespacePolicies())
