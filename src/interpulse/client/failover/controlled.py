"""Site that a document names: the rules of a client whose operators decide when it changes.

Source: PIP-121 (ControlledClusterFailover), whose JSON this reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from interpulse.client.checks import check_type
from interpulse.client.credentials import Credentials
from interpulse.client.failover.sites import Site
from interpulse.client.tls import TlsOptions

_FIELDS: Final = ("serviceUrl", "tlsTrustCertsFilePath", "authPluginClassName", "authParamsString")


@dataclass(frozen=True, slots=True)
class ControlledFailover:
    """Change to the site that a document names, which is read again and again."""

    source: str
    """Address, ``http://`` or ``https://``, or path of a file with the JSON of Java's ControlledClusterFailover.

    Its fields are ``serviceUrl``, ``tlsTrustCertsFilePath``, ``authPluginClassName`` and ``authParamsString``. A field
    that is empty or absent leaves what was.
    """

    interval_s: float = 5
    """Time between two readings. A lost connection is followed by one immediately."""

    timeout_s: float = 3
    """Time limit of one reading, and of the question to the new site."""

    def __post_init__(self) -> None:
        check_type("source", self.source, str)
        if not self.source:
            raise ValueError("source must be an address or a path")
        if not (self.interval_s > 0 and self.timeout_s > 0):
            raise ValueError("interval_s and timeout_s must be above 0")

    @property
    def is_address(self) -> bool:
        """Return True if the document is read over HTTP."""
        return self.source.startswith(("http://", "https://"))

    @property
    def path(self) -> str:
        """Path of the file."""
        return self.source.removeprefix("file://")


def site_from_document(document: Mapping[str, Any], present: Site) -> Site:
    """Return the site that a document names; the present one if it names nothing else. Raise ValueError."""
    texts = {name: document.get(name) or "" for name in _FIELDS}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{name} is not a string")
    url = texts["serviceUrl"].strip() or present.service_url
    tls = present.tls
    if path := texts["tlsTrustCertsFilePath"]:
        tls = replace(present.tls or TlsOptions(), trust_certs_path=path)
    credentials = present.credentials
    if plugin := texts["authPluginClassName"]:
        credentials = Credentials.from_plugin(plugin, texts["authParamsString"])
    admin_url = present.admin_url if url == present.service_url else None
    return Site(url, admin_url, credentials, tls)
