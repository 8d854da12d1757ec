"""Tokens of issuers of OpenID Connect: which are accepted, and how often an issuer is asked for its keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.utils import base64url_encode

from interpulse.authentication.authentication import Authentication, BadCredentials, Refused
from interpulse.authentication.openid import IssuerKeys, IssuerUnavailable, OpenIdProvider, _public_key
from interpulse.authentication.provider_settings import ProviderSettings
from interpulse.authentication.tokens import TokenProvider
from interpulse.client.transport.json_documents import JsonDocuments
from tests.support.fake_clock import FakeClock
from tests.support.issuer import AUDIENCE, Issuer
from tests.support.tokens import SECRET, signed

JWKS = "/jwks"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


def keys(issuer: Issuer, clock: FakeClock | None = None, **settings: int) -> IssuerKeys:
    config = ProviderSettings(open_id_require_issuers_use_https=False, **settings)  # type: ignore[arg-type]
    return IssuerKeys(issuer.url, JsonDocuments(), config, now=clock or time.monotonic)


def provider(issuer: Issuer, **more: Any) -> OpenIdProvider:
    return OpenIdProvider({issuer.url: keys(issuer)}, [AUDIENCE, "other"], **more)


async def test_token_when_an_issuer_signed_it_then_its_subject_is_the_role(issuer: Issuer) -> None:
    identity = await provider(issuer).authenticate(issuer.token("app", exp=9_999_999_999).encode(), None)
    assert (identity.role, identity.expires_at) == ("app", 9_999_999_999.0)


async def test_token_when_a_claim_has_the_roles_then_the_first_counts(issuer: Issuer) -> None:
    asked = provider(issuer, role_claim="roles")
    assert (await asked.authenticate(issuer.token("x", roles=["app", "more"]).encode(), None)).role == "app"
    with pytest.raises(Refused, match="no role in its claim roles"):
        await asked.authenticate(issuer.token("x").encode(), None)


NOW = int(time.time())


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": NOW - 60}, "EXPIRED_JWT"),
        ({"exp": None}, "INVALID_JWT_CLAIM"),
        ({"iat": None}, "INVALID_JWT_CLAIM"),
        ({"sub": None}, "INVALID_JWT_CLAIM"),
        ({"nbf": NOW + 600}, "INVALID_JWT_CLAIM"),
        ({"aud": "elsewhere"}, "INVALID_JWT_CLAIM"),
        ({"aud": None}, "INVALID_JWT_CLAIM"),
        ({"iss": "https://elsewhere"}, "UNSUPPORTED_ISSUER"),
        ({"iss": None}, "UNSUPPORTED_ISSUER"),
    ],
)
async def test_token_when_its_claims_are_wrong_then_is_refused(issuer: Issuer, claims: dict, reason: str) -> None:
    with pytest.raises(Refused) as refusal:
        await provider(issuer).authenticate(issuer.token("app", **claims).encode(), None)
    assert (refusal.value.reason, refusal.value.expired) == (reason, reason == "EXPIRED_JWT")


async def test_token_when_clocks_differ_then_leeway_lets_it_in(issuer: Issuer) -> None:
    late = issuer.token("app", exp=int(time.time()) - 5).encode()
    assert (await provider(issuer, leeway_seconds=60).authenticate(late, None)).role == "app"


async def test_token_when_signed_by_another_than_the_issuers_key_then_is_refused(issuer: Issuer) -> None:
    good = issuer.token("app")
    claims = jwt.decode(good, options={"verify_signature": False})
    stranger = rsa.generate_private_key(65537, 2048)
    nested = ".".join(base64url_encode(each).decode() for each in (b'{"alg":["ES256"]}', b"[" * 40_000, b""))
    attempts = {
        jwt.encode(claims, None, algorithm="none", headers={"kid": "first"}): "UNSUPPORTED_ALGORITHM",  # type: ignore[arg-type]
        jwt.encode(claims, SECRET, algorithm="HS256", headers={"kid": "first"}): "UNSUPPORTED_ALGORITHM",
        jwt.encode(claims, stranger, algorithm="RS256", headers={"kid": "first"}): "ALGORITHM_MISMATCH",
        jwt.encode(claims, stranger, algorithm="RS256", headers={"kid": "none"}): "ERROR_RETRIEVING_PUBLIC_KEY",
        jwt.encode(claims, stranger, algorithm="RS256"): "ERROR_RETRIEVING_PUBLIC_KEY",
        good[:-8] + "AAAAAAAA": "ERROR_VERIFYING_JWT_SIGNATURE",
        "abc": "ERROR_DECODING_JWT",
        nested: "ERROR_DECODING_JWT",
        "x" * 100_000: "ERROR_DECODING_JWT",
    }
    asked = provider(issuer)
    for token, reason in attempts.items():
        with pytest.raises(Refused) as refusal:
            await asked.authenticate(token.encode(), None)
        assert refusal.value.reason == reason


async def test_keys_when_many_ask_then_the_issuer_is_asked_once(issuer: Issuer) -> None:
    found = keys(issuer)
    await asyncio.gather(*(found.find("first") for _ in range(20)))
    assert issuer.asked(JWKS) == 1


async def test_keys_when_the_issuer_changes_them_then_the_new_one_is_found(issuer: Issuer) -> None:
    clock = FakeClock()
    found = keys(issuer, clock)
    await found.find("first")
    issuer.rotate("second")
    with pytest.raises(IssuerUnavailable, match="publishes no key 'second'"):
        await found.find("second")
    clock.now += 300
    await found.find("second")
    with pytest.raises(IssuerUnavailable):
        await found.find("first")
    assert issuer.asked(JWKS) == 2


async def test_keys_when_the_issuer_is_away_then_those_that_are_there_are_used_until_they_expire(
    issuer: Issuer,
) -> None:
    clock = FakeClock()
    found = keys(issuer, clock, open_id_cache_refresh_after_write_seconds=10, open_id_cache_expiration_seconds=20)
    await found.find("first")
    issuer.reachable = False
    clock.now += 15
    await found.find("first")
    clock.now += 10
    with pytest.raises(IssuerUnavailable, match="answers 503"):
        await found.find("first")
    issuer.reachable = True
    with pytest.raises(IssuerUnavailable, match="answers 503"):  # it is not asked again within a second
        await found.find("first")
    clock.now += 1
    await found.find("first")


async def test_keys_when_the_address_of_keys_is_not_encrypted_then_are_not_fetched(issuer: Issuer) -> None:
    with pytest.raises(IssuerUnavailable, match="does not begin with https://"):
        await IssuerKeys(issuer.url, JsonDocuments(), ProviderSettings()).find("first")


async def test_providers_when_two_take_tokens_then_each_lets_in_its_own(issuer: Issuer) -> None:
    asked = Authentication([TokenProvider(SECRET), provider(issuer)])
    assert (await asked.authenticate("token", signed(sub="own").encode())).role == "own"
    assert (await asked.authenticate("token", issuer.token("app").encode())).role == "app"
    assert not asked.meter.failures
    with pytest.raises(BadCredentials):
        await asked.authenticate("token", b"abc")
    assert len(asked.meter.failures) == 2


@pytest.mark.parametrize(
    "described",
    [
        None,
        {"kty": "RSA"},
        {"kid": "k"},
        {"kid": "k", "kty": "RSA", "n": 5, "e": "AQAB"},
        {"kid": "k", "kty": "RSA", "n": "!", "e": "AQAB"},
        {"kid": "k", "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kid": "k", "kty": "oct", "k": "AAAA"},
        {"kid": "k", "kty": "RSA", "use": "enc"},
    ],
)
def test_key_when_it_is_none_for_signatures_then_is_left_out(described: object) -> None:
    assert _public_key(described) is None
