"""Messages for addresses whose port speaks another protocol.

The binary protocol recognizes HTTP and TLS itself when it reads frames.
"""

from __future__ import annotations

import ssl
from typing import Final

_WITHOUT_TLS: Final = {"https": ("http", "web services", 8443), "pulsar+ssl": ("pulsar", "brokers", 6651)}
_OTHER_BYTES: Final = frozenset({"WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"})
"""OpenSSL's names for an answer that is not TLS, depending on its bytes."""


def no_handshake(scheme: str, error: BaseException) -> str | None:
    """Return the reason why an encrypted connection failed if the port does not speak TLS, otherwise None."""
    if scheme not in _WITHOUT_TLS:
        return None
    if isinstance(error, ConnectionResetError | ssl.SSLEOFError):
        problem = "the port answers no TLS handshake"
    elif isinstance(error, ssl.SSLError) and error.reason in _OTHER_BYTES:
        problem = "the port has no TLS"
    else:
        return None
    plain, services, port = _WITHOUT_TLS[scheme]
    return f"{problem}: without TLS the address begins with {plain}://, with TLS {services} usually have port {port}"


def no_http(scheme: str) -> str:
    """Return the reason why a connection broke before any request was answered."""
    if scheme == "https":
        return "the port answers no HTTP: this looks like the binary port, with TLS the web service usually has 8443"
    return (
        "the port answers no HTTP: this looks like the binary port, the web service usually has 8080; where it has "
        "TLS, the address begins with https://"
    )
