"""Policies on the lifetime of topics and messages: automatic creation, retention, deletion of inactive topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

TopicType = Literal["partitioned", "non-partitioned"]
PARTITIONED: TopicType = "partitioned"
NON_PARTITIONED: TopicType = "non-partitioned"

DELETE_WHEN_NO_SUBSCRIPTIONS: Final = "delete_when_no_subscriptions"
DELETE_WHEN_CAUGHT_UP: Final = "delete_when_subscriptions_caught_up"


@dataclass(frozen=True, slots=True)
class AutoTopicCreation:
    """Permission to create a missing topic on request, and the type of the created topic."""

    allowed: bool
    topic_type: str | None = None
    default_partitions: int | None = None
    always_allow_for_replicator: bool | None = None

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"allowAutoTopicCreation": self.allowed}
        optional = {
            "topicType": self.topic_type,
            "defaultNumPartitions": self.default_partitions,
            "alwaysAllowForReplicator": self.always_allow_for_replicator,
        }
        return body | {key: value for key, value in optional.items() if value is not None}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> AutoTopicCreation:
        return cls(
            allowed=bool(body.get("allowAutoTopicCreation", False)),
            topic_type=body.get("topicType"),
            default_partitions=body.get("defaultNumPartitions"),
            always_allow_for_replicator=body.get("alwaysAllowForReplicator"),
        )


@dataclass(frozen=True, slots=True)
class RetentionPolicies:
    """Retention of acknowledged messages in minutes and megabytes; -1 = unlimited, 0 = none."""

    time_minutes: int = 0
    size_mb: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"retentionTimeInMinutes": self.time_minutes, "retentionSizeInMB": self.size_mb}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> RetentionPolicies:
        return cls(int(body.get("retentionTimeInMinutes", 0)), int(body.get("retentionSizeInMB", 0)))


@dataclass(frozen=True, slots=True)
class InactiveTopicPolicies:
    """Deletion of inactive topics: the condition of inactivity, and the time before deletion."""

    delete_mode: str = DELETE_WHEN_NO_SUBSCRIPTIONS
    max_inactive_seconds: int = 60
    delete_while_inactive: bool = True

    def to_json(self) -> dict[str, Any]:
        return {
            "inactiveTopicDeleteMode": self.delete_mode,
            "maxInactiveDurationSeconds": self.max_inactive_seconds,
            "deleteWhileInactive": self.delete_while_inactive,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> InactiveTopicPolicies:
        """Parse the JSON. A missing field has the default of Pulsar's Java class: no time, not deleted."""
        return cls(
            str(body.get("inactiveTopicDeleteMode") or DELETE_WHEN_NO_SUBSCRIPTIONS),
            int(body.get("maxInactiveDurationSeconds", 0)),
            bool(body.get("deleteWhileInactive", False)),
        )
