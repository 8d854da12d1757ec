"""Which clusters a namespace may list; the first failing check decides (PIP-433)."""

from __future__ import annotations

import pytest

from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import PulsarError
from interpulse.model.names import NamespaceName
from interpulse.model.policies import NamespacePolicies
from interpulse.rules.replication import check_allowed_clusters, check_replication_clusters

DEMO = NamespaceName("demo", "a")
KNOWN = {"east": ClusterData(), "west": ClusterData(), "north": ClusterData(peer_cluster_names=("west",))}
TENANT = TenantInfo(allowed_clusters=("east", "north", "west"))
EAST_ONLY = TenantInfo(allowed_clusters=("east",))
POLICIES = NamespacePolicies(replication_clusters=("east",))
LIMITED = NamespacePolicies(replication_clusters=("east",), allowed_clusters=("east",))


def test_clusters_that_may_be_listed() -> None:
    check_replication_clusters(DEMO, ("east", "west"), registered=KNOWN, policies=POLICIES, tenant=TENANT)


@pytest.mark.parametrize(
    ("requested", "policies", "tenant", "status"),
    [
        pytest.param((), None, None, 412, id="empty-before-all"),
        pytest.param(("south",), None, None, 403, id="not-registered-before-namespace"),
        pytest.param(("north", "west"), None, None, 409, id="peers-before-namespace"),
        pytest.param(("east",), None, None, 404, id="namespace-missing"),
        pytest.param(("east", "west"), LIMITED, EAST_ONLY, 400, id="namespace-before-tenant"),
        pytest.param(("east", "west"), POLICIES, None, 404, id="tenant-missing"),
        pytest.param(("east", "west"), POLICIES, EAST_ONLY, 403, id="tenant-not-allowed"),
    ],
)
def test_clusters_that_are_refused(
    requested: tuple[str, ...], policies: NamespacePolicies | None, tenant: TenantInfo | None, status: int
) -> None:
    with pytest.raises(PulsarError) as refusal:
        check_replication_clusters(DEMO, requested, registered=KNOWN, policies=policies, tenant=tenant)
    assert refusal.value.http_status == status


@pytest.mark.parametrize(
    ("requested", "tenant", "status"),
    [
        pytest.param(("west",), TENANT, 400, id="leaves-out-a-replication-cluster"),
        pytest.param((), TENANT, 400, id="empty-leaves-them-out-too"),
        pytest.param(("east", "west"), EAST_ONLY, 403, id="tenant-not-allowed"),
        pytest.param(("east", "south"), TenantInfo(allowed_clusters=("east", "south")), 403, id="not-registered"),
    ],
)
def test_allowed_clusters_that_are_refused(requested: tuple[str, ...], tenant: TenantInfo, status: int) -> None:
    with pytest.raises(PulsarError) as refusal:
        check_allowed_clusters(DEMO, requested, registered=KNOWN, policies=POLICIES, tenant=tenant)
    assert refusal.value.http_status == status


def test_allowed_clusters_that_may_be_set() -> None:
    check_allowed_clusters(DEMO, ("east", "west"), registered=KNOWN, policies=POLICIES, tenant=TENANT)
