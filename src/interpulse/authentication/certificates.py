"""Authentication by the certificate that a client showed in the handshake, which verified it.

One of its names is the role, or rules derive the role from the name. Clients send nothing else.
"""

from __future__ import annotations

import ssl
from typing import Any, Final, Protocol

from interpulse.authentication.authentication import Identity, PeerCertificate, Refused
from interpulse.authentication.principal_mapping import PrincipalMapping

_COMMON_NAME: Final = "CN"


class CertificateProvider:
    """Pulsar's AuthenticationProviderTls, with the sources and rules of PIP-485."""

    name = "tls"
    method = "tls"

    def __init__(self, source: str = _COMMON_NAME, mapping: PrincipalMapping | None = None) -> None:
        """``source`` is one of `ProviderSettings.tls_cert_identity_source`. Without a mapping the name is the role."""
        self._source = source
        self._mapping = mapping or PrincipalMapping("")

    async def authenticate(self, credentials: bytes, certificate: PeerCertificate | None) -> Identity:
        """Return the role of the certificate, until it expires. Sent credentials are ignored."""
        if certificate is None:
            raise Refused("INVALID_CERTS", "the connection is not inside TLS, or its client showed no certificate")
        name = self._name(certificate)
        role = self._mapping.role(name)
        if role is None:
            raise Refused(
                "NO_MAPPING_RULE_MATCHED",
                f"no rule of tlsAuthPrincipalMappingRules makes a role of {name[:200]!r}, the {self._source} of the "
                "certificate",
            )
        return Identity(role, certificate.expires_at, renewable=False)

    def _name(self, certificate: PeerCertificate) -> str:
        if self._source == _COMMON_NAME:
            name = certificate.common_name
        else:
            from interpulse.authentication.certificate_names import certificate_name  # loaded only where it is needed

            try:
                name = certificate_name(certificate.der, self._source)
            except ValueError as error:
                raise Refused("INVALID_CERTS", f"the names of the certificate cannot be read: {error}") from None
        if not name:
            reason = "NO_SAN_OF_TYPE" if self._source.startswith("SAN:") else "INVALID_CN"
            raise Refused(reason, f"the certificate has no {self._source}, which tlsCertIdentitySource asks for")
        return name


class _Encrypted(Protocol):
    """A connection, or a request that came over it."""

    def get_extra_info(self, name: str, default: Any = None) -> Any: ...


def peer_certificate(connection: _Encrypted) -> PeerCertificate | None:
    """Return the checked certificate of a client, with its most specific common name ("" = none); None without one."""
    shown = connection.get_extra_info("peercert")
    if not shown:  # a certificate that was not verified is empty here
        return None
    names = [value for part in shown.get("subject", ()) for key, value in part if key == "commonName"]
    end = shown.get("notAfter")
    der = connection.get_extra_info("ssl_object").getpeercert(True)
    expires_at = float(ssl.cert_time_to_seconds(end)) if end else None
    return PeerCertificate(str(names[-1]) if names else "", expires_at, der)
