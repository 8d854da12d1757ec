"""The identity of a broker among the brokers of its own cluster, and its way to connect to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.model.errors import AuthenticationError, AuthorizationError, ServiceNotReady

OWN_CREDENTIALS = (
    "brokerClientAuthenticationPlugin and brokerClientAuthenticationParameters have to be those of a super user, on "
    "every broker"
)
"""The settings with which brokers of a cluster authenticate to each other."""


class OwnCredentialsRefused(ServiceNotReady):
    """The refusal of this broker's own credentials, as opposed to those of the caller."""


@contextmanager
def as_this_broker(what: str) -> Iterator[None]:
    """Raise OwnCredentialsRefused for ``what`` if another broker refuses this one within the context."""
    try:
        yield
    except (AuthenticationError, AuthorizationError) as refusal:
        raise OwnCredentialsRefused(f"This broker may not {what}: {refusal}; {OWN_CREDENTIALS}") from refusal


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
    def has_credentials(self) -> bool:
        """True if this broker has credentials."""
        return self.credentials is not None or self.certificate_path is not None

    @property
    def tls(self) -> TlsOptions:
        return TlsOptions(self.trust_certs_path, certificate_path=self.certificate_path, key_path=self.key_path)
