"""Make a namespace's remote clusters fit before its replication is enabled, or say what that would take (PIP-433).

The source is the standard. A preview and a real run make the same plan; a conflict anywhere changes nothing anywhere.
Changes are applied one after the other, each by the very request that the plan shows. The first that fails stops the
run: what was done stays, the replication clusters are not stored, and the call can be repeated, since every change may
be made twice.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from interpulse.in_turns import dumped_in_turns, in_turns, sorted_in_turns
from interpulse.model.adjustments import (
    PLAN_LEVELS,
    AdjustmentChange,
    AdjustmentConflict,
    AdjustmentPlan,
    ChangeKind,
    ChangeStatus,
    ClusterPlan,
    ConflictKind,
    Outcome,
)
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import Conflict, NamespaceNotFound, PulsarError, RemoteClusterUnavailable
from interpulse.model.names import NamespaceName
from interpulse.replication.snapshot import Connect, NamespaceReading, differing, read_namespace, read_remote
from interpulse.rules.compatibility import (
    NamespaceSnapshot,
    joined_plans,
    plan_adjustments,
    plan_policies,
    plan_topics,
)

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

__all__ = ["Enabling", "adjust", "preview"]

_SHARED: Final = "both clusters share one configuration store, so there is nothing to compare"


@dataclass(frozen=True, slots=True)
class Enabling:
    """What is asked for; ``added`` are the clusters that are new for the namespace, without the local one."""

    namespace: NamespaceName
    local_cluster: str
    requested: tuple[str, ...]
    added: Mapping[str, ClusterData]


async def preview(enabling: Enabling, local: NamespaceReading, connect: Connect) -> AdjustmentPlan:
    """The plan for all added clusters; nothing is changed. Raises what the local cluster answers."""
    clusters: list[ClusterPlan] = []
    if enabling.added:
        here = await read_namespace(local, enabling.namespace)
        clusters = await asyncio.gather(
            *(_plan_cluster(enabling, each, here, connect) for each in sorted(enabling.added))
        )
    plan = AdjustmentPlan(enabling.namespace, enabling.local_cluster, enabling.requested, tuple(clusters))
    document = await dumped_in_turns(plan.compared(iter), levels=PLAN_LEVELS)
    return replace(plan, digest=hashlib.sha256(document).hexdigest())


async def adjust(
    enabling: Enabling,
    local: NamespaceReading,
    connect: Connect,
    store: Callable[[], Awaitable[None]],
    *,
    shown: str | None = None,
) -> AdjustmentPlan:
    """Apply the plan, look again, and ``store`` the replication clusters if nothing differs any more.

    The plan that comes back says whether it was applied, why not, and how far every change came. ``shown`` is the
    digest of the plan that somebody saw: another one than that is not applied.
    """
    plan = await preview(enabling, local, connect)
    if shown is not None and shown != plan.digest:
        return _refused(plan, f"The plan is another one than that with the digest {shown[:64]}: preview it again")
    if plan.outcome is Outcome.CONFLICT:
        return _refused(plan, "; ".join(plan.conflict_reasons()))
    if plan.outcome is Outcome.NEEDS_ADJUSTMENT:
        plan = await _apply(enabling, plan, connect)
        if plan.applied is False:
            return plan
    try:
        return await _finish(enabling, plan, local, connect, store)
    except PulsarError as error:  # here, where the clusters are stored; the plan has to say what was done there
        reason = f"The clusters could not be stored and put in force here: {error}; the command can be repeated"
        return _refused(plan, reason, error.http_status)


async def _finish(
    enabling: Enabling,
    plan: AdjustmentPlan,
    local: NamespaceReading,
    connect: Connect,
    store: Callable[[], Awaitable[None]],
) -> AdjustmentPlan:
    if plan.outcome is Outcome.NEEDS_ADJUSTMENT:
        left = await preview(enabling, local, connect)
        if left.outcome is not Outcome.READY:
            return _refused(plan, f"After the changes the clusters still differ, or differ again: {_summary(left)}")
    await store()
    return replace(plan, applied=True)


def _refused(plan: AdjustmentPlan, reason: str, http_status: int = Conflict.http_status) -> AdjustmentPlan:
    return replace(plan, applied=False, reason=reason, http_status=http_status)


def _summary(plan: AdjustmentPlan) -> str:
    changes = (
        f"{each.kind} of {each.topic or plan.namespace} on {cluster.cluster}"
        for cluster in plan.clusters
        for each in cluster.changes
    )
    return "; ".join([*plan.conflict_reasons(), *changes])


async def _plan_cluster(enabling: Enabling, cluster: str, local: NamespaceSnapshot, connect: Connect) -> ClusterPlan:
    try:
        remote = await read_remote(cluster, enabling.added[cluster], enabling.namespace, connect)
    except NamespaceNotFound:
        return plan_adjustments(cluster, enabling.namespace, local, None)
    except RemoteClusterUnavailable as error:
        return _unreachable(cluster, str(error))
    if remote is None:
        return ClusterPlan(cluster, skip_reason=_SHARED)
    return await _planned(cluster, enabling.namespace, *await differing(local, remote))


async def _planned(
    cluster: str, namespace: NamespaceName, local: NamespaceSnapshot, remote: NamespaceSnapshot
) -> ClusterPlan:
    """As `plan_adjustments`, in turns."""
    names = await sorted_in_turns(remote.partitions, key=str)
    topics = [plan_topics(cluster, some, local, remote) async for some in in_turns(names)]
    return joined_plans(plan_policies(cluster, namespace, local, remote), topics)


def _unreachable(cluster: str, reason: str) -> ClusterPlan:
    remedy = f"see that {cluster} is up, its address (clusters get {cluster}) and our credentials right, then ask again"
    conflict = AdjustmentConflict(ConflictKind.CLUSTER_UNREACHABLE, reason, remedy)
    return ClusterPlan(cluster, conflicts=(conflict,), skip_reason=reason)


async def _apply(enabling: Enabling, plan: AdjustmentPlan, connect: Connect) -> AdjustmentPlan:
    """One cluster after the other; after a failure everything that follows stays pending."""
    clusters: list[ClusterPlan] = []
    failure: PulsarError | None = None
    for each in plan.clusters:
        if failure or not each.changes:
            clusters.append(replace(each, changes=tuple(_pending(change) for change in each.changes)))
            continue
        async with connect(each.cluster, enabling.added[each.cluster]) as admin:
            changes, failure = await _apply_all(admin, each.changes)
        clusters.append(replace(each, changes=changes))
        if failure:
            plan = _refused(plan, f"Cluster {each.cluster} could not be adjusted: {failure}", failure.http_status)
    return replace(plan, clusters=tuple(clusters))


async def _apply_all(
    admin: AdminClient, changes: tuple[AdjustmentChange, ...]
) -> tuple[tuple[AdjustmentChange, ...], PulsarError | None]:
    tried: list[AdjustmentChange] = []
    for change in changes:
        try:
            await _make_true(admin, change)
        except PulsarError as error:
            tried.append(replace(change, status=ChangeStatus.FAILED, error=str(error)))
            rest = (_pending(each) for each in changes[len(tried) :])
            return (*tried, *rest), error
        tried.append(replace(change, status=ChangeStatus.DONE))
    return tuple(tried), None


def _pending(change: AdjustmentChange) -> AdjustmentChange:
    return replace(change, status=ChangeStatus.PENDING)


async def _make_true(admin: AdminClient, change: AdjustmentChange) -> None:
    """Send the change's request. A refusal to grow counts only if the topic has not the wanted count already.

    Its answer may have been lost, or another change may have been faster.
    """
    try:
        await admin.send(change.request)
    except PulsarError:
        if change.kind is not ChangeKind.TOPIC_PARTITIONS or not await _has_grown(admin, change):
            raise


async def _has_grown(admin: AdminClient, change: AdjustmentChange) -> bool:
    assert change.topic is not None, "a change of partitions concerns a topic"
    try:
        metadata = await admin.topics.partitioned_metadata(change.topic)
    except PulsarError:  # the refusal itself is what is reported
        return False
    return bool(metadata.partitions == change.desired["partitions"])
