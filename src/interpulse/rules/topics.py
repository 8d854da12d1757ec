"""Requests for topics: the meaning of a name, opening, and the creation of a missing topic.

The REST API, the binary protocol and replication call these functions. A rule depends only on its `TopicView` and
returns a `Decision`: the answer, and the changes to commit. A topic has two records, its partition metadata and its
topic record, and the rules ensure that they agree; `topic_view` explains them and has the predicates. Rules for
operators are in `topic_operations`. Sources: PIP-344 (partition metadata without creation) and PIP-414 (consistency of
topics), as Apache Pulsar 5.0 behaves.
"""

from __future__ import annotations

from interpulse.model.changes import CreatePartitionedMetadata
from interpulse.model.errors import (
    MetadataError,
    NotAllowed,
    PreconditionFailed,
    ProducerBusy,
    ServiceNotReady,
    TopicNotFound,
)
from interpulse.model.topics import PartitionedTopicMetadata, Requester, TopicKind
from interpulse.rules.consistency import check_consistency
from interpulse.rules.decision import AskRemotes, Decision
from interpulse.rules.topic_checks import (
    check_namespace,
    check_namespace_exists,
    check_partition_count,
    check_single_topic_limit,
    check_topic_limit,
    missing_record,
    not_found_to_open,
    topic_not_found,
)
from interpulse.rules.topic_view import NamespaceStanding, TopicView, existence, may_create


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
    by_replicator = by is Requester.REPLICATOR and view.auto_creation.replicator_allowed
    if view.base_metadata or not (by_operator or by_replicator):
        return may_create(view)
    return view.namespace is not NamespaceStanding.DELETED and view.name.creatable
