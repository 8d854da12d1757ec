"""Topics: the meaning of a name, opening, and decisions to create, expand, repair and delete them.

The REST API, the binary protocol and replication call these functions. A rule depends only on its `TopicView` and
returns a `Decision`: the answer, and the changes to commit. A topic has two records, its partition metadata and its
topic record, and the rules ensure that they agree; `topic_view` explains them and has the predicates. Sources: PIP-344
(partition metadata without creation), PIP-414 (consistency of topics) and the admin API, as Apache Pulsar 5.0 behaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from interpulse.model.changes import (
    AskRemotes,
    CreatePartitionedMetadata,
    CreateTopicRecord,
    Decision,
    DeletePartitionedMetadata,
    SetPartitionCount,
    SetPartitionedMetadata,
    SetTopicProperties,
)
from interpulse.model.errors import (
    AlreadyExists,
    Conflict,
    ExpansionAboveMaximum,
    InvalidRequest,
    MetadataError,
    NotAllowed,
    PartitionedTopicNotFound,
    PreconditionFailed,
    ProducerBusy,
    PulsarError,
    ServiceNotReady,
    TopicNotFound,
)
from interpulse.model.names import TopicName
from interpulse.model.numbers import LONG_MAX, is_integer
from interpulse.model.topics import PartitionedTopicMetadata, Requester, TopicKind
from interpulse.rules.topic_view import (
    NO_PROPERTIES,
    PARTITION_MARK,
    NamespaceStanding,
    Part,
    TopicView,
    check_consistency,
    check_namespace,
    check_namespace_exists,
    check_partition_count,
    check_single_topic_limit,
    check_topic_limit,
    existence,
    first_part,
    looks_at,
    may_create,
    missing_record,
    not_found_to_open,
    topic_not_found,
)


def decide_partitions(view: TopicView, *, create: bool) -> Decision[int] | AskRemotes:
    """Return the partition count of the name; 0 = it is, or would become, a topic without partitions.

    PIP-344, table of the new behaviour: rows 1 and 2 for an existing topic; with ``create`` rows 3 to 6 for a missing
    one that may be created; otherwise row 7, TopicNotFound. Only a partitioned topic is created here. One without
    partitions is created when a producer or consumer opens it. A limit of the broker or the namespace is NotAllowed, so
    that clients do not retry.
    """
    existing = existence(view)
    if existing.kind is not TopicKind.ABSENT:
        return Decision(existing.partitions)
    if not (create and may_create(view)):
        raise topic_not_found(view)
    check_namespace(view, not_served=MetadataError)
    if view.remotes_to_ask and view.name.is_persistent and not view.name.is_partition:
        return AskRemotes()
    partitions = _partitions_of_new_topic(view)
    if partitions == 0:
        return Decision(0)
    check_partition_count(view, partitions, refusal=NotAllowed)
    check_topic_limit(view, partitions, refusal=NotAllowed)
    return Decision(partitions, (CreatePartitionedMetadata(view.name, partitions),))


def _partitions_of_new_topic(view: TopicView) -> int:
    """Return the partition count of a missing name.

    0 for a partition name (PIP-344, row 3), the other cluster's count if it has the topic (row 6), otherwise the
    policy's (rows 4 and 5).
    """
    if view.name.is_partition:
        return 0
    if view.remote_partitions is not None:
        return view.remote_partitions
    return view.auto_creation.partitions if view.auto_creation.partitioned else 0


def decide_partitions_for_operator(view: TopicView, *, create: bool) -> Decision[PartitionedTopicMetadata] | AskRemotes:
    """Return the partition count and properties for the admin API, after checking the namespace.

    With ``create`` (``checkAllowAutoCreation``) the answer has no properties. The rest is as in `decide_partitions`.
    """
    check_namespace(view, not_served=PreconditionFailed)
    decision = decide_partitions(view, create=create)
    if isinstance(decision, AskRemotes):
        return decision
    stored = view.base_metadata if decision.answer and not create else None
    return Decision(stored or PartitionedTopicMetadata(decision.answer), decision.changes)


def decide_partitions_to_subscribe(view: TopicView) -> Decision[int] | AskRemotes:
    """Return the partition count for an operator who creates a subscription, creating the topic (PIP-344).

    A missing topic that may not be created raises PreconditionFailed instead of TopicNotFound. The rest is as in
    `decide_partitions`.
    """
    try:
        return decide_partitions(view, create=True)
    except TopicNotFound as refusal:
        raise PreconditionFailed(f"{refusal}, and it may not be created") from None


def decide_lookup(view: TopicView) -> Decision[None]:
    """Allow HTTP lookup of a topic that exists, or that opening may create (PIP-344, row 7)."""
    check_namespace_exists(view)
    if existence(view).kind is TopicKind.ABSENT and not may_create(view):
        raise topic_not_found(view)
    return Decision(None)


def decide_open(view: TopicView, *, by: Requester, create: bool) -> Decision[None]:
    """Allow the topic to be loaded under this name, and create its record if it is missing and may be created.

    PIP-414, the answers to PRODUCER and SUBSCRIBE in each state. Raise TopicNotFound if it is absent and may not be
    created (checked first), TopicInconsistent if the name disagrees with the partition metadata, NotAllowed for names
    and domains that cannot be opened. Clients look a topic up before they open it, so a missing namespace was deleted
    in between: ServiceNotReady makes them repeat the lookup.
    """
    if not view.domain_enabled:
        raise NotAllowed(f"{view.name.domain} topics are disabled on this broker")
    if create:
        _check_still_served(view, by)
    if not (view.recorded or _always_loads(view) or (create and _may_create_for(view, by))):
        raise not_found_to_open(view)
    if view.name.is_persistent and view.name.is_transaction_internal:
        raise NotAllowed(f"Can not create transaction system topic {view.name}")
    if not view.recorded:
        check_namespace(view, not_served=MetadataError)
        check_single_topic_limit(view)
    if by is Requester.REPLICATOR and view.partitions and not view.name.is_partition:
        raise ProducerBusy(f"{view.name} is a partitioned topic here; a replicator writes to its partitions")
    check_consistency(view)
    return Decision(None, missing_record(view))


def _check_still_served(view: TopicView, by: Requester) -> None:
    namespace = view.name.namespace_name
    missing = view.namespace is NamespaceStanding.MISSING and not namespace.is_heartbeat
    if missing and by is not Requester.ADMIN:
        raise ServiceNotReady(f"Namespace {namespace} is not served by this broker. Please redo the lookup.")


def _always_loads(view: TopicView) -> bool:
    """Return True for a non-persistent partition. It has no record, so only the consistency check can refuse it."""
    return view.name.is_partition and not view.name.is_persistent and not view.deletion_begun


def _may_create_for(view: TopicView, by: Requester) -> bool:
    """Return True if the policy lets this requester create the topic by opening it.

    An operator creates a non-persistent topic by opening it. Replicators may be exempt from the policy (PIP-433). An
    exemption covers only the policy, never a namespace being deleted or an invalid name.
    """
    by_operator = by is Requester.ADMIN and not view.name.is_persistent
    policy = view.auto_creation
    by_replicator = by is Requester.REPLICATOR and (policy.replicator_allowed or policy.allowed)
    if view.base_metadata or not (by_operator or by_replicator):
        return may_create(view)
    return view.namespace is not NamespaceStanding.DELETED and view.name.creatable


@looks_at(Part.PARTITION_RECORDS)
def decide_create_partitioned(
    view: TopicView, partitions: int, *, properties: Mapping[str, str] = NO_PROPERTIES, local_only: bool = False
) -> Decision[None]:
    """Create a partitioned topic. Partitions stored without metadata are adopted with their entries.

    PIP-414, repair after the metadata was lost: the count must cover every stored partition. ``local_only`` (a replica
    being provisioned, PIP-370) accepts an existing topic with the same count. Raise AlreadyExists or Conflict if
    another topic exists, PartitionCountAboveMaximum, TopicLimitReached, PreconditionFailed for a name that cannot be a
    partitioned topic.
    """
    check_namespace(view, not_served=PreconditionFailed)
    _check_partitioned_name(view)
    check_partition_count(view, partitions)
    check_topic_limit(view, partitions)
    if view.partitions:
        return _decide_create_again(view, partitions, local_only=local_only)
    if existence(view).kind is not TopicKind.ABSENT:
        raise AlreadyExists(f"This topic already exists: {view.name}")
    _check_stored_partitions(view, partitions)
    created = CreatePartitionedMetadata(view.name, partitions, properties)
    return Decision(None, (created, *_absent_partitions(view, partitions)))


def _decide_create_again(view: TopicView, partitions: int, *, local_only: bool) -> Decision[None]:
    """Create the missing partitions of an existing topic, for a replica of the same count."""
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
        raise PreconditionFailed(f"Partitioned Topic Name should not contain {PARTITION_MARK!r}: {name}")
    _check_creatable(view)


@looks_at(Part.RELATED_METADATA)
def decide_create_plain(view: TopicView, *, properties: Mapping[str, str] = NO_PROPERTIES) -> Decision[None]:
    """Create a topic that is not partitioned, or restore one partition of a partitioned topic.

    PIP-414: the name must agree with the partition metadata here as well. Raise AlreadyExists, PreconditionFailed for a
    partition name outside of its partitioned topic, TopicInconsistent, NotAllowed at the topic limit.
    """
    check_namespace(view, not_served=PreconditionFailed)
    _check_creatable(view)
    _check_numbered_name(view)
    if view.name in view.metadata or existence(view).kind is not TopicKind.ABSENT:
        raise AlreadyExists(f"This topic already exists: {view.name}")
    check_consistency(view)
    check_single_topic_limit(view)
    return Decision(None, missing_record(view, properties))


def _check_numbered_name(view: TopicView) -> None:
    """Refuse a number after the *first* ``-partition-`` that is not a partition of the topic named before it.

    The number is parsed like a signed 64-bit number in Java, so ``+1`` and ``01`` count. This is Pulsar's rule.
    """
    number = _signed_long(view.name.local_name.partition(PARTITION_MARK)[2])
    if number is None:
        return
    first = first_part(view.name)
    metadata = view.metadata.get(first)
    if metadata is None or number >= metadata.partitions:
        raise PreconditionFailed(_no_place(view.name, first, metadata.partitions if metadata else 0))


def _no_place(name: TopicName, base: TopicName, partitions: int) -> str:
    if not partitions:
        return (
            f"Can't create topic {name.local_name} with \"{PARTITION_MARK}\" followed by numeric value if there isn't "
            f"a partitioned topic {base.local_name} created. Create {base} with all its partitions first"
        )
    return (
        f'Can\'t create topic {name.local_name} with "{PARTITION_MARK}" followed by a number smaller than number of '
        f"partition of partitioned topic {base.local_name}, which are {partitions}: expand {base}"
    )


def _signed_long(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if is_integer(number, most=LONG_MAX) else None


@looks_at(Part.PARTITION_RECORDS)
def decide_create_missed_partitions(view: TopicView) -> Decision[None]:
    """Restore the partitions of a partitioned topic that have no record (PIP-414). Raise PartitionedTopicNotFound."""
    if PARTITION_MARK in view.name.local_name:
        raise PreconditionFailed(f"Not the name of a partitioned topic: {view.name}")
    check_namespace(view, not_served=PreconditionFailed)
    _check_partitioned(view, refusal=PartitionedTopicNotFound)
    return Decision(None, _absent_partitions(view, view.partitions))


@looks_at(Part.PARTITION_RECORDS)
def decide_expand(view: TopicView, partitions: int, *, force: bool = False) -> Decision[None]:
    """Expand a partitioned topic: new partitions and the new count are one commit.

    The commit must be atomic because PIP-414 refuses a partition beyond the count. Partitions without a record are
    restored too. ``force`` adopts partition records beyond the present count. Raise Conflict for a name that is not a
    partitioned topic, ExpansionAboveMaximum for a count below the present one or above the maximum.
    """
    name = view.name
    if name.is_partition:
        raise PreconditionFailed(
            f"Partitioned Topic Name should not contain {PARTITION_MARK!r}: {name} is a partition, expand {name.base}"
        )
    _check_partitioned(view, refusal=Conflict)
    check_namespace(view, not_served=PreconditionFailed)
    if partitions < view.partitions:
        raise ExpansionAboveMaximum(
            f"Desired partitions {partitions} can't be less than the current partitions {view.partitions}. "
            f"{name} cannot shrink"
        )
    if 0 < view.partitions_max < partitions:
        raise ExpansionAboveMaximum(
            f"Desired partitions {partitions} can't be greater than the maximum partitions per topic "
            f"{view.partitions_max}. Raise maxNumPartitionsPerPartitionedTopic"
        )
    unexpected = sorted(index for index in view.partition_records if index >= view.partitions)
    if unexpected and not force:
        raise Conflict(
            f"{name} has {view.partitions} partitions but partition {unexpected[-1]} is stored as well; use force to "
            f"take it over"
        )
    grown = () if partitions == view.partitions else (SetPartitionCount(name, partitions),)
    return Decision(None, (*_absent_partitions(view, partitions), *grown))


def decide_delete_partitioned(view: TopicView) -> Decision[int]:
    """Delete the metadata of a partitioned topic. Return the number of partitions to delete with it.

    PIP-414: partitions beyond the metadata do not belong to this topic. A topic marked as being deleted may be
    finished.
    """
    name = view.name
    if name.is_partition:
        raise PreconditionFailed(
            f"Partitioned Topic Name should not contain {PARTITION_MARK!r}: {name} is a partition, "
            f"delete {name.base}, or the one topic {name}"
        )
    check_namespace_exists(view)
    if not view.partitions:
        if existence(view).kind is TopicKind.NON_PARTITIONED:
            raise Conflict(
                f"{name} is a non-partitioned topic. Instead of calling delete-partitioned-topic please call delete."
            )
        raise PartitionedTopicNotFound(f"Topic {name} not found.")
    return Decision(view.partitions, (DeletePartitionedMetadata(name),))


def decide_delete_plain(view: TopicView, *, force: bool) -> Decision[None]:
    """Allow the deletion of one topic or partition, even if PIP-414 refuses to open it.

    An absent non-persistent topic counts as deleted. If a name is both plain and partitioned, ``force`` deletes the
    plain topic and leaves the partitions unchanged.
    """
    check_namespace_exists(view)
    if view.partitions and not view.name.is_partition and not (force and view.recorded):
        raise Conflict(
            f"{view.name} is a partitioned topic, instead of calling delete topic, "
            f"please call delete-partitioned-topic."
        )
    if view.name.is_persistent and not view.recorded:
        raise topic_not_found(view)
    return Decision(None)


@looks_at(Part.RELATED_METADATA)
def decide_set_properties(view: TopicView, old: Mapping[str, str], new: Mapping[str, str]) -> Decision[None]:
    """Replace the properties of a topic; a partitioned topic has them in its metadata.

    Raise the errors of `decide_open`.
    """
    metadata = view.metadata.get(view.name)
    if metadata is None:
        decide_open(view, by=Requester.ADMIN, create=False)
    if new == old:
        return Decision(None)
    if metadata is None:
        return Decision(None, (SetTopicProperties(view.name, new),))
    return Decision(None, (SetPartitionedMetadata(view.name, replace(metadata, properties=new)),))


def decide_mark_deleted(name: TopicName, metadata: PartitionedTopicMetadata | None, *, deleted: bool) -> Decision[bool]:
    """Mark a partitioned topic as being deleted, or remove the mark. Return True if this changes anything."""
    if metadata is None or metadata.deleted is deleted:
        return Decision(False)
    return Decision(True, (SetPartitionedMetadata(name, replace(metadata, deleted=deleted)),))


def _check_creatable(view: TopicView) -> None:
    if view.name.is_transaction_internal:
        raise InvalidRequest(f"Cannot create topic in system topic format: {view.name}")
    problem = view.name.creation_problem
    if problem:
        raise PreconditionFailed(f"Topic name {problem}: {str(view.name)!r}")


def _check_partitioned(view: TopicView, *, refusal: type[PulsarError]) -> None:
    if view.deletion_begun:
        raise refusal(f"Partitioned topic {view.name} is being deleted; delete it again to finish that")
    if not view.partitions:
        raise refusal(f"Topic {view.name} is not the partitioned topic.")


def _absent_partitions(view: TopicView, partitions: int) -> tuple[CreateTopicRecord, ...]:
    if not view.name.is_persistent:
        return ()
    absent = (index for index in range(partitions) if index not in view.partition_records)
    return tuple(CreateTopicRecord(view.name.partition(index)) for index in absent)
