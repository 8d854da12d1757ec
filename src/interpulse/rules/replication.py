"""Which clusters a namespace may list for its replication (PIP-433, checks before the comparison of clusters)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NamespaceNotFound,
    PreconditionFailed,
    TenantNotFound,
)
from interpulse.model.names import NamespaceName
from interpulse.model.policies import NamespacePolicies

__all__ = ["check_allowed_clusters", "check_replication_clusters", "check_tenant_clusters"]


def check_replication_clusters(
    namespace: NamespaceName,
    requested: Collection[str],
    *,
    registered: Mapping[str, ClusterData],
    policies: NamespacePolicies | None,
    tenant: TenantInfo | None,
) -> None:
    """Refuse a list of replication clusters that cannot be; the first failing check decides, in Pulsar's order.

    ``registered`` holds those of the requested clusters that are known.
    """
    if not requested:
        raise PreconditionFailed("ClusterIds should not be null or empty")
    _check_registered(requested, registered)
    for name in sorted(requested):
        peers = set(registered[name].peer_cluster_names or ()) & set(requested)
        if peers:
            raise Conflict(f"{sorted(peers)} are peer clusters of {name}; a namespace cannot be on both")
    if policies is None:
        raise NamespaceNotFound(f"Namespace {namespace} does not exist")
    if policies.allowed_clusters:
        for name in sorted(requested):
            if name not in policies.allowed_clusters:
                raise InvalidRequest(
                    f"Cluster [{name}] is not in the list of allowed clusters list for namespace [{namespace}]"
                )
    if tenant is None:
        raise TenantNotFound(f"Tenant {namespace.tenant} does not exist")
    check_tenant_clusters(namespace.tenant, requested, tenant)


def check_allowed_clusters(
    namespace: NamespaceName,
    requested: Collection[str],
    *,
    registered: Mapping[str, ClusterData],
    policies: NamespacePolicies,
    tenant: TenantInfo,
) -> None:
    """Refuse a list of allowed clusters that leaves out a replication cluster, or has one the tenant may not use."""
    check_tenant_clusters(namespace.tenant, requested, tenant)
    _check_registered(requested, registered)
    for name in policies.replication_clusters:
        if name not in requested:
            raise InvalidRequest(
                f"Allowed clusters do not contain the replication cluster [{name}]. Please remove the replication "
                f"cluster if the cluster is not allowed for this namespace"
            )


def check_tenant_clusters(tenant_name: str, requested: Collection[str], tenant: TenantInfo) -> None:
    """Refuse clusters that the tenant may not use; raises Forbidden."""
    for name in sorted(requested):
        if name not in tenant.allowed_clusters:
            raise Forbidden(f"Cluster [{name}] is not in the list of allowed clusters list for tenant [{tenant_name}]")


def _check_registered(requested: Collection[str], registered: Mapping[str, ClusterData]) -> None:
    for name in sorted(requested):
        if name not in registered:
            raise Forbidden(f"Invalid cluster id: {name}")
