"""Credentials, TLS, listener and timeouts of a connection, small enough to be sent to Spark's workers."""

from __future__ import annotations

from dataclasses import dataclass, field

from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions


@dataclass(frozen=True)
class Access:
    """Access to one cluster.

    Files of secrets, certificates and keys are read on each worker, again for every connection. Without a token the
    certificate authenticates.
    """

    token: str | None = field(default=None, repr=False)
    trust_certs_file: str | None = None
    insecure_allowed: bool = False
    """Trust any certificate."""
    certificate_file: str | None = None
    key_file: str | None = None
    listener_name: str | None = None
    """Advertised listener to connect through."""
    token_file: str | None = None
    plugin: str | None = None
    """The Java name of another way to authenticate, with ``token`` as its parameters."""
    connect_timeout_ms: int | None = None
    lookup_timeout_ms: int | None = None
    """The lookup timeout; None, here and in other timeouts, means the client's default."""
    keep_alive_interval_ms: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown authentication plug-in, or for two ways to authenticate."""
        if self.token_file is not None and (self.token is not None or self.plugin is not None):
            raise ValueError("authTokenFile excludes authToken and authentication plug-ins: use one of them")
        _ = self.credentials

    @property
    def credentials(self) -> Credentials | None:
        if self.plugin is not None:
            return Credentials.from_plugin(self.plugin, self.token)
        if self.token_file is not None:
            return Credentials.token(f"file:{self.token_file.removeprefix('file:')}")
        if self.token is not None:
            return Credentials.token(self.token)
        return Credentials("tls", "") if self.certificate_file is not None else None

    @property
    def rereads_credentials(self) -> bool:
        """Return True if files or an issuer may give other credentials to the next connection."""
        credentials = self.credentials
        return self.certificate_file is not None or (credentials is not None and credentials.can_change)

    @property
    def tls(self) -> TlsOptions:
        return TlsOptions(
            self.trust_certs_file,
            self.insecure_allowed,
            certificate_path=self.certificate_file,
            key_path=self.key_file,
        )

    def credentials_beside(self, other: Access) -> Credentials | None:
        """Return these credentials, or those of ``other`` if there are none."""
        return self.credentials or other.credentials

    def tls_beside(self, other: Access) -> TlsOptions:
        """Return these TLS settings, or the ones of ``other`` if this has none."""
        return other.tls if self.tls == Access().tls else self.tls
