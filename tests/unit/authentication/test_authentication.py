"""Credentials find their provider, and every try is counted."""

from __future__ import annotations

import pytest

from interpulse.authentication.authentication import Authentication, BadCredentials, Identity
from interpulse.authentication.tokens import TokenProvider
from tests.support.tokens import SECRET, signed

PROVIDER = "AuthenticationProviderToken"


def authentication(anonymous_role: str = "") -> Authentication:
    return Authentication([TokenProvider(SECRET)], anonymous_role=anonymous_role)


async def test_credentials_when_good_then_role_is_returned_and_counted() -> None:
    asked = authentication()
    assert await asked.authenticate("token", signed(sub="app", exp=9_999_999_999).encode()) == Identity(
        "app", 9_999_999_999.0
    )
    assert await asked.authenticate_http({"Authorization": f"Bearer {signed(sub='app')}"}) == Identity("app")
    assert asked.meter.successes == {(PROVIDER, "token"): 2}
    assert not asked.meter.failures
    assert asked.meter.token_minutes.counts == [0, 0, 0, 0, 1], "the one that expires, some day"


@pytest.mark.parametrize(
    ("credentials", "reason", "expired"),
    [
        (b"abc", "INVALID_TOKEN", 0),
        (b"", "INVALID_TOKEN", 0),
        (b"\xff", "INVALID_AUTH_DATA", 0),
        (signed(sub="app", exp=1).encode(), "INVALID_TOKEN", 1),
    ],
)
async def test_credentials_when_bad_then_refused_without_reason_and_counted(
    credentials: bytes, reason: str, expired: int
) -> None:
    asked = authentication("guest")  # a role for people without credentials is none for people with bad ones
    with pytest.raises(BadCredentials, match=r"^Failed to authenticate$") as refusal:
        await asked.authenticate("token", credentials)
    assert refusal.value.detail
    assert asked.meter.failures == {(PROVIDER, "token", reason): 1}
    assert asked.meter.expired_tokens == expired


@pytest.mark.parametrize("method", ["none", "", "basic", "sasl"])
async def test_method_when_not_offered_then_only_an_anonymous_role_lets_in(method: str) -> None:
    with pytest.raises(BadCredentials, match=r"^Failed to authenticate$"):
        await authentication().authenticate(method, b"x")
    assert await authentication("guest").authenticate(method, b"x") == Identity("guest")


@pytest.mark.parametrize(
    "header", [None, "Basic YTpi", "Digest x", "Bearer", "Bearer abc", signed(sub="app"), "Bearer ü"]
)
async def test_call_when_credentials_are_bad_then_answer_asks_for_them(header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    with pytest.raises(BadCredentials, match=r"^Authentication required$") as refusal:
        await authentication().authenticate_http(headers)
    assert refusal.value.http_status == 401
    assert signed(sub="app") not in refusal.value.detail  # it goes to the log


async def test_call_when_without_credentials_then_is_anonymous_where_there_is_such_a_role() -> None:
    assert await authentication("guest").authenticate_http({}) == Identity("guest")
    with pytest.raises(BadCredentials):
        await authentication("guest").authenticate_http({"Authorization": "Bearer abc"})
