"""Connects to another cluster by its registration, with credentials and trusted certificates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from interpulse.model.clusters import ClusterData
from interpulse.model.errors import RemoteClusterUnavailable

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient
    from interpulse.client.credentials import Credentials
    from interpulse.client.tls import TlsOptions

__all__ = ["broker_url", "connect", "credentials_of", "tls_of", "web_url"]

TIMEOUT_MS = 10_000


def web_url(cluster: str, data: ClusterData) -> str:
    """The address of the admin API: the encrypted one where the record asks for it or has no other.

    Raises RemoteClusterUnavailable if there is none.
    """
    return _address(cluster, data, data.service_url, data.service_url_tls, "serviceUrl")


def broker_url(cluster: str, data: ClusterData) -> str:
    """The same for the binary protocol."""
    return _address(cluster, data, data.broker_service_url, data.broker_service_url_tls, "brokerServiceUrl")


def _address(cluster: str, data: ClusterData, plain: str | None, encrypted: str | None, field: str) -> str:
    found = _chosen(data, plain, encrypted)
    if not found:
        raise RemoteClusterUnavailable(f"Cluster {cluster} has no {field}; register it with clusters update")
    return found


def _chosen(data: ClusterData, plain: str | None, encrypted: str | None) -> str | None:
    return (encrypted or plain) if data.broker_client_tls_enabled else (plain or encrypted)


def credentials_of(cluster: str, data: ClusterData) -> Credentials | None:
    """Who we are there. The record best names a file: it is read again for every request, and never shown.

    Without other credentials the client certificate authenticates.
    """
    from interpulse.client.credentials import Credentials

    try:
        named = Credentials.from_plugin(data.authentication_plugin, data.authentication_parameters)
    except ValueError as error:
        raise RemoteClusterUnavailable(f"Cluster {cluster}: {error}") from error
    return Credentials("tls", "") if named is None and tls_of(data).certificate_path else named


def tls_of(data: ClusterData) -> TlsOptions:
    """Which certificates are trusted there, and which one is shown if the credentials name no other.

    As in Pulsar, the files of a record mean nothing where no address is encrypted.
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
    """A client for the cluster's admin API; the caller closes it. Raises RemoteClusterUnavailable."""
    from interpulse.client.admin.admin_client import (
        AdminClient,  # a broker without other clusters starts without the client
    )

    try:
        return AdminClient(
            web_url(cluster, data),
            credentials=credentials_of(cluster, data),
            timeout_ms=timeout_ms,
            tls=tls_of(data),
        )
    except ValueError as error:
        raise RemoteClusterUnavailable(f"Cluster {cluster}: {error}") from error
