"""Policies of topics in Pulsar's JSON."""

from __future__ import annotations

from dataclasses import fields

from interpulse.model.policies.policy_records import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    InactiveTopicPolicies,
    Persistence,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)
from interpulse.model.policies.topic_policies import TopicPolicies

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
