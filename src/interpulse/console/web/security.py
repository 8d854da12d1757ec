"""The protection of browsers against foreign pages: headers of every response, and a check of the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse.serving.web_pages import KnownHosts, check_origin

_POLICY: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "; ".join(_POLICY),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every response. Cacheable responses override one. Old browsers ignore ``frame-ancestors``."""


def check_source(method: str, headers: Mapping[str, str], hosts: KnownHosts | None) -> None:
    """Raise Forbidden for requests from a page of another origin or for another host.

    Links from other pages are allowed: a person follows them, and a GET changes nothing.
    """
    if not (method == "GET" and _is_followed_link(headers)):
        check_origin(headers)
    if hosts is not None:
        hosts.check(headers)


def _is_followed_link(headers: Mapping[str, str]) -> bool:
    return headers.get("Sec-Fetch-Mode") == "navigate" and headers.get("Sec-Fetch-Dest") == "document"
