"""What the lists of a namespace say about each of its topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from interpulse.model.inventory import ListedKind, TopicRow
from interpulse.model.names import TopicName

__all__ = ["PLAIN", "list_topics", "with_count"]

PLAIN = -1
"""The index that stands for a plain topic beside partitions of the same name."""


def list_topics(stored: Iterable[TopicName], counts: Mapping[TopicName, int | None]) -> Iterator[TopicRow]:
    """A row for each base name, in order of names.

    ``stored`` are topics and partitions, of non-persistent ones those that are loaded; ``counts`` the partitioned
    topics, None where the list does not tell the count: then it is taken from the partitions and not exact.
    """
    indexes: dict[TopicName, set[int]] = {base: set() for base in counts}
    for name in stored:
        index = name.partition_index if name.is_partition else PLAIN
        indexes.setdefault(name.base if index != PLAIN else name, set()).add(index)
    for base in sorted(indexes, key=str):
        found = indexes[base]
        if base in counts:
            yield _partitioned(base, counts[base], found)
        elif found == {PLAIN}:
            yield TopicRow(base, ListedKind.NON_PARTITIONED)
        else:
            yield TopicRow(base, ListedKind.ORPHAN_PARTITION, 0, tuple(sorted(found)))


def _partitioned(base: TopicName, count: int | None, found: set[int]) -> TopicRow:
    kind = ListedKind.PARTITIONED if found or not base.is_persistent else ListedKind.METADATA_ONLY
    seen = max(found, default=-1) + 1
    indexes = None if found and found == set(range(seen)) else tuple(sorted(found))
    row = TopicRow(base, kind, seen, indexes, exact=False)
    return row if count is None else with_count(row, count)


def with_count(row: TopicRow, count: int) -> TopicRow:
    """The row of a partitioned topic with its recorded count. Of non-persistent ones, no partition is ever missing."""
    found = set(row.indexes if row.indexes is not None else range(row.partitions))
    complete = found == set(range(count)) if row.topic.is_persistent else found <= set(range(count))
    return replace(row, partitions=count, indexes=None if complete else tuple(sorted(found)), exact=True)
