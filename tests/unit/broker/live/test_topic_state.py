from __future__ import annotations

import asyncio

import pytest

from interpulse.broker.live.topic_state import TopicStateStore
from interpulse.model.errors import ServiceNotReady
from interpulse.model.names import TopicName
from interpulse.storage.api import Put
from interpulse.storage.memory import MemoryMetadataStore

TOPIC = TopicName.parse("persistent://public/default/a b")
KEY = "/managed-ledgers/public/default/persistent/a+b"


@pytest.fixture
def metadata() -> MemoryMetadataStore:
    return MemoryMetadataStore()


@pytest.fixture
def state(metadata: MemoryMetadataStore) -> TopicStateStore:
    return TopicStateStore(metadata, TOPIC)


async def test_cursors_with_any_name_come_back(metadata: MemoryMetadataStore, state: TopicStateStore) -> None:
    cursors = {"s": b"1", "with blank": b"2", "a/b": b"3", "ü": b"4"}
    await state.write_cursors(cursors)
    assert await state.read_cursors() == cursors
    assert "with+blank" in await metadata.children(KEY)
    await state.delete_cursor("a/b")
    assert set(await state.read_cursors()) == {"s", "with blank", "ü"}


async def test_nothing_is_written_after_close(metadata: MemoryMetadataStore, state: TopicStateStore) -> None:
    await state.close()
    await state.write_cursors({"s": b"1"})
    await state.delete_cursor("s")
    assert await metadata.children("/managed-ledgers") == []


async def test_epoch_when_the_record_changes_at_the_same_time_then_nothing_is_lost(
    metadata: MemoryMetadataStore, state: TopicStateStore
) -> None:
    await metadata.commit([Put(KEY, b'{"ledgers":[1],"properties":{"a":"b"}}')])
    assert await state.read_counters() == (None, None)
    await asyncio.gather(*(state.write_epoch(epoch) for epoch in range(3)), state.write_index(7))
    assert await state.read_counters() == (2, 7)
    stored = await metadata.get(KEY)
    assert stored is not None
    assert b'"properties": {"a": "b"}' in stored.value


async def test_epoch_of_a_topic_that_is_gone_is_refused(state: TopicStateStore) -> None:
    assert await state.read_counters() == (None, None)
    with pytest.raises(ServiceNotReady):
        await state.write_epoch(1)
