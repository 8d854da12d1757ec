"""Who we are on a cluster, whose certificates are trusted, which of its addresses are used there and how long they may
take: small enough to travel to Spark's workers."""

from __future__ import annotations

from dataclasses import dataclass, field

from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions

__all__ = ["Access"]


@dataclass(frozen=True)
class Access:
    """Secrets best stand in files: they are read where they are used, anew for every connection, as certificates and
    keys always are. Without a token the certificate is who we are."""

    token: str | None = field(default=None, repr=False)
    trust_certs_file: str | None = None
    insecure_allowed: bool = False
    """Trust any certificate."""
    certificate_file: str | None = None
    key_file: str | None = None
    listener_name: str | None = None
    """By which of its advertised listeners the cluster is reached."""
    token_file: str | None = None
    plugin: str | None = None
    """The Java name of another way to authenticate, with ``token`` as its parameters."""
    connect_timeout_ms: int | None = None
    lookup_timeout_ms: int | None = None
    """None, as of the others: what the client has without being told."""
    keep_alive_interval_ms: int | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for a way to authenticate that is not supported, or for two ways at a time."""
        if self.token_file is not None and (self.token is not None or self.plugin is not None):
            raise ValueError("authTokenFile excludes authToken and authentication plug-ins: give one of them")
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
        """Whether they are in files or come from an issuer, and may be others at the next connection."""
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
        """Ours, or those of the other where we have none."""
        return self.credentials or other.credentials

    def tls_beside(self, other: Access) -> TlsOptions:
        """Ours, or those of the other where nothing is told."""
        return other.tls if self.tls == Access().tls else self.tls
