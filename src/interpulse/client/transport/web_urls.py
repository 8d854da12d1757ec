"""Addresses of web services, read without an HTTP library."""

from __future__ import annotations

from urllib.parse import urlsplit

from interpulse.model.clusters import shown_address


def parse_web_urls(text: str) -> tuple[str, ...]:
    """Split ``http://a:8080,b:8080`` into one root per host. Raise ValueError for an invalid list."""
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in ("http", "https"):
        raise ValueError(
            f"not a web service URL: {shown_address(text)!r}, expected http://host:port or https://host:port"
        )
    roots = tuple(f"{scheme}://{part.strip().strip('/')}" for part in rest.split(",") if part.strip().strip("/"))
    if not roots or not all(_has_host(root) for root in roots):
        raise ValueError(
            f"not a web service URL: {shown_address(text)!r}, a host is missing or its port is not a number"
        )
    for root in roots:
        _check_path(root)
    return roots


def _has_host(root: str) -> bool:
    parts = urlsplit(root)
    try:
        return bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _check_path(root: str) -> None:
    """Raise ValueError for a web URL that already has the path of the requests."""
    parts = urlsplit(root)
    end = next((path for path in ("/admin/v2", "/admin") if parts.path.endswith(path)), None)
    if end is not None:
        raise ValueError(
            f"not a web service URL: {shown_address(root)!r}, omit {end}: requests add their path, and the address "
            "ends with host and port"
        )
