"""Tenants: created, changed and deleted only as their namespaces allow."""

from __future__ import annotations

import pytest

from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import AlreadyExists, NotEmpty, PreconditionFailed, TenantNotFound
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_documents import NamespacePolicies
from tests.support.memory_storage import MemoryMetadataStore

BOTH = TenantInfo(("a",), ("east", "west"))
DEMO = NamespaceName("demo", "n")


@pytest.fixture
async def store() -> MemoryMetadataStore:
    store = MemoryMetadataStore()
    await bootstrap(store, local_cluster="east", cluster=ClusterData())
    await Clusters(store).create("west", ClusterData())
    await Tenants(store).create("demo", BOTH)
    return store


async def test_tenant_when_wrong_then_nothing_is_stored(store: MemoryMetadataStore) -> None:
    tenants = Tenants(store)
    for wrong in (TenantInfo(), TenantInfo((), ("nowhere",)), TenantInfo((" ",), ("east",))):
        with pytest.raises(PreconditionFailed):
            await tenants.create("other", wrong)
        with pytest.raises(PreconditionFailed):
            await tenants.update("demo", wrong)
    with pytest.raises(AlreadyExists):
        await tenants.create("demo", BOTH)
    with pytest.raises(TenantNotFound):
        await tenants.update("other", BOTH)
    assert await tenants.list() == ["demo", "public", "pulsar"]
    assert await tenants.get("demo") == BOTH


async def test_tenant_when_a_namespace_is_on_a_cluster_then_keeps_it(store: MemoryMetadataStore) -> None:
    tenants, namespaces = Tenants(store), Namespaces(store, local_cluster="east")
    await namespaces.create(DEMO, NamespacePolicies(replication_clusters=("east", "west")))
    with pytest.raises(PreconditionFailed, match="Cannot remove cluster west from tenant demo: namespace demo/n"):
        await tenants.update("demo", TenantInfo((), ("east",)))
    await tenants.update("demo", TenantInfo(("b",), ("east", "west")))
    await namespaces.update_policies(DEMO, lambda old: old.changed(replication_clusters=("east",)))
    await tenants.update("demo", TenantInfo(("b",), ("east",)))
    with pytest.raises(NotEmpty):
        await tenants.delete("demo")
    assert await tenants.get("demo") == TenantInfo(("b",), ("east",))
