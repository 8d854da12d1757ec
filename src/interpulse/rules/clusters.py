"""Checks of a cluster's record: its addresses, its peers, the failure domains of its brokers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from interpulse.model.clusters import ClusterData, FailureDomain, shown_address
from interpulse.model.errors import Conflict, InvalidRequest, PreconditionFailed

__all__ = ["check_cluster_data", "check_failure_domain", "check_peers"]

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
"""Field, schemes, and how Pulsar describes it. An empty text stands for no address."""

_PROXY_PROTOCOLS: Final = ("SNI",)


def check_cluster_data(cluster: ClusterData) -> None:
    """Refuse an address that is none of its kind, and a proxy that routes in no known way; raises InvalidRequest."""
    for name, schemes, words in _ADDRESSES:
        address = getattr(cluster, name)
        if address and not re.fullmatch(rf"(?:{'|'.join(map(re.escape, schemes))})://[^\s/?#]\S*", address):
            raise InvalidRequest(f"Illegal {words}, not {shown_address(address)[:100]!r}")
    if cluster.proxy_protocol not in (None, *_PROXY_PROTOCOLS):
        raise InvalidRequest(f"proxyProtocol must be {_PROXY_PROTOCOLS[0]}, not {cluster.proxy_protocol[:100]!r}")


def check_peers(cluster: str, peers: Iterable[str], *, registered: Collection[str]) -> None:
    """Refuse a peer that is the cluster itself, or not registered; raises PreconditionFailed."""
    for peer in sorted(peers, key=lambda name: (name != cluster, name)):
        if peer == cluster:
            raise PreconditionFailed(f"{cluster} itself can't be part of peer-list")
        if peer not in registered:
            raise PreconditionFailed(f"Peer cluster {peer} does not exist")


def check_failure_domain(domain: FailureDomain, others: Mapping[str, FailureDomain]) -> None:
    """Refuse a broker that is in one of the other domains of its cluster already; raises Conflict."""
    for name, other in sorted(others.items()):
        shared = sorted(set(domain.brokers) & set(other.brokers))
        if shared:
            raise Conflict(f"[{', '.join(shared)}] already exists in {name}")
