"""Tenants: checks of their records, and decisions to create, change and delete them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from interpulse.model.changes import Decision, DeleteNamespace, DeleteTenant, SetTenant
from interpulse.model.clusters import TenantInfo
from interpulse.model.errors import AlreadyExists, NotEmpty, PreconditionFailed, TenantNotFound
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_documents import NamespacePolicies


@dataclass(frozen=True, slots=True)
class TenantView:
    """Facts about a tenant that its rules need."""

    name: str
    stored: TenantInfo | None
    """Stored record; None if the tenant does not exist."""
    registered: Collection[str] = ()
    """Names of all registered clusters."""
    namespaces: Collection[NamespaceName] = ()
    policies: Mapping[NamespaceName, NamespacePolicies] = field(default_factory=dict)
    """Policies of its namespaces; needed only if it loses clusters."""


def decide_create_tenant(view: TenantView, tenant: TenantInfo) -> Decision[None]:
    """Create a tenant. Raise AlreadyExists, and PreconditionFailed (see `check_tenant`)."""
    check_tenant(tenant, registered=view.registered)
    if view.stored is not None:
        raise AlreadyExists(f"Tenant already exists: {view.name}")
    return Decision(None, (SetTenant(view.name, tenant),))


def decide_update_tenant(view: TenantView, tenant: TenantInfo) -> Decision[None]:
    """Replace the roles and clusters of a tenant. Unknown fields of its record are preserved.

    Raise TenantNotFound, and PreconditionFailed (see `check_tenant` and `check_clusters_kept`).
    """
    check_tenant(tenant, registered=view.registered)
    old = _existing(view)
    check_clusters_kept(view.name, set(old.allowed_clusters) - set(tenant.allowed_clusters), view.policies.items())
    changed = replace(tenant, other={**old.other, **tenant.other})
    return Decision(None, () if changed == old else (SetTenant(view.name, changed),))


def decide_delete_tenant(view: TenantView, *, with_namespaces: bool = False) -> Decision[None]:
    """Delete a tenant without namespaces, or together with them. Raise TenantNotFound and NotEmpty."""
    _existing(view)
    if view.namespaces and not with_namespaces:
        raise NotEmpty(f"The tenant still has active namespaces: {view.name}")
    return Decision(None, (*map(DeleteNamespace, view.namespaces), DeleteTenant(view.name)))


def _existing(view: TenantView) -> TenantInfo:
    if view.stored is None:
        raise TenantNotFound("Tenant does not exist")
    return view.stored


def check_tenant(tenant: TenantInfo, *, registered: Collection[str]) -> None:
    """Refuse roles with surrounding blanks, an empty list of clusters, and clusters that are not registered."""
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
    """Refuse to remove clusters from a tenant that one of its namespaces uses. Raise PreconditionFailed."""
    for namespace, policies in namespaces:
        for cluster in sorted(set(policies.replication_clusters) & set(removed)):
            raise PreconditionFailed(
                f"Cannot remove cluster {cluster} from tenant {name}: namespace {namespace} still has it as a "
                f"replication cluster"
            )
