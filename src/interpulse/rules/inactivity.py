"""Deletion of inactive topics.

The mode of the policy decides if a topic is in use: ``delete_when_no_subscriptions`` retains a topic with a
subscription, ``delete_when_subscriptions_caught_up`` only one with unacknowledged messages. In both modes a connected
client retains its topic, and so do entries not replicated yet. Only loaded topics are checked.

In the second mode Pulsar does not spare a connected consumer: its topic is deleted and created again with its next
attempt, and messages published in between are lost for it. Here the topic remains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.model.changes import Decision, DeletePartitionedMetadata
from interpulse.model.errors import InvalidRequest
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import (
    DELETE_WHEN_CAUGHT_UP,
    DELETE_WHEN_NO_SUBSCRIPTIONS,
    InactiveTopicPolicies,
    RetentionPolicies,
)
from interpulse.rules.topic_view import Part, TopicView, looks_at

DELETE_MODES: Final = (DELETE_WHEN_NO_SUBSCRIPTIONS, DELETE_WHEN_CAUGHT_UP)


@dataclass(frozen=True, slots=True)
class TopicActivity:
    """Use of a loaded topic.

    ``in_use``: a producer, a consumer or the replication to another cluster is connected. ``subscribed``: it has a
    subscription. ``backlog``: a subscription has unacknowledged entries. ``unreplicated``: entries are still to be
    replicated. ``holds_entries``: there are entries, acknowledged or not.
    """

    in_use: bool = False
    subscribed: bool = False
    backlog: bool = False
    unreplicated: bool = False
    holds_entries: bool = False


def is_active(activity: TopicActivity, delete_mode: str) -> bool:
    """Return True if the topic is in use."""
    if activity.in_use or activity.unreplicated:
        return True
    return activity.backlog if delete_mode == DELETE_WHEN_CAUGHT_UP else activity.subscribed


def is_expendable(
    name: TopicName,
    activity: TopicActivity,
    *,
    idle_ms: int,
    policies: InactiveTopicPolicies,
    retention: RetentionPolicies,
) -> bool:
    """Return True if a loaded topic may be deleted that was last in use ``idle_ms`` ago.

    System topics are never deleted. Neither is a topic with entries within the retention time; the retention size does
    not count.
    """
    if name.is_system or not policies.delete_while_inactive or is_active(activity, policies.delete_mode):
        return False
    if idle_ms < policies.max_inactive_seconds * 1000:
        return False
    retained = retention.time_minutes < 0 or idle_ms < retention.time_minutes * 60_000
    return not (activity.holds_entries and retained)


@looks_at(Part.RELATED_METADATA, Part.PARTITION_RECORDS)
def decide_delete_orphaned_metadata(view: TopicView, *, loaded: bool) -> Decision[bool]:
    """Delete the metadata of a partitioned topic without partitions, unless it is being deleted.

    ``loaded``: a partition is loaded, which is all that exists of a non-persistent one.
    """
    present = view.metadata.get(view.name)
    if present is None or present.deleted or view.name.is_system or view.partition_records or loaded:
        return Decision(False)
    return Decision(True, (DeletePartitionedMetadata(view.name),))


def check_inactive_topics(body: Mapping[str, Any]) -> InactiveTopicPolicies:
    """Parse the policy that an operator sends. Raise InvalidRequest if it is invalid."""
    mode = body.get("inactiveTopicDeleteMode")
    if mode not in DELETE_MODES:
        raise _invalid(f"inactiveTopicDeleteMode must be {' or '.join(DELETE_MODES)}, not {mode}")
    policies = InactiveTopicPolicies.from_json(body)
    if policies.max_inactive_seconds < 0:
        raise _invalid(f"maxInactiveDurationSeconds must be 0 or more, not {policies.max_inactive_seconds}")
    return policies


def _invalid(reason: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid inactive topic policies: {reason}")
