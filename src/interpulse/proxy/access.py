"""Authentication of the proxy's clients, its own credentials, and the greeting of brokers on behalf of clients.

A proxy without authentication forwards the client's credentials if configured, and nothing otherwise. A proxy with
authentication speaks for the client, with its own credentials.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import interpulse
from interpulse.authentication.authentication import Authentication, Identity, PeerCertificate
from interpulse.authentication.credential_watch import CredentialWatch, WatchedConnection
from interpulse.authentication.providers import build_authentication
from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.client.transport.issued_tokens import IssuedTokens, http_header_now, secret_now
from interpulse.model.errors import AuthenticationError, ServiceNotReady
from interpulse.proxy.proxy_config import ProxyConfig
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands import OriginalClient

PROXY_VERSION: Final = f"interpulse-{interpulse.__version__}"

_NOT_FORWARDED: Final = ("proxy_to_broker_url", "original_principal", "original_auth_data", "original_auth_method")
"""Fields that clients may not set: the target is for the proxy, and the original client is set by the proxy alone."""
_CREDENTIALS: Final = ("auth_method", "auth_method_name", "auth_data")
_QUESTION_METHODS: Final = ("token", "basic")


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


def broker_connect(connect: pb.CommandConnect, *, credentials_forwarded: bool) -> bytes:
    """Return the CONNECT for the broker of a data connection: the client's own, with its feature flags unchanged."""
    greeting = _sent_on(connect, credentials=credentials_forwarded)
    if not credentials_forwarded:
        greeting.auth_method_name = "none"
    greeting.proxy_version = PROXY_VERSION
    return commands.encode(greeting)


def broker_connect_for(
    original: commands.OriginalClient, connect: pb.CommandConnect, auth_method: str, auth_data: bytes
) -> bytes:
    """Return the CONNECT of a proxy that speaks for the client. Method and credentials are the proxy's."""
    greeting = _sent_on(connect, credentials=False)
    greeting.auth_method_name = auth_method
    if auth_data:
        greeting.auth_data = auth_data
    original.write(greeting)
    return commands.encode(greeting)


def _sent_on(connect: pb.CommandConnect, *, credentials: bool) -> pb.CommandConnect:
    greeting = pb.CommandConnect()
    greeting.CopyFrom(connect)
    for name in _NOT_FORWARDED if credentials else (*_NOT_FORWARDED, *_CREDENTIALS):
        greeting.ClearField(name)
    return greeting


def forwarded_credentials(connect: pb.CommandConnect) -> Credentials | None:
    """Return the credentials for lookups of this client, None if it has none. Raise AuthenticationError."""
    method = connect.auth_method_name
    if method in ("", "none"):
        return None
    if method not in _QUESTION_METHODS:
        raise AuthenticationError(
            f"The proxy forwards credentials of the methods {' and '.join(_QUESTION_METHODS)}, not of {method[:100]!r}"
        )
    try:
        secret = connect.auth_data.decode()
    except UnicodeDecodeError:
        raise AuthenticationError("Failed to authenticate") from None
    if method == "token":
        return Credentials.token(f"token:{secret}")
    user, separator, password = secret.partition(":")
    if not separator:
        raise AuthenticationError("Failed to authenticate")
    return Credentials.basic(user, password)


@dataclass(slots=True)
class AuthenticatedClient:
    """One client, which the proxy speaks for to brokers, and the credentials that it showed last."""

    _access: ProxyAccess
    _identity: Identity
    _method: str
    _credentials: bytes
    _certificate: PeerCertificate | None
    _watch: CredentialWatch | None = None

    @classmethod
    async def of(
        cls, access: ProxyAccess, connect: pb.CommandConnect, certificate: PeerCertificate | None
    ) -> AuthenticatedClient:
        """Authenticate the sender of this CONNECT. Raise BadCredentials."""
        method, credentials = connect.auth_method_name or "none", connect.auth_data
        identity = await access.authentication.authenticate(method, credentials, certificate=certificate)
        return cls(access, identity, method, credentials if access.credentials_forwarded else b"", certificate)

    @property
    def role(self) -> str:
        return self._identity.role

    @property
    def credentials_forwarded(self) -> bool:
        """True if brokers check the client's credentials too."""
        return self._access.credentials_forwarded

    def watch(self, connection: WatchedConnection) -> None:
        """Check the credentials until `close`, and ask for new ones when they expire."""
        self._watch = CredentialWatch(
            connection,
            self._access.authentication,
            self._method,
            self._identity,
            check_seconds=self._access.refresh_check_seconds,
            certificate=self._certificate,
        )

    async def renew(self, method: str, credentials: bytes) -> None:
        """Accept new credentials. Raise BadCredentials if they are bad or prove another role."""
        assert self._watch is not None, "the client was not asked for credentials"
        await self._watch.renew(method, credentials)
        if self.credentials_forwarded:
            self._method, self._credentials = method, credentials

    async def original(self, *, ended: bool = False) -> OriginalClient:
        """Return the client for brokers; ``ended`` if they ask for new credentials. Raise NotConnected if it left."""
        if not self.credentials_forwarded:
            return OriginalClient(self.role, PROXY_VERSION)
        if ended and self._watch is not None:
            await self._watch.wait_until_valid()
        return OriginalClient(self.role, PROXY_VERSION, self._method, self._credentials.decode(errors="replace"))

    def close(self) -> None:
        """Stop, because the connection is closed."""
        if self._watch is not None:
            self._watch.close()
