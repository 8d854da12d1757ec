"""The view of a topic, and the predicates that all rules of topics are built from.

Two records exist per topic:

* *partition metadata*, kept under the base name: "this is a partitioned topic of n partitions";
* the *topic record*, kept under the exact name (base or partition): "the storage of this topic exists". A
  non-persistent topic has none; it exists while it is loaded.

The predicates are `existence` and `may_create`; `consistency` has the check that both records agree. Source: PIP-344
(partition metadata without creation), as Apache Pulsar 5.0 behaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeVar

from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, PartitionedTopicMetadata, TopicKind
from interpulse.rules.effective_policies import EffectiveAutoCreation

__all__ = [
    "PARTITION_MARK",
    "NamespaceStanding",
    "Part",
    "TopicView",
    "existence",
    "first_part",
    "looked_at",
    "looks_at",
    "may_create",
    "metadata_names",
]

PARTITION_MARK: Final = "-partition-"
_ALLOWED: Final = EffectiveAutoCreation(allowed=True)
_DECLARED: Final = "_looked_at"
Rule = TypeVar("Rule", bound=Callable[..., Any])


class NamespaceStanding(Enum):
    """The state of a namespace, as far as its topics depend on it."""

    SERVED = "served"
    NOT_SERVED = "its replication clusters leave out the local cluster"
    DELETED = "being deleted"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class TopicView:
    """Everything a rule may know about one name, read in one go.

    ``metadata`` holds the partition metadata of the base name, and with `Part.RELATED_METADATA` what is found under any
    of `metadata_names`. ``recorded`` says that the topic record of the exact name exists (non-persistent: that the
    topic is loaded). ``partition_records`` are, with `Part.PARTITION_RECORDS`, the indices of existing partition
    records of the base name. ``topics_left`` is the room below the namespace's topic limit, None without a limit.
    ``remote_partitions`` is the topic's partition count on a remote cluster of the namespace, None if none has it.
    ``remotes_to_ask`` are remote clusters that were not asked for it yet: see `AskRemotes`.
    """

    name: TopicName
    namespace: NamespaceStanding = NamespaceStanding.SERVED
    metadata: Mapping[TopicName, PartitionedTopicMetadata] = field(default_factory=dict)
    recorded: bool = False
    partition_records: frozenset[int] = frozenset()
    auto_creation: EffectiveAutoCreation = _ALLOWED
    partitions_max: int = 0
    topics_left: int | None = None
    remote_partitions: int | None = None
    remotes_to_ask: tuple[str, ...] = ()
    domain_enabled: bool = True
    system_topics_enabled: bool = True

    @property
    def base_metadata(self) -> PartitionedTopicMetadata | None:
        """The record that would make the name, or the topic it is a partition of, a partitioned topic."""
        return self.metadata.get(self.name.base)

    @property
    def partitions(self) -> int:
        """The partition count under the base name, 0 if there is no partitioned topic."""
        return self.base_metadata.partitions if self.base_metadata else 0

    @property
    def deletion_begun(self) -> bool:
        """The partitioned topic is being deleted, or was left half deleted."""
        return self.base_metadata is not None and self.base_metadata.deleted


class Part(Enum):
    """A part of a view that is read only for rules that declare it."""

    RELATED_METADATA = "partition metadata of all `metadata_names`, not only of the base name"
    PARTITION_RECORDS = "which partitions of the base name have a record"


def looks_at(*parts: Part) -> Callable[[Rule], Rule]:
    """Declare on a rule of topics what it looks at besides what every view holds."""

    def declare(rule: Rule) -> Rule:
        setattr(rule, _DECLARED, parts)
        return rule

    return declare


def looked_at(rule: Callable[..., Any]) -> tuple[Part, ...]:
    """The parts that the rule declares with `looks_at`."""
    declared: tuple[Part, ...] = getattr(rule, _DECLARED, ())
    return declared


def metadata_names(name: TopicName) -> tuple[TopicName, ...]:
    """The names under which partition metadata can matter for ``name``: its own, its base, and its first part.

    The first part is the text before the *first* ``-partition-``; creating a plain topic asks for it.
    """
    if PARTITION_MARK not in name.local_name:
        return (name,)
    return tuple(dict.fromkeys((name, name.base, first_part(name))))


def first_part(name: TopicName) -> TopicName:
    """The topic called like the text before the *first* ``-partition-``; the name itself if there is no such text."""
    text = name.local_name.partition(PARTITION_MARK)[0]
    if text == name.base.local_name:
        return name.base
    return TopicName(name.domain, name.tenant, name.namespace, text) if text.strip() else name


def existence(view: TopicView) -> Existence:
    """The existence of the name: a partitioned topic, one topic, or nothing.

    PIP-344, rows 1 and 2 of the new behaviour ("the topic exists"). A partition of a non-persistent topic exists with
    the metadata that counts it, any other topic with its record.
    """
    name = view.name
    if name.namespace_name.is_heartbeat:
        return Existence(TopicKind.NON_PARTITIONED)
    if view.partitions and not name.is_partition:
        return Existence(TopicKind.PARTITIONED, view.partitions)
    return Existence(TopicKind.NON_PARTITIONED if _present(view) else TopicKind.ABSENT)


def _present(view: TopicView) -> bool:
    if view.partitions and not view.name.is_persistent:
        return view.name.partition_index < view.partitions
    return view.recorded


def may_create(view: TopicView) -> bool:
    """Whether asking for this missing name may create it: PIP-344, "auto-creation is allowed" of rows 3 to 7.

    A partition that its metadata covers may always be created, one that it does not cover never, whatever the policy
    says: that is how a partition comes back on the next connect although auto-creation is off.
    """
    if view.namespace is NamespaceStanding.DELETED or not view.name.creatable:
        return False
    if view.system_topics_enabled and view.name.is_system:
        return True
    if view.name.is_partition and view.base_metadata:
        return not view.deletion_begun and view.name.partition_index < view.partitions
    return view.auto_creation.allowed
