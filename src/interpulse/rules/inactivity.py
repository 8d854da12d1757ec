"""When an inactive topic is deleted.

Whether it is needed depends on the mode of the policy: ``delete_when_no_subscriptions`` keeps whatever has a
subscription, ``delete_when_subscriptions_caught_up`` only what a subscription has not acknowledged yet. In both modes a
connected client keeps its topic, and so does what another cluster has still to get. Only loaded topics are looked at.

Pulsar does not spare a connected consumer in the second mode: its topic goes and comes back with its next attempt, and
what is published in between is lost for it. Here it stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.model.changes import DeletePartitionedMetadata
from interpulse.model.errors import InvalidRequest
from interpulse.model.names import TopicName
from interpulse.model.policies.namespace_policies import (
    DELETE_WHEN_CAUGHT_UP,
    DELETE_WHEN_NO_SUBSCRIPTIONS,
    InactiveTopicPolicies,
    RetentionPolicies,
)
from interpulse.rules.decision import Decision
from interpulse.rules.topic_view import Part, TopicView, looks_at

__all__ = [
    "DELETE_MODES",
    "TopicActivity",
    "check_inactive_topics",
    "decide_delete_orphaned_metadata",
    "is_active",
    "is_expendable",
]

DELETE_MODES: Final = (DELETE_WHEN_NO_SUBSCRIPTIONS, DELETE_WHEN_CAUGHT_UP)


@dataclass(frozen=True, slots=True)
class TopicActivity:
    """The use of a loaded topic.

    ``in_use``: a producer, a consumer or the replication to another cluster is connected. ``subscribed``: it has a
    subscription. ``backlog``: a subscription has entries that it has not acknowledged. ``unreplicated``: another
    cluster has still to get entries. ``holds_entries``: there are entries, acknowledged or not.
    """

    in_use: bool = False
    subscribed: bool = False
    backlog: bool = False
    unreplicated: bool = False
    holds_entries: bool = False


def is_active(activity: TopicActivity, delete_mode: str) -> bool:
    """Whether the topic is needed now."""
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
    """Whether a loaded topic that was needed ``idle_ms`` ago for the last time goes now.

    System topics stay. So does a topic that holds entries as long as its retention would keep acknowledged ones; of the
    retention only the time counts.
    """
    if name.is_system or not policies.delete_while_inactive or is_active(activity, policies.delete_mode):
        return False
    if idle_ms < policies.max_inactive_seconds * 1000:
        return False
    return not (activity.holds_entries and _retained(idle_ms, retention))


def _retained(idle_ms: int, retention: RetentionPolicies) -> bool:
    return retention.time_minutes < 0 or idle_ms < retention.time_minutes * 60_000


@looks_at(Part.RELATED_METADATA, Part.PARTITION_RECORDS)
def decide_delete_orphaned_metadata(view: TopicView, *, loaded: bool) -> Decision[bool]:
    """A partitioned topic goes when its last partition has gone. One that is being deleted is left alone.

    ``loaded``: a partition is loaded, which is all there is of one that is not stored.
    """
    present = view.metadata.get(view.name)
    if present is None or present.deleted or view.name.is_system or view.partition_records or loaded:
        return Decision(False)
    return Decision(True, (DeletePartitionedMetadata(view.name),))


def check_inactive_topics(body: Mapping[str, Any]) -> InactiveTopicPolicies:
    """Read a policy as an operator sends it; raises InvalidRequest for what cannot be meant."""
    mode = body.get("inactiveTopicDeleteMode")
    if mode not in DELETE_MODES:
        raise _invalid(f"inactiveTopicDeleteMode must be {' or '.join(DELETE_MODES)}, not {mode}")
    policies = InactiveTopicPolicies.from_json(body)
    if policies.max_inactive_seconds < 0:
        raise _invalid(f"maxInactiveDurationSeconds must be 0 or more, not {policies.max_inactive_seconds}")
    return policies


def _invalid(reason: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid inactive topic policies: {reason}")
