"""Clusters and tenants: Pulsar's JSON."""

import pytest

from interpulse.model.clusters import ClusterData, FailureDomain, TenantInfo, shown_address


def test_cluster_when_read_then_unknown_fields_are_ignored() -> None:
    cluster = ClusterData.from_json(
        {"serviceUrl": "http://h:8080", "brokerServiceUrl": "pulsar://h:6650", "peerClusterNames": ["b"], "newer": 1}
    )
    assert cluster.service_url == "http://h:8080"
    assert cluster.broker_service_url == "pulsar://h:6650"
    assert cluster.peer_cluster_names == ("b",)


def test_cluster_when_written_then_has_only_what_was_set() -> None:
    cluster = ClusterData(service_url="http://h:8080", peer_cluster_names=("b", "c"))
    body = cluster.to_json()
    assert body["serviceUrl"] == "http://h:8080"
    assert body["peerClusterNames"] == ["b", "c"]
    assert "proxyServiceUrl" not in body
    assert ClusterData.load(cluster.dump()) == cluster


def test_tenant_when_written_then_reads_back_sorted() -> None:
    tenant = TenantInfo(admin_roles=("b", "a"), allowed_clusters=("west", "east"))
    assert TenantInfo.load(tenant.dump()) == TenantInfo(("a", "b"), ("east", "west"))
    assert TenantInfo.from_json({"adminRoles": None}) == TenantInfo()


def test_cluster_when_it_names_key_stores_of_java_then_they_are_kept() -> None:
    body = {"brokerClientTlsKeyStore": "/k.jks", "brokerClientKeyFilePath": "/k.pem", "brokerClientTlsTrustStore": None}
    cluster = ClusterData.from_json(body)
    assert cluster.broker_client_key_file_path == "/k.pem"
    assert ClusterData.load(cluster.dump()) == cluster
    assert cluster.to_json()["brokerClientTlsKeyStore"] == "/k.jks"
    assert "brokerClientTlsTrustStore" not in cluster.to_json()


def test_failure_domain_when_written_then_reads_back_sorted_and_once() -> None:
    domain = FailureDomain.from_json({"brokers": ["b:8080", "a:8080", "b:8080"]})
    assert domain.to_json() == {"brokers": ["a:8080", "b:8080"]}
    assert FailureDomain.load(domain.dump()) == domain
    assert FailureDomain.from_json({"brokers": None}) == FailureDomain()


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://h:8080", "http://h:8080"),
        ("http://user:secret@h:8080", "http://***@h:8080"),
        ("http://secret@h", "http://***@h"),
        ("pulsar://user:se@c/ret@h:6650", "pulsar://***@h:6650"),
        ("http://a:8080,user:secret@b:8080", "http://***@b:8080"),
        ("not an address", "not an address"),
    ],
)
def test_address_when_shown_then_holds_no_password(address: str, shown: str) -> None:
    assert shown_address(address) == shown
