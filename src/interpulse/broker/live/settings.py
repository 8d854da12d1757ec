"""The settings of one loaded topic, out of the policies of broker, namespace and topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from interpulse.model.policies.messaging_policies import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    PublishRate,
    SubscribeRate,
)
from interpulse.model.policies.namespace_policies import InactiveTopicPolicies, RetentionPolicies

__all__ = ["TopicSettings"]


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The effective policies of one topic; replaced as a whole when a policy changes.

    A rate that limits nothing is None, a count without limit 0, so that a topic can tell at once what it need not do.
    """

    deduplication_enabled: bool = False
    deduplication_entries_interval: int = 1000
    deduplication_snapshot_seconds: int = 0
    """How long an entry may be without a snapshot; 0 = until there are enough of them."""

    retention: RetentionPolicies = field(default_factory=RetentionPolicies)
    message_ttl_seconds: int = 0
    subscription_expiration_minutes: int = 0
    """A durable subscription goes when it had no consumer for so long; 0 = never."""

    auto_subscription_creation_allowed: bool = True
    deduplication_inactivity_minutes: int = 360
    remote_clusters: tuple[str, ...] = ()
    replication_cursors_opened: bool = True
    """Whether everything is kept for remote clusters from the start; else only once the job has asked for it."""

    inactive_topics: InactiveTopicPolicies = field(default_factory=InactiveTopicPolicies)
    publish_rate: PublishRate | None = None
    dispatch_rate: DispatchRate | None = None
    """Of the whole topic."""

    subscription_dispatch_rate: DispatchRate | None = None
    """Of each of its subscriptions."""

    subscribe_rate: SubscribeRate | None = None
    backlog_quotas: Mapping[str, BacklogQuota] = field(default_factory=dict)
    """By type, `DESTINATION_STORAGE` or `MESSAGE_AGE`; only those that limit something."""

    backlog_ages_shown: bool = False
    """The age of each subscription's backlog is looked up with the quotas."""

    max_producers: int = 0
    max_consumers: int = 0
    max_consumers_per_subscription: int = 0
    max_subscriptions: int = 0
    max_unacked_per_consumer: int = 0
    max_unacked_per_subscription: int = 0
    delayed_delivery: DelayedDelivery | None = None
    """None: messages are delivered at once, whatever they ask for."""

    compaction_threshold_bytes: int = 0
    """Compact by itself when so much has come since the last time; 0 = never."""
    compaction_keeps_keyless: bool = False
    """Compaction keeps messages without a key."""

    encryption_required: bool = False
    subscription_types_enabled: frozenset[str] | None = None
    """Labels of `SubType`; None = all."""

    max_message_size: int = 0
    """Bytes, below the broker's own maximum; 0 = only that one counts."""
