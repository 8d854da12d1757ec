"""Whether clients of the proxy have to authenticate, and who the proxy is for brokers; built from the settings."""

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

__all__ = ["OwnIdentity", "ProxyAccess", "build_access"]


class OwnIdentity:
    """The credentials that the proxy shows to brokers; a certificate is shown by the connection."""

    def __init__(self, credentials: Credentials | None, tls: TlsOptions) -> None:
        """``tls`` tells which authorities an issuer of tokens is trusted by."""
        self.credentials = credentials
        self.issued = IssuedTokens.of(credentials, tls)

    @property
    def method(self) -> str:
        """As CONNECT names it."""
        return "none" if self.credentials is None else self.credentials.auth_method

    async def secret(self) -> bytes:
        """What CONNECT brings. Raises ServiceNotReady, which names no file: clients read it."""
        with _nothing_named():
            return await secret_now(self.credentials, self.issued)

    async def http_header(self) -> str | None:
        """The value of ``Authorization``, None for a proxy without; raises as `secret`."""
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
    """How clients are authenticated, and spoken for. There is none while authentication is off."""

    authentication: Authentication
    own: OwnIdentity
    credentials_forwarded: bool
    """Brokers receive the credentials of clients besides those of the proxy."""
    refresh_check_seconds: int
    """How often a connection whose credentials end is looked at; 0 = never."""
    metrics_authenticated: bool


def build_access(config: ProxyConfig) -> ProxyAccess | None:
    """None while authentication is off. Raises PreconditionFailed for settings that cannot be used."""
    if not config.authentication_enabled:
        return None
    return ProxyAccess(
        build_authentication(config),
        OwnIdentity(config.own_credentials, config.broker_tls),
        credentials_forwarded=config.forward_authorization_credentials,
        refresh_check_seconds=config.authentication_refresh_check_seconds,
        metrics_authenticated=config.authenticate_metrics_endpoint,
    )
