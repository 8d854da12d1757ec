"""Who we are on a cluster, and whose certificates are trusted there: small enough to travel to Spark's workers."""

from __future__ import annotations

from dataclasses import dataclass, field

from interpulse.client.auth import Credentials
from interpulse.client.tls import TlsOptions

__all__ = ["Access"]


@dataclass(frozen=True)
class Access:
    """``token`` is best a ``file:`` URL: then it is read where it is used, anew for every connection."""

    token: str | None = field(default=None, repr=False)
    trust_certs_file: str | None = None
    insecure_allowed: bool = False
    """Trust any certificate."""

    @property
    def credentials(self) -> Credentials | None:
        return None if self.token is None else Credentials.token(self.token)

    @property
    def tls(self) -> TlsOptions:
        return TlsOptions(self.trust_certs_file, self.insecure_allowed)
