"""Tokens: which are accepted, and what forged, expired and foreign ones are told."""

from __future__ import annotations

import base64
import hmac
import json
import time
from hashlib import sha256
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from interpulse.authentication.tokens import BadToken, ExpiredToken, Token, TokenVerifier, create_token, show_token
from tests.support.tokens import SECRET, signed

RSA = rsa.generate_private_key(65537, 2048)
CURVE = ec.generate_private_key(ec.SECP256R1())
BY_PULSAR = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9."


@pytest.mark.parametrize(
    ("sign", "verify", "signature"),
    [
        (SECRET, SECRET, "HS256"),
        (RSA, RSA.public_key(), "RS256"),
        (RSA, RSA.public_key(), "PS512"),
        (CURVE, CURVE.public_key(), "ES256"),
    ],
    ids=["HS256", "RS256", "PS512", "ES256"],
)
def test_token_when_made_with_the_fitting_key_then_is_accepted(sign: Any, verify: Any, signature: str) -> None:
    token = create_token(sign, "app", signature=signature)
    assert TokenVerifier(verify).verify(token) == Token("app")
    assert show_token(token) == ({"alg": signature}, {"sub": "app"})


def test_token_when_made_then_is_byte_for_byte_as_pulsar_makes_it() -> None:
    assert create_token(SECRET, "admin", signature="HS256").startswith(BY_PULSAR)


def test_token_when_its_time_is_over_then_is_expired() -> None:
    now = int(time.time())
    assert TokenVerifier(SECRET).verify(signed(sub="app", exp=now + 60)) == Token("app", now + 60)
    assert TokenVerifier(SECRET, clock_skew_seconds=90).verify(signed(sub="app", exp=now - 60)) == Token(
        "app", now + 30
    )
    with pytest.raises(ExpiredToken):
        TokenVerifier(SECRET).verify(signed(sub="app", exp=now - 60))
    assert TokenVerifier(SECRET).verify(create_token(SECRET, "a", signature="HS256", expires_in_seconds=60)).expires_at


@pytest.mark.parametrize(
    "token",
    [
        "",
        "abc",
        "a.b.c",
        signed(sub="app")[:-4] + "AAAA",
        jwt.encode({"sub": "app"}, bytes(32), algorithm="HS256"),
        jwt.encode({"sub": "app"}, None, algorithm="none"),  # type: ignore[arg-type]
        jwt.encode({"sub": "app"}, SECRET * 2, algorithm="HS512"),
        signed(sub="app", nbf=2**40),
        signed(sub="app", exp="tomorrow"),
        signed(sub="app", exp=10**400),
        signed(other="app"),
        signed(sub=""),
        signed(sub=7),
        signed(sub=[]),
    ],
    ids=[
        "empty",
        "word",
        "dots",
        "forged",
        "other-key",
        "unsigned",
        "wrong-algorithm",
        "not-yet",
        "no-time",
        "no-such-time",
        "no-role",
        "empty-role",
        "number",
        "no-roles",
    ],
)
def test_token_when_anything_is_wrong_then_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(BadToken) as refusal:
        TokenVerifier(SECRET).verify(token)
    assert not token or token not in str(refusal.value)


def test_token_when_signed_with_the_public_key_as_a_secret_then_is_refused() -> None:
    """The key confusion: a public key is no secret, so it must never verify a signature made with one."""
    public = RSA.public_key()
    for encoding in (Encoding.DER, Encoding.PEM):
        raw = public.public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)
        head, body = (encoded(part) for part in ({"alg": "HS256"}, {"sub": "root"}))
        mark = encoded_bytes(hmac.digest(raw, f"{head}.{body}".encode(), sha256))
        with pytest.raises(BadToken, match="InvalidAlgorithmError"):
            TokenVerifier(public).verify(f"{head}.{body}.{mark}")


def encoded(part: dict[str, str]) -> str:
    return encoded_bytes(json.dumps(part).encode())


def encoded_bytes(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def test_role_when_another_claim_holds_it_then_is_read_there_and_the_first_of_several_counts() -> None:
    verifier = TokenVerifier(SECRET, role_claim="roles")
    assert verifier.verify(signed(sub="x", roles="app")) == Token("app")
    assert verifier.verify(signed(roles=["first", "second"])) == Token("first")
    with pytest.raises(BadToken, match="no role in its claim roles"):
        verifier.verify(signed(sub="x"))


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": ["app"]},
        {"sub": ["app", "other"]},
        {"sub": ["app"], "roles": "app"},
        {"sub": "app", "jti": ["x"]},
        {"sub": "app", "aud": 5},
        {"sub": "app", "aud": ["us", 5]},
        {"sub": "app", "aud": {"us": 1}},
    ],
    ids=str,
)
def test_token_when_a_registered_claim_is_no_text_then_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(BadToken, match=r"the claim (sub|jti|aud) of the token is not a text"):
        TokenVerifier(SECRET, role_claim="roles" if "roles" in claims else "sub").verify(signed(**claims))


def test_audience_when_wanted_then_has_to_be_named() -> None:
    verifier = TokenVerifier(SECRET, audience_claim="aud", audience="us")
    assert verifier.verify(signed(sub="app", aud="us")) == Token("app")
    assert verifier.verify(signed(sub="app", aud=["them", "us"])) == Token("app")
    for claims in ({}, {"aud": "them"}, {"aud": ["them"]}, {"aud": None}):
        with pytest.raises(BadToken, match="does not name us in its claim aud") as refusal:
            verifier.verify(signed(sub="app", **claims))
        assert refusal.value.reason == "INVALID_AUDIENCES"
    assert TokenVerifier(SECRET).verify(signed(sub="app", aud="anybody")) == Token("app")


def test_text_when_it_is_no_token_then_is_not_shown_as_one() -> None:
    with pytest.raises(BadToken, match="this is not a token"):
        show_token("abc")
