"""Tokens of OpenID Connect issuers, verified with the keys that the issuers publish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import jwt
from jwt.types import Options

from interpulse.authentication.authentication import Identity, PeerCertificate, Refused
from interpulse.authentication.issuer_keys import IssuerKeys, IssuerUnavailable
from interpulse.authentication.signing_keys import PublicKey

_SIGNATURES: Final = frozenset({"RS256", "RS384", "RS512", "ES256", "ES384", "ES512"})
"""Pulsar's algorithms, all asymmetric: with a symmetric one, anyone who has the public key could sign."""

_OPTIONS: Final[Options] = {"require": ["exp", "iat", "sub"], "verify_jti": False}
_TEXT_MAX: Final = 64 * 1024


class OpenIdProvider:
    """Pulsar's AuthenticationProviderOpenID. Clients use the same method as for other tokens."""

    name = "AuthenticationProviderOpenID"
    method = "token"

    def __init__(
        self,
        keys: Mapping[str, IssuerKeys],
        audiences: Iterable[str],
        *,
        role_claim: str = "sub",
        leeway_seconds: int = 0,
    ) -> None:
        """``keys`` has the keys of each trusted issuer. A token must be for one of ``audiences``."""
        self._keys = keys
        self._audiences = list(audiences)
        self._role_claim = role_claim
        self._leeway_seconds = leeway_seconds

    async def authenticate(self, credentials: bytes, certificate: PeerCertificate | None) -> Identity:
        text, issuer, key_id, signature = self._unverified(credentials)
        try:
            key = await self._keys[issuer].find(key_id)
        except IssuerUnavailable as error:
            raise Refused("ERROR_RETRIEVING_PUBLIC_KEY", str(error)) from error
        if signature not in key.signatures:
            raise Refused("ALGORITHM_MISMATCH", f"the token is signed by {signature}, which its key is not for")
        claims = self._verified(text, key.key, signature, issuer)
        return Identity(self._role(claims), self._end(claims["exp"]))

    def _end(self, expiry: Any) -> float:
        try:
            return float(expiry) + self._leeway_seconds
        except OverflowError:
            raise Refused("INVALID_JWT_CLAIM", "the expiry of the token is not a valid time") from None

    def _unverified(self, credentials: bytes) -> tuple[str, str, str, str]:
        """Return the token, and its unverified issuer, key id and algorithm."""
        if len(credentials) > _TEXT_MAX:
            raise Refused("ERROR_DECODING_JWT", f"the token is longer than {_TEXT_MAX} bytes")
        try:
            text = credentials.decode("ascii")
            header = jwt.get_unverified_header(text)
            issuer = jwt.decode(text, options={"verify_signature": False}).get("iss")
        except (UnicodeError, RecursionError, jwt.PyJWTError) as error:
            raise Refused("ERROR_DECODING_JWT", f"this is no token: {type(error).__name__}") from None
        if not isinstance(issuer, str) or issuer not in self._keys:
            raise Refused("UNSUPPORTED_ISSUER", f"the issuer {issuer!r:.200} is none of openIDAllowedTokenIssuers")
        signature, key_id = header.get("alg"), header.get("kid")
        if not isinstance(signature, str) or signature not in _SIGNATURES:
            raise Refused("UNSUPPORTED_ALGORITHM", f"the token is signed by {signature!r:.50}, which is not accepted")
        if not isinstance(key_id, str):
            raise Refused("ERROR_RETRIEVING_PUBLIC_KEY", "the token does not name the key that signed it (kid)")
        return text, issuer, key_id, signature

    def _verified(self, text: str, key: bytes | PublicKey, signature: str, issuer: str) -> dict[str, Any]:
        try:
            return jwt.decode(
                text,
                key,
                algorithms=[signature],
                audience=self._audiences,
                issuer=issuer,
                leeway=self._leeway_seconds,
                options=_OPTIONS,
            )
        except jwt.ExpiredSignatureError:
            raise Refused("EXPIRED_JWT", "the token has expired", expired=True) from None
        except jwt.InvalidSignatureError:
            raise Refused("ERROR_VERIFYING_JWT_SIGNATURE", "the signature is not that of the issuer's key") from None
        except jwt.PyJWTError as error:
            raise Refused("INVALID_JWT_CLAIM", f"the token is not valid: {error}"[:300]) from None

    def _role(self, claims: Mapping[str, Any]) -> str:
        """Return the role; the first of several, as in Pulsar."""
        value = claims.get(self._role_claim)
        role = value[0] if isinstance(value, list) and value else value
        if not isinstance(role, str) or not role:
            raise Refused("INVALID_JWT_CLAIM", f"the token has no role in its claim {self._role_claim}")
        return role
