"""An authenticated client of the proxy, which speaks for it to brokers."""

from __future__ import annotations

from interpulse.authentication.authentication import Identity, PeerCertificate
from interpulse.authentication.credential_watch import CredentialWatch, WatchedConnection
from interpulse.proxy.access import ProxyAccess
from interpulse.proxy.forwarding import PROXY_VERSION
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands import OriginalClient


class AuthenticatedClient:
    """One client, and the credentials that it showed last."""

    def __init__(
        self,
        access: ProxyAccess,
        identity: Identity,
        method: str,
        credentials: bytes,
        certificate: PeerCertificate | None,
    ) -> None:
        self._access = access
        self._identity = identity
        self._method = method
        self._credentials = credentials if access.credentials_forwarded else b""
        self._certificate = certificate
        self._watch: CredentialWatch | None = None

    @classmethod
    async def of(
        cls, access: ProxyAccess, connect: pb.CommandConnect, certificate: PeerCertificate | None
    ) -> AuthenticatedClient:
        """Authenticate the sender of this CONNECT. Raise BadCredentials."""
        method, credentials = connect.auth_method_name or "none", connect.auth_data
        identity = await access.authentication.authenticate(method, credentials, certificate=certificate)
        return cls(access, identity, method, credentials, certificate)

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
