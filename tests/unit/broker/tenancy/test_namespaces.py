"""Namespaces, tenants and clusters over a metadata store in memory."""

from __future__ import annotations

import asyncio
import json

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import IN_CLUSTER
from interpulse.broker.tenancy.clusters import Clusters, FailureDomains
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap, check_cluster
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.model.clusters import ClusterData, FailureDomain, TenantInfo
from interpulse.model.errors import (
    AlreadyExists,
    ClusterNotFound,
    NamespaceNotFound,
    NotEmpty,
    PreconditionFailed,
    TenantNotFound,
)
from interpulse.model.names import PUBLIC_DEFAULT, SYSTEM_NAMESPACE, NamespaceName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules.topic_view import NamespaceStanding
from interpulse.storage.api import CommitConflict, Delete, Put
from tests.support.memory_storage import MemoryMetadataStore

DEMO = NamespaceName("public", "demo")
ADDRESSES = ClusterData(service_url="http://127.0.0.1:8080", broker_service_url="pulsar://127.0.0.1:6650")


@pytest.fixture
async def store() -> MemoryMetadataStore:
    store = MemoryMetadataStore()
    await bootstrap(store, local_cluster="east", cluster=ADDRESSES)
    return store


@pytest.fixture
def namespaces(store: MemoryMetadataStore) -> Namespaces:
    return Namespaces(store, local_cluster="east")


async def test_bootstrap_makes_what_a_fresh_standalone_has(store: MemoryMetadataStore, namespaces: Namespaces) -> None:
    assert await Clusters(store).list() == ["east"]
    assert await Tenants(store).list() == ["public", "pulsar"]
    for namespace in (PUBLIC_DEFAULT, SYSTEM_NAMESPACE):
        assert (await namespaces.get_policies(namespace)).replication_clusters == ("east",)


async def test_bootstrap_when_repeated_keeps_what_was_changed(store: MemoryMetadataStore) -> None:
    namespaces = Namespaces(store, local_cluster="east")
    await namespaces.update_policies(PUBLIC_DEFAULT, lambda old: old.changed(message_ttl_seconds=5))
    moved = ClusterData(service_url="http://127.0.0.1:9090")
    await bootstrap(store, local_cluster="east", cluster=moved)
    assert (await namespaces.get_policies(PUBLIC_DEFAULT)).message_ttl_seconds == 5
    assert await Clusters(store).get("east") == moved


async def test_create_namespace_without_clusters_lives_on_the_local_one(namespaces: Namespaces) -> None:
    await namespaces.create(DEMO, NamespacePolicies())
    assert (await namespaces.get_policies(DEMO)).replication_clusters == ("east",)
    assert await namespaces.list("public") == ["public/default", "public/demo"]
    with pytest.raises(AlreadyExists):
        await namespaces.create(DEMO, NamespacePolicies())


async def test_update_policies_when_many_change_one_namespace_loses_nothing(namespaces: Namespaces) -> None:
    def with_property(number: int) -> asyncio.Future[NamespacePolicies]:
        def change(old: NamespacePolicies) -> NamespacePolicies:
            return old.changed(other={**old.other, f"k{number}": number})

        return asyncio.ensure_future(namespaces.update_policies(PUBLIC_DEFAULT, change))

    await asyncio.gather(*(with_property(number) for number in range(50)))
    stored = (await namespaces.get_policies(PUBLIC_DEFAULT)).other
    assert {key for key in stored if key.startswith("k")} == {f"k{number}" for number in range(50)}


async def test_update_policies_when_refused_stores_nothing(namespaces: Namespaces) -> None:
    def refuse(old: NamespacePolicies) -> NamespacePolicies:
        raise PreconditionFailed("no")

    with pytest.raises(PreconditionFailed):
        await namespaces.update_policies(PUBLIC_DEFAULT, refuse)
    with pytest.raises(NamespaceNotFound):
        await namespaces.update_policies(DEMO, lambda old: old)


async def test_delete_namespace_on_several_clusters_is_refused_until_deletion_has_begun(namespaces: Namespaces) -> None:
    name = NamespaceName.parse("demo/a")
    await namespaces.create(name, NamespacePolicies(replication_clusters=("east", "west")))
    for forced in (False, True):
        with pytest.raises(PreconditionFailed, match="still more than one replication clusters configured: east, west"):
            await namespaces.begin_delete(name, forced=forced)
    assert not (await namespaces.get_policies(name)).deleted
    await namespaces.update_policies(name, lambda policies: policies.changed(deleted=True))
    await namespaces.begin_delete(name, forced=True)


