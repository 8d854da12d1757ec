"""Which policy is in force: the topic's own, else its namespace's, else the broker's."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies, TopicPolicyRecord
from interpulse.model.policies.policy_records import (
    NON_PARTITIONED,
    PARTITIONED,
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
from interpulse.rules.effective_policies import (
    EffectiveAutoCreation,
    effective_auto_creation,
    effective_policies,
    effective_schema_strategy,
    effective_topics_max,
    namespace_level,
    topic_level,
)

NOTHING = TopicPolicies()

# One row per policy: its attribute, what the broker says, what the namespace says, and what the topic says. The last
# one means "no limit", "nothing" or "no" wherever there is such a value: it counts as said.
LEVELS: list[tuple[str, Any, Any, Any]] = [
    ("inactive_topics", InactiveTopicPolicies(), InactiveTopicPolicies("x", 5), InactiveTopicPolicies("y", 0, False)),
    ("replication_clusters", (), ("east",), ("east", "west")),
    ("retention", RetentionPolicies(1, 1), RetentionPolicies(2, 2), RetentionPolicies(0, 0)),
    ("message_ttl_seconds", 1, 2, 0),
    ("subscription_expiration_minutes", 1, 2, 0),
    ("publish_rate", PublishRate(1), PublishRate(2), PublishRate()),
    ("dispatch_rate", DispatchRate(1), DispatchRate(2), DispatchRate()),
    ("subscription_dispatch_rate", DispatchRate(1), DispatchRate(2), DispatchRate()),
    ("subscribe_rate", SubscribeRate(1), SubscribeRate(2), SubscribeRate()),
    ("replicator_dispatch_rate", DispatchRate(1), DispatchRate(2), DispatchRate()),
    ("max_producers", 1, 2, 0),
    ("max_consumers", 1, 2, 0),
    ("max_consumers_per_subscription", 1, 2, 0),
    ("max_subscriptions", 1, 2, 0),
    ("max_unacked_per_consumer", 50_000, 2, 0),
    ("max_unacked_per_subscription", 200_000, 2, 0),
    ("delayed_delivery", DelayedDelivery(), DelayedDelivery(True, 5), DelayedDelivery(False)),
    ("persistence", Persistence(), Persistence(3, 3, 2), Persistence(1, 1, 1)),
    ("deduplication_enabled", True, True, False),
    ("deduplication_snapshot_seconds", 120, 5, 0),
    ("compaction_threshold_bytes", 1, 2, 0),
    ("subscription_types_enabled", frozenset({"Shared"}), frozenset({"Exclusive"}), frozenset({"Failover"})),
    ("auto_subscription_creation_allowed", True, True, False),
    ("schema_compatibility_strategy", "FULL", "BACKWARD", "FORWARD"),
]
OF_TOPICS_ONLY = {"max_message_size", "other"}
READ_DIFFERENTLY = {"backlog_quotas", "schema_validation_enforced"}


@pytest.mark.parametrize(("name", "everywhere", "here"), [(row[0], row[2], row[3]) for row in LEVELS])
def test_policy_for_all_clusters_counts_where_a_topic_has_none_here(name: str, everywhere: Any, here: Any) -> None:
    for_all = TopicPolicies(**{name: everywhere})
    assert getattr(topic_level(TopicPolicyRecord(everywhere=for_all)), name) == everywhere
    assert getattr(topic_level(TopicPolicyRecord(TopicPolicies(**{name: here}), for_all)), name) == here


def test_quotas_for_all_clusters_count_type_by_type_and_unknown_policies_only_here() -> None:
    size, age, other = BacklogQuota(1, -1, "x"), BacklogQuota(-1, 1, "x"), BacklogQuota(2, -1, "x")
    record = TopicPolicyRecord(
        TopicPolicies(backlog_quotas={"destination_storage": size}, other={"a": 1}),
        TopicPolicies(backlog_quotas={"destination_storage": other, "message_age": age}, other={"b": 1}),
    )
    joined = topic_level(record)
    assert joined.backlog_quotas == {"destination_storage": size, "message_age": age}
    assert joined.other == {"a": 1}


def test_levels_when_listed_then_every_policy_of_a_topic_is_covered() -> None:
    assert {row[0] for row in LEVELS} | OF_TOPICS_ONLY | READ_DIFFERENTLY == {each.name for each in fields(NOTHING)}


@pytest.mark.parametrize(("name", "broker", "namespace", "topic"), LEVELS, ids=[row[0] for row in LEVELS])
def test_policy_when_levels_differ_then_the_lowest_that_says_something_counts(
    name: str, broker: Any, namespace: Any, topic: Any
) -> None:
    def effective(topic: TopicPolicies, namespace: TopicPolicies) -> Any:
        return getattr(effective_policies(topic, namespace, TopicPolicies(**{name: broker})), name)

    own, above = TopicPolicies(**{name: topic}), TopicPolicies(**{name: namespace})
    assert effective(NOTHING, NOTHING) == broker
    assert effective(NOTHING, above) == namespace
    assert effective(own, above) == topic
    assert effective(own, NOTHING) == topic


def test_message_size_when_the_topic_says_nothing_then_there_is_no_own_limit() -> None:
    assert effective_policies(NOTHING, NOTHING, NOTHING).max_message_size is None
    assert effective_policies(TopicPolicies(max_message_size=5), NOTHING, NOTHING).max_message_size == 5


def test_quotas_when_levels_speak_of_different_types_then_they_are_joined() -> None:
    size, age, other = BacklogQuota(1), BacklogQuota(-1, 1), BacklogQuota(5)
    broker = TopicPolicies(backlog_quotas={"destination_storage": BacklogQuota(), "message_age": BacklogQuota()})
    namespace = TopicPolicies(backlog_quotas={"destination_storage": size, "message_age": age})
    topic = TopicPolicies(backlog_quotas={"destination_storage": other})
    assert effective_policies(topic, namespace, broker).backlog_quotas == {
        "destination_storage": other,
        "message_age": age,
    }
    assert effective_policies(NOTHING, NOTHING, broker).backlog_quotas == broker.backlog_quotas
    assert effective_policies(NOTHING, NOTHING, NOTHING).backlog_quotas == {}


def test_subscription_types_when_none_is_listed_then_the_next_level_counts() -> None:
    nothing_listed = TopicPolicies(subscription_types_enabled=frozenset())
    listed = TopicPolicies(subscription_types_enabled=frozenset({"Shared"}))
    assert effective_policies(nothing_listed, listed, NOTHING).subscription_types_enabled == {"Shared"}
    assert topic_level(TopicPolicyRecord(nothing_listed, listed)).subscription_types_enabled == {"Shared"}


@pytest.mark.parametrize(
    ("topic", "namespace", "broker", "enforced"),
    [
        (None, False, False, False),
        (None, True, False, True),
        (False, True, False, False),
        (True, False, False, True),
        (False, False, True, True),
        (None, False, True, True),
    ],
)
def test_schema_validation_when_the_broker_demands_it_then_no_policy_waives_it(
    topic: bool | None, namespace: bool, broker: bool, enforced: bool
) -> None:
    effective = effective_policies(
        TopicPolicies(schema_validation_enforced=topic),
        namespace_level(NamespacePolicies(schema_validation_enforced=namespace), cluster="c"),
        TopicPolicies(schema_validation_enforced=broker),
    )
    assert effective.schema_validation_enforced is enforced


def test_namespace_level_when_rates_stand_by_cluster_then_those_of_this_one_count() -> None:
    policies = NamespacePolicies(
        publish_rates={"here": PublishRate(1), "there": PublishRate(2)},
        dispatch_rates={"there": DispatchRate(2)},
        subscription_dispatch_rates={"here": DispatchRate(3)},
        subscribe_rates={"here": SubscribeRate(4)},
        replicator_dispatch_rates={"here": DispatchRate(5), "there": DispatchRate(6)},
    )
    level = namespace_level(policies, cluster="here")
    assert level.publish_rate == PublishRate(1)
    assert level.dispatch_rate is None
    assert level.subscription_dispatch_rate == DispatchRate(3)
    assert level.subscribe_rate == SubscribeRate(4)
    assert level.replicator_dispatch_rate == DispatchRate(5)


def test_namespace_level_when_every_policy_is_set_then_none_is_lost() -> None:
    policies = NamespacePolicies(
        replication_clusters=("here",),
        auto_subscription_creation_allowed=False,
        deduplication_enabled=True,
        inactive_topics=InactiveTopicPolicies(),
        retention=RetentionPolicies(),
        message_ttl_seconds=0,
        subscription_expiration_minutes=0,
        schema_compatibility_strategy="FULL",
        schema_validation_enforced=True,
        publish_rates={"here": PublishRate()},
        dispatch_rates={"here": DispatchRate()},
        subscription_dispatch_rates={"here": DispatchRate()},
        subscribe_rates={"here": SubscribeRate()},
        replicator_dispatch_rates={"here": DispatchRate()},
        backlog_quotas={"message_age": BacklogQuota()},
        max_producers=0,
        max_consumers=0,
        max_consumers_per_subscription=0,
        max_subscriptions=0,
        max_unacked_per_consumer=0,
        max_unacked_per_subscription=0,
        delayed_delivery=DelayedDelivery(),
        persistence=Persistence(),
        deduplication_snapshot_seconds=0,
        compaction_threshold_bytes=0,
        subscription_types_enabled=frozenset({"Shared"}),
    )
    level = namespace_level(policies, cluster="here")
    assert {each.name for each in fields(level) if getattr(level, each.name) is None} == {"max_message_size"}


@pytest.mark.parametrize(
    ("policies", "strategy"),
    [
        (None, None),
        (NamespacePolicies(), None),
        (NamespacePolicies(schema_compatibility_strategy="FORWARD"), "FORWARD"),
        (NamespacePolicies(other={"schema_auto_update_compatibility_strategy": "Backward"}), "BACKWARD"),
    ],
)
def test_namespace_level_when_the_strategy_is_not_defined_then_it_is_not_set(
    policies: NamespacePolicies | None, strategy: str | None
) -> None:
    assert namespace_level(policies, cluster="c").schema_compatibility_strategy == strategy


X = TopicName.parse("x")
BROKER = AutoTopicCreation(True, PARTITIONED, 4)
NOTHING_SET = NamespacePolicies()
NO_LIMIT = NamespacePolicies(max_topics_per_namespace=0)


def override(*values: Any) -> NamespacePolicies:
    return NamespacePolicies(auto_topic_creation=AutoTopicCreation(*values))


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [
        pytest.param(None, EffectiveAutoCreation(True, True, 4), id="no-namespace"),
        pytest.param(NOTHING_SET, EffectiveAutoCreation(True, True, 4), id="no-override"),
        pytest.param(override(False), EffectiveAutoCreation(False), id="override-replaces-the-whole"),
        pytest.param(override(True, NON_PARTITIONED), EffectiveAutoCreation(True), id="override-not-partitioned"),
        pytest.param(override(True, PARTITIONED, 2), EffectiveAutoCreation(True, True, 2), id="override-partitioned"),
        pytest.param(override(True, "PARTITIONED", 2), EffectiveAutoCreation(True, False, 2), id="type-exactly"),
        pytest.param(
            override(False, None, None, False), EffectiveAutoCreation(False, replicator_allowed=False), id="replicator"
        ),
    ],
)
def test_effective_auto_creation(namespace: NamespacePolicies | None, expected: EffectiveAutoCreation) -> None:
    assert effective_auto_creation(X, namespace, BROKER) == expected


@pytest.mark.parametrize("local", ["x-DLQ", "x-sub-RETRY", "x-partition-0-DLQ"])
def test_dead_letter_and_retry_topics_are_never_partitioned(local: str) -> None:
    assert not effective_auto_creation(TopicName.parse(local), None, BROKER).partitioned


@pytest.mark.parametrize(("namespace", "most"), [(None, 9), (NOTHING_SET, 9), (NO_LIMIT, 0)])
def test_topics_max_is_the_broker_s_unless_the_namespace_says_something(
    namespace: NamespacePolicies | None, most: int
) -> None:
    assert effective_topics_max(namespace, 9) == most


@pytest.mark.parametrize(
    ("policies", "strategy"),
    [
        (NamespacePolicies(), "FULL"),
        (NamespacePolicies(schema_compatibility_strategy="FORWARD"), "FORWARD"),
        (NamespacePolicies(other={"schema_auto_update_compatibility_strategy": "Backward"}), "BACKWARD"),
        (
            NamespacePolicies(
                schema_compatibility_strategy="FORWARD",
                other={"schema_auto_update_compatibility_strategy": "AutoUpdateDisabled"},
            ),
            "FORWARD",
        ),
        (
            NamespacePolicies(other={"schema_auto_update_compatibility_strategy": "AutoUpdateDisabled"}),
            "ALWAYS_INCOMPATIBLE",
        ),
    ],
)
def test_schema_strategy_of_the_namespace_then_its_older_setting_then_the_broker(
    policies: NamespacePolicies, strategy: str
) -> None:
    assert effective_schema_strategy(policies, "FULL") == strategy
