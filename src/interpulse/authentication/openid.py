"""Tokens of OpenID Connect issuers, verified with the keys that the issuers publish.

Keys are fetched on demand, cached, and refreshed. An issuer gets one request at a time, however many clients wait, and
at most one a second while it fails. One client refreshes old keys, while all others are served from the cache.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import jwt
from jwt.types import Options

from interpulse.authentication.authentication import Identity, PeerCertificate, Refused
from interpulse.authentication.provider_settings import ProviderSettings
from interpulse.authentication.signing_keys import PublicKey, UnusableKey
from interpulse.authentication.tokens import VerifyingKey, verifying_key
from interpulse.client.transport.json_documents import JsonDocuments
from interpulse.model.errors import PulsarError

_logger = logging.getLogger(__name__)

_KEYS_MAX: Final = 100
_PAUSE_SECONDS: Final = 1.0
_DISCOVERY: Final = "/.well-known/openid-configuration"

_SIGNATURES: Final = frozenset({"RS256", "RS384", "RS512", "ES256", "ES384", "ES512"})
"""Pulsar's algorithms, all asymmetric: with a symmetric one, anyone who has the public key could sign."""

_OPTIONS: Final[Options] = {"require": ["exp", "iat", "sub"], "verify_jti": False}
_TEXT_MAX: Final = 64 * 1024


class IssuerUnavailable(Exception):
    """A key cannot be fetched; ``str()`` gives the reason, for the log."""


class IssuerKeys:
    """The keys of one issuer, by their ids."""

    def __init__(
        self,
        issuer: str,
        documents: JsonDocuments,
        config: ProviderSettings,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer = issuer
        self._documents = documents
        self._config = config
        self._now = now
        self._fetching = asyncio.Lock()
        self._keys: dict[str, VerifyingKey] = {}
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._failure = ""

    async def find(self, key_id: str) -> VerifyingKey:
        """Return the key with this id. Raise IssuerUnavailable."""
        if self._is_due(key_id) and not (self._fetching.locked() and key_id in self._usable()):
            async with self._fetching:
                if self._is_due(key_id):
                    await self._fetch()
        key = self._usable().get(key_id)
        if key is None:
            raise IssuerUnavailable(
                self._failure or f"the issuer {self._issuer} publishes no key {key_id[:100]!r} that can be used here"
            )
        return key

    def _usable(self) -> dict[str, VerifyingKey]:
        return self._keys if self._age() < self._config.open_id_cache_expiration_seconds else {}

    def _age(self) -> float:
        return float("inf") if self._fetched_at is None else self._now() - self._fetched_at

    def _is_due(self, key_id: str) -> bool:
        if self._failure and self._tried_at is not None and self._now() - self._tried_at < _PAUSE_SECONDS:
            return False
        age, config = self._age(), self._config
        if age >= min(config.open_id_cache_refresh_after_write_seconds, config.open_id_cache_expiration_seconds):
            return True
        # an issuer that changed its keys signs with the new ones immediately
        return key_id not in self._keys and age >= config.open_id_key_id_cache_miss_refresh_seconds

    async def _fetch(self) -> None:
        """Fetch the keys. A failure is logged and remembered; cached keys stay."""
        # a timeout needs a task, and an eagerly started coroutine has one from its first wait on
        await asyncio.sleep(0)
        try:
            keys = await self._published()
        except (PulsarError, jwt.PyJWTError, IssuerUnavailable) as error:
            self._failure = f"the keys of the issuer {self._issuer} cannot be fetched: {error}"
            _logger.warning("keys not fetched issuer=%s reason=%s", self._issuer, error)
        else:
            self._keys, self._fetched_at, self._failure = keys, self._now(), ""
            _logger.info("keys fetched issuer=%s keys=%d", self._issuer, len(keys))
        self._tried_at = self._now()

    async def _published(self) -> dict[str, VerifyingKey]:
        described = await self._documents.get(self._issuer.removesuffix("/") + _DISCOVERY)
        if described.get("issuer") != self._issuer:
            raise IssuerUnavailable(f"it calls itself {described.get('issuer')!r:.200}")
        url = described.get("jwks_uri")
        if not isinstance(url, str) or (
            self._config.open_id_require_issuers_use_https and not url.startswith("https://")
        ):
            raise IssuerUnavailable(f"its jwks_uri is {url!r:.200}, which does not begin with https://")
        listed = (await self._documents.get(url)).get("keys")
        if not isinstance(listed, list):
            raise IssuerUnavailable(f"{url} lists no keys")
        keys: dict[str, VerifyingKey] = {}
        for entry in listed[:_KEYS_MAX]:
            key = _public_key(entry)
            if key is not None:
                keys[entry["kid"]] = key
        return keys


def _public_key(described: object) -> VerifyingKey | None:
    """Return the key, None if it is not for signatures or of a kind that is not accepted."""
    if not isinstance(described, dict) or not isinstance(described.get("kid"), str):
        return None
    if described.get("use", "sig") != "sig":
        return None
    try:
        key = verifying_key(described)
    except UnusableKey:
        return None
    return None if isinstance(key.key, bytes) else key


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
