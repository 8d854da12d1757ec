"""What another cluster lacks before a namespace is replicated there: the plan of PIP-433, and carrying it out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from interpulse.broker.console.visit import Visit
from interpulse.broker.console.web.addresses import namespace_path
from interpulse.model.names import NamespaceName

__all__ = ["DifferencesModel", "build"]

_ONLY_THERE_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Change:
    """What would be changed on another cluster."""

    subject: str
    current: str
    desired: str
    request: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """What somebody has to decide."""

    subject: str
    local: str
    remote: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ClusterDifferences:
    """One other cluster."""

    cluster: str
    skip_reason: str
    changes: tuple[Change, ...]
    conflicts: tuple[Conflict, ...]
    only_there: tuple[str, ...]
    """The first by name."""

    only_there_total: int


@dataclass(frozen=True, slots=True)
class _Plan:
    outcome: str
    digest: str
    clusters: tuple[ClusterDifferences, ...]


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


async def build(visit: Visit) -> DifferencesModel:
    """Raises what the admin API refuses the preview with."""
    if not visit.text("namespace"):
        return DifferencesModel("")
    namespace = NamespaceName.parse(visit.text("namespace"))
    now = tuple(await visit.admin.namespaces.replication_clusters(namespace))
    local = visit.home.cluster
    known = tuple(sorted(set(await visit.admin.clusters.list()) - {local, "global"}))
    wanted = [each.strip() for each in visit.text("clusters").replace(" ", ",").split(",") if each.strip()]
    if not wanted:
        return DifferencesModel(str(namespace), now, known)
    chosen = tuple(sorted({local, *now, *wanted}))
    await visit.check("POST", namespace_path(namespace, "/replication"))
    key = ("differences", visit.visitor.role, namespace, chosen)
    kept = await visit.kept.get(key, lambda: _plan(visit, namespace, chosen), fresh_seconds=0.0)
    asked = DifferencesModel(str(namespace), now, known, chosen)
    if kept.value is None:
        return replace(asked, known=False)
    plan = kept.value
    return replace(
        asked, age_seconds=kept.age_seconds, outcome=plan.outcome, digest=plan.digest, clusters=plan.clusters
    )


async def _plan(visit: Visit, namespace: NamespaceName, chosen: tuple[str, ...]) -> _Plan:
    plan = await visit.admin.namespaces.adjust_for_replication(namespace, chosen, previewed=True)
    return _Plan(plan["outcome"], plan["digest"], tuple(_cluster(each) for each in plan["clusters"]))


def _cluster(found: Mapping[str, Any]) -> ClusterDifferences:
    return ClusterDifferences(
        found["cluster"],
        found["skipReason"] or "",
        tuple(_change(each) for each in found["changes"]),
        tuple(_conflict(each) for each in found["conflicts"]),
        tuple(f"{each['topic']} ({each['partitions'] or 'no'} partitions)" for each in found["info"][:_ONLY_THERE_MAX]),
        len(found["info"]),
    )


def _change(found: Mapping[str, Any]) -> Change:
    request = found["request"]
    body = "" if request["body"] is None else f" {json.dumps(request['body'])}"
    call = f"{request['method']} {request['path']}{body}"
    return Change(_subject(found), _told(found["current"]), _told(found["desired"]), call)


def _conflict(found: Mapping[str, Any]) -> Conflict:
    local, remote = _told(found.get("local")), _told(found.get("remote"))
    return Conflict(_subject(found), local, remote, found["reason"], found["remedy"])


def _subject(found: Mapping[str, Any]) -> str:
    return str(found.get("topic") or found["kind"].replace("_", " ").lower())


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_told(item)}" for name, item in value.items())
    return "not set" if value is None else json.dumps(value, ensure_ascii=False).strip('"')
