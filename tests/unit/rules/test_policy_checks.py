"""Policies as operators send them: what is taken, and what is refused with its name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from interpulse.model.errors import (
    InvalidRequest,
    NotImplementedYet,
    PartitionCountAboveMaximum,
    PreconditionFailed,
    PulsarError,
)
from interpulse.model.permissions import Permissions
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import (
    NON_PARTITIONED,
    PARTITIONED,
    AutoTopicCreation,
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    Persistence,
    RetentionPolicies,
    SubscribeRate,
)
from interpulse.rules.policy_checks import (
    Limits,
    check_auto_topic_creation,
    check_backlog_quota,
    check_delayed_delivery,
    check_dispatch_rate,
    check_max_message_size,
    check_new_policies,
    check_not_negative,
    check_persistence,
    check_quota_type,
    check_quotas_fit,
    check_retention,
    check_strategy,
    check_subscribe_rate,
    check_subscription_types,
)

PRODUCERS = "producer_exception"
SIZE, AGE = "destination_storage", "message_age"
MIB = 2**20


@pytest.mark.parametrize(
    ("check", "body", "expected"),
    [
        (check_dispatch_rate, {"dispatchThrottlingRateInMsg": 5}, DispatchRate(5)),
        (check_dispatch_rate, {"ratePeriodInSecond": 2, "relativeToPublishRate": True}, DispatchRate(-1, -1, True, 2)),
        (check_subscribe_rate, {"subscribeThrottlingRatePerConsumer": 5}, SubscribeRate(5, 30)),
        (check_delayed_delivery, {"active": True, "tickTime": 0}, DelayedDelivery(True, 0, 0)),
    ],
)
def test_policy_when_it_can_be_meant_then_is_taken(check: Callable[..., Any], body: Any, expected: object) -> None:
    assert check(body) == expected


@pytest.mark.parametrize(
    ("check", "body", "named"),
    [
        (check_dispatch_rate, {"ratePeriodInSecond": 0}, "ratePeriodInSecond must be 1 or more, not 0"),
        (check_subscribe_rate, {"ratePeriodInSecond": -1}, "ratePeriodInSecond must be 1 or more, not -1"),
        (check_delayed_delivery, {"tickTime": -1}, "tickTime must be 0 or more, not -1"),
        (
            check_delayed_delivery,
            {"maxDeliveryDelayInMillis": -2},
            "maxDeliveryDelayInMillis must be 0 or more",
        ),
        (check_subscription_types, ["Shared", "shared"], "shared is no subscription type"),
        (check_quota_type, "size", "backlogQuotaType must be destination_storage or message_age, not size"),
    ],
)
def test_policy_when_it_means_nothing_then_is_refused_by_name(check: Callable[..., Any], body: Any, named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        check(body)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"bookkeeperEnsemble": 0}, "Bookkeeper-Ensemble must be <= 5 and > 0."),
        ({"bookkeeperEnsemble": 6}, "Bookkeeper-Ensemble must be <= 5 and > 0."),
        ({"bookkeeperAckQuorum": -1}, "Bookkeeper-AckQuorum must be <= 5 and > 0."),
        ({"bookkeeperWriteQuorum": 0}, "Bookkeeper-WriteQuorum must be <= 5 and > 0."),
        ({"bookkeeperEnsemble": 1}, r"Bookkeeper Ensemble \(1\) >= WriteQuorum \(2\) >= AckQuorum \(2\)"),
        ({"bookkeeperAckQuorum": 3}, r"Bookkeeper Ensemble \(2\) >= WriteQuorum \(2\) >= AckQuorum \(3\)"),
    ],
)
def test_copies_when_there_can_be_no_such_ledger_then_are_refused_as_by_pulsar(body: Any, named: str) -> None:
    for alone in (True, False):
        with pytest.raises(InvalidRequest, match=named):
            check_persistence(body, alone=alone)


def test_copies_when_there_are_bookies_then_are_taken_and_a_broker_alone_keeps_one() -> None:
    assert check_persistence({}, alone=False) == Persistence(2, 2, 2, -1.0)
    one = {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 1, "bookkeeperAckQuorum": 1}
    assert check_persistence({**one, "managedLedgerMaxMarkDeleteRate": 10.0}, alone=True) == Persistence(1, 1, 1, 10.0)
    with pytest.raises(NotImplementedYet, match="can only be 1, not 2, 2 and 1"):
        check_persistence({"bookkeeperAckQuorum": 1}, alone=True)


def test_quota_type_when_none_is_named_then_is_that_of_the_size() -> None:
    assert check_quota_type(None) == SIZE
    assert check_quota_type(AGE) == AGE


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (SIZE, {"limitSize": 5, "policy": "producer_exception"}, BacklogQuota(5, -1, "producer_exception")),
        (
            AGE,
            {"limitSize": 0, "limitTime": 5, "policy": "producer_exception"},
            BacklogQuota(0, 5, "producer_exception"),
        ),
        (SIZE, {"policy": "consumer_backlog_eviction"}, BacklogQuota(-1, -1, "consumer_backlog_eviction")),
        (SIZE, {"limitSize": 5}, "policy"),
        (SIZE, {"limitSize": 5, "policy": "nope"}, "nope"),
        (SIZE, {"limitSize": 0, "policy": "producer_exception"}, "limitSize must be above 0"),
        (AGE, {"limitTime": 0, "policy": "producer_exception"}, "limitTime must be above 0"),
    ],
)
def test_backlog_quota_needs_a_policy_and_room(kind: str, body: Any, expected: BacklogQuota | str) -> None:
    if isinstance(expected, BacklogQuota):
        assert check_backlog_quota(kind, body) == expected
    else:
        with pytest.raises(InvalidRequest, match=expected):
            check_backlog_quota(kind, body)


@pytest.mark.parametrize(
    ("quota", "retention", "fits"),
    [
        (BacklogQuota(MIB - 1, 59), RetentionPolicies(1, 1), True),
        (BacklogQuota(MIB, -1), RetentionPolicies(1, 1), False),
        (BacklogQuota(-1, 60), RetentionPolicies(1, 1), False),
        (BacklogQuota(MIB, 60), RetentionPolicies(-1, -1), True),
        (BacklogQuota(MIB, 60), RetentionPolicies(0, 0), True),
        (BacklogQuota(MIB, 60), None, True),
        (BacklogQuota(-1, -1), RetentionPolicies(1, 1), True),
    ],
)
def test_quota_when_not_below_what_is_retained_then_is_refused(
    quota: BacklogQuota, retention: RetentionPolicies | None, fits: bool
) -> None:
    if fits:
        check_quotas_fit([BacklogQuota(), quota], retention, "too much")
    else:
        with pytest.raises(PreconditionFailed, match="too much"):
            check_quotas_fit([BacklogQuota(), quota], retention, "too much")


@pytest.mark.parametrize(("size", "taken"), [(-1, False), (0, True), (100, True), (101, False)])
def test_max_message_size_when_above_the_broker_s_then_is_refused(size: int, taken: bool) -> None:
    if taken:
        assert check_max_message_size(size, broker_max=100) == size
    else:
        with pytest.raises(PreconditionFailed, match=rf"\(100\), not {size}"):
            check_max_message_size(size, broker_max=100)


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": 3}, None, id="partitioned"),
        pytest.param({"topicType": "Partitioned", "defaultNumPartitions": 3}, None, id="any-case"),
        pytest.param({"topicType": "non-partitioned"}, None, id="non-partitioned"),
        pytest.param({"topicType": "partitioned"}, PreconditionFailed, id="count-missing"),
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": 1}, None, id="one"),
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": 5}, None, id="as-many-as-may-be"),
        pytest.param({"topicType": "partitioned", "defaultNumPartitions": 0}, PreconditionFailed, id="count-zero"),
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
        assert checked.default_partitions == body.get("defaultNumPartitions")
        assert checked.topic_type in (PARTITIONED, NON_PARTITIONED)
    else:
        with pytest.raises(refusal):
            check_auto_topic_creation(body, partitions_max=5)


@pytest.mark.parametrize("always", [None, True, False])
def test_auto_topic_creation_says_whether_replicators_may_create_always(always: bool | None) -> None:
    body = {"allowAutoTopicCreation": True, "topicType": "non-partitioned", "alwaysAllowForReplicator": always}
    checked = check_auto_topic_creation(body, partitions_max=5)
    assert checked == AutoTopicCreation(True, NON_PARTITIONED, None, always)


def test_auto_topic_creation_that_means_nothing_is_refused_in_the_words_of_pulsar() -> None:
    body = {"allowAutoTopicCreation": True, "topicType": "partitioned"}
    with pytest.raises(PreconditionFailed) as refusal:
        check_auto_topic_creation(body, partitions_max=5)
    assert str(refusal.value) == (
        "Invalid configuration for autoTopicCreationOverride. the detail is "
        "[defaultNumPartitions] cannot be null when the type is partitioned."
    )


@pytest.mark.parametrize(("partitions_max", "taken"), [(0, True), (1, False)])
def test_auto_topic_creation_when_there_is_no_maximum_then_any_count_is_taken(partitions_max: int, taken: bool) -> None:
    body = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2}
    with nullcontext() if taken else pytest.raises(PartitionCountAboveMaximum):
        check_auto_topic_creation(body, partitions_max=partitions_max)


def test_auto_topic_creation_that_is_switched_off_is_taken_as_it_is() -> None:
    body = {"allowAutoTopicCreation": False, "topicType": "weird", "defaultNumPartitions": -1}
    assert check_auto_topic_creation(body, partitions_max=5) == AutoTopicCreation(False, "weird", -1)


@pytest.mark.parametrize("allowed", [True, False])
def test_auto_topic_creation_above_the_maximum_is_refused_even_switched_off(allowed: bool) -> None:
    body = {"allowAutoTopicCreation": allowed, "topicType": "partitioned", "defaultNumPartitions": 6}
    with pytest.raises(PartitionCountAboveMaximum, match="less than or equal to 5"):
        check_auto_topic_creation(body, partitions_max=5)


@pytest.mark.parametrize(("minutes", "megabytes"), [(0, 0), (-1, -1), (10, -1), (-1, 5), (10, 5)])
def test_retention_that_means_something(minutes: int, megabytes: int) -> None:
    body = {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}
    assert check_retention(body) == RetentionPolicies(minutes, megabytes)


@pytest.mark.parametrize(
    ("minutes", "megabytes", "words"),
    [
        (0, 5, "Setting a single time or size limit to 0 is invalid"),
        (5, 0, "Setting a single time or size limit to 0 is invalid"),
        (-1, 0, "Setting a single time or size limit to 0 is invalid"),
        (-2, 1, "time limit must be >= -1"),
        (1, -2, "size limit must be >= -1"),
    ],
)
def test_retention_that_means_nothing_is_refused(minutes: int, megabytes: int, words: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^Invalid retention policy: {words}"):
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
