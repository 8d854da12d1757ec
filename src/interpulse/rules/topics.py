"""The life of topics: whether a topic may be asked for, opened, created, grown or deleted, and what that changes.

Both doors, the REST API and the binary protocol, ask these functions, and so does replication. They look at nothing
but their `TopicView`; `topic_view` has the predicates they are built from. Every rule is about the two records of a
topic, its partition metadata and its topic record, agreeing. Sources: PIP-344 (partition metadata without creation) and
PIP-414 (consistency of topics), as Apache Pulsar 5.0 behaves.
"""

from __future__ import annotations

from collections.abc import Mapping

from interpulse.model.changes import (
    Change,
    CreatePartitionedMetadata,
    CreateTopicRecord,
    DeletePartitionedMetadata,
    SetPartitionCount,
)
from interpulse.model.errors import (
    AlreadyExists,
    Conflict,
    ExpansionAboveMaximum,
    InvalidRequest,
    MetadataError,
    NamespaceNotFound,
    NotAllowed,
    PartitionCountAboveMaximum,
    PartitionedTopicNotFound,
    PreconditionFailed,
    ProducerBusy,
    PulsarError,
    ServiceNotReady,
    TopicLimitReached,
    TopicNotFound,
)
from interpulse.model.topics import Requester, TopicKind
from interpulse.rules.decision import Decision
from interpulse.rules.topic_view import (
    PARTITION_MARK,
    NamespaceStanding,
    TopicView,
    check_consistency,
    existence,
    first_part,
    may_create,
    metadata_names,
)

__all__ = [
    "NamespaceStanding",
    "TopicView",
    "check_consistency",
    "decide_administer",
    "decide_create_missed_partitions",
    "decide_create_partitioned",
    "decide_create_plain",
    "decide_delete_partitioned",
    "decide_delete_plain",
    "decide_expand",
    "decide_lookup",
    "decide_open",
    "decide_partitions",
    "decide_partitions_to_subscribe",
    "existence",
    "may_create",
    "metadata_names",
    "takes_remote_shape",
]

_LONG_MAX = 2**63 - 1
_NO_PROPERTIES: Mapping[str, str] = {}


# --- asking and opening -----------------------------------------------------------------------------------------------


def decide_partitions(view: TopicView, *, create: bool) -> Decision[int]:
    """How many partitions the name has; 0 = it is, or would become, a single topic.

    PIP-344, table of the new behaviour: rows 1 and 2 for a topic that exists; with ``create`` rows 3 to 6 for one that
    may become something, of which only a partitioned topic is created here; else row 7, TopicNotFound. A single topic
    is never created by this question: it appears when a producer or consumer opens it. What will fail again and again,
    a limit of the broker or the namespace, is NotAllowed, so that clients give up at once.
    """
    found = existence(view)
    if found.kind is not TopicKind.ABSENT:
        return Decision(found.partitions)
    if not (create and may_create(view)):
        raise _topic_not_found(view)
    _check_namespace(view, not_served=MetadataError)
    partitions = _shape_of_new_topic(view)
    if partitions == 0:
        return Decision(0)
    _check_partition_count(view, partitions, refusal=NotAllowed)
    _check_topic_limit(view, partitions, refusal=NotAllowed)
    return Decision(partitions, (CreatePartitionedMetadata(view.name, partitions),))


def _shape_of_new_topic(view: TopicView) -> int:
    """The partition count of a missing name: none for a partition name (PIP-344, row 3), the other cluster's if it has
    the topic there (row 6), else the policy's (rows 4 and 5)."""
    if view.name.is_partition:
        return 0
    if view.remote_shape is not None:
        return view.remote_shape.partitions
    return view.auto_creation.partitions if view.auto_creation.partitioned else 0


def takes_remote_shape(view: TopicView) -> bool:
    """Whether another cluster's shape of this name would matter (PIP-344, row 6): a persistent topic is about to be
    created."""
    absent = existence(view).kind is TopicKind.ABSENT
    return absent and view.name.is_persistent and not view.name.is_partition and may_create(view)


def decide_partitions_to_subscribe(view: TopicView) -> Decision[int]:
    """As `decide_partitions` with creation (PIP-344), for an operator who creates a subscription.

    A missing topic that may not be created is then a precondition that does not hold, not something that was not found.
    """
    try:
        return decide_partitions(view, create=True)
    except TopicNotFound as refusal:
        raise PreconditionFailed(f"{refusal}, and it may not be created") from None


def decide_administer(view: TopicView) -> Decision[None]:
    """Whether this cluster answers an operator who asks about the topic: its namespace exists and is served here."""
    _check_namespace(view, not_served=PreconditionFailed)
    return Decision(None)


