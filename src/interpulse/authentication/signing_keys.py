"""Keys for tokens: their sources in Pulsar's configuration, and the algorithms of each."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import url2pathname

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    SECP384R1,
    SECP521R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as generate_curve
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_der_public_key,
)

PublicKey = RSAPublicKey | EllipticCurvePublicKey
PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey

_SECRET_SIGNATURES: Final = {"HS256": 32, "HS384": 48, "HS512": 64}
"""The least bytes of a secret: a shorter one is easier to guess than the signature."""
_RSA_SIGNATURES: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVE_SIGNATURES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_CURVES: Final = {"secp256r1": SECP256R1(), "secp384r1": SECP384R1(), "secp521r1": SECP521R1()}
_RSA_BITS_MIN: Final = 2048


class UnusableKey(ValueError):
    """The key cannot be read, or is not one for tokens. ``str()`` gives the reason without showing the key."""


def read_key(source: str) -> bytes:
    """Return the bytes of a key given as ``file:...``, ``data:...``, a path, or base64. Raise UnusableKey."""
    if source.startswith("data:"):
        return _data(source)
    path = _path(source)
    if path is not None:
        try:
            return path.read_bytes()
        except OSError as error:
            raise UnusableKey(f"{path} cannot be read: {error.strerror}") from error
    return _base64(source, "it is neither file:..., data:..., the path of a file that is there, nor base64")


def file_stamp(source: str) -> tuple[int, ...] | None:
    """Return a value that changes with the file of `read_key`; None if there is no file."""
    path = None if source.startswith("data:") else _path(source)
    try:
        return None if path is None else (path.stat().st_mtime_ns, path.stat().st_size, path.stat().st_ino)
    except OSError:
        return None


def secret_key(raw: bytes) -> bytes:
    """Return a key that signs and verifies. Raise UnusableKey if it is too short."""
    if len(raw) < min(_SECRET_SIGNATURES.values()):
        raise UnusableKey(
            f"a secret key needs at least 32 bytes, this one has {len(raw)}; make one with tokens create-secret-key"
        )
    return raw


def public_key(raw: bytes) -> PublicKey:
    """Return a key that verifies, from the DER form of `tokens create-key-pair`. Raise UnusableKey."""
    try:
        key = load_der_public_key(raw)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UnusableKey("it is not a public key in DER form (X.509 SubjectPublicKeyInfo)") from error
    if not isinstance(key, RSAPublicKey | EllipticCurvePublicKey) or not signatures(key):
        raise UnusableKey(
            "it is not a public key for RSA of 2048 bits or more, or one of the curves P-256, P-384 and P-521"
        )
    return key


def private_key(raw: bytes) -> PrivateKey:
    """Return a key that signs, from the DER form of `tokens create-key-pair`. Raise UnusableKey."""
    try:
        key = load_der_private_key(raw, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UnusableKey("it is not a private key in DER form (PKCS 8)") from error
    if not isinstance(key, RSAPrivateKey | EllipticCurvePrivateKey) or not signatures(key.public_key()):
        raise UnusableKey(
            "it is not a private key for RSA of 2048 bits or more, or one of the curves P-256, P-384 and P-521"
        )
    return key


def new_key_pair(signature: str) -> tuple[bytes, bytes]:
    """Create a private key and its public key, in DER form, for one signature algorithm."""
    curve = next((curve for curve, name in _CURVE_SIGNATURES.items() if name == signature), None)
    pair: PrivateKey = generate_rsa(65537, _RSA_BITS_MIN) if curve is None else generate_curve(_CURVES[curve])
    return (
        pair.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        pair.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
    )


def signatures(key: bytes | PublicKey) -> tuple[str, ...]:
    """Return the signature algorithms of a key. No other is accepted with it, whatever a token claims."""
    if isinstance(key, bytes):
        return tuple(name for name, bytes_min in _SECRET_SIGNATURES.items() if len(key) >= bytes_min)
    if isinstance(key, EllipticCurvePublicKey):
        return tuple(name for curve, name in _CURVE_SIGNATURES.items() if key.curve.name == curve)
    return _RSA_SIGNATURES if key.key_size >= _RSA_BITS_MIN else ()


def _data(source: str) -> bytes:
    head, comma, body = source.partition(",")
    if not comma:
        raise UnusableKey("a data: URL needs a comma in front of the key, as in data:;base64,...")
    return (
        _base64(body, "what follows data:;base64, is not base64")
        if head.endswith(";base64")
        else unquote_to_bytes(body)
    )


def _path(source: str) -> Path | None:
    if source.startswith("file:"):
        return Path(url2pathname(urlsplit(source).path))
    try:
        return Path(source) if Path(source).is_file() else None
    except (OSError, ValueError):  # too long for a path, or containing a null character
        return None


def _base64(text: str, problem: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise UnusableKey(problem) from None
