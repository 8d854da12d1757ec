from __future__ import annotations

import asyncio

import pytest

from interpulse.broker.committer import ALONE, IN_CLUSTER, Layout
from interpulse.broker.live.topic_state import TopicStateStore
from interpulse.model.errors import ServiceNotReady
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.storage.api import MetadataUnavailable, Put
from interpulse.storage.cursors import CursorRecord
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
    names = ("s", "with blank", "a/b", "ü")
    cursors = {name: CursorRecord(Position(1, number)) for number, name in enumerate(names)}
    await state.write_cursors(cursors)
    assert await state.read_cursors() == cursors
    assert "with+blank" in await metadata.children(KEY)
    await state.delete_cursor("a/b")
    assert set(await state.read_cursors()) == {"s", "with blank", "ü"}


async def test_nothing_is_written_after_close(metadata: MemoryMetadataStore, state: TopicStateStore) -> None:
    await state.close()
    await state.write_cursors({"s": CursorRecord()})
    await state.delete_cursor("s")
    assert await metadata.children("/managed-ledgers") == []


async def test_epoch_when_the_record_changes_at_the_same_time_then_nothing_is_lost(
    metadata: MemoryMetadataStore, state: TopicStateStore
) -> None:
    await metadata.commit([Put(KEY, b'{"ledgers":[{"ledgerId":1}],"properties":{"a":"b"}}')])
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


@pytest.mark.parametrize("layout", [ALONE, IN_CLUSTER], ids=["alone", "in a cluster"])
async def test_counters_when_written_then_are_read_again(metadata: MemoryMetadataStore, layout: Layout) -> None:
    await metadata.commit([Put(KEY, layout.topic_records.amended(None, properties={"a": "b"}))])
    await TopicStateStore(metadata, TOPIC, None, layout).write_epoch(4)
    await TopicStateStore(metadata, TOPIC, None, layout).write_index(9)
    assert await TopicStateStore(metadata, TOPIC, None, layout).read_counters() == (4, 9)
    stored = await metadata.get(KEY)
    assert stored is not None
    assert layout.topic_records.decode(stored.value).other["properties"] == {"a": "b"}


async def test_record_that_cannot_be_understood_is_refused_with_its_topic(metadata: MemoryMetadataStore) -> None:
    await metadata.commit([Put(KEY, b"rubbish")])
    for layout in (ALONE, IN_CLUSTER):
        with pytest.raises(MetadataUnavailable, match=r"log public/default/persistent/a\+b cannot be understood"):
            await TopicStateStore(metadata, TOPIC, None, layout).read_counters()


@pytest.mark.parametrize(("layout", "moved"), [(ALONE, True), (IN_CLUSTER, False)], ids=["alone", "in a cluster"])
async def test_subscription_of_a_first_partition_changes_its_record_where_nobody_else_writes_it(
    metadata: MemoryMetadataStore, layout: Layout, moved: bool
) -> None:
    key = KEY.replace("a+b", "a-partition-0")
    await metadata.commit([Put(key, layout.topic_records.amended(None))])
    before = await metadata.get(key)
    state = TopicStateStore(metadata, TopicName.parse("persistent://public/default/a-partition-0"), None, layout)
    await state.write_cursor("s", CursorRecord())
    after = await metadata.get(key)
    assert before is not None
    assert after is not None
    assert (after.version != before.version) is moved
    assert await state.read_cursors() == {"s": CursorRecord()}
