"""Addresses, peers and failure domains of clusters."""

from __future__ import annotations

import re

import pytest

from interpulse.model.changes import SetClusterMigration
from interpulse.model.clusters import ClusterData, ClusterMigration, FailureDomain
from interpulse.model.errors import ClusterNotFound, Conflict, InvalidRequest, PreconditionFailed, PulsarError
from interpulse.rules.clusters import (
    ClusterView,
    check_cluster_data,
    check_failure_domain,
    check_peers,
    decide_set_migration,
)


@pytest.mark.parametrize(
    "cluster",
    [
        ClusterData(),
        ClusterData(service_url="", broker_service_url=""),
        ClusterData(service_url="http://a:8080,b:8080", service_url_tls="https://a"),
        ClusterData(broker_service_url="pulsar://a:6650", broker_service_url_tls="pulsar+ssl://a:6651"),
        ClusterData(proxy_service_url="pulsar://a"),
        ClusterData(proxy_service_url="pulsar+ssl://a", proxy_protocol="SNI"),
        ClusterData(service_url="http://[::1]:8080"),
    ],
)
def test_addresses_that_may_be(cluster: ClusterData) -> None:
    check_cluster_data(cluster)


@pytest.mark.parametrize(
    ("field", "address", "words"),
    [
        ("service_url", "https://a", "Illegal service url, example: http://"),
        ("service_url", "HTTP://a", "Illegal service url"),
        ("service_url", "http://", "Illegal service url"),
        ("service_url", "http:a", "Illegal service url"),
        ("service_url", "http://a b", "Illegal service url"),
        ("service_url_tls", "http://a", "Illegal service tls url, example: https://"),
        ("broker_service_url", "pulsar+ssl://a", "Illegal broker service url, example: pulsar://"),
        ("broker_service_url_tls", "pulsar://a", r"Illegal broker service tls url, example: pulsar\+ssl://"),
        ("proxy_service_url", "http://a", "Illegal proxy service url"),
    ],
)
def test_addresses_that_are_refused(field: str, address: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=f"{words}.*not '{re.escape(address)}'"):
        check_cluster_data(ClusterData(**{field: address}))  # type: ignore[arg-type]


def test_proxies_route_by_the_names_of_servers_only() -> None:
    with pytest.raises(InvalidRequest, match="proxyProtocol must be SNI, not 'sni'"):
        check_cluster_data(ClusterData(proxy_protocol="sni"))


def test_peers_are_other_clusters_that_are_registered() -> None:
    registered = {"east", "west"}
    check_peers("east", ["west"], registered=registered)
    check_peers("east", [], registered=registered)
    with pytest.raises(PreconditionFailed, match="east itself can't be part of peer-list"):
        check_peers("east", ["abroad", "east"], registered=registered)
    with pytest.raises(PreconditionFailed, match="Peer cluster nowhere does not exist"):
        check_peers("east", ["west", "nowhere"], registered=registered)


def test_brokers_are_in_one_domain_only() -> None:
    others = {"d": FailureDomain(("a:1", "b:1")), "e": FailureDomain(("c:1",))}
    check_failure_domain(FailureDomain(("x:1",)), others)
    with pytest.raises(Conflict, match=r"\[a:1, b:1\] already exists in d"):
        check_failure_domain(FailureDomain(("b:1", "a:1", "z:1")), others)


WEST = ClusterMigration(True, broker_service_url="pulsar://west:6650")


def test_migration_when_set_then_replaces_the_former_one() -> None:
    view = ClusterView("east", ClusterData())
    assert decide_set_migration(view, WEST).changes == (SetClusterMigration("east", WEST),)
    assert decide_set_migration(view, ClusterMigration()).changes == (SetClusterMigration("east", ClusterMigration()),)


@pytest.mark.parametrize(
    ("stored", "migration", "refusal", "words"),
    [
        (None, WEST, ClusterNotFound, "Cluster does not exist: east"),
        (ClusterData(), ClusterMigration(True), PreconditionFailed, "needs brokerServiceUrl or brokerServiceUrlTls"),
        (ClusterData(), ClusterMigration(True, service_url="http://w"), PreconditionFailed, "needs brokerServiceUrl"),
        (ClusterData(), ClusterMigration(broker_service_url="http://w"), InvalidRequest, "Illegal broker service url"),
    ],
)
def test_migration_when_it_leads_nowhere_then_refused(
    stored: ClusterData | None, migration: ClusterMigration, refusal: type[PulsarError], words: str
) -> None:
    with pytest.raises(refusal, match=words):
        decide_set_migration(ClusterView("east", stored), migration)
