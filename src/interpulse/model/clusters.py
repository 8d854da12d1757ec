"""Clusters and tenants in the form of the admin API."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

_CLUSTER_KEYS = {
    "service_url": "serviceUrl",
    "service_url_tls": "serviceUrlTls",
    "broker_service_url": "brokerServiceUrl",
    "broker_service_url_tls": "brokerServiceUrlTls",
    "proxy_service_url": "proxyServiceUrl",
    "proxy_protocol": "proxyProtocol",
    "authentication_plugin": "authenticationPlugin",
    "authentication_parameters": "authenticationParameters",
    "peer_cluster_names": "peerClusterNames",
    "broker_client_tls_enabled": "brokerClientTlsEnabled",
    "tls_allow_insecure_connection": "tlsAllowInsecureConnection",
    "broker_client_trust_certs_file_path": "brokerClientTrustCertsFilePath",
    "broker_client_key_file_path": "brokerClientKeyFilePath",
    "broker_client_certificate_file_path": "brokerClientCertificateFilePath",
    "listener_name": "listenerName",
}
JAVA_KEYS: Final = frozenset(
    {
        "brokerClientTlsEnabledWithKeyStore",
        "brokerClientTlsTrustStoreType",
        "brokerClientTlsTrustStore",
        "brokerClientTlsTrustStorePassword",
        "brokerClientTlsKeyStoreType",
        "brokerClientTlsKeyStore",
        "brokerClientTlsKeyStorePassword",
        "brokerClientSslFactoryPlugin",
        "brokerClientSslFactoryPluginParams",
    }
)
"""Key stores and plug-ins that only Java can use, preserved for the tools that wrote them."""


def shown_address(url: str) -> str:
    """Return an address for messages, logs and status, without user and password."""
    return re.sub("//.*@", "//***@", url)


@dataclass(frozen=True, slots=True)
class ClusterData:
    """The addresses of a cluster for other clusters. Fields that are None were never set."""

    service_url: str | None = None
    service_url_tls: str | None = None
    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None
    proxy_service_url: str | None = None
    proxy_protocol: str | None = None
    authentication_plugin: str | None = None
    authentication_parameters: str | None = None
    peer_cluster_names: tuple[str, ...] | None = None
    broker_client_tls_enabled: bool = False
    tls_allow_insecure_connection: bool = False
    broker_client_trust_certs_file_path: str | None = None
    broker_client_key_file_path: str | None = None
    broker_client_certificate_file_path: str | None = None
    listener_name: str | None = None
    other: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return Pulsar's JSON without the fields that were never set."""
        body: dict[str, Any] = dict(self.other)
        for name, key in _CLUSTER_KEYS.items():
            value = getattr(self, name)
            if value is not None:
                body[key] = list(value) if isinstance(value, tuple) else value
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ClusterData:
        """Parse Pulsar's JSON. Unknown fields are ignored, as in Pulsar's clients."""
        values: dict[str, Any] = {}
        for name, key in _CLUSTER_KEYS.items():
            value = body.get(key)
            if value is not None:
                values[name] = tuple(dict.fromkeys(value)) if isinstance(value, list) else value
        return cls(other={key: body[key] for key in JAVA_KEYS & body.keys() if body[key] is not None}, **values)

    def dump(self) -> bytes:
        return json.dumps(self.to_json()).encode()

    @classmethod
    def load(cls, raw: bytes) -> ClusterData:
        """Parse a stored record. Fields without a meaning here are preserved."""
        body = json.loads(raw)
        named_keys = {*_CLUSTER_KEYS.values()}
        other = {key: value for key, value in body.items() if key not in named_keys and value is not None}
        return replace(cls.from_json(body), other=other)


_MIGRATED_URLS: Final = ("service_url", "service_url_tls", "broker_service_url", "broker_service_url_tls")


@dataclass(frozen=True, slots=True)
class ClusterMigration:
    """The mark of a cluster whose clients go on at another one, and the addresses of that one (PIP-188)."""

    migrated: bool = False
    service_url: str | None = None
    service_url_tls: str | None = None
    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None

    def urls_to_json(self) -> dict[str, str]:
        """Return the addresses that are set, as Pulsar's ``ClusterUrl``."""
        urls = {_CLUSTER_KEYS[name]: getattr(self, name) for name in _MIGRATED_URLS}
        return {key: url for key, url in urls.items() if url}

    def to_json(self) -> dict[str, Any]:
        urls = self.urls_to_json()
        return {"migrated": self.migrated, "migratedClusterUrl": {**urls, "empty": not urls}}

    @classmethod
    def of_urls(cls, urls: Mapping[str, Any], *, migrated: bool) -> ClusterMigration:
        """Return the mark with the addresses of a ``ClusterUrl``."""
        return cls(migrated, **{name: urls.get(_CLUSTER_KEYS[name]) or None for name in _MIGRATED_URLS})

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ClusterMigration:
        """Parse Pulsar's ``ClusterPolicies``."""
        return cls.of_urls(body.get("migratedClusterUrl") or {}, migrated=bool(body.get("migrated")))

    def dump(self) -> bytes:
        return json.dumps({"migrated": self.migrated, "migratedClusterUrl": self.urls_to_json()}).encode()

    @classmethod
    def load(cls, raw: bytes) -> ClusterMigration:
        return cls.from_json(json.loads(raw))


@dataclass(frozen=True, slots=True)
class TenantInfo:
    """The administrators of a tenant, and the clusters that its namespaces may use."""

    admin_roles: tuple[str, ...] = ()
    allowed_clusters: tuple[str, ...] = ()
    other: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a stored record without a meaning here."""

    def to_json(self) -> dict[str, Any]:
        fields = {"adminRoles": sorted(self.admin_roles), "allowedClusters": sorted(self.allowed_clusters)}
        return dict(self.other) | fields

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> TenantInfo:
        """Parse Pulsar's JSON. Repeated values count once."""
        roles, clusters = (sorted(set(body.get(key) or ())) for key in ("adminRoles", "allowedClusters"))
        other = {key: value for key, value in body.items() if key not in ("adminRoles", "allowedClusters")}
        return cls(tuple(roles), tuple(clusters), other)

    def dump(self) -> bytes:
        return json.dumps(self.to_json()).encode()

    @classmethod
    def load(cls, raw: bytes) -> TenantInfo:
        return cls.from_json(json.loads(raw))


@dataclass(frozen=True, slots=True)
class FailureDomain:
    """Brokers of one cluster that fail together, by ``host:port``."""

    brokers: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"brokers": sorted(self.brokers)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> FailureDomain:
        return cls(tuple(sorted(set(body.get("brokers") or ()))))

    def dump(self) -> bytes:
        return json.dumps(self.to_json()).encode()

    @classmethod
    def load(cls, raw: bytes) -> FailureDomain:
        return cls.from_json(json.loads(raw))
