"""Authentication of clients: credentials in, an identity out, the same for all front ends."""

from __future__ import annotations

import base64
import binascii
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, field
from typing import Final, Protocol

from interpulse.model.errors import AuthenticationError
from interpulse.serving.exposition import Exposition, labelled
from interpulse.storage.meters import Histogram

_TOKEN_MINUTES: Final = (5.0, 10.0, 60.0, 240.0)


class CountedKeys(Protocol):
    """A set of keys that is read again when it changes."""

    failures: int
    """Number of changes that could not be read."""

    def keys(self) -> Sized: ...


@dataclass(slots=True)
class AccessMeter:
    """Accepted and refused credentials since the program started."""

    successes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Accepted credentials, by provider and method."""
    failures: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Refused credentials, by provider, method and reason."""
    expired_tokens: int = 0
    token_minutes: Histogram = field(default_factory=lambda: Histogram(_TOKEN_MINUTES))
    """The remaining lifetimes of accepted tokens that expire."""
    token_keys: CountedKeys | None = None
    """The set of keys that verifies tokens, if there is one."""

    def write(self, page: Exposition, labels: str = "") -> None:
        """Add the metrics to a page, under Pulsar's names. ``labels`` are those of the program."""
        front = f"{labels}," if labels else ""
        text = "Clients and calls whose credentials were good."
        for (provider, method), count in self.successes.items():
            who = labelled(provider_name=provider, auth_method=method)
            page.add("pulsar_authentication_success_total", "counter", text, front + who, count)
        text = "Clients and calls whose credentials were not good."
        for (provider, method, reason), count in self.failures.items():
            who = labelled(provider_name=provider, auth_method=method, reason=reason)
            page.add("pulsar_authentication_failures_total", "counter", text, front + who, count)
        text = "Tokens that were not accepted because they had expired."
        page.add("pulsar_expired_token_total", "counter", text, labels, self.expired_tokens)
        if self.token_keys is not None:
            text = "Keys of tokenValidationKeysJwks."
            page.add("pulsar_token_validation_keys", "gauge", text, labels, len(self.token_keys.keys()))
            text = "Changes of tokenValidationKeysJwks that could not be read."
            failures = self.token_keys.failures
            page.add("pulsar_token_validation_keys_reload_failures_total", "counter", text, labels, failures)
        text = "Tokens that were accepted and do expire, by the minutes that were left."
        minutes = self.token_minutes
        page.add_histogram("pulsar_expiring_token_minutes", text, labels, minutes.bounds, minutes.counts, minutes.sum)


class BadCredentials(AuthenticationError):
    """The credentials are not accepted. Clients read ``str()``; ``detail`` is for the log and holds no secret."""

    def __init__(self, message: str = "Failed to authenticate", detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Identity:
    """The role that credentials prove."""

    role: str
    expires_at: float | None = None
    """The time at which the proof expires, in seconds since 1970; None = never."""

    revoked: Callable[[], bool] | None = field(default=None, compare=False, repr=False)
    """Returns True once the proof was revoked; None if it cannot be."""

    renewable: bool = True
    """True if an open connection can present a new proof. A certificate counts for the handshake alone."""

    @property
    def can_end(self) -> bool:
        return self.expires_at is not None or self.revoked is not None

    def has_ended(self, now: float) -> bool:
        """Return True if the proof has expired or was revoked by ``now``, in seconds since 1970."""
        return (self.expires_at is not None and self.expires_at <= now) or (self.revoked is not None and self.revoked())


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """A client's certificate, verified by the handshake."""

    common_name: str
    expires_at: float | None = None
    """Seconds since 1970."""
    der: bytes = field(default=b"", repr=False)
    """The certificate itself, which has further names."""


class Provider(Protocol):
    """One authentication method."""

    name: str
    """The name in settings and metrics, as in Pulsar."""
    method: str
    """The method that clients name when they connect."""

    async def authenticate(self, credentials: bytes, certificate: PeerCertificate | None) -> Identity:
        """Return the identity. Raise Refused.

        ``certificate`` is the one that the client showed to this program. Most providers return without waiting.
        """
        ...


class Refused(Exception):
    """The error of a provider: ``reason`` for metrics, and the detail for the log."""

    def __init__(self, reason: str, detail: str, *, expired: bool = False) -> None:
        super().__init__(detail)
        self.reason = reason
        self.expired = expired


class Authentication:
    """The providers, by the client's method."""

    def __init__(
        self,
        providers: Iterable[Provider],
        *,
        anonymous_role: str = "",
        meter: AccessMeter | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """``anonymous_role`` is the role of clients without credentials for a provider; empty = they are refused.

        ``now`` returns seconds since 1970.
        """
        self._providers: dict[str, list[Provider]] = {}
        for provider in providers:
            self._providers.setdefault(provider.method, []).append(provider)
        self._anonymous_role = anonymous_role
        self._now = now
        self.meter = meter or AccessMeter()

    async def authenticate(
        self, method: str, credentials: bytes, *, certificate: PeerCertificate | None = None
    ) -> Identity:
        """Return the identity behind these credentials. Raise BadCredentials.

        Providers of one method, such as tokens and OpenID Connect, are asked in the order of the settings until one
        accepts. ``certificate`` is the one that the client showed to this program, None if it showed none.
        """
        providers = self._providers.get(method)
        if providers is None:
            if self._anonymous_role:
                return Identity(self._anonymous_role)
            raise BadCredentials(detail=f"authentication method {method[:100]!r} is not offered")
        refusals = []
        for provider in providers:
            try:
                identity = await provider.authenticate(credentials, certificate)
            except Refused as refusal:
                refusals.append(refusal)
                continue
            self.meter.successes[provider.name, method] += 1
            if method == _TOKEN and identity.expires_at is not None:
                self.meter.token_minutes.add(max(0.0, identity.expires_at - self._now()) / 60)
            return identity
        for provider, refused in zip(providers, refusals, strict=True):
            self.meter.failures[provider.name, method, refused.reason] += 1
            self.meter.expired_tokens += refused.expired
        raise BadCredentials(detail="; ".join(map(str, refusals)))

    async def authenticate_http(
        self, headers: Mapping[str, str], *, certificate: PeerCertificate | None = None
    ) -> Identity:
        """Return the identity behind the headers of an HTTP call, whose names may have any case.

        They win over the certificate. Errors are those of `authenticate`.
        """
        scheme, _, credentials = headers.get("Authorization", "").partition(" ")
        # Logs name the method. The text in place of an unknown scheme may be a token, so it is not logged.
        method = _METHODS_BY_SCHEME.get(scheme.lower(), "unknown" if scheme else "none")
        if not scheme and certificate is not None and _CERTIFICATE in self._providers:
            method = _CERTIFICATE
        sent = credentials.strip().encode(errors="replace")
        try:
            return await self.authenticate(method, _decoded(method, sent), certificate=certificate)
        except BadCredentials as error:
            raise BadCredentials("Authentication required", error.detail) from None


_TOKEN: Final = "token"
_BASIC: Final = "basic"
_CERTIFICATE: Final = "tls"
_METHODS_BY_SCHEME: Final = {"bearer": _TOKEN, "basic": _BASIC}


def _decoded(method: str, sent: bytes) -> bytes:
    """Return credentials in the form of the binary protocol; HTTP wraps user and password in base64."""
    if method != _BASIC:
        return sent
    try:
        return base64.b64decode(sent, validate=True)
    except binascii.Error:
        return b""
