"""Topics of a namespace whose records disagree (PIP-344, PIP-414), the effect on clients, and the repairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from interpulse.console.pages.parts.visible_namespaces import to_list_topics
from interpulse.console.visit import Visit
from interpulse.model.changes import (
    CreateMissedPartitions,
    CreatePartitionedMetadata,
    CreateTopicRecord,
    DeletePartitionedMetadata,
    DeleteTopic,
    SetPartitionCount,
    TopicAdminChange,
)
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, NamespaceName, TopicName
from interpulse.replication.topic_doctor import Contents, TopicDoctor
from interpulse.rules.topic_diagnosis import Deletion, Finding

_FINDINGS_MAX: Final = 200
_CONTENTS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Remedy:
    """An action of the console, and its fields."""

    action: str
    label: str
    fields: dict[str, str]


@dataclass(frozen=True, slots=True)
class Loss:
    """A repair that loses the contents of these topics."""

    remedy: Remedy
    outcome: str
    lost: tuple[str, ...]
    """A sentence about the contents of each."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One disagreement."""

    topic: str
    kind: str
    sentence: str
    repairs: tuple[Remedy, ...]
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class DoctorModel:
    """The page."""

    namespace: str
    """The chosen namespace; empty before a choice."""

    known: bool = True
    """False while the namespace is examined for the first time."""

    age_seconds: float = 0.0
    examined: int = 0
    findings: tuple[Shown, ...] = ()
    left_out: int = 0
    unreadable: tuple[str, ...] = ()
    unanswered: dict[str, str] | None = None


async def build(visit: Visit) -> DoctorModel:
    """Return the page. Raises NamespaceNotFound."""
    if not visit.text("namespace"):
        return DoctorModel("")
    namespace = NamespaceName.parse(visit.text("namespace"))
    await visit.check("GET", to_list_topics(namespace))
    key = ("doctor", visit.visitor.role, namespace)
    kept = await visit.cache.get(key, lambda: _examined(visit, namespace), fresh_seconds=0.0)
    if kept.value is None:
        return DoctorModel(str(namespace), known=False)
    return replace(kept.value, age_seconds=kept.age_seconds)


async def _examined(visit: Visit, namespace: NamespaceName) -> DoctorModel:
    doctor = TopicDoctor(visit.admin, domains=(PERSISTENT, NON_PERSISTENT))
    report = await doctor.examine(namespace)
    shown = report.findings[:_FINDINGS_MAX]
    lost = {name: way.refused for finding in shown for way in finding.deletions for name in way.lost}
    contents = await doctor.contents(dict(list(lost.items())[:_CONTENTS_MAX]))
    return DoctorModel(
        str(namespace),
        examined=report.topics_count,
        findings=tuple(_shown(finding, contents) for finding in shown),
        left_out=max(0, len(report.findings) - _FINDINGS_MAX),
        unreadable=report.unreadable[:_FINDINGS_MAX],
        unanswered={str(name): str(error) for name, error in islice(report.unanswered.items(), _FINDINGS_MAX)},
    )


def _shown(finding: Finding, contents: Mapping[TopicName, Contents]) -> Shown:
    losses = tuple(_loss(way, contents) for way in finding.deletions)
    repairs = tuple(_remedy(repair) for repair in finding.repairs)
    return Shown(str(finding.topic), finding.kind.value.replace("-", " "), finding.sentence, repairs, losses)


def _loss(way: Deletion, contents: Mapping[TopicName, Contents]) -> Loss:
    return Loss(_remedy(way.call), way.outcome, tuple(_contents_text(name, contents.get(name)) for name in way.lost))


def _contents_text(name: TopicName, found: Contents | None) -> str:
    if found is None or found.entries is None:
        return f"{name}: unknown"
    backlog = sum(backlog or 0 for backlog in found.backlogs.values())
    about = "" if found.exact else "at least "
    return f"{name}: {about}{found.entries:,} entries, {backlog:,} messages not consumed"


_REMEDIES: Final[dict[type[TopicAdminChange], tuple[str, str]]] = {
    CreatePartitionedMetadata: ("create-partitioned-topic", "Write its partition metadata"),
    SetPartitionCount: ("force-partition-count", "Set its partition count"),
    CreateMissedPartitions: ("create-missed-partitions", "Create the missing partitions"),
    CreateTopicRecord: ("create-topic", "Create its record"),
    DeletePartitionedMetadata: ("delete-partitioned-topic", "Delete the partitioned topic"),
    DeleteTopic: ("delete-topic", "Delete this topic"),
}
"""The action of the console that makes a change, and its label."""


def _remedy(change: TopicAdminChange) -> Remedy:
    fields = {"topic": str(change.topic)}
    if isinstance(change, CreatePartitionedMetadata | SetPartitionCount):
        fields["partitions"] = str(change.partitions)
    return Remedy(*_REMEDIES[type(change)], fields)
