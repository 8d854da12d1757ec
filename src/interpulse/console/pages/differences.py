"""The differences of another cluster before a namespace is replicated there: the plan of PIP-433."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from interpulse.console.pages.parts.paging import PAGES_MAX, PageOf, page_of
from interpulse.console.visit import Visit
from interpulse.console.web.addresses import namespace_path
from interpulse.model.adjustments import AdjustmentChange, AdjustmentConflict, AdjustmentPlan, ClusterPlan
from interpulse.model.names import NamespaceName

__all__ = ["DifferencesModel", "build"]

_Found = tuple[str, AdjustmentChange | AdjustmentConflict]
"""A cluster, and what of it."""

_ONLY_THERE_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Change:
    """A change on another cluster."""

    cluster: str
    subject: str
    current: str
    desired: str
    request: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A conflict that an operator has to decide."""

    cluster: str
    subject: str
    local: str
    remote: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ClusterDifferences:
    """One other cluster, as a whole."""

    cluster: str
    skip_reason: str
    changes_total: int
    conflicts_total: int
    only_there: tuple[str, ...]
    """The first by name."""

    only_there_total: int


@dataclass(frozen=True, slots=True)
class DifferencesModel:
    """The page."""

    namespace: str
    """Empty: the visitor has not chosen one yet."""

    replicated_to: tuple[str, ...] = ()
    known_clusters: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    known: bool = True
    """False: the clusters are being compared."""

    age_seconds: float = 0.0
    outcome: str = ""
    digest: str = ""
    clusters: tuple[ClusterDifferences, ...] = ()
    page: PageOf[Change | Conflict] | None = None
    """The conflicts, then the changes of each cluster; None while nothing is compared."""


async def build(visit: Visit) -> DifferencesModel:
    """Build the page. Raise the admin API's refusal of the preview."""
    if not visit.text("namespace"):
        return DifferencesModel("")
    namespace = NamespaceName.parse(visit.text("namespace"))
    now = tuple(await visit.admin.namespaces.replication_clusters(namespace))
    local = visit.host.cluster
    known = tuple(sorted(set(await visit.admin.clusters.list()) - {local, "global"}))
    wanted = [each.strip() for each in visit.text("clusters").replace(" ", ",").split(",") if each.strip()]
    if not wanted:
        return DifferencesModel(str(namespace), now, known)
    chosen = tuple(sorted({local, *now, *wanted}))
    await visit.check("POST", namespace_path(namespace, "/replication"))
    key = ("differences", visit.visitor.role, namespace, chosen)
    kept = await visit.cache.get(key, lambda: _compared(visit, namespace, chosen), fresh_seconds=0.0)
    asked = DifferencesModel(str(namespace), now, known, chosen)
    if kept.value is None:
        return replace(asked, known=False)
    plan = kept.value.plan
    page = page_of(kept.value.rows, visit.number("page", 0, most=PAGES_MAX))
    return replace(
        asked,
        age_seconds=kept.age_seconds,
        outcome=str(plan.outcome),
        digest=plan.digest,
        clusters=tuple(map(_cluster, plan.clusters)),
        page=PageOf([_row(*each) for each in page.rows], page.number, page.total),
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """``rows`` are those of all pages."""

    plan: AdjustmentPlan
    rows: list[_Found]


async def _compared(visit: Visit, namespace: NamespaceName, chosen: tuple[str, ...]) -> _Compared:
    plan = await visit.broker.preview_clusters(namespace, chosen)
    rows: list[_Found] = []
    for each in plan.clusters:
        rows += [(each.cluster, conflict) for conflict in each.conflicts]
        rows += [(each.cluster, change) for change in each.changes]
    return _Compared(plan, rows)


def _cluster(plan: ClusterPlan) -> ClusterDifferences:
    first = plan.remote_only[:_ONLY_THERE_MAX]
    return ClusterDifferences(
        plan.cluster,
        plan.skip_reason or "",
        len(plan.changes),
        len(plan.conflicts),
        tuple(f"{topic} ({partitions or 'no'} partitions)" for topic, partitions in first),
        len(plan.remote_only),
    )


def _row(cluster: str, found: AdjustmentChange | AdjustmentConflict) -> Change | Conflict:
    subject = str(found.topic or found.kind.replace("_", " ").lower())
    if isinstance(found, AdjustmentConflict):
        return Conflict(cluster, subject, _text(found.local), _text(found.remote), found.reason, found.remedy)
    request = found.request
    body = "" if request.body is None else f" {json.dumps(request.body)}"
    call = f"{request.method} {request.path}{body}"
    return Change(cluster, subject, _text(found.current), _text(found.desired), call)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(item)}" for name, item in value.items())
    return "not set" if value is None else json.dumps(value, ensure_ascii=False).strip('"')
