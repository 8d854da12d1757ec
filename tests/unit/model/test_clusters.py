"""Clusters and tenants: Pulsar's JSON."""

from interpulse.model.clusters import ClusterData, TenantInfo


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
