"""Connections to other clusters by their registration, with credentials and trusted certificates.

`misnamed` compares the name that a cluster reports with its registered one. Messages carry the name of the cluster they
come from, and a cluster does not send messages with its own name back. A wrong name silently breaks the prevention of
loops.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from interpulse.model.clusters import ClusterData, shown_address
from interpulse.model.errors import AuthorizationError, NotFound, RemoteClusterUnavailable

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient
    from interpulse.client.credentials import Credentials
    from interpulse.client.tls import TlsOptions

log = logging.getLogger(__name__)

TIMEOUT_MS = 10_000


def web_url(cluster: str, data: ClusterData) -> str:
    """Return the address of the admin API: the encrypted one if the record requires it or has no other.

    Raise RemoteClusterUnavailable if there is none.
    """
    return _address(cluster, _chosen(data, data.service_url, data.service_url_tls), "serviceUrl")


def broker_url(cluster: str, data: ClusterData) -> str:
    """Return the address of the binary protocol; see `web_url`."""
    address = _chosen(data, data.broker_service_url, data.broker_service_url_tls)
    return _address(cluster, address, "brokerServiceUrl")


def _address(cluster: str, address: str | None, field: str) -> str:
    if not address:
        raise RemoteClusterUnavailable(f"Cluster {cluster} has no {field}; register it with clusters update")
    return address


def _chosen(data: ClusterData, plain: str | None, encrypted: str | None) -> str | None:
    return (encrypted or plain) if data.broker_client_tls_enabled else (plain or encrypted)


def credentials_of(cluster: str, data: ClusterData) -> Credentials | None:
    """Return our credentials at the remote cluster.

    The record should name a file: it is read again for every request, and never shown. Without other credentials the
    client certificate authenticates.
    """
    from interpulse.client.credentials import Credentials

    try:
        named = Credentials.from_plugin(data.authentication_plugin, data.authentication_parameters)
    except ValueError as error:
        raise RemoteClusterUnavailable(f"Cluster {cluster}: {error}") from error
    return Credentials("tls", "") if named is None and tls_of(data).certificate_path else named


def tls_of(data: ClusterData) -> TlsOptions:
    """Return the trusted certificates, and the client certificate if the credentials name no other.

    As in Pulsar, the files of a record have no effect if no address is encrypted.
    """
    from interpulse.client.tls import TlsOptions

    trusted = TlsOptions(data.broker_client_trust_certs_file_path or None, data.tls_allow_insecure_connection)
    addresses = (
        _chosen(data, data.service_url, data.service_url_tls),
        _chosen(data, data.broker_service_url, data.broker_service_url_tls),
    )
    if not any(address.startswith(("https:", "pulsar+ssl:")) for address in addresses if address):
        return trusted
    return replace(
        trusted,
        certificate_path=data.broker_client_certificate_file_path or None,
        key_path=data.broker_client_key_file_path or None,
    )


def connect(cluster: str, data: ClusterData, *, timeout_ms: int = TIMEOUT_MS) -> AdminClient:
    """Return a client for the cluster's admin API. The caller closes it. Raise RemoteClusterUnavailable."""
    # Imported here: a broker without other clusters does not need the client.
    from interpulse.client.admin.admin_client import AdminClient

    try:
        credentials, tls = credentials_of(cluster, data), tls_of(data)
        return AdminClient(web_url(cluster, data), credentials=credentials, timeout_ms=timeout_ms, tls=tls)
    except ValueError as error:
        raise RemoteClusterUnavailable(f"Cluster {cluster}: {error}") from error


# ---- Cluster names


async def misnamed(admin: AdminClient, registered: str, address: str) -> str | None:
    """Return the fault of the ``registered`` name of a cluster as a clause; None if it is the cluster's own name.

    ``address`` is for messages. Apache Pulsar reports its name only to super-users, but its registered clusters to all,
    and it is one of them: a name among them is accepted with a warning. Raise the cluster's error.
    """
    where = f"the cluster at {shown_address(address)}"
    clusters: list[str] = []
    with suppress(AuthorizationError, NotFound):  # we may not read the configuration
        if own := (await admin.brokers.runtime_configuration()).get("clusterName"):
            return None if own == registered else f"{where} calls itself {own}, not {registered}"
    with suppress(AuthorizationError, NotFound):  # nor list the clusters, or the cluster is being set up
        clusters = await admin.clusters.list()
    if clusters and registered not in clusters:
        return f"{where} knows no cluster {registered}, so it is another one; it knows {', '.join(sorted(clusters))}"
    log.warning(
        "cluster name not checked: only a super-user may ask for it cluster=%s address=%s",
        registered,
        shown_address(address),
    )
    return None
