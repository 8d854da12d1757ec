"""Tokens (JWT): verification and creation, and the sets of keys that verify them (RFC 7517)."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.types import Options

from interpulse.authentication.authentication import Identity, PeerCertificate, Refused
from interpulse.authentication.signing_keys import (
    PrivateKey,
    PublicKey,
    UnusableKey,
    file_stamp,
    read_key,
    secret_key,
    signatures,
)

_logger = logging.getLogger(__name__)

_MANY: Final = 10
"""More keys than a rotation needs; a token without an id would have to try them all."""

_SUBJECT: Final = "sub"
_AUDIENCE: Final = "aud"
_TEXTS: Final = (_SUBJECT, "iss", "jti")
# Checks that Pulsar's own verification omits: a token that it accepts is accepted here.
_OPTIONS: Final[Options] = {"verify_aud": False, "verify_iat": False, "verify_sub": False, "verify_jti": False}


class VerifyingKey(NamedTuple):
    """A key, and the signature algorithms that are accepted with it, whatever a token claims."""

    key: bytes | PublicKey
    signatures: tuple[str, ...]


def verifying_key(described: Mapping[str, Any]) -> VerifyingKey:
    """Return a key of a set. A key that names its algorithm is for that one alone. Raise UnusableKey."""
    try:
        key = jwt.PyJWK({name: value for name, value in described.items() if name != "alg"}).key
    except (jwt.PyJWTError, ValueError, TypeError) as error:  # numbers and letters that form no key
        raise UnusableKey(f"it is not a key of RSA, of a curve, or a secret (kty RSA, EC or oct): {error}") from None
    if isinstance(key, bytes):
        secret_key(key)
    elif not isinstance(key, RSAPublicKey | EllipticCurvePublicKey):
        raise UnusableKey("it is a private key, or of a kind that is not accepted; give the public key")
    fitting, algorithm = signatures(key), described.get("alg")
    if not fitting:
        raise UnusableKey("a key of RSA needs 2048 bits or more, a curve is one of P-256, P-384 and P-521")
    if algorithm is None:
        return VerifyingKey(key, fitting)
    if algorithm not in fitting:
        raise UnusableKey(f"its alg is {algorithm!r}, and it is for {', '.join(fitting)}")
    return VerifyingKey(key, (algorithm,))


def read_key_set(content: bytes) -> dict[str, VerifyingKey]:
    """Return the keys of a set by their ids, without keys that are not for signatures.

    Raise UnusableKey with the key if one cannot be used, or if none remains.
    """
    try:
        listed = json.loads(content)["keys"]
    except (ValueError, TypeError, KeyError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        raise UnusableKey('it is not a JSON Web Key Set: {"keys": [...]}')
    keys: dict[str, VerifyingKey] = {}
    for number, described in enumerate(listed, 1):
        key_id = described.get("kid") if isinstance(described, dict) else None
        if not isinstance(key_id, str) or not key_id:
            raise UnusableKey(f"key {number} of the set has no kid, by which tokens name it")
        if key_id in keys:
            raise UnusableKey(f"two keys of the set have the kid {key_id!r}")
        if described.get("use", "sig") != "sig":
            continue
        try:
            keys[key_id] = verifying_key(described)
        except UnusableKey as error:
            raise UnusableKey(f"key {key_id!r} of the set cannot be used: {error}") from None
    if not keys:
        raise UnusableKey("the set has no key for signatures")
    return keys


def json_key(key: bytes | PublicKey, key_id: str) -> dict[str, Any]:
    """Return a key as an entry of a set, with its algorithm if it is for only one."""
    fitting = signatures(key)
    described = jwt.get_algorithm_by_name(fitting[0]).to_jwk(key, as_dict=True)
    described.pop("key_ops", None)
    return {"kid": key_id, "use": "sig"} | ({"alg": fitting[0]} if len(fitting) == 1 else {}) | described


class KeySet:
    """The keys of ``tokenValidationKeysJwks``, read again when their file changes (PIP-490)."""

    def __init__(self, source: str, refresh_seconds: int, now: Callable[[], float] = time.monotonic) -> None:
        """Read the set from ``source``: ``file:...``, ``data:...``, a path or base64.

        The source is checked again once in ``refresh_seconds``; 0: never. Raise UnusableKey.
        """
        self._source = source
        self._refresh_seconds = refresh_seconds
        self._now = now
        self._looked_at = now()
        self.failures = 0
        """The number of changed files that could not be read."""
        self._read()

    def keys(self) -> Mapping[str, VerifyingKey]:
        """Return the current keys by their ids. A set that cannot be read is logged and changes nothing."""
        if self._refresh_seconds and self._now() >= self._looked_at + self._refresh_seconds:
            self._looked_at = self._now()
            if file_stamp(self._source) != self._stamp:
                self._refresh()
        return self._keys

    def _refresh(self) -> None:
        try:
            self._read()
        except UnusableKey as error:
            self.failures += 1
            _logger.error("keys not read, the earlier ones are used setting=tokenValidationKeysJwks reason=%s", error)
        else:
            _logger.info("keys read setting=tokenValidationKeysJwks keys=%s", ",".join(self._keys))

    def _read(self) -> None:
        stamp = file_stamp(self._source)
        self._keys = read_key_set(read_key(self._source))
        self._stamp = stamp
        if len(self._keys) > _MANY:
            _logger.warning(
                "many keys, each is tried for tokens that name none setting=tokenValidationKeysJwks keys=%d",
                len(self._keys),
            )


class BadToken(Refused):
    """The token is not accepted. ``str()`` is for the log, never for the client, and does not show the token."""

    def __init__(self, detail: str, reason: str = "INVALID_TOKEN", *, expired: bool = False) -> None:
        super().__init__(reason, detail, expired=expired)


class _OtherKey(BadToken):
    """The signature was not made with this key."""


@dataclass(frozen=True, slots=True)
class Token:
    """The claims of a verified token."""

    role: str
    expires_at: float | None = None
    """Seconds since 1970; None = never."""


class TokenProvider:
    """Verifies tokens with one key, with those of a set (PIP-490), or with both.

    They are sent as they are in the binary protocol and as ``Authorization: Bearer`` over HTTP.
    """

    name = "AuthenticationProviderToken"
    method = "token"

    def __init__(
        self,
        key: bytes | PublicKey | None,
        *,
        key_set: KeySet | None = None,
        key_id_required: bool = False,
        role_claim: str = _SUBJECT,
        audience_claim: str = "",
        audience: str = "",
        clock_skew_seconds: int = 0,
    ) -> None:
        """``audience_claim`` names the claim that must contain ``audience``; empty = none.

        ``key_id_required``: a token must name a key of the set. Otherwise a token that names none is tried with all
        keys.
        """
        self._keys = () if key is None else (VerifyingKey(key, signatures(key)),)
        self._key_set = key_set
        self._key_id_required = key_id_required
        self._role_claim = role_claim
        self._audience_claim = audience_claim
        self._audience = audience
        self._clock_skew_seconds = clock_skew_seconds

    async def authenticate(self, credentials: bytes, certificate: PeerCertificate | None) -> Identity:
        try:
            text = credentials.decode("ascii")
        except UnicodeError:
            raise Refused("INVALID_AUTH_DATA", "the token is not ASCII") from None
        token = self.verify(text)
        return Identity(token.role, token.expires_at)

    def verify(self, text: str) -> Token:
        """Return the claims of a verified token. Raise BadToken."""
        claims = self._claims(text)
        _check_texts(claims)
        self._check_audience(claims)
        return Token(self._role(claims), self._end(claims.get("exp")))

    def _claims(self, text: str) -> dict[str, Any]:
        if self._key_set is None:
            return self._verified_by_any(text, self._keys)
        keys, key_id = self._key_set.keys(), _key_id(text)
        if key_id in keys:
            return self._verified(text, keys[key_id])
        unknown = BadToken(
            f"the token names the key {key_id!r:.100} (kid), which is not in tokenValidationKeysJwks",
            "INVALID_TOKEN_KID",
        )
        if self._key_id_required:
            raise unknown
        try:
            return self._verified_by_any(text, (*self._keys, *keys.values()))
        except _OtherKey as error:
            raise unknown if key_id else error from None

    def _verified_by_any(self, text: str, keys: Iterable[VerifyingKey]) -> dict[str, Any]:
        refusal = BadToken("there is no key to verify the token with")
        for key in keys:
            try:
                return self._verified(text, key)
            except _OtherKey as error:
                refusal = error
        raise refusal

    def _verified(self, text: str, key: VerifyingKey) -> dict[str, Any]:
        try:
            return jwt.decode(
                text, key.key, algorithms=key.signatures, leeway=self._clock_skew_seconds, options=_OPTIONS
            )
        except jwt.ExpiredSignatureError as error:
            raise BadToken("the token has expired", expired=True) from error
        except (jwt.InvalidSignatureError, jwt.InvalidAlgorithmError) as error:
            raise _OtherKey(f"the token is not valid: {type(error).__name__}") from error
        except jwt.PyJWTError as error:
            raise BadToken(f"the token is not valid: {type(error).__name__}") from error

    def _end(self, expiry: Any) -> float | None:
        try:
            return None if expiry is None else float(expiry) + self._clock_skew_seconds
        except OverflowError:
            raise BadToken("the expiry of the token is not a valid time") from None

    def _role(self, claims: Mapping[str, Any]) -> str:
        """Return the role; of several in a claim other than ``sub`` the first, as in Pulsar."""
        value = claims.get(self._role_claim)
        role = value[0] if isinstance(value, list) and value else value
        if not isinstance(role, str) or not role:
            raise BadToken(f"the token has no role in its claim {self._role_claim}")
        return role

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        if not self._audience_claim:
            return
        named = claims.get(self._audience_claim)
        if self._audience not in (named if isinstance(named, list) else [named]):
            detail = f"the token does not name {self._audience} in its claim {self._audience_claim}"
            raise BadToken(detail, "INVALID_AUDIENCES")


def _key_id(text: str) -> str:
    """Return the id of the key that the token names, "" if it names none. Raise BadToken."""
    try:
        return str(jwt.get_unverified_header(text).get("kid", ""))
    except jwt.PyJWTError as error:
        raise BadToken(f"the token is not valid: {type(error).__name__}") from error


def _check_texts(claims: Mapping[str, Any]) -> None:
    """Refuse registered claims of another type than in RFC 7519, as Pulsar does: a list of subjects is none."""
    audience = claims.get(_AUDIENCE)
    audiences = audience if isinstance(audience, list) else [audience]
    for name, values in (*((name, [claims.get(name)]) for name in _TEXTS), (_AUDIENCE, audiences)):
        if not all(isinstance(value, str | None) for value in values):
            raise BadToken(f"the claim {name} of the token is not a text")


def create_token(
    key: bytes | PrivateKey,
    subject: str,
    *,
    signature: str,
    expires_in_seconds: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> str:
    """Create a token. ``signature`` is one of the key's algorithms."""
    claims: dict[str, Any] = {_SUBJECT: subject}
    if expires_in_seconds is not None:
        claims["exp"] = int(time.time()) + expires_in_seconds
    # Pulsar's tokens have no type; a header that is None is left out.
    return jwt.encode(claims, key, algorithm=signature, headers={"typ": None, **(headers or {})})


def show_token(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and claims without verifying them. Raise BadToken if the text is no token."""
    try:
        return jwt.get_unverified_header(text), jwt.decode(text, options={"verify_signature": False})
    except jwt.PyJWTError as error:
        raise BadToken(f"this is not a token: {error}") from error
