"""Plan that removes the differences between two clusters, its preview and its application (PIP-433).

The source is the reference. A preview and a real run make the same plan; a conflict anywhere prevents all changes.
Changes are applied one after the other, each by the request that the plan shows. The first failure stops the run: the
changes made so far remain, the replication clusters are not stored, and the call can be repeated, because every change
is idempotent. `apply` also makes the changes of an audit's plan.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from interpulse.in_turns import dumped_in_turns, in_turns, sorted_in_turns
from interpulse.model.adjustments import (
    PLAN_LEVELS,
    AdjustmentPlan,
    ChangeStatus,
    ClusterPlan,
    Difference,
    DifferenceKind,
    Outcome,
    Severity,
)
from interpulse.model.changes import SetPartitionCount
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import Conflict, NamespaceNotFound, PulsarError, RemoteClusterUnavailable
from interpulse.model.names import NamespaceName
from interpulse.replication.change_forms import reason_of, remedy_of, request_of
from interpulse.replication.inventory import Connect, NamespaceReading, read_namespace, read_remote
from interpulse.rules.comparison import count_difference, in_force_differences, namespace_missing
from interpulse.rules.inventory import NamespaceInventory

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_SHARED: Final = "both clusters share one configuration store, so there is nothing to compare"


@dataclass(frozen=True, slots=True)
class Enabling:
    """Request to replicate a namespace. ``added`` are its new clusters, without the local one."""

    namespace: NamespaceName
    local_cluster: str
    requested: tuple[str, ...]
    added: Mapping[str, ClusterData]


async def preview(enabling: Enabling, local: NamespaceReading, connect: Connect) -> AdjustmentPlan:
    """Return the plan for all added clusters. Change nothing. Raise the errors of the local cluster."""
    clusters: list[ClusterPlan] = []
    if enabling.added:
        here = await read_namespace(local, enabling.namespace)
        plans = (_plan_cluster(enabling, cluster, here, connect) for cluster in sorted(enabling.added))
        clusters = await asyncio.gather(*plans)
    plan = AdjustmentPlan(enabling.namespace, enabling.local_cluster, enabling.requested, tuple(clusters))
    document = await dumped_in_turns(_compared(plan, iter), levels=PLAN_LEVELS)
    return replace(plan, digest=hashlib.sha256(document).hexdigest())


async def adjust(
    enabling: Enabling,
    local: NamespaceReading,
    connect: Connect,
    store: Callable[[], Awaitable[None]],
    *,
    shown: str | None = None,
) -> AdjustmentPlan:
    """Apply the plan, compare again, and ``store`` the replication clusters if nothing differs any more.

    The returned plan has the progress of every change, and the reason if it was not applied. ``shown`` is the digest of
    a previewed plan: a different plan is not applied.
    """
    plan = await preview(enabling, local, connect)
    if shown is not None and shown != plan.digest:
        return _refused(plan, f"The plan is another one than that with the digest {shown[:64]}: preview it again")
    if plan.outcome is Outcome.CONFLICT:
        return _refused(plan, "; ".join(_conflict_reasons(plan)))
    if plan.outcome is Outcome.NEEDS_ADJUSTMENT:
        plan = await _apply(enabling, plan, connect)
        if plan.applied is False:
            return plan
    try:
        if plan.outcome is Outcome.NEEDS_ADJUSTMENT:
            left = await preview(enabling, local, connect)
            if left.outcome is not Outcome.READY:
                return _refused(plan, f"After the changes the clusters still differ, or differ again: {_summary(left)}")
        await store()
    except PulsarError as error:  # storing failed locally; the plan must report the changes made remotely
        reason = f"The clusters could not be stored and put in force here: {error}; the command can be repeated"
        return _refused(plan, reason, error.http_status)
    return replace(plan, applied=True)


def _refused(plan: AdjustmentPlan, reason: str, http_status: int = Conflict.http_status) -> AdjustmentPlan:
    return replace(plan, applied=False, reason=reason, http_status=http_status)


def _summary(plan: AdjustmentPlan) -> str:
    changes = ((cluster.cluster, change) for cluster in plan.clusters for change in cluster.changes)
    shown = (f"{change.kind} of {change.topic or plan.namespace} on {cluster}" for cluster, change in changes)
    return "; ".join([*_conflict_reasons(plan), *shown])


def _conflict_reasons(plan: AdjustmentPlan) -> Iterable[str]:
    return (
        f"{reason_of(conflict, cluster.cluster)}; {remedy_of(conflict, cluster.cluster)}"
        for cluster in plan.clusters
        for conflict in cluster.conflicts
    )


# ---- Plan of one cluster


async def _plan_cluster(enabling: Enabling, cluster: str, local: NamespaceInventory, connect: Connect) -> ClusterPlan:
    namespace = enabling.namespace
    try:
        remote = await read_remote(cluster, enabling.added[cluster], namespace, connect)
    except NamespaceNotFound:
        return await plan_cluster(cluster, namespace, local, NamespaceInventory())
    except RemoteClusterUnavailable as error:
        kind = DifferenceKind.CLUSTER_UNREACHABLE
        unreachable = Difference(Severity.ERROR, kind, namespace, fault=str(error))
        return ClusterPlan(cluster, conflicts=(unreachable,), skip_reason=str(error))
    if remote is None:
        return ClusterPlan(cluster, skip_reason=_SHARED)
    return await plan_cluster(cluster, namespace, local, remote)


async def plan_cluster(
    cluster: str, namespace: NamespaceName, local: NamespaceInventory, remote: NamespaceInventory
) -> ClusterPlan:
    """Return the plan that makes the remote namespace equal. Only an operator creates the namespace itself."""
    if remote.state is None:
        return ClusterPlan(cluster, conflicts=(namespace_missing(namespace),))
    policies, topics = await compare(namespace, local, remote)
    conflicts = [topic for topic in topics if topic.choices]
    return ClusterPlan(
        cluster,
        changes=(*policies, *(topic for topic in topics if topic.change)),
        conflicts=tuple(sorted(conflicts, key=lambda conflict: conflict.kind)),
        remote_only=tuple(topic for topic in topics if topic.severity is Severity.INFO),
    )


async def compare(
    namespace: NamespaceName, local: NamespaceInventory, remote: NamespaceInventory
) -> tuple[list[Difference], list[Difference]]:
    """Return the differences of policies, and those of partition counts by topic, of a namespace of both clusters.

    Lets other tasks run meanwhile.
    """
    assert local.state is not None
    assert remote.state is not None
    policies = in_force_differences(namespace, local.state.in_force(), remote.state.in_force())
    topics = [
        difference
        async for rows in in_turns(remote.topics.values())
        for row in rows
        if (difference := count_difference(local.topics.get(row.topic), row)) is not None
    ]
    return list(policies), await sorted_in_turns(topics, key=lambda difference: str(difference.topic))


# ---- Application


async def _apply(enabling: Enabling, plan: AdjustmentPlan, connect: Connect) -> AdjustmentPlan:
    """Apply one cluster after the other; after a failure all further changes stay pending."""
    clusters: list[ClusterPlan] = []
    failure: PulsarError | None = None
    for cluster in plan.clusters:
        changes = tuple(replace(change, status=ChangeStatus.PENDING) for change in cluster.changes)
        if changes and not failure:
            async with connect(cluster.cluster, enabling.added[cluster.cluster]) as admin:
                changes, failure = await _apply_all(admin, changes)
            if failure:
                reason = f"Cluster {cluster.cluster} could not be adjusted: {failure}"
                plan = _refused(plan, reason, failure.http_status)
        clusters.append(replace(cluster, changes=changes))
    return replace(plan, clusters=tuple(clusters))


async def _apply_all(
    admin: AdminClient, changes: tuple[Difference, ...]
) -> tuple[tuple[Difference, ...], PulsarError | None]:
    tried: list[Difference] = []
    for change in changes:
        try:
            await apply(admin, change)
        except PulsarError as error:
            failed = replace(change, status=ChangeStatus.FAILED, error=str(error))
            return (*tried, failed, *changes[len(tried) + 1 :]), error
        tried.append(replace(change, status=ChangeStatus.DONE))
    return tuple(tried), None


async def apply(admin: AdminClient, difference: Difference) -> None:
    """Send the request of the difference's change to the target. Raise the cluster's error.

    A refused expansion counts only if the topic does not have the wanted count: the answer to an earlier request may
    have been lost, or another change may have been faster.
    """
    change = difference.change
    assert change is not None, "a conflict is not applied"
    try:
        await admin.send(request_of(change, local_only=True))
    except PulsarError:
        if isinstance(change, SetPartitionCount):
            with suppress(PulsarError):  # the refusal itself is reported
                if (await admin.topics.partitioned_metadata(change.topic)).partitions == change.partitions:
                    return
        raise


# ---- Document

Array = Callable[[Iterable[Any]], Any]
"""Type of arrays that may be long: `list`, or `iter` for a caller that writes them in turns."""


def plan_document(plan: AdjustmentPlan, array: Array = list) -> dict[str, Any]:
    """Return the plan as the JSON of ``POST .../replication?preview=true`` (PIP-433)."""
    body = _compared(plan, array) | {"digest": plan.digest}
    if plan.applied is not None:
        body["applied"] = plan.applied
    return body if plan.reason is None else body | {"reason": plan.reason}


def _compared(plan: AdjustmentPlan, array: Array) -> dict[str, Any]:
    return {
        "namespace": str(plan.namespace),
        "localCluster": plan.local_cluster,
        "requestedClusters": list(plan.requested),
        "addedClusters": [cluster.cluster for cluster in plan.clusters],
        "outcome": str(plan.outcome),
        "clusters": [_cluster_json(cluster, array) for cluster in plan.clusters],
    }


def _cluster_json(plan: ClusterPlan, array: Array) -> dict[str, Any]:
    return {
        "cluster": plan.cluster,
        "checked": plan.skip_reason is None,
        "skipReason": plan.skip_reason,
        "changes": array(map(_change_json, plan.changes)),
        "conflicts": array(_conflict_json(conflict, plan.cluster) for conflict in plan.conflicts),
        "info": array(_subject_json(topic) | topic.target for topic in plan.remote_only),
    }


def _subject_json(difference: Difference) -> dict[str, Any]:
    body = {"kind": str(difference.kind)}
    return body if difference.topic is None else body | {"topic": str(difference.topic)}


def _change_json(difference: Difference) -> dict[str, Any]:
    assert difference.change is not None, "a conflict is no change"
    body = _subject_json(difference) | {"current": difference.target, "desired": difference.source}
    body["request"] = request_of(difference.change, local_only=True).to_json()
    progress = {"status": difference.status and str(difference.status), "error": difference.error}
    return body | {name: value for name, value in progress.items() if value is not None}


def _conflict_json(difference: Difference, cluster: str) -> dict[str, Any]:
    sides = {"local": difference.source, "remote": difference.target}
    body = _subject_json(difference) | {side: state for side, state in sides.items() if state is not None}
    return body | {"reason": reason_of(difference, cluster), "remedy": remedy_of(difference, cluster)}
