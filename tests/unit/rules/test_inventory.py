"""What lists say about topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from interpulse.model.inventory import ListedKind, TopicRow
from interpulse.model.names import TopicName
from interpulse.rules.inventory import TopicLists

BASE = TopicName.parse("a/b/t")
P, N = ListedKind.PARTITIONED, ListedKind.NON_PARTITIONED
ORPHAN, M = ListedKind.ORPHAN_PARTITION, ListedKind.METADATA_ONLY


def list_topics(stored: Iterable[TopicName], counts: Mapping[TopicName, int | None]) -> list[TopicRow]:
    lists = TopicLists()
    lists.add_stored(stored)
    lists.add_partitioned(counts.items())
    list(lists.join(lists.bases()))
    return list(lists.rows.values())


CASES = {
    "plain": ([-1], {}, (N, 0, None, True)),
    "partitioned, count listed": ([0, 1], {BASE: 2}, (P, 2, None, True)),
    "partitioned, count not listed": ([0, 1], {BASE: None}, (P, 2, None, False)),
    "a partition lacks": ([0, 2], {BASE: 3}, (P, 3, (0, 2), True)),
    "a partition lacks, count not listed": ([0, 2], {BASE: None}, (P, 3, (0, 2), False)),
    "the last partition lacks": ([0], {BASE: 2}, (P, 2, (0,), True)),
    "more partitions than counted": ([0, 1, 2], {BASE: 2}, (P, 2, (0, 1, 2), True)),
    "metadata alone": ([], {BASE: 2}, (M, 2, (), True)),
    "metadata alone, count not listed": ([], {BASE: None}, (M, 0, (), False)),
    "partitions alone": ([0, 1], {}, (ORPHAN, 0, (0, 1), True)),
    "plain beside partitions": ([-1, 0], {BASE: 1}, (P, 1, (-1, 0), True)),
}


@pytest.mark.parametrize(("indexes", "counts", "expected"), CASES.values(), ids=CASES)
def test_topic_when_listed_then_has_kind_and_count(indexes, counts, expected) -> None:
    stored = [BASE if index < 0 else BASE.partition(index) for index in indexes]
    assert list_topics(stored, counts) == [TopicRow(BASE, *expected)]


def test_non_persistent_partitions_when_not_loaded_then_none_is_missing() -> None:
    base = TopicName.parse("non-persistent://a/b/t")
    (row,) = list_topics([base.partition(1)], {base: 3})
    assert row == TopicRow(base, P, 3)
    assert [each.kind for each in list_topics([], {base: 3})] == [P]
