"""Authentication by the certificate that a client showed when its connection began.

The handshake has checked it; what counts here is the common name, which is the role. Clients send nothing besides.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from interpulse.authentication.authentication import Identity, PeerCertificate, Refused

__all__ = ["CertificateProvider", "peer_certificate"]


class CertificateProvider:
    """Pulsar's AuthenticationProviderTls."""

    name = "tls"
    method = "tls"

    async def authenticate(self, credentials: bytes, certificate: PeerCertificate | None) -> Identity:
        """The name in the certificate, until the certificate ends; nothing else counts, whatever the client sends."""
        if certificate is None or not certificate.common_name:
            raise Refused(
                "INVALID_CERTS",
                "the connection is not inside TLS, or its client showed no certificate with a name",
            )
        return Identity(certificate.common_name, certificate.expires_at, renewable=False)


def peer_certificate(shown: Mapping[str, Any] | None) -> PeerCertificate | None:
    """A checked certificate, given as ``ssl`` gives it, with its most specific common name ("" = none)."""
    if not shown:
        return None
    names = [value for part in shown.get("subject", ()) for key, value in part if key == "commonName"]
    end = shown.get("notAfter")
    return PeerCertificate(str(names[-1]) if names else "", float(ssl.cert_time_to_seconds(end)) if end else None)
