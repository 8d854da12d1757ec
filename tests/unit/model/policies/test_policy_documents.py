"""Namespace policies: Pulsar's JSON in and out, nothing lost."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies
from interpulse.model.policies.policy_records import (
    AutoTopicCreation,
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    InactiveTopicPolicies,
    Persistence,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)

WRITTEN_BY_PULSAR = """{"auth_policies": {"namespace_auth": {"app": ["consume", "produce"]}, "destination_auth": {
  "persistent://t/n/a": {"other": ["produce"]}}, "subscription_auth_roles": {"mine": ["app"]}},
 "subscription_auth_mode": "Prefix",
 "replication_clusters": ["west", "east"], "allowed_clusters": [],
 "bundles": {"boundaries": ["0x0", "0xf"], "numBundles": 1},
 "backlog_quota_map": {"message_age": {"limit": -1, "limitSize": -1, "limitTime": 60, "policy": "producer_exception"}},
 "clusterDispatchRate": {}, "subscriptionDispatchRate": {}, "topicDispatchRate": {"west": {
  "dispatchThrottlingRateInMsg": 5, "dispatchThrottlingRateInByte": -1, "relativeToPublishRate": true,
  "ratePeriodInSecond": 2}},
 "clusterSubscribeRate": {"west": {"subscribeThrottlingRatePerConsumer": 3, "ratePeriodInSecond": 30}},
 "replicatorDispatchRate": {"west": {"dispatchThrottlingRateInMsg": -1, "dispatchThrottlingRateInByte": 9,
  "relativeToPublishRate": false, "ratePeriodInSecond": 1}},
 "publishMaxMessageRate": {"west": {"publishThrottlingRateInMsg": 5, "publishThrottlingRateInByte": 3000000000}},
 "delayed_delivery_policies": {"tickTime": 1000, "active": true, "maxDeliveryDelayInMillis": 3000},
 "max_producers_per_topic": 1, "max_consumers_per_topic": 2, "max_consumers_per_subscription": 3,
 "max_subscriptions_per_topic": 4, "max_unacked_messages_per_consumer": 5,
 "max_unacked_messages_per_subscription": 6, "compaction_threshold": 3000000000,
 "deduplicationSnapshotIntervalSeconds": 7,
 "subscription_expiration_time_minutes": 8, "properties": {"team": "air"},
 "subscription_types_enabled": ["Exclusive", "Shared"],
 "latency_stats_sample_rate": {}, "deleted": false, "encryption_required": false,
 "autoTopicCreationOverride": {
  "allowAutoTopicCreation": true, "topicType": "partitioned", "defaultNumPartitions": 3},
 "autoSubscriptionCreationOverride": {"allowAutoSubscriptionCreation": false},
 "retention_policies": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}, "message_ttl_in_seconds": 60,
 "max_topics_per_namespace": 5,
 "schema_compatibility_strategy": "BACKWARD", "is_allow_auto_update_schema": false,
 "is_allow_auto_update_schema_with_replicator": false, "schema_validation_enforced": true,
 "deduplicationEnabled": true}"""


def test_policies_when_read_then_have_what_was_set() -> None:
    policies = NamespacePolicies.load(WRITTEN_BY_PULSAR.encode())
    assert policies.replication_clusters == ("east", "west")
    assert policies.auto_topic_creation == AutoTopicCreation(True, "partitioned", 3)
    assert policies.auto_subscription_creation_allowed is False
    assert policies.retention == RetentionPolicies(-1, -1)
    assert policies.deduplication_enabled is True
    assert policies.message_ttl_seconds == 60
    assert policies.max_topics_per_namespace == 5
    assert policies.schema_compatibility_strategy == "BACKWARD"
    assert policies.allow_auto_update_schema is False
    assert policies.allow_auto_update_schema_with_replicator is False
    assert policies.schema_validation_enforced
    assert policies.dispatch_rates == {"west": DispatchRate(5, -1, True, 2)}
    assert policies.subscribe_rates == {"west": SubscribeRate(3)}
    assert policies.replicator_dispatch_rates == {"west": DispatchRate(-1, 9)}
    assert (policies.subscription_expiration_minutes, policies.properties) == (8, {"team": "air"})
    assert policies.publish_rates == {"west": PublishRate(5, 3_000_000_000)}
    assert policies.backlog_quotas == {"message_age": BacklogQuota(-1, 60, "producer_exception")}
    assert policies.delayed_delivery == DelayedDelivery(True, 1000, 3000)
    assert (policies.max_producers, policies.max_consumers, policies.max_consumers_per_subscription) == (1, 2, 3)
    assert (policies.max_subscriptions, policies.max_unacked_per_consumer) == (4, 5)
    assert (policies.max_unacked_per_subscription, policies.deduplication_snapshot_seconds) == (6, 7)
    assert policies.compaction_threshold_bytes == 3_000_000_000
    assert policies.subscription_types_enabled == {"Exclusive", "Shared"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_producers_per_topic", "five"),
        ("max_producers_per_topic", 2**31),
        ("subscription_types_enabled", "Shared"),
        ("backlog_quota_map", {"destination_storage": {"policy": "unheard of"}}),
        ("topicDispatchRate", {"west": 5}),
        ("properties", {"team": 5}),
        ("delayed_delivery_policies", {"active": "yes"}),
        ("replication_clusters", "west"),
        ("retention_policies", {"retentionTimeInMinutes": []}),
        ("message_ttl_in_seconds", "soon"),
        ("autoSubscriptionCreationOverride", {"allowAutoSubscriptionCreation": 5}),
        ("schema_compatibility_strategy", 5),
        ("is_allow_auto_update_schema_with_replicator", "no"),
        ("deleted", "no"),
    ],
)
def test_policies_when_a_stored_value_is_of_another_form_then_it_is_kept_and_not_acted_on(
    key: str, value: object
) -> None:
    policies = NamespacePolicies.load(json.dumps({key: value}).encode())
    assert policies == NamespacePolicies(other={key: value})
    assert policies.to_json()[key] == value


def test_policies_when_set_then_replace_a_stored_value_of_another_form() -> None:
    policies = NamespacePolicies.from_json({"max_producers_per_topic": "five", "deleted": "no"})
    body = policies.changed(max_producers=0, deleted=True).to_json()
    assert (body["max_producers_per_topic"], body["deleted"]) == (0, True)


@pytest.mark.parametrize(
    "key",
    [
        "autoTopicCreationOverride",
        "autoSubscriptionCreationOverride",
        "inactive_topic_policies",
        "retention_policies",
    ],
)
def test_override_when_empty_then_sets_nothing(key: str) -> None:
    assert NamespacePolicies.from_json({key: {}}) == NamespacePolicies()


def test_policies_when_written_again_then_nothing_is_lost() -> None:
    before = json.loads(WRITTEN_BY_PULSAR)
    after = json.loads(NamespacePolicies.from_json(before).dump())
    assert {**before, "replication_clusters": ["east", "west"]} == after


def test_policies_when_empty_or_null_then_have_their_defaults() -> None:
    nulls = dict.fromkeys(json.loads(WRITTEN_BY_PULSAR))
    assert NamespacePolicies.from_json(nulls) == NamespacePolicies.from_json({}) == NamespacePolicies()
    assert NamespacePolicies().allow_auto_update_schema_with_replicator  # absent on older brokers means true
    assert None not in NamespacePolicies().to_json().values()


def test_policies_when_a_field_is_changed_then_the_others_stay() -> None:
    policies = NamespacePolicies.load(WRITTEN_BY_PULSAR.encode())
    changed = policies.changed(deduplication_enabled=None)
    assert "deduplicationEnabled" not in changed.to_json()
    assert changed.other == policies.other


@pytest.mark.parametrize(
    "override",
    [
        AutoTopicCreation(False),
        AutoTopicCreation(True, "non-partitioned"),
        AutoTopicCreation(True, "partitioned", 4, always_allow_for_replicator=True),
    ],
)
def test_auto_creation_when_written_then_reads_back_without_nulls(override: AutoTopicCreation) -> None:
    assert AutoTopicCreation.from_json(override.to_json()) == override
    assert None not in override.to_json().values()


INACTIVE = InactiveTopicPolicies("delete_when_subscriptions_caught_up", 5, False)


def test_policies_when_stored_and_read_again_then_are_the_same() -> None:
    policies = TopicPolicies(INACTIVE, other={"fromTheFuture": 3})
    assert TopicPolicies.from_json(policies.to_json()) == policies
    assert policies.to_json() == {"inactiveTopicPolicies": INACTIVE.to_json(), "fromTheFuture": 3}


def test_policies_when_one_is_taken_away_then_the_others_stay() -> None:
    policies = TopicPolicies(INACTIVE, other={"fromTheFuture": 3})
    assert policies.changed(inactive_topics=None).to_json() == {"fromTheFuture": 3}
    assert TopicPolicies(INACTIVE).changed(inactive_topics=None).to_json() == {}


def test_policies_when_a_value_is_null_then_it_is_not_set() -> None:
    assert TopicPolicies.from_json({"inactiveTopicPolicies": None, "fromTheFuture": None}) == TopicPolicies()


def test_replication_clusters_when_stored_and_read_again_then_are_the_same() -> None:
    policies = TopicPolicies(replication_clusters=("east", "west"))
    assert policies.to_json() == {"replicationClusters": ["east", "west"]}
    assert TopicPolicies.from_json(policies.to_json()) == policies
    assert policies.changed(replication_clusters=None).to_json() == {}


def test_policies_when_every_one_is_set_then_all_are_read_back() -> None:
    policies = TopicPolicies(
        INACTIVE,
        ("east",),
        RetentionPolicies(1, 2),
        3,
        4,
        {"destination_storage": BacklogQuota(4, -1, "consumer_backlog_eviction")},
        PublishRate(5, 3_000_000_000),
        DispatchRate(6, 7, True, 8),
        DispatchRate(9),
        SubscribeRate(10, 11),
        DispatchRate(11),
        *range(12, 19),  # type: ignore[call-arg]
        DelayedDelivery(True, 19, 20),
        Persistence(3, 3, 2, 0.5),
        True,
        21,
        3_000_000_000,
        frozenset({"Shared", "Key_Shared"}),
        False,
        "BACKWARD",
        True,
        {"fromTheFuture": 1},
    )
    assert None not in [getattr(policies, each.name) for each in fields(policies)]
    assert TopicPolicies.from_json(policies.to_json()) == policies
    assert len(policies.to_json()) == len(fields(policies))
