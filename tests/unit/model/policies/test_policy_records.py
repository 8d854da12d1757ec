"""Values of the messaging policies in Pulsar's JSON."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.model.policies.policy_records import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    PublishRate,
    SubscribeRate,
)

VALUES = [
    PublishRate(1, 2),
    DispatchRate(1, 2, True, 3),
    SubscribeRate(1, 2),
    BacklogQuota(1, 2, "producer_exception"),
    DelayedDelivery(True, 1, 2),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_value_when_written_then_reads_back(value: Any) -> None:
    assert type(value).from_json(value.to_json()) == value


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (PublishRate, PublishRate(-1, -1)),
        (DispatchRate, DispatchRate(-1, -1, False, 1)),
        (SubscribeRate, SubscribeRate(-1, 30)),
        (BacklogQuota, BacklogQuota(-1, -1, "producer_request_hold")),
        (DelayedDelivery, DelayedDelivery(False, 0, 0)),
    ],
)
def test_value_when_nothing_is_given_or_null_then_has_its_defaults(kind: Any, expected: object) -> None:
    assert kind.from_json({}) == expected
    assert kind.from_json(dict.fromkeys(expected.to_json())) == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "body", "named"),
    [
        (PublishRate, {"publishThrottlingRateInMsg": "5"}, "publishThrottlingRateInMsg"),
        (PublishRate, {"publishThrottlingRateInMsg": 2**31}, "publishThrottlingRateInMsg"),
        (PublishRate, {"publishThrottlingRateInByte": 2**63}, "publishThrottlingRateInByte"),
        (DispatchRate, {"relativeToPublishRate": 1}, "relativeToPublishRate"),
        (DispatchRate, {"ratePeriodInSecond": 1.5}, "ratePeriodInSecond"),
        (SubscribeRate, {"subscribeThrottlingRatePerConsumer": True}, "subscribeThrottlingRatePerConsumer"),
        (BacklogQuota, {"policy": "drop"}, "policy"),
        (BacklogQuota, {"limitTime": "3h"}, "limitTime"),
        (DelayedDelivery, {"active": "yes"}, "active"),
    ],
)
def test_value_when_a_field_is_of_another_type_then_refuses_by_name(
    kind: Any, body: dict[str, object], named: str
) -> None:
    with pytest.raises(ValueError, match=f"^{named} must be"):
        kind.from_json(body)


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        ({}, -1),
        ({"limit": 7}, 7),
        ({"limit": 7, "limitSize": 8}, 8),
        ({"limitSize": 8, "limit": 7}, 7),
        ({"limitSize": 8, "limit": None}, 8),
    ],
)
def test_backlog_quota_when_the_older_limit_is_given_then_the_later_of_both_counts(body: Any, limit: int) -> None:
    assert BacklogQuota.from_json(body).limit_bytes == limit


@pytest.mark.parametrize(
    ("value", "limited"),
    [
        (PublishRate(), False),
        (PublishRate(0, 0), False),
        (PublishRate(-1, 1), True),
        (DispatchRate(1), True),
        (DispatchRate(0, -1), False),
        (SubscribeRate(0), False),
        (SubscribeRate(1), True),
    ],
)
def test_rate_when_zero_or_less_then_limits_nothing(value: Any, limited: bool) -> None:
    assert value.limited is limited
