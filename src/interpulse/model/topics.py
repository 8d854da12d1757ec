"""The records and statistics of a topic, and the requester of an operation on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple


class Requester(Enum):
    """The requester of an operation. Callers do not differ otherwise, in particular not by front end."""

    CLIENT = "client"
    ADMIN = "admin"
    REPLICATOR = "replicator"


class TopicKind(Enum):
    """The kind of thing that a name denotes now."""

    PARTITIONED = "partitioned"
    NON_PARTITIONED = "non-partitioned"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Existence:
    """A kind and, for a partitioned topic, its number of partitions."""

    kind: TopicKind
    partitions: int = 0


@dataclass(frozen=True, slots=True)
class PartitionedTopicMetadata:
    """The record that makes a name a partitioned topic. ``partitions == 0``: it is none."""

    partitions: int
    deleted: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a stored record without a meaning here."""

    def to_json(self) -> dict[str, Any]:
        """Return Pulsar's JSON, with ``properties`` only if there are any. Unknown fields are preserved."""
        body: dict[str, Any] = {"partitions": self.partitions, "deleted": self.deleted, **self.other}
        if self.properties:
            body["properties"] = dict(self.properties)
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> PartitionedTopicMetadata:
        return cls(
            partitions=int(body.get("partitions", 0)),
            deleted=bool(body.get("deleted", False)),
            properties=dict(body.get("properties") or {}),
            other={key: value for key, value in body.items() if key not in ("partitions", "deleted", "properties")},
        )

    def dump(self) -> bytes:
        return json.dumps(self.to_json()).encode()

    @classmethod
    def load(cls, raw: bytes) -> PartitionedTopicMetadata:
        return cls.from_json(json.loads(raw))


class TopicMeasure(NamedTuple):
    """Metrics of one topic, summed over its producers and subscriptions, without replication."""

    subscriptions: int = 0
    producers: int = 0
    consumers: int = 0
    rate_in: float = 0.0
    rate_out: float = 0.0
    throughput_in: float = 0.0
    throughput_out: float = 0.0
    messages_in: int = 0
    bytes_in: int = 0
    messages_out: int = 0
    bytes_out: int = 0
    backlog: int = 0
    backlog_bytes: int = 0
    storage_bytes: int = 0
    logical_bytes: int = 0
    """Bytes without copies. Pulsar's storage size counts one copy."""
    offloaded_bytes: int = 0
    """Always 0: there is no tiered storage."""
    write_rate: float = 0.0
    """Entries per second. Reads count only entries that were not in memory."""
    read_rate: float = 0.0
    cache_misses_rate: float = 0.0
    delayed_bytes: int = 0


class SubscriptionMeasure(NamedTuple):
    """Metrics of one subscription."""

    backlog: int
    unacknowledged: int
    blocked: bool
    rate_out: float
    throughput_out: float
    rate_redelivered: float
    rate_acknowledged: float
    consumers: int
    expired: int
    messages_out: int
    bytes_out: int
    delayed: int = 0
    delayed_bytes: int = 0
    replaying: int = 0
    backlog_not_delayed: int = 0
    rate_expired: float = 0.0
    rate_dropped: float = 0.0
    """Messages per second that no consumer got, on topics that store nothing."""
    last_expired_ms: int = 0
    """Milliseconds since 1970; 0 = never."""
    last_flow_ms: int = 0
    last_sent_ms: int = 0
    last_acknowledged_ms: int = 0
    last_moved_ms: int = 0