def decide_lookup(view: TopicView) -> Decision[None]:
    """Whether HTTP lookup names a broker for this name: it exists, or opening it may create it (PIP-344, row 7)."""
    _check_namespace_exists(view)
    if existence(view).kind is TopicKind.ABSENT and not may_create(view):
        raise _topic_not_found(view)
    return Decision(None)


def decide_open(view: TopicView, *, by: Requester, create: bool) -> Decision[None]:
    """Whether the topic may be loaded under this name, creating its record if it is missing and may be created.

    PIP-414, what PRODUCER and SUBSCRIBE see in each state. Raises TopicNotFound if it is absent and may not be created
    (which comes first), TopicInconsistent if the name disagrees with the partition metadata, NotAllowed for names and
    domains that cannot be opened at all. Clients look a topic up before they open it, so a namespace that is missing
    was deleted in between: ServiceNotReady lets them look again.
    """
    if not view.domain_enabled:
        raise NotAllowed(f"{view.name.domain} topics are disabled on this broker")
    if create:
        _check_still_served(view, by)
    if not (view.recorded or _always_loads(view) or (create and _may_create_for(view, by))):
        raise _topic_not_found(view)
    if view.name.is_transaction_internal:
        raise NotAllowed(f"Can not create transaction system topic {view.name}")
    if not view.recorded:
        _check_namespace(view, not_served=MetadataError)
        _check_single_topic_limit(view)
    if by is Requester.REPLICATOR and view.partitions and not view.name.is_partition:
        raise ProducerBusy(f"{view.name} is a partitioned topic here; a replicator writes to its partitions")
    check_consistency(view)
    return Decision(None, _missing_record(view))


def _check_still_served(view: TopicView, by: Requester) -> None:
    namespace = view.name.namespace_name
    missing = view.namespace is NamespaceStanding.MISSING and not namespace.is_heartbeat
    if missing and by is not Requester.ADMIN:
        raise ServiceNotReady(f"Namespace {namespace} is not served by this broker. Please redo the lookup.")


def _always_loads(view: TopicView) -> bool:
    """A non-persistent partition has no record to be missed: it always gets as far as the consistency check."""
    return view.name.is_partition and not view.name.is_persistent and not view.deletion_begun


def _may_create_for(view: TopicView, by: Requester) -> bool:
    """Whether the policy lets this requester create the topic by opening it.

    An operator creates a non-persistent topic by opening it. Replicators may be exempt from the policy (PIP-433). An
    exemption covers the policy only, never a namespace being deleted or a name that cannot be created.
    """
    by_operator = by is Requester.ADMIN and not view.name.is_persistent
    by_replicator = by is Requester.REPLICATOR and view.auto_creation.replicator_allowed
    if view.base_metadata or not (by_operator or by_replicator):
        return may_create(view)
    return view.namespace is not NamespaceStanding.DELETED and view.name.creatable


def _missing_record(view: TopicView, properties: Mapping[str, str] = _NO_PROPERTIES) -> tuple[Change, ...]:
    if view.recorded or not view.name.is_persistent:
        return ()
    return (CreateTopicRecord(view.name, properties),)


# --- creating on request ----------------------------------------------------------------------------------------------


def decide_create_partitioned(
    view: TopicView,
    partitions: int,
    *,
    properties: Mapping[str, str] = _NO_PROPERTIES,
    local_only: bool = False,
) -> Decision[None]:
    """An operator creates a partitioned topic; partitions stored without metadata are taken over with their entries.

    PIP-414, repair after the metadata was lost: the count has to cover every partition that is stored. ``local_only``
    (a replica being provisioned, PIP-370) accepts a topic that is already there with the same count. Raises
    AlreadyExists or Conflict if something else is there, PartitionCountAboveMaximum, TopicLimitReached,
    PreconditionFailed for a name that cannot be a partitioned topic.
    """
    _check_namespace(view, not_served=PreconditionFailed)
    _check_partitioned_name(view)
    _check_partition_count(view, partitions)
    _check_topic_limit(view, partitions)
    if view.partitions:
        return _again(view, partitions, local_only=local_only)
    if existence(view).kind is not TopicKind.ABSENT:
        raise AlreadyExists(f"This topic already exists: {view.name}")
    _check_stored_partitions(view, partitions)
    created = CreatePartitionedMetadata(view.name, partitions, properties)
    return Decision(None, (created, *_absent_partitions(view, partitions)))


