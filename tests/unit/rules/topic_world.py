"""Views of topics for the tests of their rules: single ones, and every combination of a small world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from interpulse.model.changes import (
    Change,
    CreatePartitionedMetadata,
    CreateTopicRecord,
    Decision,
    DeletePartitionedMetadata,
    SetPartitionCount,
)
from interpulse.model.errors import (
    PulsarError,
)
from interpulse.model.names import TopicName
from interpulse.model.topics import PartitionedTopicMetadata, Requester
from interpulse.rules.effective_policies import EffectiveAutoCreation
from interpulse.rules.topic_view import (
    NamespaceStanding,
    TopicView,
    metadata_names,
)

OFF = EffectiveAutoCreation(allowed=False)
PLAIN = EffectiveAutoCreation(allowed=True)
PARTITIONED_2 = EffectiveAutoCreation(allowed=True, partitioned=True, partitions=2)
HEARTBEAT = "persistent://pulsar/127.0.0.1:8080/healthcheck"
CLIENT, ADMIN, REPLICATOR = Requester


def topic(text: str) -> TopicName:
    return TopicName.parse(text)


def view_of(text: str, x: int = 0, *, deleted: bool = False, **facts: Any) -> TopicView:
    """A view of one name in a world where ``x`` has so many partitions (0 = is not a partitioned topic)."""
    name = topic(text)
    base = TopicName(name.domain, name.tenant, name.namespace, "x")
    metadata = {base: PartitionedTopicMetadata(x, deleted=deleted)} if x else {}
    shown = {key: value for key, value in metadata.items() if key in metadata_names(name)}
    return TopicView(name, metadata=shown, **facts)


def outcome(decide: Question, *arguments: Any, **options: Any) -> Any:
    """The answer of a decision, or the class of its refusal."""
    try:
        return decide(*arguments, **options).answer
    except PulsarError as refusal:
        return type(refusal)


NAMES = [
    "x", "x-partition-0", "x-partition-3", "x-partition-01", "x-DLQ", "x ", "a-partition-1-partition-2",
    "__change_events", "persistent://pulsar/system/__transaction_log_1", HEARTBEAT,
    "non-persistent://public/default/x", "non-persistent://public/default/x-partition-0",
]  # fmt: skip
Question = Callable[..., Any]
METADATA = [(0, False), (3, False), (3, True)]
POLICIES = [OFF, replace(OFF, replicator_allowed=False), PLAIN, PARTITIONED_2]
LIMITS = [(0, None), (2, None), (0, 0)]
STORED = [frozenset[int](), frozenset({0, 3})]
REMOTE = [None, 2]


@cache
def small_world() -> list[TopicView]:
    space = product(NAMES, METADATA, NamespaceStanding, (False, True), POLICIES, LIMITS, STORED, REMOTE)
    return [
        view_of(
            name,
            x,
            deleted=deleted,
            namespace=namespace,
            recorded=recorded,
            auto_creation=policy,
            partitions_max=partitions_max,
            topics_left=topics_left,
            partition_records=stored,
            remote_partitions=remote,
        )
        for name, (x, deleted), namespace, recorded, policy, (partitions_max, topics_left), stored, remote in space
    ]


def decided(question: Question, view: TopicView) -> Decision[Any] | None:
    """The decision, None for a refusal."""
    try:
        return question(view)
    except PulsarError:
        return None


def refused(question: Question, view: TopicView) -> PulsarError | None:
    """The refusal, None for a decision."""
    try:
        question(view)
    except PulsarError as refusal:
        return refusal
    return None


def apply(view: TopicView, changes: tuple[Change, ...]) -> TopicView:
    """The third interpreter of changes, after the metadata store and the admin client: the view itself."""
    metadata = dict(view.metadata)
    for change in changes:
        match change:
            case CreatePartitionedMetadata(name, partitions, properties):
                metadata[name] = PartitionedTopicMetadata(partitions, properties=properties)
            case DeletePartitionedMetadata(name):
                del metadata[name]
            case SetPartitionCount(name, partitions):
                metadata[name] = replace(metadata[name], partitions=partitions)
            case CreateTopicRecord(name) if name == view.name:
                view = replace(view, recorded=True)
            case CreateTopicRecord(name):
                view = replace(view, partition_records=view.partition_records | {name.partition_index})
    return replace(view, metadata=metadata) if changes else view
