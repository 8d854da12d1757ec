"""The settings of a loaded topic, from the policies in force."""

from __future__ import annotations

from typing import Final, TypeVar

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.live.api import SubType, TopicSettings
from interpulse.model.names import CHANGE_EVENTS, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies
from interpulse.model.policies.policy_records import (
    DESTINATION_STORAGE,
    MESSAGE_AGE,
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    PublishRate,
    SubscribeRate,
)
from interpulse.rules.effective_policies import effective_policies, namespace_level
from interpulse.rules.failover_role import ACTIVE, FailoverRole, is_exempt
from interpulse.rules.replication import is_copied_by_default, remote_clusters

_Rate = TypeVar("_Rate", PublishRate, DispatchRate, SubscribeRate)
_CHANGE_EVENTS_BYTES: Final = 1024 * 1024
"""The size from which topics of policy events are compacted; they are not trimmed before."""
_NO_POLICIES: Final = TopicPolicies()
_ALL_TYPES: Final = frozenset(subscription_type.label for subscription_type in SubType)


class TopicSettingsReader:
    """Caches `topic_settings`: topics without policies of their own share one object per namespace."""

    def __init__(self) -> None:
        self._newest: tuple[NamespacePolicies | None, BrokerConfig, FailoverRole, TopicSettings] | None = None

    def read(
        self,
        name: TopicName,
        topic: TopicPolicies,
        namespace: NamespacePolicies | None,
        config: BrokerConfig,
        role: FailoverRole = ACTIVE,
    ) -> TopicSettings:
        """Return the settings, the same object while namespace and config are the same objects and the role is equal.

        ``role`` is that of the namespace.
        """
        if is_exempt(name) or topic != _NO_POLICIES:
            return topic_settings(name, topic, namespace, config, role)
        newest = self._newest
        if newest is None or newest[0] is not namespace or newest[1] is not config or newest[2] != role:
            newest = self._newest = (namespace, config, role, topic_settings(name, topic, namespace, config, role))
        return newest[3]


def broker_level(config: BrokerConfig) -> TopicPolicies:
    """Return the broker's settings for topics and namespaces without policies."""
    quota = (config.backlog_quota_default_limit_bytes, config.backlog_quota_default_limit_second)
    return TopicPolicies(
        inactive_topics=config.inactive_topics,
        replication_clusters=(),
        retention=config.retention,
        message_ttl_seconds=config.ttl_duration_default_in_seconds,
        subscription_expiration_minutes=config.subscription_expiration_time_minutes,
        backlog_quotas={
            kind: BacklogQuota(*quota, config.backlog_quota_default_retention_policy)
            for kind in (DESTINATION_STORAGE, MESSAGE_AGE)
        },
        publish_rate=PublishRate(
            config.max_publish_rate_per_topic_in_messages, config.max_publish_rate_per_topic_in_bytes
        ),
        dispatch_rate=_dispatch_rate(
            config, config.dispatch_throttling_rate_per_topic_in_msg, config.dispatch_throttling_rate_per_topic_in_byte
        ),
        subscription_dispatch_rate=_dispatch_rate(
            config,
            config.dispatch_throttling_rate_per_subscription_in_msg,
            config.dispatch_throttling_rate_per_subscription_in_byte,
        ),
        subscribe_rate=SubscribeRate(
            config.subscribe_throttling_rate_per_consumer, config.subscribe_rate_period_per_consumer_in_second
        ),
        replicator_dispatch_rate=DispatchRate(
            config.dispatch_throttling_rate_per_replicator_in_msg,
            config.dispatch_throttling_rate_per_replicator_in_byte,
        ),
        max_producers=config.max_producers_per_topic,
        max_consumers=config.max_consumers_per_topic,
        max_consumers_per_subscription=config.max_consumers_per_subscription,
        max_subscriptions=config.max_subscriptions_per_topic,
        max_unacked_per_consumer=config.max_unacked_messages_per_consumer,
        max_unacked_per_subscription=config.max_unacked_messages_per_subscription,
        delayed_delivery=DelayedDelivery(
            config.delayed_delivery_enabled,
            config.delayed_delivery_tick_time_millis,
            config.delayed_delivery_max_delay_in_millis,
        ),
        persistence=config.persistence,
        deduplication_enabled=config.broker_deduplication_enabled,
        deduplication_snapshot_seconds=config.broker_deduplication_snapshot_interval_seconds,
        compaction_threshold_bytes=config.broker_service_compaction_threshold_in_bytes,
        subscription_types_enabled=frozenset(config.subscription_types_enabled.split(",")),
        auto_subscription_creation_allowed=config.allow_auto_subscription_creation,
        schema_compatibility_strategy=config.schema_compatibility_strategy,
        schema_validation_enforced=config.is_schema_validation_enforced,
    )