async def test_delete_namespace_marks_it_first(namespaces: Namespaces) -> None:
    await namespaces.create(DEMO, NamespacePolicies())
    await namespaces.begin_delete(DEMO)
    assert namespaces.standing(await namespaces.find_policies(DEMO)) is NamespaceStanding.DELETED
    await namespaces.end_delete(DEMO, await namespaces.deletion_mark(DEMO))
    assert namespaces.standing(await namespaces.find_policies(DEMO)) is NamespaceStanding.MISSING
    with pytest.raises(PreconditionFailed):
        await namespaces.begin_delete(SYSTEM_NAMESPACE)


@pytest.mark.parametrize(
    ("clusters", "standing"),
    [
        (("east",), NamespaceStanding.SERVED),
        (("east", "west"), NamespaceStanding.SERVED),
        (("west",), NamespaceStanding.NOT_SERVED),
        ((), NamespaceStanding.NOT_SERVED),
    ],
)
def test_standing(clusters: tuple[str, ...], standing: NamespaceStanding, namespaces: Namespaces) -> None:
    assert namespaces.standing(NamespacePolicies(replication_clusters=clusters)) is standing


async def test_bootstrap_when_metadata_is_of_another_cluster_then_refused(store: MemoryMetadataStore) -> None:
    with pytest.raises(PreconditionFailed, match="belongs to cluster east, not to west"):
        await bootstrap(store, local_cluster="west", cluster=ADDRESSES)
    assert await Clusters(store).list() == ["east"]


async def test_tenants(store: MemoryMetadataStore, namespaces: Namespaces) -> None:
    tenants = Tenants(store)
    await tenants.create("demo", TenantInfo(("admin",), ("east",)))
    assert await tenants.get("demo") == TenantInfo(("admin",), ("east",))
    with pytest.raises(AlreadyExists):
        await tenants.create("demo", TenantInfo(allowed_clusters=("east",)))
    with pytest.raises(PreconditionFailed):
        await tenants.create("other", TenantInfo(allowed_clusters=("nowhere",)))
    with pytest.raises(PreconditionFailed):
        await tenants.create("a/b", TenantInfo(allowed_clusters=("east",)))
    await namespaces.create(NamespaceName("demo", "flights"), NamespacePolicies())
    with pytest.raises(NotEmpty):
        await tenants.delete("demo")
    await namespaces.end_delete(NamespaceName("demo", "flights"), {})
    await tenants.delete("demo")
    with pytest.raises(TenantNotFound):
        await tenants.get("demo")


async def test_clusters(store: MemoryMetadataStore) -> None:
    clusters = Clusters(store)
    await clusters.create("west", ADDRESSES)
    with pytest.raises(AlreadyExists):
        await clusters.create("west", ADDRESSES)
    await clusters.update("west", ClusterData(service_url="http://other"))
    assert (await clusters.get("west")).service_url == "http://other"
    with pytest.raises(PreconditionFailed, match="used by namespace public/default"):
        await clusters.delete("east")
    await clusters.delete("west")
    with pytest.raises(ClusterNotFound):
        await clusters.get("west")


async def test_guard_is_what_keeps_a_commit_from_outliving_its_namespace(namespaces: Namespaces) -> None:
    with pytest.raises(NamespaceNotFound):
        await namespaces.expected_versions(DEMO)
    await namespaces.create(DEMO, NamespacePolicies())
    expected = await namespaces.expected_versions(DEMO)
    await namespaces._store.commit([Put("/a", b"")], expected)
    await namespaces.begin_delete(DEMO)
    with pytest.raises(NamespaceNotFound, match="being deleted"):
        await namespaces.expected_versions(DEMO)
    with pytest.raises(CommitConflict):
        await namespaces._store.commit([Put("/a", b"")], expected)


async def test_unfinished_deletions_are_those_that_are_marked(namespaces: Namespaces) -> None:
    await namespaces.create(DEMO, NamespacePolicies())
    assert await namespaces.unfinished_deletions() == []
    with pytest.raises(NamespaceNotFound):
        await namespaces.deletion_mark(DEMO)
    await namespaces.begin_delete(DEMO, forced=True)
    assert await namespaces.unfinished_deletions() == [DEMO]
    earlier = await namespaces.deletion_mark(DEMO)
    await namespaces.give_up_delete(DEMO, earlier)
    assert await namespaces.unfinished_deletions() == []
    await namespaces.begin_delete(DEMO)
    assert await namespaces._store.get(keys.forced_deletion(DEMO)) is None
    for outdated in (namespaces.give_up_delete, namespaces.end_delete):
        with pytest.raises(CommitConflict):
            await outdated(DEMO, earlier)
    assert await namespaces.unfinished_deletions() == [DEMO]
    await namespaces.end_delete(DEMO, await namespaces.deletion_mark(DEMO))
    assert await namespaces.find_policies(DEMO) is None


