"""Counting the topics of a namespace: what a question costs, and what it answers while others create."""

from __future__ import annotations

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.topics import topic_counts
from interpulse.broker.topics.topic_counts import TopicCounts
from interpulse.model.names import PUBLIC_DEFAULT, NamespaceName, TopicName
from interpulse.storage.api import CommitConflict, Delete, Put
from tests.support.counting_store import CountingStore
from tests.support.memory_storage import MemoryMetadataStore

OTHER = NamespaceName("public", "other")


def topic(name: str) -> TopicName:
    return TopicName.parse(name)


def record(name: str) -> Put:
    return Put(keys.topic_record(topic(name)), b"{}")


async def test_count_is_of_stored_topics_without_cursors_system_topics_and_other_namespaces() -> None:
    store = MemoryMetadataStore()
    cursor = Put(f"{keys.topic_record(topic('a'))}/s", b"{}")
    names = ("a", "b-partition-0", "b-partition-1", "__change_events", "public/other/c")
    await store.commit([*map(record, names), cursor])
    counts = TopicCounts(store)
    assert (await counts.of(PUBLIC_DEFAULT)).topics == 3
    assert (await counts.of(OTHER)).topics == 1


async def test_count_follows_what_is_stored_and_removed() -> None:
    store = MemoryMetadataStore()
    counts = TopicCounts(store)
    assert (await counts.of(PUBLIC_DEFAULT)).topics == 0
    await store.commit([record("a"), record("b"), record("__change_events")])
    assert (await counts.of(PUBLIC_DEFAULT)).topics == 2
    await store.commit([Delete(keys.topic_record(topic("a"))), record("b")])
    await store.commit([Put(f"{keys.topic_record(topic('b'))}/s", b"{}")])
    assert (await counts.of(PUBLIC_DEFAULT)).topics == 1


async def test_count_when_the_store_lost_sight_of_its_server_then_counted_anew() -> None:
    store = MemoryMetadataStore()
    counts = TopicCounts(store)
    await store.commit([record("a"), record("b")])
    before = await counts.of(PUBLIC_DEFAULT)
    with store.out_of_sight():
        await store.commit([Delete(keys.topic_record(topic("a"))), record("c"), record("d")])
    with pytest.raises(CommitConflict), counts.claim(PUBLIC_DEFAULT, [topic("e")], before):
        pass
    assert (await counts.of(PUBLIC_DEFAULT)).topics == 3


async def test_question_looks_at_what_changed_since_the_last_one_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_counts, "_KEYS_PER_PAGE", 7)
    store = CountingStore()
    await store.commit([record(f"t{number}") for number in range(100)])
    counts = TopicCounts(store)
    assert (await counts.of(PUBLIC_DEFAULT)).topics == 100
    store.forget()
    for number in range(10):
        await store.commit([record(f"u{number}")])
        assert (await counts.of(PUBLIC_DEFAULT)).topics == 101 + number
    assert store.keys_read == 10


async def test_claimed_topics_count_once_and_only_while_they_are_being_stored() -> None:
    store = MemoryMetadataStore()
    counts = TopicCounts(store)
    seen = await counts.of(PUBLIC_DEFAULT)
    with counts.claim(PUBLIC_DEFAULT, [topic("a"), topic("b"), topic("__change_events")], seen):
        assert (await counts.of(PUBLIC_DEFAULT)).topics == 2
        await store.commit([record("a")])
        assert (await counts.of(PUBLIC_DEFAULT)).topics == 2
    assert (await counts.of(PUBLIC_DEFAULT)).topics == 1


async def test_claim_when_something_happened_since_the_question_then_it_has_to_be_asked_again() -> None:
    store = MemoryMetadataStore()
    counts = TopicCounts(store)
    first, second = await counts.of(PUBLIC_DEFAULT), await counts.of(PUBLIC_DEFAULT)
    with counts.claim(PUBLIC_DEFAULT, [topic("a")], first), pytest.raises(CommitConflict):
        counts.claim(PUBLIC_DEFAULT, [topic("b")], second).__enter__()
    third = await counts.of(PUBLIC_DEFAULT)
    await store.commit([record("c")])
    with pytest.raises(CommitConflict):
        counts.claim(PUBLIC_DEFAULT, [topic("b")], third).__enter__()