def _dispatch_rate(config: BrokerConfig, messages: int, size: int) -> DispatchRate:
    return DispatchRate(messages, size, config.dispatch_throttling_rate_relative_to_publish_rate)


def policies_in_force(topic: TopicPolicies, namespace: NamespacePolicies | None, config: BrokerConfig) -> TopicPolicies:
    """Return the policies of a topic, completed by those of its namespace and the broker."""
    level = namespace_level(namespace, cluster=config.cluster_name)
    return effective_policies(topic, level, broker_level(config))


def topic_settings(
    name: TopicName,
    topic: TopicPolicies,
    namespace: NamespacePolicies | None,
    config: BrokerConfig,
    role: FailoverRole = ACTIVE,
) -> TopicSettings:
    """Return the settings of a topic. System topics accept any number of producers, encrypting or not, as in Pulsar."""
    policies = policies_in_force(topic, namespace, config)
    encrypted = config.encryption_require_on_producer or bool(namespace and namespace.encryption_required)
    types = policies.subscription_types_enabled or _ALL_TYPES
    delayed = policies.delayed_delivery
    quotas = policies.backlog_quotas or {}
    assert policies.retention is not None  # broker settings cover every policy
    assert policies.inactive_topics is not None
    return TopicSettings(
        deduplication_enabled=bool(policies.deduplication_enabled),
        deduplication_entries_interval=config.broker_deduplication_entries_interval,
        deduplication_snapshot_seconds=policies.deduplication_snapshot_seconds or 0,
        retention=policies.retention,
        message_ttl_seconds=policies.message_ttl_seconds or 0,
        subscription_expiration_minutes=policies.subscription_expiration_minutes or 0,
        auto_subscription_creation_allowed=bool(policies.auto_subscription_creation_allowed),
        remote_clusters=remote_clusters(config.cluster_name, policies.replication_clusters or ()),
        replication_cursors_opened=is_copied_by_default(name, topic),
        replicated_subscriptions_enabled=config.enable_replicated_subscriptions,
        inactive_topics=policies.inactive_topics,
        publish_rate=_if_limited(policies.publish_rate),
        dispatch_rate=_if_limited(policies.dispatch_rate),
        subscription_dispatch_rate=_if_limited(policies.subscription_dispatch_rate),
        subscribe_rate=_if_limited(policies.subscribe_rate),
        backlog_quotas={kind: quota for kind, quota in quotas.items() if _limits(kind, quota)},
        backlog_ages_shown=config.expose_subscription_backlog_age_in_prometheus,
        max_producers=0 if name.is_system else policies.max_producers or 0,
        max_consumers=policies.max_consumers or 0,
        max_consumers_per_subscription=policies.max_consumers_per_subscription or 0,
        max_subscriptions=policies.max_subscriptions or 0,
        max_unacked_per_consumer=policies.max_unacked_per_consumer or 0,
        max_unacked_per_subscription=policies.max_unacked_per_subscription or 0,
        delayed_delivery=delayed if delayed and delayed.active else None,
        compaction_threshold_bytes=policies.compaction_threshold_bytes
        or (_CHANGE_EVENTS_BYTES if name.base.local_name == CHANGE_EVENTS else 0),
        compaction_keeps_keyless=config.topic_compaction_retain_null_key,
        encryption_required=encrypted and not name.is_system,
        subscription_types_enabled=None if types >= _ALL_TYPES else types,
        max_message_size=policies.max_message_size or 0,
        role=ACTIVE if is_exempt(name) else role,
        standby_consumers_allowed=config.standby_consumers == "allow",
    )


def _if_limited(rate: _Rate | None) -> _Rate | None:
    return rate if rate and rate.limited else None


def _limits(kind: str, quota: BacklogQuota) -> bool:
    return (quota.limit_bytes if kind == DESTINATION_STORAGE else quota.limit_seconds) > 0
