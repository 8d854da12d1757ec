"""The changes of a decision.

A change has two interpreters: the metadata store of this broker, and an admin client for another cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from interpulse.model.names import TopicName

__all__ = [
    "Change",
    "CreatePartitionedMetadata",
    "CreateTopicRecord",
    "DeletePartitionedMetadata",
    "SetPartitionCount",
]


@dataclass(frozen=True, slots=True)
class CreatePartitionedMetadata:
    """The base name becomes a partitioned topic of ``partitions`` partitions."""

    topic: TopicName
    partitions: int
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopicRecord:
    """The storage of one topic or partition comes into being."""

    topic: TopicName
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetPartitionCount:
    """A partitioned topic grows to ``partitions``."""

    topic: TopicName
    partitions: int


@dataclass(frozen=True, slots=True)
class DeletePartitionedMetadata:
    """The base name is no partitioned topic any more."""

    topic: TopicName


Change = CreatePartitionedMetadata | CreateTopicRecord | SetPartitionCount | DeletePartitionedMetadata
