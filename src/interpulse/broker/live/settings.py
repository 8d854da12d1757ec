"""The settings of one loaded topic, from the policies of broker, namespace and topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from interpulse.model.policies.policy_records import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    InactiveTopicPolicies,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The effective policies of one topic; replaced as a whole when a policy changes.

    A rate without limit is None and a count without limit 0, so that a topic can skip the work.
    """

    deduplication_enabled: bool = False
    deduplication_entries_interval: int = 1000
    deduplication_snapshot_seconds: int = 0
    """Seconds that an entry may wait for a snapshot; 0 = until enough entries wait."""

    retention: RetentionPolicies = field(default_factory=RetentionPolicies)
    message_ttl_seconds: int = 0
    subscription_expiration_minutes: int = 0
    """Time without a consumer after which a durable subscription is deleted; 0 = never."""

    auto_subscription_creation_allowed: bool = True
    deduplication_inactivity_minutes: int = 360
    remote_clusters: tuple[str, ...] = ()
    replication_cursors_opened: bool = True
    """True to retain everything for remote clusters from the start; else from the job's first request on."""

    inactive_topics: InactiveTopicPolicies = field(default_factory=InactiveTopicPolicies)
    publish_rate: PublishRate | None = None
    dispatch_rate: DispatchRate | None = None
    """The rate of the whole topic."""

    subscription_dispatch_rate: DispatchRate | None = None
    """The rate of each subscription."""

    subscribe_rate: SubscribeRate | None = None
    backlog_quotas: Mapping[str, BacklogQuota] = field(default_factory=dict)
    """Quotas in force, by type: `DESTINATION_STORAGE` or `MESSAGE_AGE`."""

    backlog_ages_shown: bool = False
    """True to look up the age of each subscription's backlog together with the quotas."""

    max_producers: int = 0
    max_consumers: int = 0
    max_consumers_per_subscription: int = 0
    max_subscriptions: int = 0
    max_unacked_per_consumer: int = 0
    max_unacked_per_subscription: int = 0
    delayed_delivery: DelayedDelivery | None = None
    """The delays that messages may ask for. None: messages are delivered immediately."""

    compaction_threshold_bytes: int = 0
    """New bytes that start a compaction automatically; 0 = never."""
    compaction_keeps_keyless: bool = False
    """True if messages without a key survive compaction."""

    encryption_required: bool = False
    subscription_types_enabled: frozenset[str] | None = None
    """Enabled labels of `SubType`; None = all."""

    max_message_size: int = 0
    """Bytes, below the broker's own maximum; 0 = only that one applies."""
