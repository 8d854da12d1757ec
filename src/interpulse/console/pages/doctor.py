"""Topics of a namespace whose records disagree (PIP-344, PIP-414), the effect on clients, and the repairs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from interpulse.console.visit import Model, Visit, to_list_topics
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
from interpulse.rules.topic_diagnosis import Finding

_FINDINGS_MAX: Final = 200
_CONTENTS_MAX: Final = 20


_ACTIONS: Final[dict[type[TopicAdminChange], tuple[str, str]]] = {
    CreatePartitionedMetadata: ("create-partitioned-topic", "Write its partition metadata"),
    SetPartitionCount: ("force-partition-count", "Set its partition count"),
    CreateMissedPartitions: ("create-missed-partitions", "Create the missing partitions"),
    CreateTopicRecord: ("create-topic", "Create its record"),
    DeletePartitionedMetadata: ("delete-partitioned-topic", "Delete the partitioned topic"),
    DeleteTopic: ("delete-topic", "Delete this topic"),
}
"""The action of the console that makes a change, and its label."""


async def build(visit: Visit) -> Model:
    """Build the page. Raise NamespaceNotFound."""
    model: Model = {
        "namespace": visit.text("namespace"),  # empty before a choice
        "known": True,  # False while the namespace is examined for the first time
        "age_seconds": 0.0,
        "examined": 0,
        "findings": [],
        "left_out": 0,
        "unreadable": [],
        "unanswered": None,
    }
    if not model["namespace"]:
        return model
    namespace = NamespaceName.parse(model["namespace"])
    await visit.check("GET", to_list_topics(namespace))
    key = ("doctor", visit.visitor.role, namespace)
    result = await visit.cache.get(key, lambda: _examined(visit, namespace), fresh_seconds=0.0)
    model |= {"namespace": str(namespace), "known": result.value is not None, "age_seconds": result.age_seconds}
    return model | (result.value or {})


async def _examined(visit: Visit, namespace: NamespaceName) -> Model:
    doctor = TopicDoctor(visit.admin, domains=(PERSISTENT, NON_PERSISTENT))
    report = await doctor.examine(namespace)
    shown = report.findings[:_FINDINGS_MAX]
    lost = {name: way.refused for finding in shown for way in finding.deletions for name in way.lost}
    contents = await doctor.contents(dict(list(lost.items())[:_CONTENTS_MAX]))
    return {
        "examined": report.topics_count,
        "findings": [_finding(finding, contents) for finding in shown],
        "left_out": max(0, len(report.findings) - _FINDINGS_MAX),
        "unreadable": report.unreadable[:_FINDINGS_MAX],
        "unanswered": {str(name): str(error) for name, error in islice(report.unanswered.items(), _FINDINGS_MAX)},
    }


def _finding(finding: Finding, contents: Mapping[TopicName, Contents]) -> Model:
    losses = [
        {
            "remedy": _action(way.call),
            "outcome": way.outcome,
            "lost": [_contents_text(name, contents.get(name)) for name in way.lost],
        }
        for way in finding.deletions
    ]
    return {
        "topic": str(finding.topic),
        "kind": finding.kind.value.replace("-", " "),
        "sentence": finding.sentence,
        "repairs": [_action(repair) for repair in finding.repairs],
        "losses": losses,
    }


def _contents_text(name: TopicName, contents: Contents | None) -> str:
    if contents is None or contents.entries is None:
        return f"{name}: unknown"
    backlog = sum(backlog or 0 for backlog in contents.backlogs.values())
    about = "" if contents.exact else "at least "
    return f"{name}: {about}{contents.entries:,} entries, {backlog:,} messages not consumed"


def _action(change: TopicAdminChange) -> Model:
    fields = {"topic": str(change.topic)}
    if isinstance(change, CreatePartitionedMetadata | SetPartitionCount):
        fields["partitions"] = str(change.partitions)
    action, label = _ACTIONS[type(change)]
    return {"action": action, "label": label, "fields": fields}
