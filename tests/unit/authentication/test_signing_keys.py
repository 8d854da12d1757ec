"""Keys: where they are read from, and which are refused."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from interpulse.authentication.signing_keys import (
    UnusableKey,
    private_key,
    public_key,
    read_key,
    secret_key,
    signatures,
)

RAW = bytes(range(32))
BASE64 = base64.b64encode(RAW).decode()
DER = Encoding.DER, PublicFormat.SubjectPublicKeyInfo


def test_key_when_given_in_any_way_pulsar_knows_then_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a key"
    path.write_bytes(RAW)
    assert read_key(path.as_uri()) == RAW
    assert read_key(f"file:{path}") == RAW
    assert read_key(str(path)) == RAW
    assert read_key(f"data:;base64,{BASE64}") == RAW
    assert read_key(f"data:application/octet-stream;base64,{BASE64}") == RAW
    assert read_key("data:,a%20b") == b"a b"
    assert read_key(BASE64) == RAW


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("file:///not/there", "/not/there cannot be read: No such file"),
        ("file:///", "/ cannot be read: Is a directory"),
        ("data:;base64;abc", "needs a comma"),
        ("data:;base64,*", "is not base64"),
        ("/not/there.key", "neither file:"),
        ("x" * 5000 + "*", "neither file:"),
        ("a\0b", "neither file:"),
    ],
)
def test_key_when_unreadable_then_the_error_has_the_reason(source: str, why: str) -> None:
    with pytest.raises(UnusableKey, match=why):
        read_key(source)


def test_key_when_refused_then_is_not_shown() -> None:
    with pytest.raises(UnusableKey) as refusal:
        read_key("my-secret-password")
    assert "my-secret-password" not in str(refusal.value)


@pytest.mark.parametrize(
    ("length", "fitting"), [(32, ("HS256",)), (48, ("HS256", "HS384")), (64, ("HS256", "HS384", "HS512"))]
)
def test_secret_key_when_longer_then_is_for_more_signatures(length: int, fitting: tuple[str, ...]) -> None:
    assert signatures(secret_key(bytes(length))) == fitting


def test_secret_key_when_short_then_is_refused() -> None:
    with pytest.raises(UnusableKey, match="at least 32 bytes, this one has 31"):
        secret_key(bytes(31))


@pytest.mark.parametrize(
    ("curve", "fitting"), [(ec.SECP256R1(), "ES256"), (ec.SECP384R1(), "ES384"), (ec.SECP521R1(), "ES512")]
)
def test_pair_of_a_curve_then_is_for_one_signature(curve: ec.EllipticCurve, fitting: str) -> None:
    pair = ec.generate_private_key(curve)
    assert signatures(public_key(pair.public_key().public_bytes(*DER))) == (fitting,)
    raw = pair.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    assert signatures(private_key(raw).public_key()) == (fitting,)


def test_pair_of_rsa_then_is_for_no_secret_signature() -> None:
    pair = rsa.generate_private_key(65537, 2048)
    fitting = signatures(public_key(pair.public_key().public_bytes(*DER)))
    assert "RS256" in fitting
    assert not any(name.startswith("HS") for name in fitting)


def test_keys_of_another_kind_then_are_refused() -> None:
    small = rsa.generate_private_key(65537, 1024)
    odd = ec.generate_private_key(ec.SECP256K1())
    other = dsa.generate_private_key(1024)
    for pair in (small, odd, other):
        with pytest.raises(UnusableKey, match="it is not a public key for"):
            public_key(pair.public_key().public_bytes(*DER))
        with pytest.raises(UnusableKey, match="it is not a private key for"):
            private_key(pair.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()))
    for read in (public_key, private_key):
        with pytest.raises(UnusableKey, match="DER form"):
            read(RAW)
