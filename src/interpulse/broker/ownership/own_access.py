"""Who a broker is for the brokers of its own cluster, and how it goes there."""

from __future__ import annotations

from dataclasses import dataclass

from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions

__all__ = ["OwnAccess"]


@dataclass(frozen=True, slots=True)
class OwnAccess:
    """For calls to other brokers, and for the replication job."""

    credentials: Credentials | None = None
    """Best in a file; None if brokers do not ask, or take the certificate for them."""
    tls_preferred: bool = False
    """Inside TLS alone; without it where there is no other address."""
    trust_certs_path: str | None = None
    certificate_path: str | None = None
    key_path: str | None = None

    @property
    def tls(self) -> TlsOptions:
        return TlsOptions(self.trust_certs_path, certificate_path=self.certificate_path, key_path=self.key_path)
