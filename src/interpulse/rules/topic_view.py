"""View of a topic, and the predicates and checks on which all topic rules are based.

Two records exist per topic:

* *partition metadata*, stored under the base name: "this is a partitioned topic of n partitions";
* the *topic record*, stored under the exact name (base or partition): "the storage of this topic exists". A
  non-persistent topic has none; it exists while it is loaded.

The predicates are `existence` and `may_create`; `check_consistency` checks that both records agree. Source: PIP-344
(partition metadata without creation), as Apache Pulsar 5.0 behaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeVar

from interpulse.model.changes import Change, CreateTopicRecord
from interpulse.model.errors import (
    Inconsistency,
    NamespaceNotFound,
    NotAllowed,
    PartitionCountAboveMaximum,
    PulsarError,
    ServiceNotReady,
    TopicInconsistent,
    TopicLimitReached,
    TopicNotFound,
)
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, PartitionedTopicMetadata, TopicKind
from interpulse.rules.effective_policies import EffectiveAutoCreation

PARTITION_MARK: Final = "-partition-"
_ALLOWED: Final = EffectiveAutoCreation(allowed=True)
_DECLARED: Final = "_looked_at"
Rule = TypeVar("Rule", bound=Callable[..., Any])


class NamespaceStanding(Enum):
    """State of a namespace that its topics depend on."""

    SERVED = "served"
    NOT_SERVED = "its replication clusters leave out the local cluster"
    DELETED = "being deleted"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class TopicView:
    """Input of the rules about one name, read in one step.

    ``metadata`` has the partition metadata of the base name, and with `Part.RELATED_METADATA` of all `metadata_names`.
    ``recorded``: the topic record of the exact name exists (non-persistent: the topic is loaded). ``partition_records``
    are, with `Part.PARTITION_RECORDS`, the indexes of existing partition records of the base name. ``topics_left`` is
    the number of topics below the namespace's limit, None without a limit. ``creation_suspended`` is the reason why
    local clients create no topics for a while, "" if they may. ``remote_partitions`` is the topic's partition count on
    a remote cluster of the namespace, None if none has it. ``remotes_to_ask`` are remote clusters that have not been
    asked for it yet: see `AskRemotes`.
    """

    name: TopicName
    namespace: NamespaceStanding = NamespaceStanding.SERVED
    metadata: Mapping[TopicName, PartitionedTopicMetadata] = field(default_factory=dict)
    recorded: bool = False
    partition_records: frozenset[int] = frozenset()
    auto_creation: EffectiveAutoCreation = _ALLOWED
    partitions_max: int = 0
    topics_left: int | None = None
    creation_suspended: str = ""
    remote_partitions: int | None = None
    remotes_to_ask: tuple[str, ...] = ()
    domain_enabled: bool = True
    system_topics_enabled: bool = True

    @property
    def base_metadata(self) -> PartitionedTopicMetadata | None:
        """Record that makes the name, or the topic it is a partition of, a partitioned topic."""
        return self.metadata.get(self.name.base)

    @property
    def partitions(self) -> int:
        """Partition count of the base name, 0 if there is no partitioned topic."""
        return self.base_metadata.partitions if self.base_metadata else 0

    @property
    def deletion_begun(self) -> bool:
        """True if the partitioned topic is being deleted, or was left half deleted."""
        return self.base_metadata is not None and self.base_metadata.deleted


class Part(Enum):
    """Part of a view that is read only for rules that declare it."""

    RELATED_METADATA = "partition metadata of all `metadata_names`, not only of the base name"
    PARTITION_RECORDS = "which partitions of the base name have a record"


def looks_at(*parts: Part) -> Callable[[Rule], Rule]:
    """Declare the additional parts of the view that a rule reads."""

    def declare(rule: Rule) -> Rule:
        setattr(rule, _DECLARED, parts)
        return rule

    return declare


def looked_at(rule: Callable[..., Any]) -> tuple[Part, ...]:
    """Return the parts that a rule declares with `looks_at`."""
    declared: tuple[Part, ...] = getattr(rule, _DECLARED, ())
    return declared


def metadata_names(name: TopicName) -> tuple[TopicName, ...]:
    """Return the names whose partition metadata may affect ``name``: its own, its base, and its first part.

    The first part is the text before the *first* ``-partition-``. Creating a plain topic checks it.
    """
    if PARTITION_MARK not in name.local_name:
        return (name,)
    return tuple(dict.fromkeys((name, name.base, first_part(name))))


def first_part(name: TopicName) -> TopicName:
    """Return the topic named by the text before the *first* ``-partition-``; the name itself without such text."""
    text = name.local_name.partition(PARTITION_MARK)[0]
    if text == name.base.local_name:
        return name.base
    return TopicName(name.domain, name.tenant, name.namespace, text) if text.strip() else name


def existence(view: TopicView) -> Existence:
    """Return the existence of the name: a partitioned topic, one topic, or nothing.

    PIP-344, rows 1 and 2 of the new behaviour ("the topic exists"). A partition of a non-persistent topic exists if the
    metadata covers it, any other topic if it has a record.
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
    """Return True if a request for this missing name may create it: PIP-344, "auto-creation is allowed" of rows 3 to 7.

    A partition within its metadata may always be created and one beyond it never, whatever the policy: that is how a
    partition is restored by the next connection although auto-creation is off. Raise ServiceNotReady while the role of
    the namespace suspends a creation that the policy allows: it will be possible again.
    """
    if view.namespace is NamespaceStanding.DELETED or not view.name.creatable:
        return False
    if view.system_topics_enabled and view.name.is_system:
        return True
    if view.name.is_partition and view.base_metadata:
        return not view.deletion_begun and view.name.partition_index < view.partitions
    if view.auto_creation.allowed and view.creation_suspended:
        raise ServiceNotReady(view.creation_suspended)
    return view.auto_creation.allowed


