"""The story of what is administered around replication; it must end the same on every cluster."""

from __future__ import annotations

import uuid

from tests.support.cli_cluster import CliCluster
from tests.support.waiting import until


def replication_story(cluster: CliCluster, namespace: str) -> None:
    """Clusters, a tenant on two of them, a namespace and a topic that are replicated; then all of it is taken back."""
    local = next(row for row in cluster.run("clusters list -c").split() if row.endswith("(*)")).removesuffix("(*)")
    unique = uuid.uuid4().hex[:8]
    far, tenant = f"far-{unique}", f"tenant-{unique}"
    _clusters(cluster, far)
    cluster.run(f"tenants create {tenant} -r a -c {local},{far}")
    refused(cluster, f"tenants create {tenant} -c {local}", 409)
    cluster.run(f"tenants update {tenant} -r a,b")
    found = cluster.json(f"tenants get {tenant}")
    assert (sorted(found["adminRoles"]), sorted(found["allowedClusters"])) == (["a", "b"], sorted((local, far)))
    _namespace(cluster, f"{tenant}/n", local, far)
    _topic(cluster, f"{tenant}/n/x", local, far)
    cluster.run(f"namespaces delete {tenant}/n")
    cluster.run(f"tenants delete {tenant}")
    for name in (far, f"{far}-b"):
        cluster.run(f"clusters delete {name}")


def _clusters(cluster: CliCluster, far: str) -> None:
    cluster.run(f"clusters create {far} --url http://127.0.0.1:1 --broker-url pulsar://127.0.0.1:2")
    cluster.run(f"clusters update {far} --url http://127.0.0.1:3 --proxy-protocol SNI")
    shown = cluster.json(f"clusters get {far}")
    assert (shown["serviceUrl"], "brokerServiceUrl" in shown) == ("http://127.0.0.1:3", False), "the whole is replaced"
    refused(cluster, f"clusters create {far} --url http://127.0.0.1:1", 409)
    refused(cluster, f"clusters update {far} --url 127.0.0.1:1", 400)
    refused(cluster, f"clusters get {far}-none", 404)
    cluster.run(f"clusters create {far}-b --url http://127.0.0.1:1")
    cluster.run(f"clusters update-peer-clusters {far} --peer-clusters {far}-b")
    assert cluster.run(f"clusters get-peer-clusters {far}") == f"{far}-b\n"
    refused(cluster, f"clusters update-peer-clusters {far} --peer-clusters {far}", 412)
    cluster.run(f"clusters create-failure-domain {far} --domain-name d --broker-list a:1,b:1")
    cluster.run(f"clusters update-failure-domain {far} --domain-name d --broker-list c:1")
    assert cluster.json(f"clusters get-failure-domain {far} --domain-name d") == {"brokers": ["c:1"]}
    refused(cluster, f"clusters create-failure-domain {far} --domain-name e --broker-list c:1", 409)
    assert cluster.json(f"clusters list-failure-domains {far}") == {"d": {"brokers": ["c:1"]}}
    cluster.run(f"clusters delete-failure-domain {far} --domain-name d")
    refused(cluster, f"clusters delete-failure-domain {far} --domain-name d", 404)


def _namespace(cluster: CliCluster, name: str, local: str, far: str) -> None:
    cluster.run(f"namespaces create {name} -c {local} -c {far} -b 2")
    assert sorted(cluster.run(f"namespaces get-clusters {name}").split()) == sorted((local, far))
    refused(cluster, f"namespaces delete {name}", 412)
    refused(cluster, f"namespaces set-allowed-clusters {name} -c {local}", 400)
    cluster.run(f"namespaces set-clusters {name} -c {local}")
    cluster.run(f"namespaces set-allowed-clusters {name} -c {local}")
    assert cluster.run(f"namespaces get-allowed-clusters {name}") == f"{local}\n"
    refused(cluster, f"namespaces set-clusters {name} -c {local},{far}", 400)
    cluster.run(f"namespaces split-bundle {name} -b 0x00000000_0x80000000")
    bundles = {"boundaries": ["0x00000000", "0x40000000", "0x80000000", "0xffffffff"], "numBundles": 3}
    assert cluster.json(f"namespaces bundles {name}") == bundles
    refused(cluster, f"namespaces unload {name} -b 0x00000000_0x80000000", 412)
    refused(cluster, f"namespaces unload {name} -b 0x00000000_0x40000000 -d nowhere", 409)
    assert cluster.json(f"namespaces policies {name}")["replication_clusters"] == [local]


def _topic(cluster: CliCluster, topic: str, local: str, far: str) -> None:
    cluster.run(f"topics create {topic}")
    refused(cluster, f"topics set-replication-clusters {topic} -c {far}", 412)
    cluster.run(f"topics set-replication-clusters {topic} -c {local},{far}")
    until(lambda: sorted(cluster.json(f"topics get-replication-clusters {topic}") or ()) == sorted((local, far)))
    cluster.run(f"topicPolicies remove-replication-clusters {topic}")
    until(lambda: cluster.json(f"topicPolicies get-replication-clusters {topic}") is None)
    cluster.run(f"topics enable-deduplication {topic}")
    until(lambda: cluster.json(f"topics get-deduplication-enabled {topic}") is True)
    cluster.run(f"topics disable-deduplication {topic}")
    until(lambda: cluster.json(f"topics get-deduplication {topic}") is False)
    cluster.run(f"topics remove-deduplication {topic}")
    until(lambda: cluster.json(f"topicPolicies get-deduplication {topic}") is None)
    cluster.run(f"topics delete {topic} -f")


def refused(cluster: CliCluster, line: str, status: int) -> None:
    """The command fails with that status, and says so."""
    code, _, error = cluster.attempt(line)
    assert (code, f"HTTP {status} " in error) == (1, True), f"{line}: {code} {error}"
