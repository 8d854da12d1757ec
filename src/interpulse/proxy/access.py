"""Authentication of the proxy's clients, and the proxy's own credentials, built from the settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from interpulse.authentication.authentication import Authentication
from interpulse.authentication.providers import build_authentication
from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.client.transport.issued_tokens import IssuedTokens, http_header_now, secret_now
from interpulse.model.errors import AuthenticationError, ServiceNotReady
from interpulse.proxy.config.proxy_config import ProxyConfig


class OwnIdentity:
    """The credentials that the proxy shows to brokers. A certificate is shown by the connection."""

    def __init__(self, credentials: Credentials | None, tls: TlsOptions) -> None:
        """``tls`` names the authorities for the connection to an issuer of tokens."""
        self.credentials = credentials
        self.issued = IssuedTokens.of(credentials, tls)

    @property
    def method(self) -> str:
        """The method for CONNECT."""
        return "none" if self.credentials is None else self.credentials.auth_method

    async def secret(self) -> bytes:
        """Return the credentials for CONNECT. Raise ServiceNotReady without file names, since clients read it."""
        with _nothing_named():
            return await secret_now(self.credentials, self.issued)

    async def http_header(self) -> str | None:
        """Return the value of ``Authorization``, None for a proxy without credentials. Raises as `secret` does."""
        with _nothing_named():
            return await http_header_now(self.credentials, self.issued)


@contextmanager
def _nothing_named() -> Iterator[None]:
    try:
        yield
    except AuthenticationError as error:
        raise ServiceNotReady("The proxy cannot show its credentials to brokers") from error


@dataclass(frozen=True, slots=True)
class ProxyAccess:
    """The authentication of clients, and how the proxy speaks for them. Absent while authentication is off."""

    authentication: Authentication
    own: OwnIdentity
    credentials_forwarded: bool
    """True if brokers receive the credentials of clients besides those of the proxy."""
    refresh_check_seconds: int
    """The interval between checks of a connection's credentials; 0 = never."""
    metrics_authenticated: bool


def build_access(config: ProxyConfig) -> ProxyAccess | None:
    """Return the access, None while authentication is off. Raise PreconditionFailed for unusable settings."""
    if not config.authentication_enabled:
        return None
    return ProxyAccess(
        build_authentication(config),
        OwnIdentity(config.own_credentials, config.broker_tls),
        credentials_forwarded=config.forward_authorization_credentials,
        refresh_check_seconds=config.authentication_refresh_check_seconds,
        metrics_authenticated=config.authenticate_metrics_endpoint,
    )
