"""Which partitions are stored, found without a look at anything else in their namespace."""

from __future__ import annotations

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.topics import partition_records
from interpulse.broker.topics.partition_records import StoredPartition, new_cursors, stored_partitions
from interpulse.model.names import TopicName
from interpulse.storage.api import Put
from tests.support.memory_storage import MemoryMetadataStore

X = TopicName.parse("public/default/a b")


def record_of(name: str) -> str:
    return keys.topic_record(TopicName.parse(f"public/default/{name}"))


async def version(store: MemoryMetadataStore, name: str) -> int:
    stored = await store.get(record_of(name))
    assert stored is not None
    return stored.version


async def test_stored_partitions_are_found_with_their_cursors_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_records, "_KEYS_PER_PAGE", 2)
    store = MemoryMetadataStore()
    mine = {f"a b-partition-{index}": b"%d" % index for index in (0, 2, 10)}
    strangers = ["a b", "a b-partition-01", "a b-partition-x", "a b-partition-1-partition-2", "a b-partitions", "a"]
    await store.commit(
        [
            *(Put(record_of(name), value) for name, value in mine.items()),
            *(Put(record_of(name), b"") for name in strangers),
            Put(f"{record_of('a b-partition-2')}/s+1", b"cursor"),
            Put(f"{record_of('a b-partition-7')}/s", b"of a topic that is gone"),
        ]
    )
    assert await stored_partitions(store, X) == {
        0: StoredPartition(b"0", await version(store, "a b-partition-0")),
        2: StoredPartition(b"2", await version(store, "a b-partition-2"), {"s+1": b"cursor"}),
        10: StoredPartition(b"10", await version(store, "a b-partition-10")),
    }


async def test_topic_that_is_not_stored_has_no_stored_partitions() -> None:
    name = TopicName.parse("non-persistent://public/default/x")
    assert await stored_partitions(MemoryMetadataStore(), name) == {}


def test_new_cursors_when_partition_0_is_gone_then_none() -> None:
    assert new_cursors(X, {1: StoredPartition(b"{}", 0)}, range(2, 4), replicator_prefix="pulsar.repl") == []
