"""Address of one cluster in a configuration file, with its credentials, and the clients that it opens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from interpulse.client.client import Client
from interpulse.client.credentials import Credentials
from interpulse.client.session import Session
from interpulse.client.tls import TlsOptions
from interpulse.model.clusters import shown_address

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_TIMEOUT_MS = 10_000


@dataclass(frozen=True, kw_only=True)
class ClusterAddress:
    """One cluster: its name, its ``pulsar://`` and ``http://`` URLs, and the credentials.

    Prefer ``file:///path`` for ``token``. ``auth_plugin`` is the Java name of another way to authenticate, with
    ``auth_params``. With encrypted URLs, ``trust_certs_file`` and ``tls_allow_insecure_connection`` (which trusts any
    certificate) apply; ``certificate_file`` and ``key_file`` are presented, and identify the program if nothing else
    does. ``listener_name`` selects an advertised listener of the brokers.
    """

    cluster: str
    service_url: str
    admin_url: str
    token: str | None = field(default=None, repr=False)
    auth_plugin: str | None = None
    auth_params: str | None = field(default=None, repr=False)
    trust_certs_file: str | None = None
    tls_allow_insecure_connection: bool = False
    certificate_file: str | None = None
    key_file: str | None = None
    listener_name: str | None = None

    @property
    def credentials(self) -> Credentials | None:
        """Return the credentials. Raise ValueError for a plug-in that is unknown or lacks parameters."""
        if self.auth_plugin is not None:
            return Credentials.from_plugin(self.auth_plugin, self.auth_params)
        if self.token is not None:
            return Credentials.token(self.token)
        return Credentials("tls", "") if self.certificate_file is not None else None

    @property
    def tls(self) -> TlsOptions:
        return TlsOptions(
            self.trust_certs_file,
            self.tls_allow_insecure_connection,
            certificate_path=self.certificate_file,
            key_path=self.key_file,
        )

    @property
    def shown(self) -> str:
        """Name for messages to people."""
        return f"{self.cluster} at {shown_address(self.service_url)}"

    def admin(self) -> AdminClient:
        """Open a client of the admin API. The caller closes it."""
        from interpulse.client.admin.admin_client import AdminClient  # Spark's workers do without it

        return AdminClient(self.admin_url, credentials=self.credentials, tls=self.tls, timeout_ms=_TIMEOUT_MS)

    def client(self) -> Client:
        """Open a client of the binary protocol. The caller closes it."""
        return Client(
            self.service_url,
            operation_timeout_ms=_TIMEOUT_MS,
            credentials=self.credentials,
            tls=self.tls,
            listener_name=self.listener_name,
        )

    def session(self) -> Session:
        """Open a client of the binary protocol for the control side, inside an event loop. The caller closes it."""
        return self.client().session


def address_problems(table: str, address: ClusterAddress) -> Iterator[str]:
    """Yield the faults of an address that is written in ``table`` of a file."""
    yield from _certificate_problems(table, address)
    if address.auth_plugin is None and address.auth_params is None:
        return
    if address.token is not None:
        yield f"[{table}] token excludes auth_plugin and auth_params: give one of them"
    elif address.auth_plugin is None:
        yield f"[{table}] auth_params needs auth_plugin, which says how they are meant"
    else:
        try:
            credentials = address.credentials
            address.tls.showing(credentials, address.service_url).showing(credentials, address.admin_url)
        except ValueError as error:
            yield f"[{table}] auth_params: {error}"


def _certificate_problems(table: str, address: ClusterAddress) -> Iterator[str]:
    if not (address.certificate_file or address.key_file):
        return
    if not (address.certificate_file and address.key_file):
        yield f"[{table}] certificate_file and key_file belong together: name both"
    if not (address.service_url.startswith("pulsar+ssl:") and address.admin_url.startswith("https:")):
        yield f"[{table}] certificate_file needs encrypted addresses: pulsar+ssl:// and https://"


def sameness_problems(names: tuple[str, str], first: ClusterAddress, second: ClusterAddress) -> Iterator[str]:
    """Yield the reasons why two addresses, called by ``names``, are not those of two clusters."""
    if first.cluster == second.cluster:
        yield f"{names[0]} and {names[1]} are the same cluster {first.cluster}"
    if _hosts(first.service_url) & _hosts(second.service_url):
        yield f"{names[0]} and {names[1]} share the broker address {shown_address(first.service_url)}"


def _hosts(service_url: str) -> set[str]:
    return set(service_url.partition("://")[2].rstrip("/").split(","))
