"""Replication clusters that a namespace may list (PIP-433: the checks before clusters are compared)."""

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
    Unprocessable,
)
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies


def effective_replication_clusters(topic: TopicPolicies, namespace: NamespacePolicies | None) -> tuple[str, ...]:
    """Return the clusters of a topic: its own, otherwise those of its namespace."""
    if topic.replication_clusters is not None:
        return topic.replication_clusters
    return namespace.replication_clusters if namespace else ()


def is_copied_by_default(name: TopicName, topic: TopicPolicies) -> bool:
    """Return True if a replication job copies the messages of a replicated topic by default.

    System topics belong to one cluster (Pulsar copies them). They are copied only if clusters are set for the topic
    itself, or by a job with ``include_system_topics``.
    """
    return not name.is_system or topic.replication_clusters is not None


def remote_clusters(local: str, clusters: Collection[str]) -> tuple[str, ...]:
    """Return the sorted clusters to which local messages are copied; none if the local cluster is not listed."""
    return tuple(sorted(set(clusters) - {local})) if local in clusters else ()


def sending_cluster(producer: str, replicator_prefix: str) -> str | None:
    """Return the cluster whose replicator has this producer name; None for other producers.

    The prefix includes a dot: ``pulsar.repl.west`` and ``pulsar.repl.west-->east`` are sent from west. Limits and
    statistics use this strict form. Schemas, missing topics and de-duplication check the prefix only, as in Pulsar.
    """
    route = producer.removeprefix(f"{replicator_prefix}.")
    return None if route == producer else route.partition("-->")[0]


def replicator_name(replicator_prefix: str, source: str, target: str) -> str:
    """Return the producer name of Pulsar's own replicator from one cluster to another."""
    return f"{replicator_prefix}.{source}-->{target}"


def check_replication_clusters(
    namespace: NamespaceName,
    requested: Collection[str],
    *,
    registered: Mapping[str, ClusterData],
    policies: NamespacePolicies | None,
    tenant: TenantInfo | None,
) -> None:
    """Refuse an invalid list of replication clusters. The first failing check decides, in Pulsar's order.

    ``registered`` has those of the requested clusters that are registered.
    """
    if not requested:
        raise PreconditionFailed("ClusterIds should not be null or empty")
    _check_registered(requested, registered)
    _check_peers(requested, registered)
    if policies is None:
        raise NamespaceNotFound("Namespace does not exist")
    if policies.allowed_clusters:
        for name in sorted(requested):
            if name not in policies.allowed_clusters:
                raise InvalidRequest(
                    f"Cluster [{name}] is not in the list of allowed clusters list for namespace [{namespace}]"
                )
    if tenant is None:
        raise TenantNotFound("Tenant does not exist")
    check_tenant_clusters(namespace.tenant, requested, tenant)


def check_topic_replication_clusters(
    topic: TopicName,
    requested: Collection[str],
    *,
    needed: str | None,
    registered: Mapping[str, ClusterData],
    tenant: TenantInfo,
) -> None:
    """Refuse an invalid list of replication clusters of one topic.

    The first failing check decides, in Pulsar's order.

    ``needed`` is the local cluster, unless the list is global. As in Pulsar, the allowed clusters of the namespace do
    not count here.
    """
    if not requested:
        raise PreconditionFailed("ClusterIds should not be null or empty")
    if needed is not None and needed not in requested:
        raise PreconditionFailed(
            f"Can not remove local cluster from the local topic-level replication clusters policy; add {needed}"
        )
    _check_registered(requested, registered)
    _check_peers(requested, registered)
    check_tenant_clusters(topic.tenant, requested, tenant)


