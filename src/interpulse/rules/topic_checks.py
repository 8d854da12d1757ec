"""Checks shared by several topic rules, each with one refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse.model.changes import Change, CreateTopicRecord
from interpulse.model.errors import (
    Inconsistency,
    NamespaceNotFound,
    NotAllowed,
    PartitionCountAboveMaximum,
    PulsarError,
    TopicInconsistent,
    TopicLimitReached,
    TopicNotFound,
)
from interpulse.rules.topic_view import NamespaceStanding, TopicView

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
