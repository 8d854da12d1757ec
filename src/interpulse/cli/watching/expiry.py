"""Expiry of tokens and certificates."""

from __future__ import annotations

import base64
import binascii
import json
import socket
import ssl
from typing import Any, Final
from urllib.parse import urlsplit

_TIMEOUT_S: Final = 10.0


def token_end(token: str) -> float | None:
    """Return the expiry of a token in seconds since 1970, or None if it has none or is not a token.

    The signature is not verified.
    """
    try:
        payload = token.split(".")[1]
        claims: Any = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        end = claims.get("exp")
    except (IndexError, ValueError, binascii.Error, AttributeError):
        return None
    return float(end) if isinstance(end, int | float) else None


def certificate_of_server(url: str, trust_certs_path: str | None) -> float | None:
    """Return the expiry of a server's certificate in seconds since 1970, or None if the address does not use TLS.

    Raises OSError if the server does not answer or its certificate is not trusted.
    """
    parts = urlsplit(url.split(",")[0])
    ports = {"https": 443, "pulsar+ssl": 6651}
    if parts.scheme not in ports or not parts.hostname:
        return None
    context = ssl.create_default_context(cafile=trust_certs_path)
    address = (parts.hostname, parts.port or ports[parts.scheme])
    plain = socket.create_connection(address, _TIMEOUT_S)
    with plain, context.wrap_socket(plain, server_hostname=parts.hostname) as encrypted:
        shown = encrypted.getpeercert() or {}
    end = shown.get("notAfter")
    return float(ssl.cert_time_to_seconds(end)) if isinstance(end, str) else None