def _again(view: TopicView, partitions: int, *, local_only: bool) -> Decision[None]:
    if view.deletion_begun or not local_only:
        raise AlreadyExists(f"This topic already exists: {view.name}")
    if partitions != view.partitions:
        raise Conflict(f"{view.name} already exists with {view.partitions} partitions, not {partitions}")
    _check_stored_partitions(view, partitions)
    return Decision(None, _absent_partitions(view, partitions))


def _check_stored_partitions(view: TopicView, partitions: int) -> None:
    highest = max(view.partition_records, default=-1)
    if highest >= partitions:
        raise Conflict(
            f"{view.name} has stored partitions up to {highest}; create it with at least {highest + 1} partitions"
        )


def _check_partitioned_name(view: TopicView) -> None:
    name = view.name
    if name.is_partition or (name.is_persistent and PARTITION_MARK in name.encoded):
        raise PreconditionFailed(f"Partitioned topic name must not contain {PARTITION_MARK!r}: {name}")
    _check_creatable(view)


def decide_create_plain(view: TopicView, *, properties: Mapping[str, str] = _NO_PROPERTIES) -> Decision[None]:
    """An operator creates a topic that is not partitioned, or restores one partition of a partitioned topic.

    PIP-414: the name has to agree with the partition metadata here as well.

    Raises AlreadyExists, PreconditionFailed for a partition name without a place in its partitioned topic,
    TopicInconsistent, and NotAllowed at the topic limit.
    """
    _check_namespace(view, not_served=PreconditionFailed)
    _check_creatable(view)
    _check_numbered_name(view)
    if view.name in view.metadata or existence(view).kind is not TopicKind.ABSENT:
        raise AlreadyExists(f"This topic already exists: {view.name}")
    check_consistency(view)
    _check_single_topic_limit(view)
    return Decision(None, _missing_record(view, properties))


def _check_numbered_name(view: TopicView) -> None:
    """A number after the *first* ``-partition-`` must be a partition of the topic called like the text before.

    The number is read like a signed 64-bit number in Java, so ``+1`` and ``01`` count; that is Pulsar's rule.
    """
    number = _signed_long(view.name.local_name.partition(PARTITION_MARK)[2])
    if number is None:
        return
    first = first_part(view.name)
    metadata = view.metadata.get(first)
    if metadata is None or number >= metadata.partitions:
        count = metadata.partitions if metadata else 0
        raise PreconditionFailed(f"Can't create topic {view.name}: {first} has {count} partitions")


