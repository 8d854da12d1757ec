"""Clusters: checks of their addresses, peers and failure domains, and decisions to change them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from interpulse.model.changes import (
    Decision,
    DeleteCluster,
    DeleteFailureDomain,
    SetCluster,
    SetClusterMigration,
    SetFailureDomain,
)
from interpulse.model.clusters import ClusterData, ClusterMigration, FailureDomain, shown_address
from interpulse.model.errors import (
    AlreadyExists,
    ClusterNotFound,
    Conflict,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
)

_ADDRESSES: Final = (
    ("service_url", ("http",), "service url, example: http://pulsar.example.com:8080"),
    ("service_url_tls", ("https",), "service tls url, example: https://pulsar.example.com:8443"),
    ("broker_service_url", ("pulsar",), "broker service url, example: pulsar://pulsar.example.com:6650"),
    (
        "broker_service_url_tls",
        ("pulsar+ssl",),
        "broker service tls url, example: pulsar+ssl://pulsar.example.com:6651",
    ),
    (
        "proxy_service_url",
        ("pulsar", "pulsar+ssl"),
        "proxy service url, example: pulsar+ssl://ats-proxy.example.com:4443 or pulsar://ats-proxy.example.com:4080",
    ),
)
"""Address fields with their schemes and Pulsar's description. An empty text means no address."""

_PROXY_PROTOCOLS: Final = ("SNI",)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Facts about a cluster that its rules need."""

    name: str
    stored: ClusterData | None
    """Stored record; None if the cluster is not registered."""
    registered: Collection[str] = ()
    """Names of all registered clusters, for peers."""
    isolated: bool = False
    """True if the cluster has namespace isolation policies."""
    user: str | None = None
    """Namespace or topic that is replicated to the cluster, for its deletion."""
    failure_domains: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class DomainsView:
    """Failure domains of a cluster, by name."""

    cluster: str
    registered: bool
    domains: Mapping[str, FailureDomain]


def decide_create_cluster(view: ClusterView, cluster: ClusterData) -> Decision[None]:
    """Register a cluster. Raise AlreadyExists, and InvalidRequest for invalid data (see `check_cluster_data`)."""
    check_cluster_data(cluster)
    if view.stored is not None:
        raise AlreadyExists(f"Cluster already exists: {view.name}")
    return Decision(None, (SetCluster(view.name, cluster),))


def decide_update_cluster(view: ClusterView, cluster: ClusterData) -> Decision[None]:
    """Replace the record of a cluster. Raise ClusterNotFound, and InvalidRequest (see `check_cluster_data`)."""
    check_cluster_data(cluster)
    return _replaced(view, _existing(view), cluster)


def decide_set_peers(view: ClusterView, peers: Sequence[str] | None) -> Decision[None]:
    """Replace the peers of a cluster, None = never set. Raise PreconditionFailed and ClusterNotFound."""
    check_peers(view.name, peers or (), registered=view.registered)
    old = _existing(view)
    return _replaced(view, old, replace(old, peer_cluster_names=None if peers is None else tuple(dict.fromkeys(peers))))


def decide_set_migration(view: ClusterView, migration: ClusterMigration) -> Decision[None]:
    """Redirect the clients of a cluster to another one, or end that.

    Raise ClusterNotFound, InvalidRequest for an invalid address, and PreconditionFailed for a redirection without a
    broker service URL.
    """
    _existing(view)
    for name, schemes, words in _ADDRESSES:
        _check_address(getattr(migration, name, None), schemes, words)
    if migration.migrated and not (migration.broker_service_url or migration.broker_service_url_tls):
        raise PreconditionFailed(
            "A migrated cluster needs brokerServiceUrl or brokerServiceUrlTls, to which its clients are redirected"
        )
    return Decision(None, (SetClusterMigration(view.name, migration),))


def decide_delete_cluster(view: ClusterView) -> Decision[None]:
    """Delete a cluster that is not a replication target. Raise ClusterNotFound and PreconditionFailed.

    Apache Pulsar deletes it even if it is a target. Topics of such a namespace then cannot be opened.
    """
    _existing(view)
    if view.isolated:
        raise PreconditionFailed(f"Cluster {view.name} has namespace isolation policies; delete them first")
    if view.user is not None:
        raise PreconditionFailed(
            f"Cluster {view.name} is used by {view.user}; take it out of its replication clusters first"
        )
    domains = (DeleteFailureDomain(view.name, domain) for domain in view.failure_domains)
    return Decision(None, (*domains, DeleteCluster(view.name)))


def _existing(view: ClusterView) -> ClusterData:
    if view.stored is None:
        raise ClusterNotFound(f"Cluster does not exist: {view.name}")
    return view.stored


def _replaced(view: ClusterView, old: ClusterData, new: ClusterData) -> Decision[None]:
    return Decision(None, () if new == old else (SetCluster(view.name, new),))


def decide_set_failure_domain(view: DomainsView, name: str, domain: FailureDomain) -> Decision[None]:
    """Create or replace a failure domain. Raise PreconditionFailed if the cluster does not exist, and Conflict."""
    _check_registered(view)
    others = {other: brokers for other, brokers in view.domains.items() if other != name}
    check_failure_domain(domain, others)
    return Decision(None, () if view.domains.get(name) == domain else (SetFailureDomain(view.cluster, name, domain),))


def decide_delete_failure_domain(view: DomainsView, name: str) -> Decision[None]:
    """Delete a failure domain. Raise PreconditionFailed if the cluster does not exist, and NotFound."""
    _check_registered(view)
    if name not in view.domains:
        raise NotFound(f"Domain {name} for cluster {view.cluster} does not exist")
    return Decision(None, (DeleteFailureDomain(view.cluster, name),))


def _check_registered(view: DomainsView) -> None:
    if not view.registered:
        raise PreconditionFailed(f"Cluster {view.cluster} does not exist.")


def check_cluster_data(cluster: ClusterData) -> None:
    """Refuse an address with a wrong scheme, and an unknown proxy protocol. Raise InvalidRequest."""
    for name, schemes, words in _ADDRESSES:
        _check_address(getattr(cluster, name), schemes, words)
    if cluster.proxy_protocol not in (None, *_PROXY_PROTOCOLS):
        raise InvalidRequest(f"proxyProtocol must be {_PROXY_PROTOCOLS[0]}, not {cluster.proxy_protocol[:100]!r}")


def _check_address(address: str | None, schemes: Sequence[str], words: str) -> None:
    if address and not re.fullmatch(rf"(?:{'|'.join(map(re.escape, schemes))})://[^\s/?#]\S*", address):
        raise InvalidRequest(f"Illegal {words}, not {shown_address(address)[:100]!r}")


def check_peers(cluster: str, peers: Iterable[str], *, registered: Collection[str]) -> None:
    """Refuse a peer that is the cluster itself or not registered. Raise PreconditionFailed."""
    for peer in sorted(peers, key=lambda name: (name != cluster, name)):
        if peer == cluster:
            raise PreconditionFailed(f"{cluster} itself can't be part of peer-list")
        if peer not in registered:
            raise PreconditionFailed(f"Peer cluster {peer} does not exist")


def check_failure_domain(domain: FailureDomain, others: Mapping[str, FailureDomain]) -> None:
    """Refuse a broker that already belongs to another domain of the cluster. Raise Conflict."""
    for name, other in sorted(others.items()):
        shared = sorted(set(domain.brokers) & set(other.brokers))
        if shared:
            raise Conflict(f"[{', '.join(shared)}] already exists in {name}")
