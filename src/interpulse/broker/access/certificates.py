"""Authentication by the certificate that a client showed when its connection began.

The handshake has checked it; what counts here is the common name, which is the role. Clients send nothing besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interpulse.broker.access.authentication import Identity, Refused

__all__ = ["CertificateProvider", "common_name"]


class CertificateProvider:
    """Pulsar's AuthenticationProviderTls."""

    name = "tls"
    method = "tls"

    def authenticate(self, credentials: bytes) -> Identity:
        """``credentials`` are the common name, see `Authentication.authenticate`. Raises Refused without one."""
        role = credentials.decode()
        if not role:
            raise Refused(
                "INVALID_CERTS",
                "the connection is not inside TLS, or its client showed no certificate with a name",
            )
        return Identity(role)


def common_name(certificate: Mapping[str, Any] | None) -> str:
    """The most specific common name of a checked certificate, given as ``ssl`` gives it; "" = none."""
    names = [value for part in (certificate or {}).get("subject", ()) for key, value in part if key == "commonName"]
    return str(names[-1]) if names else ""
