"""Who may administer a tenant, and which clusters it has."""

from __future__ import annotations

import pytest

from interpulse.model.clusters import TenantInfo
from interpulse.model.errors import PreconditionFailed
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules.tenants import check_clusters_kept, check_tenant

KNOWN = {"east", "west"}


@pytest.mark.parametrize("tenant", [TenantInfo((), ("east",)), TenantInfo(("", "a b"), ("east", "west"))])
def test_tenant_that_may_be(tenant: TenantInfo) -> None:
    check_tenant(tenant, registered=KNOWN)


@pytest.mark.parametrize(
    ("tenant", "words"),
    [
        (TenantInfo(), "Clusters cannot be empty or blank"),
        (TenantInfo((), ("east", " ")), "Clusters cannot be empty or blank"),
        (TenantInfo((), ("north", "east", "south")), "Clusters do not exist: north, south"),
        (TenantInfo(("a", " b"), ("east",)), "AdminRoles contains whitespace in the beginning or end: ' b'"),
        (TenantInfo((" ",), ()), "AdminRoles contains whitespace"),
    ],
)
def test_tenant_that_is_refused(tenant: TenantInfo, words: str) -> None:
    with pytest.raises(PreconditionFailed, match=words):
        check_tenant(tenant, registered=KNOWN)


def test_clusters_that_a_namespace_is_on_stay() -> None:
    namespaces = [(NamespaceName("t", "n"), NamespacePolicies(replication_clusters=("east", "west")))]
    check_clusters_kept("t", {"north"}, namespaces)
    words = "Cannot remove cluster west from tenant t: namespace t/n still has it as a replication cluster"
    with pytest.raises(PreconditionFailed, match=words):
        check_clusters_kept("t", {"north", "west"}, namespaces)
