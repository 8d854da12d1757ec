"""Tokens (JWT): verification and creation."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt
from jwt.types import Options

from interpulse.authentication.authentication import Identity, PeerCertificate, Refused
from interpulse.authentication.key_sets import KeySet, VerifyingKey
from interpulse.authentication.signing_keys import PrivateKey, PublicKey, signatures

_SUBJECT: Final = "sub"
_AUDIENCE: Final = "aud"
_TEXTS: Final = (_SUBJECT, "iss", "jti")
# Checks that Pulsar's own verification omits: a token that it accepts is accepted here.
_OPTIONS: Final[Options] = {"verify_aud": False, "verify_iat": False, "verify_sub": False, "verify_jti": False}


class BadToken(Exception):
    """The token is not accepted. ``str()`` is for the log, never for the client, and does not show the token."""

    reason = "INVALID_TOKEN"


class ExpiredToken(BadToken):
    """The token has expired."""


class _OtherKey(BadToken):
    """The signature was not made with this key."""


class UnknownKey(BadToken):
    """The token names no key that could verify it."""

    reason = "INVALID_TOKEN_KID"


class WrongAudience(BadToken):
    """The token is for another audience."""

    reason = "INVALID_AUDIENCES"


@dataclass(frozen=True, slots=True)
class Token:
    """The claims of a verified token."""

    role: str
    expires_at: float | None = None
    """Seconds since 1970; None = never."""


class TokenVerifier:
    """Verifies tokens with one key, with those of a set (PIP-490), or with both."""

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
        unknown = UnknownKey(f"the token names the key {key_id!r:.100} (kid), which is not in tokenValidationKeysJwks")
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
            raise ExpiredToken("the token has expired") from error
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
            raise WrongAudience(f"the token does not name {self._audience} in its claim {self._audience_claim}")


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


class TokenProvider:
    """The provider of tokens, sent as they are in the binary protocol and as ``Authorization: Bearer`` over HTTP."""

    name = "AuthenticationProviderToken"
    method = "token"

    def __init__(self, verifier: TokenVerifier) -> None:
        self._verifier = verifier

    async def authenticate(self, credentials: bytes, certificate: PeerCertificate | None) -> Identity:
        try:
            token = self._verifier.verify(credentials.decode("ascii"))
        except UnicodeError:
            raise Refused("INVALID_AUTH_DATA", "the token is not ASCII") from None
        except BadToken as error:
            raise Refused(error.reason, str(error), expired=isinstance(error, ExpiredToken)) from None
        return Identity(token.role, token.expires_at)


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