NO_PROPERTIES: Final[Mapping[str, str]] = {}


def topic_not_found(view: TopicView) -> PulsarError:
    """Return the error for a name that does not exist. With partitioned metadata it states the partition count."""
    name, partitions = view.name, view.partitions
    if view.namespace is NamespaceStanding.MISSING:
        return NamespaceNotFound(f"Namespace not found: {name.namespace_name}")
    if partitions and not name.is_partition:
        return TopicNotFound(f"Topic {name} not found: it is partitioned, name one of its {partitions} partitions")
    if partitions and name.partition_index >= partitions:
        return TopicNotFound(f"Topic {name} not found: {name.base} has {partitions} partitions")
    return TopicNotFound(f"Topic {name} not found")


def not_found_to_open(view: TopicView) -> PulsarError:
    """Return the error for a missing topic whose content is requested.

    For a partition it states the problem of its base.
    """
    name, partitions = view.name, view.partitions
    if not name.is_partition or view.namespace is NamespaceStanding.MISSING:
        return topic_not_found(view)
    if not partitions:
        return TopicNotFound(f"Partitioned Topic not found: {name} has zero partitions")
    if name.partition_index >= partitions:
        return TopicNotFound(
            f"Topic partitions were not yet created: {name} not found, {name.base} has {partitions} partitions"
        )
    return topic_not_found(view)


def check_namespace_exists(view: TopicView) -> None:
    """Raise NamespaceNotFound. Health checks of brokers need no namespace."""
    if view.namespace is NamespaceStanding.MISSING and not view.name.namespace_name.is_heartbeat:
        raise NamespaceNotFound(f"Namespace not found: {view.name.namespace_name}")


def check_namespace(view: TopicView, *, not_served: type[PulsarError]) -> None:
    """Refuse topics in a namespace that is missing, being deleted, or does not list the local cluster.

    Raise NamespaceNotFound, or ``not_served`` for the last.
    """
    if view.name.namespace_name.is_heartbeat:
        return
    check_namespace_exists(view)
    if view.namespace is NamespaceStanding.DELETED:
        raise NamespaceNotFound(f"Namespace {view.name.namespace_name} is being deleted")
    if view.namespace is NamespaceStanding.NOT_SERVED:
        raise not_served(
            f"Namespace {view.name.namespace_name} has no replication clusters, or not the local cluster among them"
        )


def check_partition_count(
    view: TopicView, partitions: int, *, refusal: type[PulsarError] = PartitionCountAboveMaximum
) -> None:
    """Raise ``refusal`` for a partition count out of range.

    It must be at least 1 and at most ``maxNumPartitionsPerPartitionedTopic`` (0 = no limit).
    """
    if partitions < 1:
        raise refusal(f"Number of partitions should be more than 0, not {partitions}")
    if 0 < view.partitions_max < partitions:
        raise refusal(
            f"Number of partitions should be less than or equal to {view.partitions_max} "
            f"(maxNumPartitionsPerPartitionedTopic), not {partitions}"
        )


def check_single_topic_limit(view: TopicView) -> None:
    """Check the topic limit for one topic, which counts only if it is stored. Raise NotAllowed."""
    if view.name.is_persistent:
        check_topic_limit(view, 1, refusal=NotAllowed)


def check_topic_limit(view: TopicView, added: int, *, refusal: type[PulsarError] = TopicLimitReached) -> None:
    """Raise ``refusal`` if this many topics exceed ``maxTopicsPerNamespace``. System topics are exempt.

    Partitions count one by one, those of non-persistent topics too. Expansions are not checked.
    """
    left = view.topics_left
    if left is not None and added > left and not view.name.is_system:
        raise refusal(
            f"Exceed maximum number of topics in namespace {view.name.namespace_name}: "
            f"room for {left} more (maxTopicsPerNamespace), not {added}"
        )


def missing_record(view: TopicView, properties: Mapping[str, str] = NO_PROPERTIES) -> tuple[Change, ...]:
    """Return the change that stores the topic's record, if it is missing and the topic can have one."""
    if view.recorded or not view.name.is_persistent:
        return ()
    return (CreateTopicRecord(view.name, properties),)


def check_consistency(view: TopicView) -> None:
    """Refuse a name that disagrees with its partition metadata. Raise TopicInconsistent.

    PIP-414 has six rows: a partition name without metadata (1), inside (2) and outside of it (3), a base name without
    (4) and with metadata (5), and heartbeat namespaces, which are exempt (6). System topics are not exempt.
    """
    name, partitions = view.name, view.partitions
    if name.namespace_name.is_heartbeat:
        return
    if not name.is_partition:
        if partitions:
            message = f"Found partitioned metadata for non-partitioned topic: {name}"
            raise TopicInconsistent(message, Inconsistency.PARTITIONED_METADATA_FOUND, str(name))
    elif not partitions:
        message = f"Partition metadata not found for the partitioned topic: {name}"
        raise TopicInconsistent(message, Inconsistency.METADATA_MISSING, str(name))
    elif name.partition_index >= partitions:
        message = f"Illegal topic partition name {name}: {name.base} has {partitions} partitions, 0 to {partitions - 1}"
        raise TopicInconsistent(message, Inconsistency.PARTITION_BEYOND_METADATA, str(name))
