"""The keys that an issuer of OpenID Connect publishes: fetched on demand, cached, and refreshed.

An issuer gets one request at a time, however many clients wait, and at most one a second while it fails. One client
refreshes old keys, while all others are served from the cache.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

import jwt

from interpulse.authentication.key_sets import VerifyingKey, verifying_key
from interpulse.authentication.signing_keys import UnusableKey
from interpulse.client.transport.json_documents import JsonDocuments
from interpulse.model.errors import PulsarError

_logger = logging.getLogger(__name__)

_KEYS_MAX: Final = 100
_PAUSE_SECONDS: Final = 1.0
_DISCOVERY: Final = "/.well-known/openid-configuration"


class IssuerUnavailable(Exception):
    """A key cannot be fetched; ``str()`` gives the reason, for the log."""


class IssuerKeys:
    """The keys of one issuer, by their ids."""

    def __init__(
        self,
        issuer: str,
        documents: JsonDocuments,
        *,
        https_required: bool = True,
        refresh_seconds: float = 64_800,
        expiry_seconds: float = 86_400,
        missing_seconds: float = 300,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``refresh_seconds`` and ``expiry_seconds`` are the ages at which keys are fetched again, and expire.

        An unknown id makes them fetched again once in ``missing_seconds``: an issuer that changed its keys signs with
        the new ones immediately.
        """
        self._issuer = issuer
        self._documents = documents
        self._https_required = https_required
        self._refresh_seconds = refresh_seconds
        self._expiry_seconds = expiry_seconds
        self._missing_seconds = missing_seconds
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
        return self._keys if self._age() < self._expiry_seconds else {}

    def _age(self) -> float:
        return float("inf") if self._fetched_at is None else self._now() - self._fetched_at

    def _is_due(self, key_id: str) -> bool:
        if self._failure and self._tried_at is not None and self._now() - self._tried_at < _PAUSE_SECONDS:
            return False
        age = self._age()
        return age >= min(self._refresh_seconds, self._expiry_seconds) or (
            key_id not in self._keys and age >= self._missing_seconds
        )

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
        if not isinstance(url, str) or (self._https_required and not url.startswith("https://")):
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
