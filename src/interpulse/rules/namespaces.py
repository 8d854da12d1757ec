"""Namespaces: decisions to create and delete them, to replace their policies, and to divide their bundles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from interpulse.model.changes import Decision, DeleteNamespace, SetBundles, SetForcedDeletion, SetNamespacePolicies
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import AlreadyExists, NamespaceNotFound, NotEmpty, PreconditionFailed, TenantNotFound
from interpulse.model.names import SYSTEM_NAMESPACE, NamespaceName, check_entity_name
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules.bundles import boundaries_of, bundles_of_new_namespace
from interpulse.rules.replication import check_namespace_left_by_others, check_new_namespace_clusters

Boundaries = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamespaceView:
    """Facts about a namespace that its rules need."""

    namespace: NamespaceName
    policies: NamespacePolicies | None
    """Policies; None if the namespace does not exist."""
    tenant: TenantInfo | None = None
    """Tenant record, for creation; None if the tenant does not exist."""
    registered: Mapping[str, ClusterData] = field(default_factory=dict)
    """Registered clusters among those of the namespace, for creation."""
    boundaries: Boundaries | None = None
    """Bundle boundaries, if they are stored in their own record."""


def existing_policies(view: NamespaceView) -> NamespacePolicies:
    """Return the policies. Raise NamespaceNotFound."""
    if view.policies is None:
        raise NamespaceNotFound("Namespace does not exist")
    return view.policies


def decide_policies(
    view: NamespaceView, change: Callable[[NamespacePolicies], NamespacePolicies]
) -> Decision[NamespacePolicies]:
    """Replace the policies by the result of ``change``, and return it. Raise NamespaceNotFound."""
    old = existing_policies(view)
    changed = change(old)
    return Decision(changed, () if changed == old else (SetNamespacePolicies(view.namespace, changed),))


def decide_create_namespace_of_tenant(
    view: NamespaceView, policies: NamespacePolicies, *, local_cluster: str
) -> Decision[None]:
    """Create a namespace on clusters that its tenant may use. The local cluster is always allowed.

    Raise TenantNotFound, and the errors of `check_new_namespace_clusters` and `decide_create_namespace`.
    """
    replication = policies.replication_clusters or (local_cluster,)
    allowed = tuple(sorted({*policies.allowed_clusters, local_cluster})) if policies.allowed_clusters else ()
    placed = policies.changed(replication_clusters=replication, allowed_clusters=allowed)
    if view.tenant is None:
        raise TenantNotFound("Tenant does not exist")
    check_new_namespace_clusters(view.namespace, placed, registered=view.registered, tenant=view.tenant)
    return decide_create_namespace(view, placed, local_cluster=local_cluster)


def decide_create_namespace(view: NamespaceView, policies: NamespacePolicies, *, local_cluster: str) -> Decision[None]:
    """Create a namespace, without replication clusters on the local one. The tenant is not checked.

    Raise PreconditionFailed for a name that is too long, InvalidRequest for invalid bundles, AlreadyExists.
    """
    check_entity_name("Namespace", view.namespace.local)
    clusters = policies.replication_clusters or (local_cluster,)
    other = {**policies.other, "bundles": bundles_of_new_namespace(policies.other.get("bundles"))}
    created = policies.changed(replication_clusters=clusters, deleted=False, other=other)
    if view.policies is not None:
        raise AlreadyExists(f"Namespace already exists: {view.namespace}")
    return Decision(None, (SetNamespacePolicies(view.namespace, created),))


def decide_divide_bundles(view: NamespaceView, change: Callable[[Boundaries], Boundaries]) -> Decision[None]:
    """Divide the bundles at the boundaries that ``change`` returns. Raise NamespaceNotFound."""
    policies = existing_policies(view)
    old = boundaries_of(policies) if view.boundaries is None else view.boundaries
    new = change(old)
    if new == old:
        return Decision(None)
    if view.boundaries is not None:
        return Decision(None, (SetBundles(view.namespace, new),))
    bundles = {"boundaries": list(new), "numBundles": len(new) - 1}
    return Decision(
        None, (SetNamespacePolicies(view.namespace, policies.changed(other={**policies.other, "bundles": bundles})),)
    )


def decide_delete_namespace(view: NamespaceView, *, holds_topics: bool = False) -> Decision[None]:
    """Delete a namespace. ``holds_topics``: it has topics of users that are not deleted with it.

    Raise NamespaceNotFound, PreconditionFailed while it is on several clusters, and NotEmpty.
    """
    policies = existing_policies(view)
    if view.namespace == SYSTEM_NAMESPACE:
        raise PreconditionFailed(f"Cannot delete the namespace {view.namespace}: the broker needs it")
    check_namespace_left_by_others(view.namespace, policies)
    check_empty(view.namespace, holds_topics=holds_topics)
    return Decision(None, (DeleteNamespace(view.namespace),))


def check_empty(namespace: NamespaceName, *, holds_topics: bool) -> None:
    """Refuse the deletion of a namespace that has topics of users. Raise NotEmpty."""
    if holds_topics:
        raise NotEmpty(f"Cannot delete non empty namespace {namespace}")


def decide_begin_deletion(view: NamespaceView, *, forced: bool) -> Decision[bool]:
    """Mark a namespace as being deleted, so that none of its topics can be created. False: it was marked already.

    ``forced`` is stored: the namespace's content is deleted with it, also after a restart. Raise the errors of
    `decide_delete_namespace`.
    """
    decide_delete_namespace(view)
    marked = decide_policies(view, lambda policies: policies.changed(deleted=True)).changes
    return Decision(bool(marked), (*marked, SetForcedDeletion(view.namespace, True)) if forced else marked)


def decide_give_up_deletion(view: NamespaceView) -> Decision[None]:
    """Remove the mark of a deletion. Raise NamespaceNotFound."""
    restored = decide_policies(view, lambda policies: policies.changed(deleted=False)).changes
    return Decision(None, (*restored, SetForcedDeletion(view.namespace, False)) if restored else ())
