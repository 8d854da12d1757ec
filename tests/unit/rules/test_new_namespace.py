"""A namespace is created with policies that could be set one by one, and with no others."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.model.errors import PulsarError
from interpulse.model.permissions import Permissions
from interpulse.model.policies.namespace_policies import NamespacePolicies
from interpulse.model.policies.retention_policies import AutoTopicCreation, RetentionPolicies
from interpulse.rules.checks_by_kind import Limits
from interpulse.rules.new_namespace import check_new_policies
from interpulse.rules.policy_checks import check_auto_topic_creation


def test_policies_that_may_be() -> None:
    body = {
        "replication_clusters": ["east"],
        "retention_policies": {"retentionTimeInMinutes": 10, "retentionSizeInMB": 5},
        "message_ttl_in_seconds": 7,
        "autoTopicCreationOverride": {"allowAutoTopicCreation": False},
        "is_allow_auto_update_schema": False,
        "is_allow_auto_update_schema_with_replicator": False,
        "schema_compatibility_strategy": "UNDEFINED",
        "backlog_quota_map": {},
        "topicDispatchRate": {},
        "compaction_threshold": 2**40,
        "auth_policies": {"namespace_auth": {"app": ["produce"]}},
        "subscription_auth_mode": "Prefix",
        "encryption_required": True,
        "newer": {"a": 1},
    }
    assert check_new_policies(body, Limits(partitions_max=0)) == NamespacePolicies(
        replication_clusters=("east",),
        retention=RetentionPolicies(10, 5),
        message_ttl_seconds=7,
        auto_topic_creation=AutoTopicCreation(False),
        allow_auto_update_schema=False,
        allow_auto_update_schema_with_replicator=False,
        compaction_threshold_bytes=2**40,
        granted=Permissions().grant("app", ["produce"]),
        subscription_auth_mode="Prefix",
        encryption_required=True,
        other={"newer": {"a": 1}},
    )


def test_auto_topic_creation_when_a_namespace_begins_with_it_then_is_read_as_when_it_is_set() -> None:
    for body in (
        {"allowAutoTopicCreation": True, "topicType": "Partitioned", "defaultNumPartitions": 3},
        {"allowAutoTopicCreation": True, "topicType": "NON-PARTITIONED", "alwaysAllowForReplicator": True},
        {},
    ):
        policies = check_new_policies({"autoTopicCreationOverride": body}, Limits(partitions_max=4))
        assert policies.auto_topic_creation == check_auto_topic_creation(body, partitions_max=4)
        assert "autoTopicCreationOverride" not in policies.other


@pytest.mark.parametrize("with_replicator", [{}, {"is_allow_auto_update_schema_with_replicator": True}])
def test_schema_switch_when_replicators_are_let_in_too_then_is_taken(with_replicator: dict[str, bool]) -> None:
    policies = check_new_policies({"is_allow_auto_update_schema": True, **with_replicator}, Limits(partitions_max=0))
    assert (policies.allow_auto_update_schema, policies.allow_auto_update_schema_with_replicator) == (True, True)


def test_role_that_is_granted_nothing_may_be_named() -> None:
    body = {"auth_policies": {"namespace_auth": {"app": []}, "destination_auth": {"persistent://a/b/c": {"x": []}}}}
    assert check_new_policies(body, Limits(partitions_max=0)).granted == Permissions(
        namespace={"app": frozenset()}, topics={"persistent://a/b/c": {"x": frozenset()}}
    )


QUOTA = {"limitSize": 10, "limitTime": -1, "policy": "producer_exception"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"retention_policies": {"retentionTimeInMinutes": 10, "retentionSizeInMB": 0}}, 400),
        ({"message_ttl_in_seconds": -1}, 412),
        ({"subscription_expiration_time_minutes": -1}, 412),
        ({"max_topics_per_namespace": -1}, 412),
        ({"max_producers_per_topic": -4}, 412),
        ({"max_producers_per_topic": 2**31}, 412),
        ({"max_consumers_per_topic": -1}, 412),
        ({"max_consumers_per_subscription": -1}, 412),
        ({"max_subscriptions_per_topic": -1}, 412),
        ({"max_unacked_messages_per_consumer": -1}, 412),
        ({"max_unacked_messages_per_subscription": -1}, 412),
        ({"deduplicationSnapshotIntervalSeconds": -1}, 412),
        ({"compaction_threshold": -1}, 412),
        ({"compaction_threshold": 2**63}, 412),
        ({"autoTopicCreationOverride": {"allowAutoTopicCreation": True, "topicType": "weird"}}, 412),
        (
            {
                "autoTopicCreationOverride": {
                    "allowAutoTopicCreation": True,
                    "topicType": "partitioned",
                    "defaultNumPartitions": 5,
                }
            },
            406,
        ),
        ({"inactive_topic_policies": {"inactiveTopicDeleteMode": "never"}}, 400),
        ({"schema_compatibility_strategy": "backward"}, 412),
        ({"is_allow_auto_update_schema": True, "is_allow_auto_update_schema_with_replicator": False}, 400),
        ({"backlog_quota_map": {"destination_storage": QUOTA | {"policy": "x"}}}, 400),
        ({"topicDispatchRate": {"east": {"ratePeriodInSecond": 0}}}, 400),
        ({"topicDispatchRate": {"east": {}, "west": {"ratePeriodInSecond": 0}}}, 400),
        ({"subscriptionDispatchRate": {"east": {"ratePeriodInSecond": 0}}}, 400),
        ({"clusterSubscribeRate": {"east": {"ratePeriodInSecond": 0}}}, 400),
        ({"replicatorDispatchRate": {"east": {"ratePeriodInSecond": 0}}}, 400),
        ({"delayed_delivery_policies": {"active": True, "tickTime": -5}}, 400),
        ({"subscription_types_enabled": ["Sharded"]}, 400),
        ({"backlog_quota_map": {"storage": QUOTA}}, 400),
        ({"backlog_quota_map": {"destination_storage": QUOTA, "message_age": QUOTA | {"limitTime": 0}}}, 400),
        ({"subscription_auth_mode": "prefix"}, 400),
        ({"auth_policies": {"namespace_auth": {"app": ["publish"]}}}, 400),
        ({"auth_policies": {"namespace_auth": {"none": [], "app": ["publish"]}}}, 400),
        ({"auth_policies": {"destination_auth": {"persistent://a/b/c": {"app": ["publish"]}}}}, 400),
    ],
)
def test_policies_that_are_refused(body: dict[str, Any], status: int) -> None:
    with pytest.raises(PulsarError) as refusal:
        check_new_policies(body, Limits(partitions_max=4))
    assert refusal.value.http_status == status
