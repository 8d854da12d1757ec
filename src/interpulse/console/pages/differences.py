"""The plan of PIP-433: changes that another cluster needs before a namespace is replicated there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from interpulse.console.pages.parts.paging import PAGES_MAX, PageOf, page_of
from interpulse.console.visit import Visit
from interpulse.console.web.addresses import namespace_path
from interpulse.model.adjustments import AdjustmentPlan, ClusterPlan, Difference
from interpulse.model.names import NamespaceName
from interpulse.replication.change_forms import reason_of, remedy_of, request_of

_Found = tuple[str, Difference]
"""A cluster, and one of its differences."""

_ONLY_THERE_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Change:
    """A planned change on another cluster."""

    cluster: str
    subject: str
    current: str
    desired: str
    request: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A difference that needs a decision of an operator."""

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
    """The chosen namespace; empty before a choice."""

    replicated_to: tuple[str, ...] = ()
    known_clusters: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    known: bool = True
    """False while the clusters are being compared."""

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
    wanted = [part.strip() for part in visit.text("clusters").replace(" ", ",").split(",") if part.strip()]
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
        page=PageOf([_row(*row) for row in page.rows], page.number, page.total),
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """A finished comparison; ``rows`` are the rows of all pages."""

    plan: AdjustmentPlan
    rows: list[_Found]


async def _compared(visit: Visit, namespace: NamespaceName, chosen: tuple[str, ...]) -> _Compared:
    plan = await visit.broker.preview_clusters(namespace, chosen)
    rows: list[_Found] = []
    for cluster in plan.clusters:
        rows += [(cluster.cluster, conflict) for conflict in cluster.conflicts]
        rows += [(cluster.cluster, change) for change in cluster.changes]
    return _Compared(plan, rows)


def _cluster(plan: ClusterPlan) -> ClusterDifferences:
    first = plan.remote_only[:_ONLY_THERE_MAX]
    return ClusterDifferences(
        plan.cluster,
        plan.skip_reason or "",
        len(plan.changes),
        len(plan.conflicts),
        tuple(f"{topic.topic} ({topic.target['partitions'] or 'no'} partitions)" for topic in first),
        len(plan.remote_only),
    )


def _row(cluster: str, difference: Difference) -> Change | Conflict:
    subject = str(difference.topic or difference.kind.replace("_", " ").lower())
    here, there = _text(difference.source), _text(difference.target)
    if difference.change is None:
        return Conflict(cluster, subject, here, there, reason_of(difference, cluster), remedy_of(difference, cluster))
    request = request_of(difference.change, local_only=True)
    body = "" if request.body is None else f" {json.dumps(request.body)}"
    return Change(cluster, subject, there, here, f"{request.method} {request.path}{body}")


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(item)}" for name, item in value.items())
    return "not set" if value is None else json.dumps(value, ensure_ascii=False).strip('"')
