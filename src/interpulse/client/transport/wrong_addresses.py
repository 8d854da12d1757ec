"""What is said of an address whose port speaks another protocol, or whose path is that of the requests.

The binary protocol tells HTTP and TLS from its own frames by itself, where it reads them.
"""

from __future__ import annotations

import ssl
from typing import Final
from urllib.parse import urlsplit

from interpulse.model.clusters import shown_address

__all__ = ["check_path", "no_handshake", "no_http"]

_WITHOUT_TLS: Final = {"https": ("http", "web services", 8443), "pulsar+ssl": ("pulsar", "brokers", 6651)}
_OTHER_BYTES: Final = frozenset({"WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"})
"""What OpenSSL calls an answer that is no TLS, depending on its bytes."""


def no_handshake(scheme: str, error: BaseException) -> str | None:
    """Why the connection to an encrypted address could not be opened, if its port does not speak TLS; else None."""
    if scheme not in _WITHOUT_TLS:
        return None
    if isinstance(error, ConnectionResetError | ssl.SSLEOFError):
        found = "the port answers no TLS handshake"
    elif isinstance(error, ssl.SSLError) and error.reason in _OTHER_BYTES:
        found = "the port has no TLS"
    else:
        return None
    plain, services, port = _WITHOUT_TLS[scheme]
    return f"{found}: without TLS the address begins with {plain}://, with TLS {services} usually have port {port}"


def no_http(scheme: str) -> str:
    """Why a connection broke on which no request has been answered yet."""
    if scheme == "https":
        return "the port answers no HTTP: this looks like the binary port, with TLS the web service usually has 8443"
    return (
        "the port answers no HTTP: this looks like the binary port, the web service usually has 8080; where it has "
        "TLS, the address begins with https://"
    )


def check_path(root: str) -> None:
    """Raises ValueError for a web URL with the path that requests begin with already."""
    parts = urlsplit(root)
    end = next((each for each in ("/admin/v2", "/admin") if parts.path.endswith(each)), None)
    if end is not None:
        raise ValueError(
            f"not a web service URL: {shown_address(root)!r}, leave out {end}: requests have their path, the address "
            "ends with host and port"
        )
