"""Authentication of clients: credentials in, an identity out, the same for both front ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from interpulse.broker.instruments import AccessMeter
from interpulse.model.errors import AuthenticationError

__all__ = ["Authentication", "BadCredentials", "Identity", "Provider", "Refused"]


class BadCredentials(AuthenticationError):
    """Credentials are not accepted. Clients read ``str()``; ``detail`` is for the log and holds no secret."""

    def __init__(self, message: str = "Failed to authenticate", detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Identity:
    """The role that credentials prove."""

    role: str
    expires_at: float | None = None
    """When the proof ends, in seconds since 1970; None = never."""


class Provider(Protocol):
    """One authentication method."""

    name: str
    """As Pulsar names it, in settings and metrics."""
    method: str
    """As clients name it when they connect."""

    def authenticate(self, credentials: bytes) -> Identity:
        """Raises Refused."""
        ...


class Refused(Exception):
    """The error of a provider: ``reason`` as metrics count it, and the detail for the log."""

    def __init__(self, reason: str, detail: str, *, expired: bool = False) -> None:
        super().__init__(detail)
        self.reason = reason
        self.expired = expired


class Authentication:
    """Asks the provider that the client's method belongs to."""

    def __init__(
        self, providers: Iterable[Provider], *, anonymous_role: str = "", now: Callable[[], float] = time.time
    ) -> None:
        """``anonymous_role`` is the role of clients without credentials for a provider; empty = they are refused.

        ``now`` gives seconds since 1970.
        """
        self._providers: Mapping[str, Provider] = {provider.method: provider for provider in providers}
        self._anonymous_role = anonymous_role
        self._now = now
        self.meter = AccessMeter()

    def authenticate(self, method: str, credentials: bytes, *, common_name: str = "") -> Identity:
        """The identity behind these credentials; raises BadCredentials.

        ``common_name`` is that of the certificate that the client showed to this broker, "" if it showed none. With
        the method "tls" nothing else counts, whatever the client sends.
        """
        if method == _CERTIFICATE_METHOD:
            credentials = common_name.encode()
        provider = self._providers.get(method)
        if provider is None:
            if self._anonymous_role:
                return Identity(self._anonymous_role)
            raise BadCredentials(detail=f"authentication method {method[:100]!r} is not offered")
        try:
            identity = provider.authenticate(credentials)
        except Refused as refusal:
            self.meter.failures[provider.name, method, refusal.reason] += 1
            self.meter.expired_tokens += refusal.expired
            raise BadCredentials(detail=str(refusal)) from None
        self.meter.successes[provider.name, method] += 1
        if method == _TOKEN and identity.expires_at is not None:
            self.meter.token_minutes.add(max(0.0, identity.expires_at - self._now()) / 60)
        return identity

    def authenticate_http(self, headers: Mapping[str, str], *, common_name: str = "") -> Identity:
        """The same for the headers of a call, which may come with any case of their names; they win over the name."""
        scheme, _, credentials = headers.get("Authorization", "").partition(" ")
        # Logs name the method. What stands in the place of an unknown scheme may be a token, so it is not taken over.
        method = _METHODS_BY_SCHEME.get(scheme.lower(), "unknown" if scheme else "none")
        if not scheme and common_name and _CERTIFICATE_METHOD in self._providers:
            method = _CERTIFICATE_METHOD
        try:
            sent = credentials.strip().encode(errors="replace")
            return self.authenticate(method, sent, common_name=common_name)
        except BadCredentials as error:
            raise BadCredentials("Authentication required", error.detail) from None


_TOKEN: Final = "token"
_CERTIFICATE_METHOD: Final = "tls"
_METHODS_BY_SCHEME: Final = {"bearer": "token", "basic": "basic"}