def _signed_long(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if -_LONG_MAX - 1 <= number <= _LONG_MAX else None


def decide_create_missed_partitions(view: TopicView) -> Decision[None]:
    """Restore the partitions of a partitioned topic that have no record (PIP-414). Raises PartitionedTopicNotFound."""
    if PARTITION_MARK in view.name.local_name:
        raise PreconditionFailed(f"Not the name of a partitioned topic: {view.name}")
    _check_namespace(view, not_served=PreconditionFailed)
    _check_partitioned(view, refusal=PartitionedTopicNotFound)
    return Decision(None, _absent_partitions(view, view.partitions))


# --- growing ----------------------------------------------------------------------------------------------------------


def decide_expand(view: TopicView, partitions: int, *, force: bool = False) -> Decision[None]:
    """A partitioned topic grows. Everything is one commit, so nobody meets the new count without the new partitions.

    PIP-414 makes the order matter: a partition beyond the count is refused. Partitions whose record is missing come
    back too. ``force`` takes over partition records that exist beyond the present count. Raises Conflict for a name
    that is not a partitioned topic, ExpansionAboveMaximum for a count below the present one or above the maximum.
    """
    name = view.name
    if name.is_partition:
        raise PreconditionFailed(f"{name} is a partition; grow {name.base}")
    _check_partitioned(view, refusal=Conflict)
    _check_namespace(view, not_served=PreconditionFailed)
    if partitions < view.partitions:
        raise ExpansionAboveMaximum(f"{name} has {view.partitions} partitions and cannot shrink to {partitions}")
    if 0 < view.partitions_max < partitions:
        raise ExpansionAboveMaximum(_above_maximum(view, partitions))
    unexpected = sorted(index for index in view.partition_records if index >= view.partitions)
    if unexpected and not force:
        raise Conflict(
            f"{name} has {view.partitions} partitions but partition {unexpected[-1]} is stored as well; use force to "
            f"take it over"
        )
    grown = () if partitions == view.partitions else (SetPartitionCount(name, partitions),)
    return Decision(None, (*_absent_partitions(view, partitions), *grown))


# --- deleting ---------------------------------------------------------------------------------------------------------


def decide_delete_partitioned(view: TopicView) -> Decision[int]:
    """A partitioned topic is deleted: its metadata goes, and with it so many partitions, those that are stored.

    PIP-414: partitions beyond the metadata are not of this topic. One that is marked as being deleted was left half
    deleted, and may be finished.
    """
    name = view.name
    if name.is_partition:
        raise PreconditionFailed(f"{name} is a partition; delete {name.base}, or the one topic {name}")
    _check_namespace_exists(view)
    if not view.partitions:
        if existence(view).kind is TopicKind.NON_PARTITIONED:
            raise Conflict(f"Topic {name} is not a partitioned topic")
        raise PartitionedTopicNotFound(f"Partitioned topic {name} not found")
    return Decision(view.partitions, (DeletePartitionedMetadata(name),))


def decide_delete_plain(view: TopicView, *, force: bool = False) -> Decision[None]:
    """One topic, or one partition, may be deleted; also one that PIP-414 refuses to open, so that it can be got rid of.

    A non-persistent topic that is not there is as good as deleted. ``force`` deletes the plain topic of a name that is
    plain and partitioned at once, and leaves the partitions alone.
    """
    _check_namespace_exists(view)
    if view.partitions and not view.name.is_partition and not (force and view.recorded):
        raise Conflict(f"{view.name} is a partitioned topic; delete the partitioned topic instead")
    if view.name.is_persistent and not view.recorded:
        raise _topic_not_found(view)
    return Decision(None)


# --- shared checks ----------------------------------------------------------------------------------------------------


def _topic_not_found(view: TopicView) -> PulsarError:
    if view.namespace is NamespaceStanding.MISSING:
        return NamespaceNotFound(f"Namespace not found: {view.name.namespace_name}")
    return TopicNotFound(f"Topic {view.name} not found")


def _check_namespace_exists(view: TopicView) -> None:
    if view.namespace is NamespaceStanding.MISSING and not view.name.namespace_name.is_heartbeat:
        raise NamespaceNotFound(f"Namespace not found: {view.name.namespace_name}")


def _check_namespace(view: TopicView, *, not_served: type[PulsarError]) -> None:
    """Topics come into being in namespaces that exist, are not being deleted, and list the local cluster."""
    if view.name.namespace_name.is_heartbeat:
        return
    _check_namespace_exists(view)
    if view.namespace is NamespaceStanding.DELETED:
        raise NamespaceNotFound(f"Namespace {view.name.namespace_name} is being deleted")
    if view.namespace is NamespaceStanding.NOT_SERVED:
        raise not_served(
            f"Namespace {view.name.namespace_name} has no replication clusters, or not the local cluster among them"
        )


def _check_creatable(view: TopicView) -> None:
    if view.name.is_transaction_internal:
        raise InvalidRequest(f"Cannot create topic in system topic format: {view.name}")
    if not view.name.creatable:
        raise PreconditionFailed(f"Topic name must not begin or end with blanks: {str(view.name)!r}")


def _check_partitioned(view: TopicView, *, refusal: type[PulsarError]) -> None:
    if view.deletion_begun:
        raise refusal(f"Partitioned topic {view.name} is being deleted")
    if not view.partitions:
        raise refusal(f"Topic {view.name} is not a partitioned topic")


def _check_partition_count(
    view: TopicView, partitions: int, *, refusal: type[PulsarError] = PartitionCountAboveMaximum
) -> None:
    if partitions < 1:
        raise refusal(f"Number of partitions should be more than 0, not {partitions}")
    if 0 < view.partitions_max < partitions:
        raise refusal(_above_maximum(view, partitions))


def _above_maximum(view: TopicView, partitions: int) -> str:
    return (
        f"Number of partitions should be less than or equal to {view.partitions_max} "
        f"(maxNumPartitionsPerPartitionedTopic), not {partitions}"
    )


def _check_single_topic_limit(view: TopicView) -> None:
    """A topic that is not stored is exempt unless it is partitioned."""
    if view.name.is_persistent:
        _check_topic_limit(view, 1, refusal=NotAllowed)


def _check_topic_limit(view: TopicView, added: int, *, refusal: type[PulsarError] = TopicLimitReached) -> None:
    """Stored topics count. Expansions are not asked for, system topics are exempt, partitioned topics never are."""
    limited = view.topics_left is not None and not view.name.is_system
    if limited and added > (view.topics_left or 0):
        raise refusal(
            f"Exceed maximum number of topics in namespace {view.name.namespace_name}: room for {view.topics_left} more"
        )


def _absent_partitions(view: TopicView, partitions: int) -> tuple[CreateTopicRecord, ...]:
    if not view.name.is_persistent:
        return ()
    absent = (index for index in range(partitions) if index not in view.partition_records)
    return tuple(CreateTopicRecord(view.name.partition(index)) for index in absent)
