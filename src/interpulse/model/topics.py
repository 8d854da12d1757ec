"""The records of a topic, and the requester of an operation on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

__all__ = ["Existence", "PartitionedTopicMetadata", "Requester", "TopicKind"]


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
