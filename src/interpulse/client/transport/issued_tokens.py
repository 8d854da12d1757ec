"""Access tokens that an OAuth 2 issuer grants for client id and secret."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.model.errors import AuthenticationError, PulsarError

_DISCOVERY: Final = "/.well-known/openid-configuration"
_EARLY_SECONDS: Final = 30.0
_EARLY_SHARE: Final = 0.1
"""Lead time for replacing a token, as a share of its lifetime.

The shorter one of it and the fixed lead time applies.
"""
_LIFETIME_SECONDS: Final = 300.0
"""Lifetime of a token whose issuer does not state it."""
_YOUNG_SECONDS: Final = 10.0


class IssuedTokens:
    """Access token of a client, requested when needed and shared by all its connections."""

    def __init__(
        self, credentials: Credentials, tls: TlsOptions | None, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Create the tokens of a client.

        ``tls`` has the trusted authorities, unless the credentials name others for the issuer.
        """
        from interpulse.client.transport.json_documents import (
            JsonDocuments,
        )  # imported here: other credentials need no HTTP library

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
        """Return the tokens for these credentials; None if they do not use an issuer."""
        return cls(credentials, tls) if credentials is not None and credentials.method == "oauth2" else None

    async def current(self, *, refused: bool = False) -> str:
        """Return a token that remains valid for a while. ``refused``: a broker has refused the last one.

        Raise AuthenticationError, naming the issuer, if it refuses the client or cannot be reached.
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
    """Return the secret for a greeting: a token of the issuer, or the current secret; empty without credentials.

    ``refused``: the last one is no longer valid. Raise AuthenticationError.
    """
    if issued is not None:
        return (await issued.current(refused=refused)).encode()
    return b"" if credentials is None else credentials.secret().encode()


async def http_header_now(credentials: Credentials | None, issued: IssuedTokens | None) -> str | None:
    """Return the value of ``Authorization``; None if the credentials have none. Raise AuthenticationError."""
    if issued is not None:
        return f"Bearer {await issued.current()}"
    return None if credentials is None else credentials.http_header()


def _reason(status: int, answer: dict[str, Any]) -> str:
    said = [str(answer[name])[:200] for name in ("error", "error_description") if answer.get(name)]
    return f"{status} {', '.join(said)}" if said else str(status)


def _seconds(expires_in: object) -> float:
    """Parse a number of seconds. Some issuers send it as text."""
    try:
        return max(0.0, float(str(expires_in)))
    except ValueError:
        return _LIFETIME_SECONDS
