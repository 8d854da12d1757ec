"""At a limit no client more is let in; the refusal names the policy and its value."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interpulse.model.errors import ConsumerBusy, NotAllowed, ProducerBusy
from interpulse.rules import limits

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