def check_global_topic_clusters(requested: Collection[str], policies: NamespacePolicies) -> None:
    """Refuse global replication clusters of a topic if the policy would not reach them.

    Source: docs/reference/topic-lifecycle.md#policies-for-all-clusters.
    """
    if not requested:
        raise PreconditionFailed("ClusterIds should not be null or empty")
    if len(policies.replication_clusters) < 2:
        raise PreconditionFailed(
            "Please do not use the global topic level policy when namespace-level replication is not enabled, because "
            "the global level policy relies on namespace-level replication"
        )
    strangers = sorted(set(requested) - set(policies.replication_clusters))
    if strangers:
        raise PreconditionFailed(
            f"Global policies of topics get only to the replication clusters of the namespace "
            f"({', '.join(policies.replication_clusters)}), and {', '.join(strangers)} is not one of them"
        )


def check_allowed_clusters(
    namespace: NamespaceName,
    requested: Collection[str],
    *,
    registered: Mapping[str, ClusterData],
    policies: NamespacePolicies,
    tenant: TenantInfo,
) -> None:
    """Refuse allowed clusters that omit a replication cluster, are peers, or are not available to the tenant."""
    check_tenant_clusters(namespace.tenant, requested, tenant)
    _check_registered(requested, registered)
    _check_peers(requested, registered)
    for name in policies.replication_clusters:
        if name not in requested:
            raise InvalidRequest(
                f"Allowed clusters do not contain the replication cluster [{name}]. Please remove the replication "
                f"cluster if the cluster is not allowed for this namespace"
            )


def check_new_namespace_clusters(
    namespace: NamespaceName, policies: NamespacePolicies, *, registered: Mapping[str, ClusterData], tenant: TenantInfo
) -> None:
    """Refuse clusters of a new namespace that are not available to its tenant, not registered, peers, or not allowed.

    ``registered`` has those of both lists that are registered.
    """
    replication, allowed = policies.replication_clusters, policies.allowed_clusters
    for clusters in (replication, allowed):
        check_tenant_clusters(namespace.tenant, clusters, tenant)
        _check_registered(clusters, registered)
    _check_peers(replication, registered)
    if allowed and not set(replication) <= set(allowed):
        raise InvalidRequest(
            f"[{namespace}] All replication clusters should be included in allowed clusters. "
            f"Repl clusters: {sorted(replication)}, allowed clusters: {sorted(allowed)}"
        )


def check_namespace_left_by_others(namespace: NamespaceName, policies: NamespacePolicies) -> None:
    """Refuse the deletion of a namespace that is on several clusters, forced or not. Raise PreconditionFailed.

    Messages not replicated yet would be lost.
    """
    clusters = sorted(set(policies.replication_clusters))
    if len(clusters) > 1 and not policies.deleted:
        raise PreconditionFailed(
            f"Cannot delete the global namespace {namespace}. There are still more than one replication clusters "
            f"configured: {', '.join(clusters)}; leave one of them with set-clusters first"
        )


def check_topic_left_by_others(topic: TopicName, remotes: Collection[str]) -> None:
    """Refuse to delete a topic that is replicated to other clusters, unless it is forced. Raise Unprocessable."""
    if remotes:
        raise Unprocessable(
            f"Delete forbidden topic is replicated on clusters [{', '.join(remotes)}]: {topic}. What they have not got "
            f"would be lost; take them out of its replication clusters first, or use force"
        )


def check_tenant_clusters(tenant_name: str, requested: Collection[str], tenant: TenantInfo) -> None:
    """Refuse clusters that the tenant may not use. Raise Forbidden."""
    for name in sorted(requested):
        if name not in tenant.allowed_clusters:
            raise Forbidden(f"Cluster [{name}] is not in the list of allowed clusters list for tenant [{tenant_name}]")


def _check_registered(requested: Collection[str], registered: Mapping[str, ClusterData]) -> None:
    for name in sorted(requested):
        if name not in registered:
            raise Forbidden(f"Invalid cluster id: {name}")


def _check_peers(requested: Collection[str], registered: Mapping[str, ClusterData]) -> None:
    for name in sorted(requested):
        peers = set(registered[name].peer_cluster_names or ()) & set(requested)
        if peers:
            raise Conflict(
                f"{name}'s peer-clusters {sorted(peers)} can't be part of replication-clusters {sorted(requested)}"
            )
