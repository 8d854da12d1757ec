"""Tokens that an issuer gives to a client for its id and secret (OAuth 2)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.model.errors import AuthenticationError, PulsarError

__all__ = ["IssuedTokens", "http_header_now", "secret_now"]

_DISCOVERY: Final = "/.well-known/openid-configuration"
_EARLY_SECONDS: Final = 30.0
_EARLY_SHARE: Final = 0.1
"""A token is replaced so long before its end, or this share of its life if that is less."""
_LIFETIME_SECONDS: Final = 300.0
"""Of a token whose issuer does not say."""
_YOUNG_SECONDS: Final = 10.0


class IssuedTokens:
    """One token at a time, asked for when there is none and shared by all connections of a client."""

    def __init__(
        self, credentials: Credentials, tls: TlsOptions | None, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        """``tls`` tells which authorities are trusted where the credentials name none for the issuer."""
        from interpulse.client.transport.json_documents import JsonDocuments  # others need no HTTP library

        self._grant = credentials.grant
        own = replace(tls or TlsOptions(), certificate_path=None, key_path=None)
        trusted = TlsOptions(self._grant.trust_certs_path) if self._grant.trust_certs_path else own
        self._documents = JsonDocuments(tls=trusted)
        self._now = now
        self._asking = asyncio.Lock()
        self._token = ""
        self._asked_at = self._replaced_at = float("-inf")

    @classmethod
    def of(cls, credentials: Credentials | None, tls: TlsOptions | None) -> IssuedTokens | None:
        """None for credentials that are not of this kind."""
        return cls(credentials, tls) if credentials is not None and credentials.method == "oauth2" else None

    async def current(self, *, refused: bool = False) -> str:
        """A token that is good for a while yet. ``refused``: the one before is not, whatever its issuer said.

        Raises AuthenticationError, naming the issuer, for a client that it does not know and if it cannot be asked.
        """
        async with self._asking:
            too_old = refused and self._now() - self._asked_at > _YOUNG_SECONDS
            if too_old or self._now() >= self._replaced_at:
                await self._ask()
            return self._token

    async def _ask(self) -> None:
        issuer, form = self._grant.issuer_url, self._grant.form()
        try:
            described = await self._documents.get(issuer.removesuffix("/") + _DISCOVERY)
            endpoint = described.get("token_endpoint")
            if not isinstance(endpoint, str):
                raise AuthenticationError(f"the issuer {issuer} names no token_endpoint")
            if issuer.startswith("https:") and not endpoint.startswith("https:"):
                raise AuthenticationError(f"the issuer {issuer} names {endpoint}, which is not encrypted")
            status, answer = await self._documents.post(endpoint, form)
        except AuthenticationError:
            raise
        except PulsarError as error:
            raise AuthenticationError(f"no token from the issuer {issuer}: {error}") from error
        token = answer.get("access_token")
        if status != 200 or not isinstance(token, str):
            raise AuthenticationError(
                f"the issuer {issuer} refuses a token for client {form['client_id']}: {_reason(status, answer)}; see "
                "that client id and secret are those that it knows, and that it issues tokens for the audience"
            )
        self._token, self._asked_at = token, self._now()
        lifetime = _seconds(answer.get("expires_in"))
        self._replaced_at = self._asked_at + lifetime - min(_EARLY_SECONDS, lifetime * _EARLY_SHARE)


async def secret_now(credentials: Credentials | None, issued: IssuedTokens | None, *, refused: bool = False) -> bytes:
    """What is shown in a greeting: a token of the issuer, or the secret as it is now; empty without credentials.

    ``refused``: the one before is no longer good. Raises AuthenticationError.
    """
    if issued is not None:
        return (await issued.current(refused=refused)).encode()
    return b"" if credentials is None else credentials.secret().encode()


async def http_header_now(credentials: Credentials | None, issued: IssuedTokens | None) -> str | None:
    """The value of ``Authorization``; None without credentials and for those that have none. Raises as `secret_now`."""
    if issued is not None:
        return f"Bearer {await issued.current()}"
    return None if credentials is None else credentials.http_header()


def _reason(status: int, answer: dict[str, Any]) -> str:
    said = [str(answer[name])[:200] for name in ("error", "error_description") if answer.get(name)]
    return f"{status} {', '.join(said)}" if said else str(status)


def _seconds(expires_in: object) -> float:
    """Some issuers write the number as text."""
    try:
        return max(0.0, float(str(expires_in)))
    except ValueError:
        return _LIFETIME_SECONDS
