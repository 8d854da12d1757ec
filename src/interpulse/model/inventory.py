"""Topic as the lists of a cluster show it: a row of an inventory."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from interpulse.model.names import TopicName

PLAIN: Final = -1
"""Index of a plain topic beside partitions of the same name."""


class ListedKind(StrEnum):
    """Kinds of base names in the lists of a cluster."""

    PARTITIONED = "PARTITIONED"
    NON_PARTITIONED = "NON_PARTITIONED"
    ORPHAN_PARTITION = "ORPHAN_PARTITION"
    """Partitions without partition metadata."""
    METADATA_ONLY = "METADATA_ONLY"
    """Partition metadata without any partition."""


class TopicRow(NamedTuple):
    """Base name in the lists of a cluster.

    * ``indexes``: indexes of the stored partitions unless they are 0 to ``partitions`` - 1; PLAIN is a plain topic of
      the same name.
    * ``exact``: True if the count is the recorded one, False if it follows from the partitions.
    * ``schema_hash``: covers all ``schema_versions`` versions; None if there are none, or they were not read.
    * ``subscriptions``: None if they were not read.
    * ``error``: the reason why the row is incomplete.
    * ``deleted``: True if the metadata marks the topic as being deleted.
    """

    topic: TopicName
    kind: ListedKind
    partitions: int = 0
    indexes: tuple[int, ...] | None = None
    exact: bool = True
    schema_type: str | None = None
    schema_hash: str | None = None
    subscriptions: tuple[str, ...] | None = None
    error: str | None = None
    schema_versions: int | None = None
    deleted: bool = False

    @property
    def is_healthy(self) -> bool:
        """True if its records agree with each other."""
        return self.indexes is None and self.kind in (ListedKind.PARTITIONED, ListedKind.NON_PARTITIONED)

    @property
    def names_count(self) -> int:
        """Number of listed names, including those of partitions."""
        if self.kind in (ListedKind.NON_PARTITIONED, ListedKind.ORPHAN_PARTITION):
            return 1 if self.indexes is None else len(self.indexes)
        if self.indexes is None:
            return 1 + self.partitions * self.topic.is_persistent
        return 1 + sum(index >= 0 for index in self.indexes)
