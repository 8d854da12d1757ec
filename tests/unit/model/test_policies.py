"""Namespace policies: Pulsar's JSON in and out, nothing lost."""

import json

import pytest

from interpulse.model.policies import AutoTopicCreation, NamespacePolicies, RetentionPolicies

WRITTEN_BY_PULSAR = """{"auth_policies": {"namespace_auth": {}, "destination_auth": {}},
 "replication_clusters": ["west", "east"], "allowed_clusters": [],
 "bundles": {"boundaries": ["0x0", "0xf"], "numBundles": 1},
 "backlog_quota_map": {}, "latency_stats_sample_rate": {}, "deleted": false, "encryption_required": false,
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
