"""Tokens: which are accepted, and what forged, expired and foreign ones are told."""

from __future__ import annotations

import base64
import hmac
import json
import os
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from interpulse.authentication.authentication import AccessMeter
from interpulse.authentication.signing_keys import UnusableKey
from interpulse.authentication.tokens import (
    BadToken,
    KeySet,
    Token,
    TokenProvider,
    create_token,
    json_key,
    read_key_set,
    show_token,
)
from interpulse.serving.exposition import Exposition
from tests.support.fake_clock import FakeClock
from tests.support.tokens import SECRET, signed

RSA, SMALL = rsa.generate_private_key(65537, 2048), rsa.generate_private_key(65537, 1024)
CURVE, NEXT = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
SET_SECRET, STRANGER = bytes(range(32)), bytes(range(1, 33))
LONG = bytes(range(64))

Json = dict[str, Any]

RSA = rsa.generate_private_key(65537, 2048)
CURVE = ec.generate_private_key(ec.SECP256R1())
BY_PULSAR = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9."


def letters(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def secret(kid: str, key: bytes = SET_SECRET, **more: str) -> Json:
    return {"kid": kid, "kty": "oct", "k": letters(key)} | more


def public(kid: str, key: Any = RSA, **more: str) -> Json:
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {"kid": kid} | algorithm.to_jwk(key.public_key(), as_dict=True) | more


def content(*keys: object) -> bytes:
    return json.dumps({"keys": keys}).encode()


def source(*keys: object) -> str:
    return "data:;base64," + base64.b64encode(content(*keys)).decode()


@pytest.mark.parametrize(
    ("described", "signatures"),
    [
        (public("k"), ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
        (public("k", alg="RS384", use="sig"), ("RS384",)),
        (public("k", CURVE), ("ES256",)),
        (secret("k"), ("HS256",)),
        (secret("k", LONG), ("HS256", "HS384", "HS512")),
        (secret("k", LONG, alg="HS512"), ("HS512",)),
    ],
)
def test_key_when_read_then_is_for_the_algorithm_it_names_or_for_those_of_its_kind(
    described: Json, signatures: tuple[str, ...]
) -> None:
    (key,) = read_key_set(content(described)).values()
    assert key.signatures == signatures


def test_set_when_a_key_is_for_something_else_then_is_left_out() -> None:
    assert list(read_key_set(content(public("enc", use="enc"), public("sig", CURVE)))) == ["sig"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (b"", "it is not a JSON Web Key Set"),
        (b"[]", "it is not a JSON Web Key Set"),
        (b'{"keys": {}}', "it is not a JSON Web Key Set"),
        (b"[" * 100_000, "it is not a JSON Web Key Set"),
        (content(), "the set has no key for signatures"),
        (content(public("k", use="enc")), "the set has no key for signatures"),
        (content(7), "key 1 of the set has no kid"),
        (content(secret("a"), public("")), "key 2 of the set has no kid"),
        (content(secret("a"), public("a")), "two keys of the set have the kid 'a'"),
        (content(secret("k", b"short")), "key 'k' of the set cannot be used: a secret key needs at least 32 bytes"),
        (content(public("k", SMALL)), "key 'k' of the set cannot be used: a key of RSA needs 2048 bits"),
        (content(public("k", alg="HS256")), "its alg is 'HS256', and it is for RS256"),
        (content(public("k", alg="none")), "its alg is 'none'"),
        (content({"kid": "k", "kty": "oct", "k": letters(SET_SECRET), "alg": ["HS256"]}), "its alg is \\['HS256'\\]"),
        (content({"kid": "k", "kty": "RSA", "n": "!", "e": "AQAB"}), "key 'k' of the set cannot be used: it is not"),
        (content({"kid": "k"}), "it is not a key of RSA"),
        (content({"kid": "k"} | RSAAlgorithm.to_jwk(RSA, as_dict=True)), "it is a private key"),
        (content({"kid": "k", "kty": "OKP", "crv": "Ed25519", "x": letters(bytes(32))}), "of a kind that is not acc"),
    ],
)  # fmt: skip
def test_set_when_it_cannot_be_used_then_the_key_and_the_reason_are_named(given: bytes, why: str) -> None:
    with pytest.raises(UnusableKey, match=why) as refusal:
        read_key_set(given)
    assert letters(SET_SECRET) not in str(refusal.value)


def test_key_when_written_as_an_entry_of_a_set_then_is_read_as_the_same_key() -> None:
    for key in (SET_SECRET, LONG, RSA.public_key(), CURVE.public_key()):
        (read,) = read_key_set(content(json_key(key, "k"))).values()
        assert read.key == key


# --- which key verifies which token


def signed_by(key: Any, algorithm: str, kid: object = None, **claims: object) -> str:
    return jwt.encode({"sub": "app"} | claims, key, algorithm=algorithm, headers={} if kid is None else {"kid": kid})


OLD, NEW = secret("old"), public("new", CURVE)
LEGACY = RSA.public_key()
GOOD = "app"
BAD, BAD_KID = "INVALID_TOKEN", "INVALID_TOKEN_KID"


@pytest.mark.parametrize(
    ("token", "outcome", "strict_outcome"),
    [
        pytest.param(signed_by(SET_SECRET, "HS256", "old"), GOOD, GOOD, id="the old key by its id"),
        pytest.param(signed_by(CURVE, "ES256", "new"), GOOD, GOOD, id="the new key by its id"),
        pytest.param(signed_by(SET_SECRET, "HS256"), GOOD, BAD_KID, id="a key of the set without an id"),
        pytest.param(signed_by(RSA, "RS256"), GOOD, BAD_KID, id="the single key"),
        pytest.param(signed_by(CURVE, "ES256", "gone"), GOOD, BAD_KID, id="an id of no key, and a key of the set"),
        pytest.param(signed_by(STRANGER, "HS256"), BAD, BAD_KID, id="a key of nobody"),
        pytest.param(signed_by(STRANGER, "HS256", "gone"), BAD_KID, BAD_KID, id="a key of nobody by an id of no key"),
        pytest.param(signed_by(STRANGER, "HS256", "old"), BAD, BAD, id="a key of nobody by the id of another"),
        pytest.param(signed_by(SET_SECRET, "HS256", "new"), BAD, BAD, id="a key of the set by the id of another"),
        pytest.param(signed_by(NEXT, "ES256", "new"), BAD, BAD, id="another key of the same kind"),
        pytest.param(jwt.encode({"sub": "a"}, None, algorithm="none", headers={"kid": "old"}), BAD, BAD, id="none"),  # type: ignore[arg-type]
        pytest.param("abc", BAD, BAD, id="no token"),
    ],
)
def test_token_when_there_is_a_set_then_its_id_chooses_the_key(token: str, outcome: str, strict_outcome: str) -> None:
    keys = KeySet(source(OLD, NEW), 0)
    for required, wanted in ((False, outcome), (True, strict_outcome)):
        verifier = TokenProvider(LEGACY, key_set=keys, key_id_required=required)
        assert outcome_of(verifier, token) == wanted


def outcome_of(verifier: TokenProvider, token: str) -> str:
    try:
        return verifier.verify(token).role
    except BadToken as error:
        return error.reason


@pytest.mark.parametrize("kid", [None, "public", "gone"])
def test_token_when_a_public_key_is_its_secret_then_is_refused(kid: str | None) -> None:
    """The confusion of algorithms that a set must not open."""
    verifier = TokenProvider(SET_SECRET, key_set=KeySet(source(public("public"), public("curve", CURVE)), 0))
    for form in (Encoding.DER, Encoding.PEM):
        raw = LEGACY.public_bytes(form, PublicFormat.SubjectPublicKeyInfo)
        head = {"alg": "HS256"} | ({} if kid is None else {"kid": kid})
        unsigned = ".".join(letters(json.dumps(part).encode()) for part in (head, {"sub": "root"}))
        mark = letters(hmac.digest(raw, unsigned.encode(), "sha256"))
        assert outcome_of(verifier, f"{unsigned}.{mark}") in (BAD, BAD_KID)


def test_token_when_it_has_expired_then_its_own_key_says_so() -> None:
    verifier = TokenProvider(None, key_set=KeySet(source(NEW, OLD), 0))
    for kid in ("old", None):
        with pytest.raises(BadToken, match="the token has expired"):
            verifier.verify(signed_by(SET_SECRET, "HS256", kid, exp=1))


# --- sets that change


def written(path: Path, *keys: object) -> str:
    """Replace the file as a rotation does; each has a time of its own, whatever the resolution of the disk."""
    path.write_bytes(content(*keys) if keys else b"{")
    stamp = next(STAMPS)
    os.utime(path, ns=(stamp, stamp))
    return path.as_uri()


STAMPS = iter(range(1_000_000_000, 2_000_000_000, 1_000_000))


def test_set_when_its_file_changes_then_is_read_again_after_the_time_that_is_set(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "keys.json"
    keys = KeySet(written(path, OLD), 10, clock)
    verifier = TokenProvider(None, key_set=keys)
    old, new = signed_by(SET_SECRET, "HS256", "old"), signed_by(CURVE, "ES256", "new")
    assert (outcome_of(verifier, old), outcome_of(verifier, new)) == (GOOD, BAD_KID)
    written(path, OLD, NEW)
    clock.now += 9
    assert outcome_of(verifier, new) == BAD_KID
    clock.now += 1
    assert (outcome_of(verifier, old), outcome_of(verifier, new)) == (GOOD, GOOD)
    written(path, NEW)
    clock.now += 10
    assert (outcome_of(verifier, old), outcome_of(verifier, new)) == (BAD_KID, GOOD)


def test_set_when_no_time_is_set_then_is_read_once(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "keys.json"
    keys = KeySet(written(path, OLD), 0, clock)
    written(path, NEW)
    clock.now += 1e9
    assert list(keys.keys()) == ["old"]


def damage(path: Path) -> None:
    written(path)


@pytest.mark.parametrize("harm", [damage, Path.unlink], ids=["half a file", "no file"])
def test_set_when_its_file_is_damaged_then_the_earlier_keys_stay_until_it_is_whole_again(
    harm: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, path = FakeClock(), tmp_path / "keys.json"
    keys = KeySet(written(path, OLD), 1, clock)
    harm(path)
    for looks in (1, 2):
        clock.now += 1
        assert list(keys.keys()) == ["old"]
        assert keys.failures == looks
    assert "keys not read, the earlier ones are used setting=tokenValidationKeysJwks" in caplog.text
    written(path, NEW)
    clock.now += 1
    assert (list(keys.keys()), keys.failures) == (["new"], 2)


def test_metrics_when_there_is_a_set_then_tell_its_keys_and_failures(tmp_path: Path) -> None:
    def figures(meter: AccessMeter) -> Sequence[str]:
        page = Exposition()
        meter.write(page, 'cluster="c"')
        return [line for line in page.render().decode().splitlines() if line.startswith("pulsar_token_validation")]

    path = tmp_path / "keys.json"
    meter = AccessMeter()
    assert figures(meter) == []
    clock = FakeClock()
    meter.token_keys = KeySet(written(path, OLD, NEW), 1, clock)
    damage(path)
    clock.now += 1
    assert figures(meter) == [
        'pulsar_token_validation_keys{cluster="c"} 2',
        'pulsar_token_validation_keys_reload_failures_total{cluster="c"} 1',
    ]


def test_set_when_it_grows_large_then_the_log_warns(caplog: pytest.LogCaptureFixture) -> None:
    KeySet(source(*(secret(str(index)) for index in range(11))), 0)
    assert "many keys, each is tried for tokens that name none" in caplog.text


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
    assert TokenProvider(verify).verify(token) == Token("app")
    assert show_token(token) == ({"alg": signature}, {"sub": "app"})


def test_token_when_made_then_is_byte_for_byte_as_pulsar_makes_it() -> None:
    assert create_token(SECRET, "admin", signature="HS256").startswith(BY_PULSAR)


def test_token_when_its_time_is_over_then_is_expired() -> None:
    now = int(time.time())
    assert TokenProvider(SECRET).verify(signed(sub="app", exp=now + 60)) == Token("app", now + 60)
    assert TokenProvider(SECRET, clock_skew_seconds=90).verify(signed(sub="app", exp=now - 60)) == Token(
        "app", now + 30
    )
    with pytest.raises(BadToken, match="the token has expired"):
        TokenProvider(SECRET).verify(signed(sub="app", exp=now - 60))
    assert TokenProvider(SECRET).verify(create_token(SECRET, "a", signature="HS256", expires_in_seconds=60)).expires_at


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
        TokenProvider(SECRET).verify(token)
    assert not token or token not in str(refusal.value)


def test_token_when_signed_with_the_public_key_as_a_secret_then_is_refused() -> None:
    """The key confusion: a public key is no secret, so it must never verify a signature made with one."""
    public = RSA.public_key()
    for encoding in (Encoding.DER, Encoding.PEM):
        raw = public.public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)
        head, body = (encoded(part) for part in ({"alg": "HS256"}, {"sub": "root"}))
        mark = encoded_bytes(hmac.digest(raw, f"{head}.{body}".encode(), sha256))
        with pytest.raises(BadToken, match="InvalidAlgorithmError"):
            TokenProvider(public).verify(f"{head}.{body}.{mark}")


def encoded(part: dict[str, str]) -> str:
    return encoded_bytes(json.dumps(part).encode())


def encoded_bytes(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def test_role_when_another_claim_holds_it_then_is_read_there_and_the_first_of_several_counts() -> None:
    verifier = TokenProvider(SECRET, role_claim="roles")
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
        TokenProvider(SECRET, role_claim="roles" if "roles" in claims else "sub").verify(signed(**claims))


def test_audience_when_wanted_then_has_to_be_named() -> None:
    verifier = TokenProvider(SECRET, audience_claim="aud", audience="us")
    assert verifier.verify(signed(sub="app", aud="us")) == Token("app")
    assert verifier.verify(signed(sub="app", aud=["them", "us"])) == Token("app")
    for claims in ({}, {"aud": "them"}, {"aud": ["them"]}, {"aud": None}):
        with pytest.raises(BadToken, match="does not name us in its claim aud") as refusal:
            verifier.verify(signed(sub="app", **claims))
        assert refusal.value.reason == "INVALID_AUDIENCES"
    assert TokenProvider(SECRET).verify(signed(sub="app", aud="anybody")) == Token("app")


def test_text_when_it_is_no_token_then_is_not_shown_as_one() -> None:
    with pytest.raises(BadToken, match="this is not a token"):
        show_token("abc")
