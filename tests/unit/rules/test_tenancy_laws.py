"""The laws of every decision about tenants, clusters and namespaces, over every combination of a small world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import pytest

from interpulse.model import changes
from interpulse.model.changes import Change, Decision, to_json
from interpulse.model.clusters import ClusterData, FailureDomain, TenantInfo
from interpulse.model.errors import AlreadyExists, NotFound, PulsarError
from interpulse.model.isolation import IsolationPolicy
from interpulse.model.names import SYSTEM_NAMESPACE, NamespaceName, TopicName
from interpulse.model.permissions import Permissions
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules import clusters, isolation, namespaces, permissions, tenants
from interpulse.rules.clusters import ClusterView, DomainsView
from interpulse.rules.isolation import IsolationView
from interpulse.rules.namespaces import NamespaceView
from interpulse.rules.tenants import TenantView

Question = Callable[[Any], Decision[Any]]

SHOP = NamespaceName("demo", "shop")
TOPIC = TopicName.parse("persistent://demo/shop/t")
EAST, BOTH = TenantInfo(("a",), ("east",)), TenantInfo(("a",), ("east", "west"))
URL = ClusterData(service_url="http://w:8080")
PEERS = ClusterData(peer_cluster_names=("north",))
POLICY = IsolationPolicy(("demo/.*",), ("b1",), (), {"min_limit": "1", "usage_threshold": "80"})


def tenant_views() -> Iterator[TenantView]:
    on_both = {SHOP: NamespacePolicies(replication_clusters=("east", "west"))}
    for stored, policies in product((None, EAST, BOTH), ({}, on_both)):
        yield TenantView("demo", stored, ("east", "west"), tuple(policies), policies)


def cluster_views() -> Iterator[ClusterView]:
    for stored, isolated, user in product((None, URL, PEERS), (False, True), (None, "namespace demo/shop")):
        registered = ("east",) if stored is None else ("east", "west")
        yield ClusterView("west", stored, registered, isolated, user, failure_domains=("d",))


def domain_views() -> Iterator[DomainsView]:
    domains: tuple[dict[str, FailureDomain], ...] = ({}, {"d": FailureDomain(("a:1",))}, {"e": FailureDomain(("a:1",))})
    return (DomainsView("west", *values) for values in product((False, True), domains))


def isolation_views() -> Iterator[IsolationView]:
    other = {"other": {"namespaces": ["x"], "unknown": 1}}
    for registered, record in product((False, True), (None, {}, other, other | {"p": POLICY.to_json()})):
        policies = {"p": POLICY} if record and "p" in record else {}
        yield IsolationView("west", registered, record, policies)


def namespace_views() -> Iterator[NamespaceView]:
    granted = (
        Permissions()
        .grant("app", ["consume"])
        .grant_subscription("s", ["app"])
        .grant_topic([TOPIC], "app", ["produce"])
    )
    present = [
        NamespacePolicies(replication_clusters=("east",)),
        NamespacePolicies(replication_clusters=("east", "west"), granted=granted),
        NamespacePolicies(replication_clusters=("east",), deleted=True, subscription_auth_mode="Prefix"),
    ]
    registered = {"east": ClusterData(), "west": ClusterData()}
    for namespace, policies, tenant in product((SHOP, SYSTEM_NAMESPACE), (None, *present), (None, BOTH)):
        for boundaries in (None, ("0x00000000", "0xffffffff")):
            yield NamespaceView(namespace, policies, tenant, registered, boundaries)


def apply(view: Any, change: Change) -> Any:
    """Return the view as the change leaves it; no rule may change anything else."""
    match change:
        case changes.SetTenant("demo", tenant):
            return replace(view, stored=tenant)
        case changes.SetCluster("west", cluster):
            return replace(view, stored=cluster)
        case changes.DeleteTenant("demo") | changes.DeleteCluster("west"):
            return replace(view, stored=None)
        case changes.SetFailureDomain("west", name, domain):
            return replace(view, domains={**view.domains, name: domain})
        case changes.DeleteFailureDomain("west", name) if isinstance(view, DomainsView):
            return replace(view, domains={other: kept for other, kept in view.domains.items() if other != name})
        case changes.DeleteFailureDomain("west", "d"):
            return view
        case changes.SetIsolationPolicies("west", record):
            return replace(view, record=record, policies={"p": POLICY} if "p" in record else {})
        case changes.DeleteNamespace(namespace):
            return replace(view, namespaces=tuple(other for other in view.namespaces if other != namespace))
    raise AssertionError(change)


def apply_to_namespace(view: NamespaceView, change: Any) -> NamespaceView:
    assert change.namespace == view.namespace
    match change:
        case changes.SetNamespacePolicies(_, policies):
            return replace(view, policies=policies)
        case changes.SetBundles(_, boundaries):
            return replace(view, boundaries=boundaries)
        case changes.SetForcedDeletion():
            return view
        case changes.DeleteNamespace():
            return replace(view, policies=None)
    raise AssertionError(change)


def split(old: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*old, "0x40000000"}))


POLICIES = NamespacePolicies()
LASTING: list[tuple[Callable[[], Iterator[Any]], Question]] = [
    *((tenant_views, partial(tenants.decide_update_tenant, tenant=each)) for each in (EAST, BOTH)),
    (cluster_views, partial(clusters.decide_update_cluster, cluster=URL)),
    *((cluster_views, partial(clusters.decide_set_peers, peers=each)) for each in (None, ("east", "east"))),
    *(
        (domain_views, partial(clusters.decide_set_failure_domain, name=name, domain=FailureDomain(brokers)))
        for name, brokers in product("de", ((), ("a:1",)))
    ),
    *(
        (isolation_views, partial(isolation.decide_set_isolation_policy, name=name, policy=policy))
        for name, policy in product(("p", "q"), (POLICY, replace(POLICY, secondary=("b2",))))
    ),
    *((isolation_views, partial(isolation.decide_delete_isolation_policy, name=name)) for name in ("p", "q", "other")),
    (namespace_views, partial(namespaces.decide_policies, change=lambda old: old.changed(message_ttl_seconds=5))),
    (namespace_views, partial(namespaces.decide_divide_bundles, change=split)),
    (namespace_views, namespaces.decide_give_up_deletion),
    (namespace_views, partial(namespaces.decide_begin_deletion, forced=False)),
    *((namespace_views, partial(permissions.decide_grant, role=each, actions=("produce",))) for each in ("app", "x")),
    (namespace_views, partial(permissions.decide_revoke, role="app")),
    *(
        (namespace_views, partial(rule, topic=TOPIC, role="app", exists=True))
        for rule in (
            partial(permissions.decide_grant_on_topic, actions=("consume",)),
            permissions.decide_revoke_on_topic,
        )
    ),
    *(
        (namespace_views, partial(permissions.decide_grant_on_subscription, subscription="s", roles=roles))
        for roles in (("app",), ("x", "y"))
    ),
    *((namespace_views, partial(permissions.decide_subscription_auth_mode, mode=each)) for each in (None, "Prefix")),
]
"""Questions with the same outcome however often they are asked."""

ONCE: list[tuple[Callable[[], Iterator[Any]], Question, type[PulsarError]]] = [
    (tenant_views, partial(tenants.decide_create_tenant, tenant=EAST), AlreadyExists),
    *((tenant_views, partial(tenants.decide_delete_tenant, with_namespaces=each), NotFound) for each in (False, True)),
    (cluster_views, partial(clusters.decide_create_cluster, cluster=URL), AlreadyExists),
    (cluster_views, clusters.decide_delete_cluster, NotFound),
    (domain_views, partial(clusters.decide_delete_failure_domain, name="d"), NotFound),
    (
        namespace_views,
        partial(namespaces.decide_create_namespace, policies=POLICIES, local_cluster="east"),
        AlreadyExists,
    ),
    *(
        (
            namespace_views,
            partial(
                namespaces.decide_create_namespace_of_tenant,
                policies=POLICIES.changed(replication_clusters=named),
                local_cluster="east",
            ),
            AlreadyExists,
        )
        for named in ((), ("east", "west"))
    ),
    (namespace_views, namespaces.decide_delete_namespace, NotFound),
    (namespace_views, partial(permissions.decide_revoke_on_subscription, subscription="s", role="app"), NotFound),
]
"""Questions that are refused after they were carried out."""


def outcome(question: Question, view: Any) -> Decision[Any] | PulsarError:
    try:
        return question(view)
    except PulsarError as refusal:
        return refusal


def carried_out(view: Any, decision: Decision[Any]) -> Any:
    for change in decision.changes:
        assert to_json(change)["change"] == type(change).__name__
        view = apply_to_namespace(view, change) if isinstance(view, NamespaceView) else apply(view, change)
    return view


def named(question: Question) -> str:
    return named(question.func) if isinstance(question, partial) else question.__name__


@pytest.mark.parametrize(("views", "question"), LASTING, ids=[named(question) for _, question in LASTING])
def test_decision_when_carried_out_then_asking_again_changes_nothing(
    views: Callable[[], Iterator[Any]], question: Question
) -> None:
    decided = [(view, first) for view in views() if isinstance(first := outcome(question, view), Decision)]
    assert any(first.changes for _, first in decided)
    for view, first in decided:
        again = question(carried_out(view, first))
        assert again.changes == ()


@pytest.mark.parametrize(("views", "question", "refusal"), ONCE, ids=[named(question) for _, question, _ in ONCE])
def test_decision_when_it_was_carried_out_then_asking_again_is_refused(
    views: Callable[[], Iterator[Any]], question: Question, refusal: type[PulsarError]
) -> None:
    decided = [(view, first) for view in views() if isinstance(first := outcome(question, view), Decision)]
    assert decided
    for view, first in decided:
        assert first.changes
        with pytest.raises(refusal):
            question(carried_out(view, first))
