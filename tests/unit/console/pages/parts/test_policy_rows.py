"""The level of each policy."""

from __future__ import annotations

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.topics.topic_settings import broker_level
from interpulse.console.pages.parts.policy_rows import policy_rows
from interpulse.model.policies.policy_documents import TopicPolicies, TopicPolicyRecord
from interpulse.model.policies.policy_records import BacklogQuota, RetentionPolicies

BROKER = broker_level(BrokerConfig())


def test_rows_when_nothing_is_set_then_everything_is_the_brokers() -> None:
    rows = policy_rows(TopicPolicyRecord(), TopicPolicies(), BROKER)
    assert {row["level"] for row in rows} == {"broker"}
    assert all(not row["hidden"] for row in rows)
    assert {"messageTTLInSeconds", "retentionPolicies", "backLogQuotaMap.message_age"} <= {row["name"] for row in rows}


def test_rows_when_levels_differ_then_the_nearest_counts_and_the_others_are_hidden() -> None:
    record = TopicPolicyRecord(TopicPolicies(max_producers=1), TopicPolicies(max_producers=2, message_ttl_seconds=60))
    namespace = TopicPolicies(max_producers=3, message_ttl_seconds=70, retention=RetentionPolicies(5, 6))
    rows = {row["name"]: row for row in policy_rows(record, namespace, BROKER)}
    producers = rows["maxProducerPerTopic"]
    assert (producers["value"], producers["level"]) == ("1", "topic")
    assert producers["hidden"] == ["topic, on all its clusters: 2", "namespace: 3", "broker: 0"]
    assert rows["messageTTLInSeconds"]["level"] == "topic, on all its clusters"
    assert rows["retentionPolicies"]["level"] == "namespace"
    assert rows["retentionPolicies"]["value"] == "retentionTimeInMinutes 5, retentionSizeInMB 6"


def test_rows_when_two_levels_set_one_quota_each_then_each_has_its_own_level() -> None:
    quota = BacklogQuota(10, -1, "producer_exception")
    namespace = TopicPolicies(backlog_quotas={"destination_storage": quota})
    rows = {row["name"]: row for row in policy_rows(TopicPolicyRecord(), namespace, BROKER)}
    assert rows["backLogQuotaMap.destination_storage"]["level"] == "namespace"
    assert rows["backLogQuotaMap.message_age"]["level"] == "broker"


def test_rows_when_the_broker_demands_a_schema_then_a_topic_cannot_waive_it() -> None:
    broker = broker_level(BrokerConfig(is_schema_validation_enforced=True))
    record = TopicPolicyRecord(TopicPolicies(schema_validation_enforced=False))
    rows = {row["name"]: row for row in policy_rows(record, TopicPolicies(), broker)}
    enforced = rows["schemaValidationEnforced"]
    assert (enforced["value"], enforced["level"], enforced["hidden"]) == ("true", "broker", ["topic: false"])


def test_rows_stand_in_the_order_of_their_levels() -> None:
    record = TopicPolicyRecord(TopicPolicies(max_producers=1))
    rows = policy_rows(record, TopicPolicies(message_ttl_seconds=5), BROKER)
    assert [row["level"] for row in rows[:3]] == ["topic", "namespace", "broker"]
