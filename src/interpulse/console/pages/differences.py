"""The plan of PIP-433: changes that another cluster needs before a namespace is replicated there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from interpulse.console.pages.parts.paging import PAGES_MAX, PageOf, page_of
from interpulse.console.visit import Model, Visit
from interpulse.console.web.addresses import namespace_path
from interpulse.model.adjustments import AdjustmentPlan, ClusterPlan, Difference
from interpulse.model.names import NamespaceName
from interpulse.replication.change_forms import reason_of, remedy_of, request_of

_ONLY_THERE_MAX: Final = 200


async def build(visit: Visit) -> Model:
    """Build the page. Raise the admin API's refusal of the preview."""
    model: Model = {
        "namespace": visit.text("namespace"),  # empty before a choice
        "replicated_to": (),
        "known_clusters": (),
        "chosen": (),
        "known": True,  # False while the clusters are being compared
        "age_seconds": 0.0,
        "outcome": "",
        "digest": "",
        "clusters": (),
        "page": None,  # the conflicts, then the changes of each cluster; None while nothing is compared
    }
    if not model["namespace"]:
        return model
    namespace = NamespaceName.parse(model["namespace"])
    now = await visit.admin.namespaces.replication_clusters(namespace)
    local = visit.host.cluster
    model |= {
        "namespace": str(namespace),
        "replicated_to": now,
        "known_clusters": sorted(set(await visit.admin.clusters.list()) - {local, "global"}),
    }
    wanted = [part.strip() for part in visit.text("clusters").replace(" ", ",").split(",") if part.strip()]
    if not wanted:
        return model
    chosen = tuple(sorted({local, *now, *wanted}))
    await visit.check("POST", namespace_path(namespace, "/replication"))
    key = ("differences", visit.visitor.role, namespace, chosen)
    result = await visit.cache.get(key, lambda: visit.broker.preview_clusters(namespace, chosen), fresh_seconds=0.0)
    model |= {"chosen": chosen, "known": result.value is not None}
    if (plan := result.value) is not None:
        page = page_of(_differences(plan), visit.number("page", 0, most=PAGES_MAX))
        model |= {
            "age_seconds": result.age_seconds,
            "outcome": str(plan.outcome),
            "digest": plan.digest,
            "clusters": [_cluster(cluster) for cluster in plan.clusters],
            "page": PageOf([_row(*difference) for difference in page.rows], page.number, page.total),
        }
    return model


def _differences(plan: AdjustmentPlan) -> list[tuple[str, Difference]]:
    return [
        (cluster.cluster, difference)
        for cluster in plan.clusters
        for difference in (*cluster.conflicts, *cluster.changes)
    ]


def _cluster(plan: ClusterPlan) -> Model:
    only_there = plan.remote_only[:_ONLY_THERE_MAX]
    return {
        "cluster": plan.cluster,
        "skip_reason": plan.skip_reason or "",
        "changes_total": len(plan.changes),
        "conflicts_total": len(plan.conflicts),
        "only_there": [f"{topic.topic} ({topic.target['partitions'] or 'no'} partitions)" for topic in only_there],
        "only_there_total": len(plan.remote_only),
    }


def _row(cluster: str, difference: Difference) -> Model:
    """Return a conflict, which needs a decision of an operator, or a planned change on another cluster."""
    row = {"cluster": cluster, "subject": str(difference.topic or difference.kind.replace("_", " ").lower())}
    here, there = _text(difference.source), _text(difference.target)
    if difference.change is None:
        reason, remedy = reason_of(difference, cluster), remedy_of(difference, cluster)
        return row | {"local": here, "remote": there, "reason": reason, "remedy": remedy}
    request = request_of(difference.change, local_only=True)
    body = "" if request.body is None else f" {json.dumps(request.body)}"
    return row | {"current": there, "desired": here, "request": f"{request.method} {request.path}{body}"}


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(item)}" for name, item in value.items())
    return "not set" if value is None else json.dumps(value, ensure_ascii=False).strip('"')
