"""A new cluster in ZooKeeper, with the nodes that Pulsar's own tool creates.

Source: docs/reference/cluster-protocol.md#paths.

Existing nodes stay. An existing cluster keeps its addresses. A tenant and a namespace that every cluster has are opened
to the new cluster.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.broker import metadata_paths as keys
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import PreconditionFailed
from interpulse.model.names import PERSISTENT, PUBLIC_DEFAULT, SYSTEM_NAMESPACE, check_entity_name
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.rules.bundles import bundle_boundaries
from interpulse.rules.clusters import check_cluster_data
from interpulse.storage.bookkeeper.records import LEDGERS, READ_ONLY
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import BadVersion, NodeExists, NoNode
from interpulse.storage.zookeeper.session import parse_servers

_BUNDLES: Final = 16
_JAVA: Final = {
    "brokerClientTlsEnabledWithKeyStore": False,
    "brokerClientTlsTrustStoreType": "JKS",
    "brokerClientTlsKeyStoreType": "JKS",
    "brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory",
}
_POLICIES: Final = {
    "backlog_quota_map": {},
    "clusterDispatchRate": {},
    "topicDispatchRate": {},
    "subscriptionDispatchRate": {},
    "replicatorDispatchRate": {},
    "clusterSubscribeRate": {},
    "publishMaxMessageRate": {},
    "latency_stats_sample_rate": {},
    "deleted": False,
    "encryption_required": False,
    "subscription_auth_mode": "None",
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "schema_compatibility_strategy": "UNDEFINED",
    "is_allow_auto_update_schema_with_replicator": True,
    "schema_validation_enforced": False,
    "subscription_types_enabled": [],
    "properties": {},
    "migrated": False,
}
_NAMESPACES: Final = (PUBLIC_DEFAULT, SYSTEM_NAMESPACE)


@dataclass(frozen=True, slots=True)
class NewCluster:
    """The initial settings of a cluster."""

    name: str
    addresses: ClusterData
    bundles: int = _BUNDLES
    """The number of bundles of the namespace public/default."""
    transaction_coordinators: int = 16
    stream_containers: int = 16


async def set_up_cluster(servers: str, cluster: NewCluster) -> list[str]:
    """Create the missing nodes and return their paths in order; none if the cluster was complete.

    Raises PreconditionFailed and InvalidRequest for invalid settings, ValueError if the text names no servers, and
    MetadataError if ZooKeeper fails.
    """
    _check(cluster)
    client = await ZooKeeperClient.connect(servers)
    try:
        made = []
        for path, value in _nodes(cluster, servers):
            try:
                await client.create_parents(path)
                await client.create(path, value)
                made.append(path)
            except NodeExists:
                continue
        for namespace in _NAMESPACES:
            await _open_to(client, keys.tenant(namespace.tenant), "allowedClusters", cluster.name)
            await _open_to(client, keys.namespace_policies(namespace), "replication_clusters", cluster.name)
        return made
    finally:
        await client.close()


def _check(cluster: NewCluster) -> None:
    check_entity_name("Cluster", cluster.name)
    check_cluster_data(cluster.addresses)
    if not (cluster.addresses.service_url or cluster.addresses.service_url_tls):
        raise PreconditionFailed("a cluster needs the address of its web service: --web-service-url http://host:8080")
    for what, number in (
        ("--default-namespace-bundle-number", cluster.bundles),
        ("--initial-num-transaction-coordinators", cluster.transaction_coordinators),
        ("--initial-num-stream-storage-containers", cluster.stream_containers),
    ):
        if number < 1:
            raise PreconditionFailed(f"{what} {number} has to be at least 1")


def _nodes(cluster: NewCluster, servers: str) -> Iterator[tuple[str, bytes]]:
    """Yield paths and contents. A node with empty content is a parent of others."""
    log_places = _places_of_log(servers)
    yield "/stream/metadata", _stream_metadata(cluster.stream_containers)
    yield "/stream/servers/available", b""
    yield "/stream/assignment", b""
    yield "/stream/storage", log_places
    yield READ_ONLY, b""
    yield f"{LEDGERS}/INSTANCEID", str(uuid.uuid4()).encode()
    yield "/pulsar/functions", log_places
    yield "/pulsar/migration-coordinator/participants", b""
    yield "/bookies", b"{}"
    yield keys.cluster(cluster.name), _json(cluster.addresses.to_json() | _JAVA)
    for namespace, bundles in zip(_NAMESPACES, (cluster.bundles, _BUNDLES), strict=True):
        yield keys.tenant(namespace.tenant), _json({"allowedClusters": [cluster.name], "adminRoles": []})
        yield keys.namespace_policies(namespace), _json(_policies(cluster.name, bundles))
    coordinators = PartitionedTopicMetadata(cluster.transaction_coordinators)
    yield (
        f"{keys.partitioned_topics(SYSTEM_NAMESPACE, PERSISTENT)}/transaction_coordinator_assign",
        _json(coordinators.to_json()),
    )


def _policies(cluster: str, bundles: int) -> dict[str, Any]:
    boundaries = bundle_boundaries(bundles)
    grants: dict[str, Any] = {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}}
    return {
        "auth_policies": grants,
        "replication_clusters": [cluster],
        "allowed_clusters": [],
        "bundles": {"boundaries": list(boundaries), "numBundles": bundles},
        **_POLICIES,
    }


def _stream_metadata(containers: int) -> bytes:
    number = bytearray(b"\x08")
    while containers > 0x7F:
        number.append(containers & 0x7F | 0x80)
        containers >>= 7
    return bytes([*number, containers])


def _places_of_log(servers: str) -> bytes:
    """Return the ledger locations for DistributedLog, which stores packages of functions, in its own form of JSON."""
    parsed = parse_servers(servers)
    hosts, ledgers = ";".join(map(str, parsed.servers)), f"{parsed.chroot}{LEDGERS}"
    writers: dict[str, Any] = {"1": {"str": hosts}, "2": {"str": ledgers}, "3": {"tf": 1}, "4": {"tf": 0}}
    return b"1\nBKDL\n" + _json(writers | {number: {"str": hosts} for number in "567"})


async def _open_to(client: ZooKeeperClient, path: str, field: str, cluster: str) -> None:
    """Add the cluster to the record of an existing tenant or namespace."""
    while True:
        try:
            node = await client.get(path)
            body = json.loads(node.value)
            clusters = body.get(field) or ()
            if cluster not in clusters:
                await client.set(path, _json({**body, field: [*clusters, cluster]}), node.stat.version)
            return
        except BadVersion:
            continue
        except NoNode:
            return  # deleted meanwhile


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
