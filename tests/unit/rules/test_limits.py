"""At a limit no client more is let in; the refusal names the policy and its value."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interpulse.model.errors import (
    ConsumerBusy,
    NotAllowed,
    ProducerBusy,
    QuotaExceededError,
    QuotaExceededException,
    ServerError,
)
from interpulse.model.policies.policy_records import BacklogQuota
from interpulse.rules import limits
from interpulse.rules.limits import (
    age_kept_ms,
    bytes_kept,
    consumer_blocked,
    described,
    exceeded,
    refusal,
    subscription_blocked,
)

CHECKS: list[tuple[Callable[[int, int], None], type[Exception], str]] = [
    (
        lambda count, limit: limits.check_producers("t", count, limit),
        ProducerBusy,
        "Topic 't' reached max producers limit (maxProducers=2)",
    ),
    (limits.check_consumers_of_topic, ConsumerBusy, "Topic reached max consumers limit (maxConsumers=2)"),
    (
        limits.check_consumers_of_subscription,
        ConsumerBusy,
        "Subscription reached max consumers limit (maxConsumersPerSubscription=2)",
    ),
    (
        lambda count, limit: limits.check_subscriptions("t", count, limit),
        NotAllowed,
        "Exceed the maximum number of subscriptions of the topic: t (maxSubscriptionsPerTopic=2)",
    ),
]


@pytest.mark.parametrize(
    ("check", "kind", "text"), CHECKS, ids=["producers", "consumers", "per subscription", "subscriptions"]
)
def test_count(check: Callable[[int, int], None], kind: type[Exception], text: str) -> None:
    check(1, 2)
    check(0, 1)
    with pytest.raises(kind):
        check(1, 1)
    check(10**6, 0)
    for count in (2, 3):
        with pytest.raises(kind) as refused:
            check(count, 2)
        assert str(refused.value) == text


def test_subscription_types() -> None:
    limits.check_subscription_type("t", "Shared", None)
    limits.check_subscription_type("t", "Shared", frozenset({"Shared", "Failover"}))
    with pytest.raises(NotAllowed) as refused:
        limits.check_subscription_type("t", "Key_Shared", frozenset({"Shared", "Failover"}))
    assert str(refused.value) == (
        "Topic[{t}] doesn't support Key_Shared sub type! (subscriptionTypesEnabled=Failover,Shared)"
    )


STORAGE = BacklogQuota(300, -1)
AGE = BacklogQuota(-1, 3)


@pytest.mark.parametrize(
    ("size", "age_ms", "over"),
    [
        pytest.param(299, 0, [], id="one byte below"),
        pytest.param(300, 0, ["destination_storage"], id="at the limit in bytes"),
        pytest.param(0, 3000, [], id="as old as allowed"),
        pytest.param(0, 3001, ["message_age"], id="a moment older"),
        pytest.param(301, 3001, ["destination_storage", "message_age"], id="both"),
    ],
)
def test_exceeded(size: int, age_ms: int, over: list[str]) -> None:
    quotas = {"message_age": AGE, "destination_storage": STORAGE}
    assert exceeded(quotas, size, age_ms) == {quota_type: quotas[quota_type] for quota_type in over}


def test_smallest_quota_is_exceeded() -> None:
    quotas = {"message_age": BacklogQuota(-1, 1), "destination_storage": BacklogQuota(1, -1)}
    assert exceeded(quotas, 1, 1001).keys() == quotas.keys()


@pytest.mark.parametrize("quota", [BacklogQuota(-1, -1), BacklogQuota(0, 0)])
def test_quota_without_a_limit_is_never_exceeded(quota: BacklogQuota) -> None:
    assert not exceeded({"message_age": quota, "destination_storage": quota}, 10**12, 10**12)


@pytest.mark.parametrize(
    ("policy", "kind", "code"),
    [
        ("producer_request_hold", QuotaExceededError, ServerError.ProducerBlockedQuotaExceededError),
        ("producer_exception", QuotaExceededException, ServerError.ProducerBlockedQuotaExceededException),
    ],
)
def test_refusal_names_the_quota_and_its_value(policy: str, kind: type[Exception], code: ServerError) -> None:
    error = refusal({"destination_storage": BacklogQuota(300, -1, policy)})
    assert isinstance(error, kind)
    assert error.wire_code == code
    assert str(error) == (
        "Cannot create producer on topic with backlog quota exceeded "
        f"(backlogQuota destination_storage: 300 bytes, {policy})"
    )


def test_eviction_refuses_no_producer_but_another_quota_may() -> None:
    evicting = {"destination_storage": BacklogQuota(300, -1, "consumer_backlog_eviction")}
    assert refusal(evicting) is None
    assert refusal({}) is None
    assert isinstance(refusal(evicting | {"message_age": AGE}), QuotaExceededError)


def test_age_in_words() -> None:
    assert described("message_age", AGE) == "backlogQuota message_age: 3 seconds, producer_request_hold"


def test_eviction_goes_to_nine_tenths() -> None:
    assert (bytes_kept(BacklogQuota(305, -1)), age_kept_ms(BacklogQuota(-1, 3)), age_kept_ms(BacklogQuota(-1, 10))) == (
        274,
        2000,
        9000,
    )


@pytest.mark.parametrize(
    ("limit", "blocked_from", "consumer_until", "subscription_until"),
    [(1, 1, 1, 1), (2, 2, 2, 1), (3, 3, 2, 1), (4, 4, 3, 2), (5, 5, 3, 2), (50_000, 50_000, 25_001, 25_000)],
)
def test_blocked(limit: int, blocked_from: int, consumer_until: int, subscription_until: int) -> None:
    """``..._until``: the fewest unacknowledged messages with which it stays blocked."""
    for blocked in (consumer_blocked, subscription_blocked):
        assert blocked(blocked_from, limit, before=False)
        assert not blocked(blocked_from - 1, limit, before=False)
        assert not blocked(0, limit, before=True)
    assert consumer_blocked(consumer_until, limit, before=True)
    assert not consumer_blocked(consumer_until - 1, limit, before=True)
    assert subscription_blocked(subscription_until, limit, before=True)
    assert not subscription_blocked(subscription_until - 1, limit, before=True)
