"""What a loaded topic goes by, computed from the policies."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.live.api import SubType, TopicSettings
from interpulse.broker.topics.topic_settings import TopicSettingsReader, broker_level, topic_settings
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies
from interpulse.model.policies.policy_records import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)
from interpulse.rules.failover_role import ACTIVE, FailoverRole, Role

TOPIC = TopicName.parse("persistent://t/n/orders")
SYSTEM = TopicName.parse("persistent://t/n/__change_events")
QUOTA = BacklogQuota(5, 6)
BY_KEY: list[tuple[dict[str, str], str, Any]] = [
    ({"maxProducersPerTopic": "3"}, "max_producers", 3),
    ({"maxConsumersPerTopic": "3"}, "max_consumers", 3),
    ({"maxConsumersPerSubscription": "3"}, "max_consumers_per_subscription", 3),
    ({"maxSubscriptionsPerTopic": "3"}, "max_subscriptions", 3),
    ({"maxUnackedMessagesPerConsumer": "3"}, "max_unacked_per_consumer", 3),
    ({"maxUnackedMessagesPerSubscription": "0"}, "max_unacked_per_subscription", 0),
    ({"maxPublishRatePerTopicInMessages": "3"}, "publish_rate", PublishRate(3, 0)),
    ({"maxPublishRatePerTopicInBytes": "3000000000"}, "publish_rate", PublishRate(0, 3_000_000_000)),
    ({"dispatchThrottlingRatePerTopicInMsg": "3"}, "dispatch_rate", DispatchRate(3, 0)),
    ({"dispatchThrottlingRatePerTopicInByte": "3"}, "dispatch_rate", DispatchRate(0, 3)),
    ({"dispatchThrottlingRatePerSubscriptionInMsg": "3"}, "subscription_dispatch_rate", DispatchRate(3, 0)),
    ({"dispatchThrottlingRatePerSubscriptionInByte": "3"}, "subscription_dispatch_rate", DispatchRate(0, 3)),
    (
        {"dispatchThrottlingRatePerTopicInMsg": "3", "dispatchThrottlingRateRelativeToPublishRate": "true"},
        "dispatch_rate",
        DispatchRate(3, 0, True),
    ),
    ({"subscribeThrottlingRatePerConsumer": "3"}, "subscribe_rate", SubscribeRate(3, 30)),
    (
        {"backlogQuotaDefaultLimitBytes": "3", "backlogQuotaDefaultRetentionPolicy": "producer_exception"},
        "backlog_quotas",
        {"destination_storage": BacklogQuota(3, -1, "producer_exception")},
    ),
    ({"backlogQuotaDefaultLimitSecond": "3"}, "backlog_quotas", {"message_age": BacklogQuota(-1, 3)}),
    ({"delayedDeliveryEnabled": "false"}, "delayed_delivery", None),
    ({"delayedDeliveryTickTimeMillis": "5"}, "delayed_delivery", DelayedDelivery(True, 5, 0)),
    ({"delayedDeliveryMaxDelayInMillis": "5"}, "delayed_delivery", DelayedDelivery(True, 1000, 5)),
    ({"brokerServiceCompactionThresholdInBytes": "5"}, "compaction_threshold_bytes", 5),
    ({"encryptionRequireOnProducer": "true"}, "encryption_required", True),
    ({"subscriptionTypesEnabled": "Shared,Exclusive"}, "subscription_types_enabled", {"Shared", "Exclusive"}),
    ({"standbyConsumers": "refuse"}, "standby_consumers_allowed", False),
    ({"ttlDurationDefaultInSeconds": "5"}, "message_ttl_seconds", 5),
    ({"defaultRetentionTimeInMinutes": "5"}, "retention", RetentionPolicies(5, 0)),
    ({"brokerDeduplicationEnabled": "true"}, "deduplication_enabled", True),
]


def settings_of(
    topic: TopicPolicies | None = None, namespace: NamespacePolicies | None = None, **keys: str
) -> TopicSettings:
    return topic_settings(TOPIC, topic or TopicPolicies(), namespace, BrokerConfig().changed(keys))


def test_settings_when_nothing_is_set_then_only_the_defaults_of_pulsar_limit_something() -> None:
    assert settings_of() == TopicSettings(
        max_unacked_per_consumer=50_000,
        max_unacked_per_subscription=200_000,
        delayed_delivery=DelayedDelivery(),
        deduplication_snapshot_seconds=120,
    )


@pytest.mark.parametrize(("keys", "name", "expected"), BY_KEY, ids=[" ".join(row[0]) for row in BY_KEY])
def test_settings_when_only_the_broker_says_something_then_that_counts(
    keys: dict[str, str], name: str, expected: Any
) -> None:
    assert getattr(settings_of(**keys), name) == expected  # type: ignore[arg-type]


def test_settings_when_a_topic_sets_everything_then_all_of_it_arrives() -> None:
    own = TopicPolicies(
        retention=RetentionPolicies(1, 2),
        message_ttl_seconds=3,
        subscription_expiration_minutes=4,
        backlog_quotas={"destination_storage": QUOTA},
        publish_rate=PublishRate(4),
        dispatch_rate=DispatchRate(5),
        subscription_dispatch_rate=DispatchRate(6),
        subscribe_rate=SubscribeRate(7),
        max_producers=8,
        max_consumers=9,
        max_consumers_per_subscription=10,
        max_subscriptions=11,
        max_unacked_per_consumer=12,
        max_unacked_per_subscription=13,
        max_message_size=14,
        delayed_delivery=DelayedDelivery(True, 15),
        deduplication_enabled=True,
        deduplication_snapshot_seconds=15,
        compaction_threshold_bytes=16,
        subscription_types_enabled=frozenset({"Shared"}),
        auto_subscription_creation_allowed=False,
        replication_clusters=("standalone", "west"),
    )
    settings = settings_of(own)
    assert settings.retention == RetentionPolicies(1, 2)
    assert (settings.message_ttl_seconds, settings.subscription_expiration_minutes) == (3, 4)
    assert settings.backlog_quotas == {"destination_storage": QUOTA}
    assert (settings.publish_rate, settings.dispatch_rate) == (PublishRate(4), DispatchRate(5))
    assert (settings.subscription_dispatch_rate, settings.subscribe_rate) == (DispatchRate(6), SubscribeRate(7))
    assert (settings.max_producers, settings.max_consumers) == (8, 9)
    assert (settings.max_consumers_per_subscription, settings.max_subscriptions) == (10, 11)
    assert (settings.max_unacked_per_consumer, settings.max_unacked_per_subscription) == (12, 13)
    assert settings.max_message_size == 14
    assert settings.delayed_delivery == DelayedDelivery(True, 15)
    assert settings.deduplication_enabled
    assert settings.deduplication_snapshot_seconds == 15
    assert settings.compaction_threshold_bytes == 16
    assert settings.subscription_types_enabled == {"Shared"}
    assert not settings.auto_subscription_creation_allowed
    assert settings.remote_clusters == ("west",)


@pytest.mark.parametrize(
    ("name", "own", "opened"),
    [(TOPIC, None, True), (SYSTEM, None, False), (SYSTEM, ("standalone", "west"), True)],
    ids=["ordinary", "system", "system-with-clusters-of-its-own"],
)
def test_settings_when_replicated_then_cursors_are_opened_where_the_job_moves_them(
    name: TopicName, own: tuple[str, ...] | None, opened: bool
) -> None:
    namespace = NamespacePolicies(replication_clusters=("standalone", "west"))
    settings = topic_settings(name, TopicPolicies(replication_clusters=own), namespace, BrokerConfig())
    assert (settings.remote_clusters, settings.replication_cursors_opened) == (("west",), opened)


def test_settings_when_a_policy_limits_nothing_then_there_is_nothing_to_do() -> None:
    own = TopicPolicies(
        backlog_quotas={"destination_storage": BacklogQuota(-1, 60), "message_age": BacklogQuota(60, 0)},
        publish_rate=PublishRate(0, -1),
        dispatch_rate=DispatchRate(),
        subscription_dispatch_rate=DispatchRate(),
        subscribe_rate=SubscribeRate(),
        delayed_delivery=DelayedDelivery(False),
        subscription_types_enabled=frozenset(each.label for each in SubType),
    )
    settings = settings_of(own, maxPublishRatePerTopicInMessages="3", backlogQuotaDefaultLimitBytes="3")
    assert settings.backlog_quotas == {}
    assert settings.publish_rate is None
    assert settings.dispatch_rate is None
    assert settings.subscription_dispatch_rate is None
    assert settings.subscribe_rate is None
    assert settings.delayed_delivery is None
    assert settings.subscription_types_enabled is None


def test_settings_when_a_namespace_demands_encryption_then_producers_have_to_encrypt() -> None:
    assert settings_of(namespace=NamespacePolicies(encryption_required=True)).encryption_required


def test_settings_when_the_topic_is_a_system_topic_then_producers_are_not_limited() -> None:
    namespace = NamespacePolicies(encryption_required=True, max_producers=1, max_consumers=1)
    settings = topic_settings(SYSTEM, TopicPolicies(), namespace, BrokerConfig())
    assert not settings.encryption_required
    assert settings.max_producers == 0
    assert settings.max_consumers == 1


def test_broker_level_when_read_then_has_a_word_on_everything_but_what_only_topics_set() -> None:
    level = broker_level(BrokerConfig())
    silent = {each.name for each in fields(level) if getattr(level, each.name) is None}
    assert silent == {"max_message_size"}


def test_reader_when_namespace_or_config_is_another_one_then_reads_them_again() -> None:
    reader, config, other = TopicSettingsReader(), BrokerConfig(), BrokerConfig(ttl_duration_default_in_seconds=7)
    namespaces = [None, NamespacePolicies(max_consumers=3), NamespacePolicies(max_consumers=4)]
    topics = [TopicPolicies(), TopicPolicies(max_producers=2)]
    for name in (TOPIC, SYSTEM):
        for of_broker in (config, other, config):
            for namespace in namespaces:
                for topic in topics:
                    found = reader.read(name, topic, namespace, of_broker)
                    assert found == topic_settings(name, topic, namespace, of_broker)
    assert reader.read(TOPIC, topics[0], None, config) is reader.read(TOPIC, topics[0], None, config)


FENCED = FailoverRole(Role.FENCED, 3)


@pytest.mark.parametrize(
    ("name", "role"),
    [("a", FENCED), ("a-partition-1", FENCED), ("__change_events", ACTIVE), ("interpulse-failover-a", ACTIVE)],
)
def test_role_when_the_namespace_has_one_then_topics_of_users_have_it(name: str, role: FailoverRole) -> None:
    topic = TopicName.parse(f"persistent://t/n/{name}")
    reader, policies = TopicSettingsReader(), TopicPolicies()
    assert reader.read(TOPIC, policies, None, BrokerConfig(), FENCED).role == FENCED
    assert reader.read(topic, policies, None, BrokerConfig(), FENCED).role == role
    assert reader.read(TOPIC, policies, None, BrokerConfig()).role == ACTIVE