LOCAL = "/admin/local-policies/public/default"
TWO = {"boundaries": ["0x00000000", "0x80000000", "0xffffffff"], "numBundles": 2}


async def value_of(store: MemoryMetadataStore, key: str) -> dict[str, object]:
    stored = await store.get(key)
    assert stored is not None
    body: dict[str, object] = json.loads(stored.value)
    return body


async def test_bundles_in_a_cluster_are_made_of_the_policies_when_they_are_asked_for(
    store: MemoryMetadataStore,
) -> None:
    namespaces = Namespaces(store, local_cluster="east", layout=IN_CLUSTER)
    policies = await namespaces.get_policies(PUBLIC_DEFAULT)
    first, other = await asyncio.gather(
        namespaces.versioned_boundaries(PUBLIC_DEFAULT, policies), namespaces.boundaries(PUBLIC_DEFAULT)
    )
    assert first[0] == other == ("0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff")
    assert await value_of(store, LOCAL) == {"migrated": False, "bundles": policies.other["bundles"]}
    assert namespaces.unchanged(first[1])
    await store.commit([Put(LOCAL, json.dumps({"bundles": TWO}).encode())])
    assert not namespaces.unchanged(first[1])
    assert await namespaces.boundaries(PUBLIC_DEFAULT) == tuple(TWO["boundaries"])  # type: ignore[arg-type]


async def test_bundles_in_a_cluster_when_changed_then_policies_and_unknown_fields_stay(
    store: MemoryMetadataStore,
) -> None:
    namespaces = Namespaces(store, local_cluster="east", layout=IN_CLUSTER)
    before = await store.get("/admin/policies/public/default")
    await store.commit([Put(LOCAL, json.dumps({"bundles": TWO, "bookieAffinityGroup": {"primary": "a"}}).encode())])
    await namespaces.change_boundaries(PUBLIC_DEFAULT, lambda old: (*old[:1], "0x40000000", *old[1:]))
    assert await value_of(store, LOCAL) == {
        "migrated": False,
        "bundles": {"boundaries": ["0x00000000", "0x40000000", "0x80000000", "0xffffffff"], "numBundles": 3},
        "bookieAffinityGroup": {"primary": "a"},
    }
    assert await store.get("/admin/policies/public/default") == before
    with pytest.raises(CommitConflict, match="/lock"):
        await namespaces.change_boundaries(PUBLIC_DEFAULT, lambda old: old, also=[Delete("/lock")], expect={"/lock": 1})
    await namespaces.end_delete(PUBLIC_DEFAULT, {})
    assert await store.get(LOCAL) is None


async def test_cluster_that_is_not_registered_is_refused_with_the_ones_that_are(store: MemoryMetadataStore) -> None:
    await check_cluster(store, "east")
    with pytest.raises(PreconditionFailed, match=r"cluster west \(clusterName\) is not registered.* has east: correct"):
        await check_cluster(store, "west")
    with pytest.raises(PreconditionFailed, match="which has none: correct the name, or initialise"):
        await check_cluster(MemoryMetadataStore(), "west")


async def test_failure_domains_of_a_cluster_lie_below_it_and_go_with_it(store: MemoryMetadataStore) -> None:
    clusters = Clusters(store, IN_CLUSTER)
    domains = FailureDomains(store, clusters, IN_CLUSTER)
    await clusters.create("west", ADDRESSES)
    await domains.put("west", "rack 1", FailureDomain(("a:1",)))
    assert await store.children("/admin/clusters/west/failureDomain") == ["rack+1"]
    assert await domains.list("west") == {"rack 1": FailureDomain(("a:1",))}
    assert await clusters.list() == ["east", "west"]
    await clusters.delete("west")
    assert await clusters.list() == ["east"]


async def test_fields_without_meaning_here_stay_in_changed_records(store: MemoryMetadataStore) -> None:
    await store.commit(
        [
            Put("/admin/clusters/east", b'{"serviceUrl":"http://a:1","migrated":false,"news":{"x":1}}'),
            Put("/admin/policies/public", b'{"adminRoles":["a"],"allowedClusters":["east"],"news":[1]}'),
        ]
    )
    await Clusters(store).set_peers("east", [])
    await Tenants(store).update("public", TenantInfo(("b",), ("east",)))
    assert (await value_of(store, "/admin/clusters/east"))["news"] == {"x": 1}
    assert await value_of(store, "/admin/policies/public") == {
        "adminRoles": ["b"],
        "allowedClusters": ["east"],
        "news": [1],
    }
