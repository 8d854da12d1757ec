"""Registered clusters: their peers, their failure domains, and what keeps one from being deleted."""

from __future__ import annotations

import asyncio
import json

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.tenancy.clusters import Clusters, FailureDomains, IsolationPolicyRecords
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.model.clusters import ClusterData, ClusterMigration, FailureDomain
from interpulse.model.errors import (
    ClusterNotFound,
    Conflict,
    InvalidRequest,
    MetadataError,
    NotFound,
    PreconditionFailed,
)
from interpulse.model.isolation import IsolationPolicy
from interpulse.model.names import PUBLIC_DEFAULT, TopicName
from interpulse.model.policies.policy_documents import TopicPolicies, TopicPolicyRecord
from interpulse.storage.api import Put
from tests.support.memory_storage import MemoryMetadataStore

KEY = "/admin/clusters/east/namespaceIsolationPolicies"
POLICY = IsolationPolicy(("t/.*",), ("a",), (), {"min_limit": "1", "usage_threshold": "80"})
STORED = POLICY.to_json()


@pytest.fixture
async def store() -> MemoryMetadataStore:
    store = MemoryMetadataStore()
    await bootstrap(store, local_cluster="east", cluster=ClusterData())
    return store


@pytest.fixture
def records(store: MemoryMetadataStore) -> IsolationPolicyRecords:
    return IsolationPolicyRecords(store, Clusters(store))


async def stored(store: MemoryMetadataStore) -> object:
    found = await store.get(KEY)
    assert found is not None
    return json.loads(found.value)


async def test_policy_when_set_then_stands_at_pulsars_place_and_others_stay_as_they_were(
    store: MemoryMetadataStore, records: IsolationPolicyRecords
) -> None:
    assert await records.in_force("east") == {}
    theirs = STORED | {"unknown": {"a": 1}}
    await store.commit([Put(KEY, json.dumps({"theirs": theirs}).encode())])
    assert await records.put("east", "p", POLICY) is None
    assert await records.put("east", "p", POLICY) == POLICY
    assert await stored(store) == {"theirs": theirs, "p": STORED}
    assert list(await records.in_force("east")) == ["theirs", "p"]
    await records.delete("east", "p")
    assert await stored(store) == {"theirs": theirs}
    assert await records.in_force("east") == {"theirs": POLICY}


async def test_policies_when_set_at_the_same_time_then_none_is_lost(records: IsolationPolicyRecords) -> None:
    await asyncio.gather(*(records.put("east", str(number), POLICY) for number in range(5)))
    assert len(await records.list("east")) == 5


@pytest.mark.parametrize("value", [b"x", b"[]", b'{"p":1}', b'{"p":{"namespaces":7}}'])
async def test_record_when_it_is_of_another_form_then_is_left_as_it_is(
    store: MemoryMetadataStore, records: IsolationPolicyRecords, value: bytes
) -> None:
    await store.commit([Put(KEY, value)])
    with pytest.raises(MetadataError, match="namespaceIsolationPolicies are invalid"):
        await records.put("east", "q", POLICY)
    found = await store.get(KEY)
    assert found is not None
    assert found.value == value


async def test_record_when_the_node_is_empty_then_there_are_none(
    store: MemoryMetadataStore, records: IsolationPolicyRecords
) -> None:
    await store.commit([Put(KEY, b"")])
    assert await records.list("east") == {}


class ClustersBench:
    def __init__(self) -> None:
        self.store = MemoryMetadataStore()
        self.clusters = Clusters(self.store)
        self.domains = FailureDomains(self.store, self.clusters)
        self.namespaces = Namespaces(self.store, local_cluster="east")


@pytest.fixture
async def bench() -> ClustersBench:
    bench = ClustersBench()
    await bootstrap(bench.store, local_cluster="east", cluster=ClusterData())
    await bench.clusters.create("west", ClusterData(service_url="http://w:8080"))
    return bench


async def test_peers_when_set_then_the_rest_of_the_record_stays(bench: ClustersBench) -> None:
    await bench.clusters.set_peers("west", ["east", "east"])
    assert await bench.clusters.get("west") == ClusterData(service_url="http://w:8080", peer_cluster_names=("east",))
    await bench.clusters.set_peers("west", None)
    assert (await bench.clusters.get("west")).peer_cluster_names is None
    with pytest.raises(ClusterNotFound):
        await bench.clusters.set_peers("nowhere", ["west"])
    with pytest.raises(PreconditionFailed):
        await bench.clusters.set_peers("west", ["nowhere"])


