"""Tokens (JWT): verifying what clients bring, and making new ones."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt
from jwt.types import Options

from interpulse.authentication.authentication import Identity, PeerCertificate, Refused
from interpulse.authentication.signing_keys import PrivateKey, PublicKey, signatures

__all__ = ["BadToken", "ExpiredToken", "Token", "TokenProvider", "TokenVerifier", "create_token", "show_token"]

_SUBJECT: Final = "sub"
# What Pulsar's own verification does not look at; a token that it takes is taken here.
_OPTIONS: Final[Options] = {"verify_aud": False, "verify_iat": False, "verify_sub": False, "verify_jti": False}


class BadToken(Exception):
    """The token is not accepted. ``str()`` is for the log, never for the client; it does not show the token."""

    reason = "INVALID_TOKEN"


class ExpiredToken(BadToken):
    """It was good once."""


class WrongAudience(BadToken):
    """Its audience is another one."""

    reason = "INVALID_AUDIENCES"


@dataclass(frozen=True, slots=True)
class Token:
    """The claims of a verified token."""

    role: str
    expires_at: float | None = None
    """Seconds since 1970; None = never."""


class TokenVerifier:
    """Verifies tokens with one key."""

    def __init__(
        self,
        key: bytes | PublicKey,
        *,
        role_claim: str = _SUBJECT,
        audience_claim: str = "",
        audience: str = "",
        clock_skew_seconds: int = 0,
    ) -> None:
        """``audience_claim`` names where a token must name ``audience``; empty = nowhere."""
        self._key = key
        self._signatures = list(signatures(key))
        self._role_claim = role_claim
        self._audience_claim = audience_claim
        self._audience = audience
        self._clock_skew_seconds = clock_skew_seconds

    def verify(self, text: str) -> Token:
        """The role of the token; raises BadToken."""
        try:
            claims = jwt.decode(
                text, self._key, algorithms=self._signatures, leeway=self._clock_skew_seconds, options=_OPTIONS
            )
        except jwt.ExpiredSignatureError as error:
            raise ExpiredToken("the token has expired") from error
        except jwt.PyJWTError as error:
            raise BadToken(f"the token is not valid: {type(error).__name__}") from error
        self._check_audience(claims)
        return Token(self._role(claims), self._end(claims.get("exp")))

    def _end(self, expiry: Any) -> float | None:
        try:
            return None if expiry is None else float(expiry) + self._clock_skew_seconds
        except OverflowError:
            raise BadToken("the token expires at no time that there will be") from None

    def _role(self, claims: Mapping[str, Any]) -> str:
        """The role; of several the first, as in Pulsar."""
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


class TokenProvider:
    """Tokens, over the binary protocol as they are, over HTTP as ``Authorization: Bearer``."""

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
    """A new token. ``signature`` is one of the algorithms the key is for."""
    claims: dict[str, Any] = {_SUBJECT: subject}
    if expires_in_seconds is not None:
        claims["exp"] = int(time.time()) + expires_in_seconds
    # Pulsar's tokens carry no type; a header that is None is left out.
    return jwt.encode(claims, key, algorithm=signature, headers={"typ": None, **(headers or {})})


def show_token(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims, not verified; raises BadToken if it is no token."""
    try:
        return jwt.get_unverified_header(text), jwt.decode(text, options={"verify_signature": False})
    except jwt.PyJWTError as error:
        raise BadToken(f"this is not a token: {error}") from error
