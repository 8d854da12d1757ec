"""Values of a client that changes from one cluster to another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from interpulse.client.checks import check_type
from interpulse.client.config import ClientConfig, ServiceUrl
from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.model.clusters import shown_address


@dataclass(frozen=True, slots=True)
class Site:
    """One of the clusters that a client may use, with the identity for it. They change together (PIP-121)."""

    service_url: str
    """Address as of :class:`ClientConfig`."""

    admin_url: str | None = None
    """Address of the admin API, for programs that use it. The client itself does not."""

    credentials: Credentials | None = None
    """Credentials for this site only; None: the client presents none there."""

    tls: TlsOptions | None = None
    """Certificate checks and the client's own certificate for this site only."""

    def __post_init__(self) -> None:
        check_type("service_url", self.service_url, str)
        ServiceUrl.parse(self.service_url)
        check_type("credentials", self.credentials, Credentials, type(None))
        check_type("tls", self.tls, TlsOptions, type(None))

    def __str__(self) -> str:
        return shown_address(self.service_url)

    @classmethod
    def of(cls, site: Site | str) -> Site:
        """Return a site; an address alone is a site without credentials."""
        return site if isinstance(site, Site) else cls(site)

    @classmethod
    def of_config(cls, config: ClientConfig) -> Site:
        """Return the site that the settings of a client name."""
        return cls(config.service_url, credentials=config.credentials, tls=config.tls)

    def applied_to(self, config: ClientConfig) -> ClientConfig:
        """Return the settings of a client with the address and identity of this site. Raise ValueError."""
        return replace(config, service_url=self.service_url, credentials=self.credentials, tls=self.tls)


class Decision(NamedTuple):
    """Change to a site, and its reason for the log."""

    site: Site
    reason: str


class SiteChange(NamedTuple):
    """Change of a client from one site to another."""

    generation: int
    """Number of the change, counted from 1."""

    before: Site
    after: Site
    reason: str
    silent_s: float
    """Seconds for which the former site had not answered; 0 if it still answers."""