async def test_address_when_it_is_none_then_nothing_is_stored(bench: ClustersBench) -> None:
    for change in (bench.clusters.create, bench.clusters.update):
        with pytest.raises(InvalidRequest):
            await change("west", ClusterData(service_url="w:8080"))
    assert (await bench.clusters.get("west")).service_url == "http://w:8080"


async def test_cluster_when_a_namespace_is_on_it_then_stays(bench: ClustersBench) -> None:
    both = ("east", "west")
    await bench.namespaces.update_policies(PUBLIC_DEFAULT, lambda old: old.changed(replication_clusters=both))
    with pytest.raises(PreconditionFailed, match="used by namespace public/default"):
        await bench.clusters.delete("west")
    await bench.namespaces.update_policies(PUBLIC_DEFAULT, lambda old: old.changed(replication_clusters=("east",)))
    await bench.clusters.delete("west")
    assert await bench.clusters.list() == ["east"]


async def test_cluster_when_a_topic_is_on_it_then_stays(bench: ClustersBench) -> None:
    topic = TopicName.parse("x y")
    policies = TopicPolicies(replication_clusters=("east", "west"))
    await bench.store.commit([Put(keys.topic_policies(topic), TopicPolicyRecord(policies).dump())])
    with pytest.raises(PreconditionFailed, match="used by topic persistent://public/default/x y"):
        await bench.clusters.delete("west")


async def test_cluster_when_deleted_then_its_failure_domains_go_too(bench: ClustersBench) -> None:
    await bench.domains.put("west", "d", FailureDomain(("a:1",)))
    await bench.domains.put("east", "d", FailureDomain(("a:1",)))
    await bench.clusters.delete("west")
    await bench.clusters.create("west", ClusterData())
    assert await bench.domains.list("west") == {}
    assert await bench.domains.list("east") == {"d": FailureDomain(("a:1",))}


async def test_domain_when_named_oddly_then_is_found_again(bench: ClustersBench) -> None:
    await bench.domains.put("west", "a/b c", FailureDomain(("a:1",)))
    assert await bench.domains.list("west") == {"a/b c": FailureDomain(("a:1",))}
    assert await bench.domains.get("west", "a/b c") == FailureDomain(("a:1",))
    await bench.domains.delete("west", "a/b c")
    with pytest.raises(NotFound):
        await bench.domains.delete("west", "a/b c")
    assert await bench.domains.list("nowhere") == {}
    for refused in (bench.domains.get("nowhere", "d"), bench.domains.put("nowhere", "d", FailureDomain())):
        with pytest.raises(PreconditionFailed, match="Cluster nowhere does not exist"):
            await refused


async def test_domains_when_two_want_the_same_broker_at_once_then_one_gets_it(bench: ClustersBench) -> None:
    results = await asyncio.gather(
        *(bench.domains.put("west", name, FailureDomain(("a:1",))) for name in ("d", "e")), return_exceptions=True
    )
    assert len([each for each in results if isinstance(each, Conflict)]) == 1
    assert len(await bench.domains.list("west")) == 1


async def test_migration_when_set_then_stored_at_pulsars_place_and_goes_with_its_cluster(
    store: MemoryMetadataStore,
) -> None:
    clusters, west = Clusters(store), ClusterMigration(True, broker_service_url="pulsar://west:6650")
    await clusters.create("north", ClusterData())
    assert await clusters.migration("north") is None
    await clusters.set_migration("north", west)
    found = await store.get("/admin/clusters/north/policies")
    assert found is not None
    assert json.loads(found.value) == {
        "migrated": True,
        "migratedClusterUrl": {"brokerServiceUrl": "pulsar://west:6650"},
    }
    assert await clusters.migration("north") == west
    await clusters.delete("north")
    assert await clusters.list() == ["east"]


async def test_migration_when_its_record_is_invalid_then_metadata_error(store: MemoryMetadataStore) -> None:
    await store.commit([Put("/admin/clusters/east/policies", b"[]")])
    with pytest.raises(MetadataError, match="The migration of a cluster is invalid"):
        await Clusters(store).migration("east")
