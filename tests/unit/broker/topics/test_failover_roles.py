"""Roles of namespaces over a metadata store in memory."""

from __future__ import annotations

import pytest

from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.broker.topics.failover_roles import FailoverRoles
from interpulse.model.clusters import ClusterData, ClusterMigration
from interpulse.model.errors import Conflict, NamespaceNotFound
from interpulse.model.names import PUBLIC_DEFAULT, NamespaceName
from interpulse.rules.failover_role import ACTIVE, ROLE_PROPERTY, FailoverRole, Role
from tests.support.fake_clock import FakeClock
from tests.support.memory_storage import MemoryMetadataStore

WEST = ClusterMigration(True, broker_service_url="pulsar://west:6650")


@pytest.fixture
async def store() -> MemoryMetadataStore:
    store = MemoryMetadataStore()
    await bootstrap(store, local_cluster="east", cluster=ClusterData())
    return store


@pytest.fixture
def namespaces(store: MemoryMetadataStore) -> Namespaces:
    return Namespaces(store, local_cluster="east")


@pytest.fixture
def roles(store: MemoryMetadataStore, namespaces: Namespaces) -> FailoverRoles:
    return FailoverRoles(namespaces, Tenants(store), Clusters(store), FakeClock())


async def test_role_when_set_then_stored_with_its_time_beside_other_properties(
    roles: FailoverRoles, namespaces: Namespaces
) -> None:
    await namespaces.update_policies(PUBLIC_DEFAULT, lambda old: old.changed(properties={"team": "shop"}))
    await roles.set(PUBLIC_DEFAULT, FailoverRole(Role.STANDBY, 2))
    properties = (await namespaces.get_policies(PUBLIC_DEFAULT)).properties
    assert properties["team"] == "shop"
    assert properties[ROLE_PROPERTY].startswith("standby;epoch=2;since=")
    assert await roles.of(PUBLIC_DEFAULT) == FailoverRole(Role.STANDBY, 2)
    with pytest.raises(Conflict, match="has epoch 2"):
        await roles.set(PUBLIC_DEFAULT, FailoverRole(Role.ACTIVE, 1))


async def test_role_when_stored_malformed_then_active_and_logged_once(
    roles: FailoverRoles, namespaces: Namespaces, caplog: pytest.LogCaptureFixture
) -> None:
    await namespaces.update_policies(PUBLIC_DEFAULT, lambda old: old.changed(properties={ROLE_PROPERTY: "fence"}))
    for _ in range(3):
        assert await roles.of(PUBLIC_DEFAULT) == ACTIVE
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("failover role ignored namespace=public/default error=interpulse.failover.role has the")
    await roles.set(PUBLIC_DEFAULT, FailoverRole(Role.FENCED, 1))
    assert (await roles.of(PUBLIC_DEFAULT)).role is Role.FENCED


async def test_role_when_the_namespace_is_missing_then_not_found_or_active(roles: FailoverRoles) -> None:
    missing = NamespaceName("public", "missing")
    assert await roles.of_policies(missing, None) == ACTIVE
    with pytest.raises(NamespaceNotFound):
        await roles.set(missing, ACTIVE)


async def test_migration_when_set_then_redirects_to_the_cluster_until_taken_back(
    store: MemoryMetadataStore, roles: FailoverRoles
) -> None:
    with pytest.raises(Conflict, match="There is no cluster to redirect to"):
        await roles.set_migrated(PUBLIC_DEFAULT, migrated=True)
    await Clusters(store).set_migration("east", WEST)
    assert str(await roles.of(PUBLIC_DEFAULT)) == "moved;epoch=0;url=pulsar://west:6650"
    await Clusters(store).set_migration("east", ClusterMigration(False, broker_service_url="pulsar://west:6650"))
    assert await roles.of(PUBLIC_DEFAULT) == ACTIVE
    await roles.set_migrated(PUBLIC_DEFAULT, migrated=True)
    assert (await roles.of(PUBLIC_DEFAULT)).role is Role.MOVED
    await roles.set_migrated(PUBLIC_DEFAULT, migrated=False)
    assert await roles.of(PUBLIC_DEFAULT) == ACTIVE
