"""When a quota is exceeded, and what producers are told."""

from __future__ import annotations

import pytest

from interpulse.model.errors import QuotaExceededError, QuotaExceededException, ServerError
from interpulse.model.policies.messaging_policies import BacklogQuota
from interpulse.rules.backlog_quota import age_kept_ms, bytes_kept, described, exceeded, refusal

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
