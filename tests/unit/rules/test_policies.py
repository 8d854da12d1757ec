"""Which policy applies, and which policies an operator may set."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.model.errors import InvalidRequest, PartitionCountAboveMaximum, PreconditionFailed
from interpulse.model.names import TopicName
from interpulse.model.policies import (
    NON_PARTITIONED,
    PARTITIONED,
    AutoTopicCreation,
    NamespacePolicies,
    RetentionPolicies,
)
from interpulse.rules.policies import (
    EffectiveAutoCreation,
    check_auto_topic_creation,
    check_not_negative,
    check_retention,
    check_strategy,
    effective_auto_creation,
    effective_schema_strategy,
    effective_topics_max,
)

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


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": 3}, None, id="partitioned"),
        pytest.param({"topicType": "Partitioned", "defaultNumPartitions": 3}, None, id="any-case"),
        pytest.param({"topicType": "non-partitioned"}, None, id="non-partitioned"),
        pytest.param({"topicType": "partitioned"}, PreconditionFailed, id="count-missing"),
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": 0}, PreconditionFailed, id="count-zero"),
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": "3"}, None, id="count-text"),
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": "x"}, InvalidRequest, id="count-word"),
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": True}, InvalidRequest, id="count-truth"),
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": 1.5}, InvalidRequest, id="count-fraction"),
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": 2**31}, InvalidRequest, id="count-huge"),
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": "٣"}, InvalidRequest, id="count-script"),
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": []}, InvalidRequest, id="count-list"),
        pytest.param({"allowAutoTopicCreation": "yes"}, InvalidRequest, id="allowed-word"),
        pytest.param({"allowAutoTopicCreation": [], "topicType": "partitioned"}, InvalidRequest, id="allowed-list"),
        pytest.param({"topicType": ["partitioned"]}, PreconditionFailed, id="type-list"),
        pytest.param({"topicType": "non-partitioned", "defaultNumPartitions": 1}, PreconditionFailed, id="count"),
        pytest.param({"topicType": "weird"}, PreconditionFailed, id="type-unknown"),
        pytest.param({}, PreconditionFailed, id="type-missing"),
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": 6}, PartitionCountAboveMaximum, id="above"),
    ],
)
def test_auto_topic_creation_that_is_allowed_is_checked(body: dict[str, Any], refusal: type[Exception] | None) -> None:
    body = {"allowAutoTopicCreation": True, **body}
    if refusal is None:
        checked = check_auto_topic_creation(body, partitions_max=5)
        assert checked.default_partitions in (None, 3)
        assert checked.topic_type in (PARTITIONED, NON_PARTITIONED)
    else:
        with pytest.raises(refusal):
            check_auto_topic_creation(body, partitions_max=5)


def test_auto_topic_creation_that_is_switched_off_is_taken_as_it_is() -> None:
    body = {"allowAutoTopicCreation": False, "topicType": "weird", "defaultNumPartitions": -1}
    assert check_auto_topic_creation(body, partitions_max=5) == AutoTopicCreation(False, "weird", -1)


@pytest.mark.parametrize("allowed", [True, False])
def test_auto_topic_creation_above_the_maximum_is_refused_even_switched_off(allowed: bool) -> None:
    body = {"allowAutoTopicCreation": allowed, "topicType": "partitioned", "defaultNumPartitions": 6}
    with pytest.raises(PartitionCountAboveMaximum, match="less than or equal to 5"):
        check_auto_topic_creation(body, partitions_max=5)


@pytest.mark.parametrize(("namespace", "most"), [(None, 9), (NOTHING_SET, 9), (NO_LIMIT, 0)])
def test_topics_max_is_the_broker_s_unless_the_namespace_says_something(
    namespace: NamespacePolicies | None, most: int
) -> None:
    assert effective_topics_max(namespace, 9) == most


@pytest.mark.parametrize(("minutes", "megabytes"), [(0, 0), (-1, -1), (10, -1), (-1, 5), (10, 5)])
def test_retention_that_means_something(minutes: int, megabytes: int) -> None:
    body = {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}
    assert check_retention(body) == RetentionPolicies(minutes, megabytes)


@pytest.mark.parametrize(("minutes", "megabytes"), [(0, 5), (5, 0), (-1, 0), (-2, 1), (1, -2)])
def test_retention_that_means_nothing_is_refused(minutes: int, megabytes: int) -> None:
    with pytest.raises(InvalidRequest, match="Invalid retention policy"):
        check_retention({"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes})


def test_limits_are_not_negative() -> None:
    assert check_not_negative("x", 0) == 0
    assert check_not_negative("x", 2**31 - 1) == 2**31 - 1
    with pytest.raises(PreconditionFailed, match=r"^x must be 0 or more$"):
        check_not_negative("x", -1)
    with pytest.raises(PreconditionFailed, match=f"x: it must be 0 or more.* not {2**31}"):
        check_not_negative("x", 2**31)
    with pytest.raises(PreconditionFailed, match=r"^Invalid value for message TTL, message TTL must >= 0: .* not -1$"):
        check_not_negative("messageTTL", -1)


@pytest.mark.parametrize("value", ["full", "NONE", None, 1, ["FULL"]])
def test_strategy_is_spelled_exactly(value: Any) -> None:
    assert check_strategy("FULL", ("FULL", "BACKWARD")) == "FULL"
    with pytest.raises(PreconditionFailed, match="allowed are FULL, BACKWARD"):
        check_strategy(value, ("FULL", "BACKWARD"))


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
