"""Which clusters a namespace may list; the first failing check decides (PIP-433)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import Forbidden, PreconditionFailed, PulsarError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies
from interpulse.rules.replication import (
    check_allowed_clusters,
    check_global_topic_clusters,
    check_namespace_left_by_others,
    check_new_namespace_clusters,
    check_replication_clusters,
    check_topic_replication_clusters,
    effective_replication_clusters,
    is_copied_by_default,
    remote_clusters,
    sending_cluster,
)

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
        pytest.param(("east",), LIMITED, None, 404, id="allowed-by-the-namespace-tenant-missing"),
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


@pytest.mark.parametrize(
    ("topic", "namespace", "clusters"),
    [
        pytest.param(TopicPolicies(), POLICIES, ("east",), id="nothing-set-here"),
        pytest.param(TopicPolicies(), None, (), id="no-namespace"),
        pytest.param(TopicPolicies(replication_clusters=("east", "west")), POLICIES, ("east", "west"), id="more"),
        pytest.param(
            TopicPolicies(replication_clusters=("east",)),
            NamespacePolicies(replication_clusters=("east", "west")),
            ("east",),
            id="fewer",
        ),
    ],
)
def test_effective_clusters(
    topic: TopicPolicies, namespace: NamespacePolicies | None, clusters: tuple[str, ...]
) -> None:
    assert effective_replication_clusters(topic, namespace) == clusters


@pytest.mark.parametrize(
    ("clusters", "remotes"),
    [
        pytest.param((), (), id="none"),
        pytest.param(("east",), (), id="only-the-local-one"),
        pytest.param(("west", "east", "north"), ("north", "west"), id="sorted"),
        pytest.param(("west", "north"), (), id="the-local-one-is-not-listed"),
    ],
)
def test_remote_clusters(clusters: tuple[str, ...], remotes: tuple[str, ...]) -> None:
    assert remote_clusters("east", clusters) == remotes


@pytest.mark.parametrize(
    ("producer", "cluster"),
    [
        ("pulsar.repl.west", "west"),
        ("pulsar.repl.west-->east", "west"),
        ("pulsar.repl.west-->east.e1.ab", "west"),
        ("pulsar.repl.we.st", "we.st"),
        ("pulsar.replica", None),
        ("pulsar.repl", None),
        ("my.pulsar.repl.west", None),
        ("", None),
    ],
)
def test_sending_cluster(producer: str, cluster: str | None) -> None:
    assert sending_cluster(producer, "pulsar.repl") == cluster


TOPIC = TopicName.parse("demo/a/x")


@pytest.mark.parametrize(
    ("requested", "tenant", "status"),
    [
        pytest.param((), EAST_ONLY, 412, id="empty-before-all"),
        pytest.param(("west", "south"), EAST_ONLY, 412, id="local-missing-before-not-registered"),
        pytest.param(("east", "north", "south", "west"), EAST_ONLY, 403, id="not-registered-before-peers"),
        pytest.param(("east", "north", "west"), EAST_ONLY, 409, id="peers-before-tenant"),
        pytest.param(("east", "west"), EAST_ONLY, 403, id="tenant-not-allowed"),
    ],
)
def test_clusters_of_a_topic_that_are_refused(requested: tuple[str, ...], tenant: TenantInfo, status: int) -> None:
    with pytest.raises(PulsarError) as refusal:
        check_topic_replication_clusters(TOPIC, requested, needed="east", registered=KNOWN, tenant=tenant)
    assert refusal.value.http_status == status


def test_clusters_of_a_topic_that_may_be_set() -> None:
    for requested in (("east",), ("east", "west")):
        check_topic_replication_clusters(TOPIC, requested, needed="east", registered=KNOWN, tenant=TENANT)


def test_clusters_of_a_topic_for_all_clusters_need_not_have_the_local_one() -> None:
    check_topic_replication_clusters(TOPIC, ("west",), needed=None, registered=KNOWN, tenant=TENANT)


@pytest.mark.parametrize(
    ("requested", "namespace", "refused"),
    [
        pytest.param((), ("east", "west"), "null or empty", id="empty"),
        pytest.param(("east",), ("east",), "namespace-level replication is not enabled", id="namespace-on-one-cluster"),
        pytest.param(("east", "north"), ("east", "west"), "north is not one of them", id="not-of-the-namespace"),
        pytest.param(("west",), ("east", "west"), None, id="not-here"),
        pytest.param(("east", "west"), ("east", "west"), None, id="all"),
    ],
)
def test_clusters_of_a_topic_for_all_clusters(
    requested: tuple[str, ...], namespace: tuple[str, ...], refused: str | None
) -> None:
    policies = NamespacePolicies(replication_clusters=namespace)
    if refused is None:
        check_global_topic_clusters(requested, policies)
    else:
        with pytest.raises(PreconditionFailed, match=refused):
            check_global_topic_clusters(requested, policies)


@pytest.mark.parametrize(
    ("replication", "allowed", "tenant", "status"),
    [
        pytest.param(("east", "west"), (), EAST_ONLY, 403, id="tenant-not-allowed"),
        pytest.param(("east",), ("east", "west"), EAST_ONLY, 403, id="tenant-not-allowed-on-an-allowed-one"),
        pytest.param(("south",), (), TenantInfo(allowed_clusters=("south",)), 403, id="not-registered"),
        pytest.param(("north", "west"), (), TENANT, 409, id="peers"),
        pytest.param(("east", "west"), ("east",), TENANT, 400, id="not-among-the-allowed"),
        pytest.param(("east", "west"), ("east", "west"), TENANT, None, id="among-the-allowed"),
        pytest.param(("west",), (), TENANT, None, id="not-here"),
    ],
)
def test_clusters_of_a_new_namespace(
    replication: tuple[str, ...], allowed: tuple[str, ...], tenant: TenantInfo, status: int | None
) -> None:
    policies = NamespacePolicies(replication_clusters=replication, allowed_clusters=allowed)
    with pytest.raises(PulsarError) if status else nullcontext() as refusal:
        check_new_namespace_clusters(DEMO, policies, registered=KNOWN, tenant=tenant)
    assert (refusal and refusal.value.http_status) == status


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(
            lambda: check_replication_clusters(
                DEMO, ("east", "west"), registered=KNOWN, policies=POLICIES, tenant=EAST_ONLY
            ),
            id="of-a-namespace",
        ),
        pytest.param(
            lambda: check_allowed_clusters(
                DEMO, ("east", "west"), registered=KNOWN, policies=POLICIES, tenant=EAST_ONLY
            ),
            id="allowed-clusters",
        ),
        pytest.param(
            lambda: check_topic_replication_clusters(
                TOPIC, ("east", "west"), needed="east", registered=KNOWN, tenant=EAST_ONLY
            ),
            id="of-a-topic",
        ),
    ],
)
def test_refusal_of_a_cluster_names_it_and_the_tenant(check: Callable[[], None]) -> None:
    with pytest.raises(Forbidden) as refusal:
        check()
    assert str(refusal.value) == "Cluster [west] is not in the list of allowed clusters list for tenant [demo]"


@pytest.mark.parametrize(
    ("name", "policies", "copied"),
    [
        ("x", TopicPolicies(), True),
        ("x", TopicPolicies(replication_clusters=("east",)), True),
        ("__change_events", TopicPolicies(), False),
        ("__change_events", TopicPolicies(replication_clusters=("east", "west")), True),
    ],
)
def test_system_topic_is_copied_where_clusters_are_set_for_itself(
    name: str, policies: TopicPolicies, copied: bool
) -> None:
    assert is_copied_by_default(TopicName.parse(name), policies) is copied


@pytest.mark.parametrize(
    ("clusters", "deleted", "refused"),
    [
        ((), False, False),
        (("east",), False, False),
        (("west", "east"), False, True),
        (("west", "east"), True, False),
    ],
)
def test_namespace_on_several_clusters_is_not_deleted(clusters: tuple[str, ...], deleted: bool, refused: bool) -> None:
    policies = NamespacePolicies(replication_clusters=clusters, deleted=deleted)
    with pytest.raises(PreconditionFailed, match="configured: east, west; leave") if refused else nullcontext():
        check_namespace_left_by_others(DEMO, policies)


def test_new_namespace_names_the_tenant_that_may_not_use_a_cluster() -> None:
    with pytest.raises(Forbidden, match=r"Cluster \[west\] is not .* for tenant \[demo\]"):
        check_new_namespace_clusters(
            DEMO, NamespacePolicies(replication_clusters=("west",)), registered=KNOWN, tenant=EAST_ONLY
        )
