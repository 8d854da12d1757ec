"""Policies that are objects in Pulsar's JSON, with its fields and numbers.

A missing or null field takes its default. In policies on messages and clients, a field of another type raises
ValueError.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from interpulse.model.numbers import INT_MAX, LONG_MAX
from interpulse.model.policies.policy_kinds import integer, real, truth

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


DESTINATION_STORAGE: Final = "destination_storage"
MESSAGE_AGE: Final = "message_age"
QuotaType = Literal["destination_storage", "message_age"]
QUOTA_TYPES: Final = (DESTINATION_STORAGE, MESSAGE_AGE)

PRODUCER_REQUEST_HOLD: Final = "producer_request_hold"
PRODUCER_EXCEPTION: Final = "producer_exception"
CONSUMER_BACKLOG_EVICTION: Final = "consumer_backlog_eviction"
QUOTA_POLICIES: Final = (PRODUCER_REQUEST_HOLD, PRODUCER_EXCEPTION, CONSUMER_BACKLOG_EVICTION)


@dataclass(frozen=True, slots=True)
class PublishRate:
    """Rate per second at which all producers of a topic publish; 0 or less = no limit."""

    messages: int = -1
    bytes: int = -1

    @property
    def limited(self) -> bool:
        return self.messages > 0 or self.bytes > 0

    def to_json(self) -> dict[str, Any]:
        return {"publishThrottlingRateInMsg": self.messages, "publishThrottlingRateInByte": self.bytes}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> PublishRate:
        return cls(
            _number(body, "publishThrottlingRateInMsg", -1),
            _number(body, "publishThrottlingRateInByte", -1, most=LONG_MAX),
        )


@dataclass(frozen=True, slots=True)
class DispatchRate:
    """Rate per period at which consumers receive messages; 0 or less = no limit.

    With ``relative_to_publish_rate`` the numbers are added to the publish rate.
    """

    messages: int = -1
    bytes: int = -1
    relative_to_publish_rate: bool = False
    period_seconds: int = 1

    @property
    def limited(self) -> bool:
        return self.messages > 0 or self.bytes > 0

    def to_json(self) -> dict[str, Any]:
        return {
            "dispatchThrottlingRateInMsg": self.messages,
            "dispatchThrottlingRateInByte": self.bytes,
            "relativeToPublishRate": self.relative_to_publish_rate,
            "ratePeriodInSecond": self.period_seconds,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> DispatchRate:
        return cls(
            _number(body, "dispatchThrottlingRateInMsg", -1),
            _number(body, "dispatchThrottlingRateInByte", -1, most=LONG_MAX),
            _flag(body, "relativeToPublishRate"),
            _number(body, "ratePeriodInSecond", 1),
        )


@dataclass(frozen=True, slots=True)
class SubscribeRate:
    """Rate per period at which one consumer, identified by its address, subscribes; 0 or less = no limit."""

    subscribes_per_consumer: int = -1
    period_seconds: int = 30

    @property
    def limited(self) -> bool:
        return self.subscribes_per_consumer > 0

    def to_json(self) -> dict[str, Any]:
        return {
            "subscribeThrottlingRatePerConsumer": self.subscribes_per_consumer,
            "ratePeriodInSecond": self.period_seconds,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> SubscribeRate:
        return cls(_number(body, "subscribeThrottlingRatePerConsumer", -1), _number(body, "ratePeriodInSecond", 30))


@dataclass(frozen=True, slots=True)
class BacklogQuota:
    """Limit of a topic's unacknowledged messages, and the action beyond it; below 1 = no limit.

    A quota of the type `DESTINATION_STORAGE` limits the bytes, one of the type `MESSAGE_AGE` the seconds.
    """

    limit_bytes: int = -1
    limit_seconds: int = -1
    policy: str = PRODUCER_REQUEST_HOLD

    def to_json(self) -> dict[str, Any]:
        return {
            "limit": self.limit_bytes,
            "limitSize": self.limit_bytes,
            "limitTime": self.limit_seconds,
            "policy": self.policy,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> BacklogQuota:
        """Parse the JSON. ``limit`` is the older name of ``limitSize``; the later field counts, as in Pulsar."""
        policy = body.get("policy") or PRODUCER_REQUEST_HOLD
        if policy not in QUOTA_POLICIES:
            raise ValueError(f"policy must be one of {', '.join(QUOTA_POLICIES)}, not {policy}")
        limit_bytes = -1
        for name in body:
            if name in ("limit", "limitSize"):
                limit_bytes = _number(body, name, limit_bytes, most=LONG_MAX)
        return cls(limit_bytes, _number(body, "limitTime", -1), policy)


@dataclass(frozen=True, slots=True)
class DelayedDelivery:
    """Permission to delay messages, precision of delivery times, and longest delay; 0 = any delay."""

    active: bool = True
    tick_millis: int = 1000
    max_delay_millis: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"tickTime": self.tick_millis, "active": self.active, "maxDeliveryDelayInMillis": self.max_delay_millis}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> DelayedDelivery:
        """Parse the JSON. A missing ``active`` is false, as in Pulsar."""
        return cls(
            _flag(body, "active"),
            _number(body, "tickTime", 0, most=LONG_MAX),
            _number(body, "maxDeliveryDelayInMillis", 0, most=LONG_MAX),
        )


@dataclass(frozen=True, slots=True)
class Persistence:
    """Numbers of bookies that a ledger uses, that store each entry, and that must acknowledge an entry.

    The last two fields are for brokers of Apache Pulsar: the maximum rate of cursor writes, and the class that stores
    ledgers.
    """

    ensemble: int = 2
    write_quorum: int = 2
    ack_quorum: int = 2
    mark_delete_rate: float = -1.0
    storage_class: str | None = None

    def to_json(self) -> dict[str, Any]:
        body = {
            "bookkeeperEnsemble": self.ensemble,
            "bookkeeperWriteQuorum": self.write_quorum,
            "bookkeeperAckQuorum": self.ack_quorum,
            "managedLedgerMaxMarkDeleteRate": self.mark_delete_rate,
        }
        return body if self.storage_class is None else {**body, "managedLedgerStorageClassName": self.storage_class}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Persistence:
        """Parse the JSON. Missing numbers are 2, as in Pulsar."""
        rate = body.get("managedLedgerMaxMarkDeleteRate")
        return cls(
            _number(body, "bookkeeperEnsemble", 2),
            _number(body, "bookkeeperWriteQuorum", 2),
            _number(body, "bookkeeperAckQuorum", 2),
            -1.0 if rate is None else real("managedLedgerMaxMarkDeleteRate", rate),
            body.get("managedLedgerStorageClassName"),
        )


def _number(body: Mapping[str, Any], key: str, default: int, *, most: int = INT_MAX) -> int:
    value = body.get(key)
    return default if value is None else integer(key, value, most=most)


def _flag(body: Mapping[str, Any], key: str) -> bool:
    value = body.get(key)
    return False if value is None else truth(key, value)
