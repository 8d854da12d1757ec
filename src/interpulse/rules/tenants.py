"""Checks of a tenant's record: its administrators, and the clusters of its namespaces."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from interpulse.model.clusters import TenantInfo
from interpulse.model.errors import PreconditionFailed
from interpulse.model.names import NamespaceName
from interpulse.model.policies.namespace_policies import NamespacePolicies

__all__ = ["check_clusters_kept", "check_tenant"]


def check_tenant(tenant: TenantInfo, *, registered: Collection[str]) -> None:
    """Refuse roles with blanks around them, no cluster, and clusters that are not registered."""
    for role in tenant.admin_roles:
        if role != role.strip():
            raise PreconditionFailed(f"AdminRoles contains whitespace in the beginning or end: {role[:100]!r}")
    if not tenant.allowed_clusters or not all(name.strip() for name in tenant.allowed_clusters):
        raise PreconditionFailed("Clusters cannot be empty or blank")
    unknown = sorted(set(tenant.allowed_clusters) - set(registered))
    if unknown:
        raise PreconditionFailed(f"Clusters do not exist: {', '.join(unknown)[:500]}")


def check_clusters_kept(
    name: str, removed: Collection[str], namespaces: Iterable[tuple[NamespaceName, NamespacePolicies]]
) -> None:
    """Refuse to take clusters from a tenant that one of its namespaces is on; raises PreconditionFailed."""
    for namespace, policies in namespaces:
        for cluster in sorted(set(policies.replication_clusters) & set(removed)):
            raise PreconditionFailed(
                f"Cannot remove cluster {cluster} from tenant {name}: namespace {namespace} still has it as a "
                f"replication cluster"
            )
