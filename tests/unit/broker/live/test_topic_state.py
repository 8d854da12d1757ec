"""What the broker puts in front of entries, and that the index goes on whatever happens."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.broker.committer import ALONE, IN_CLUSTER, Layout
from interpulse.broker.live.api import TopicSettings
from interpulse.broker.live.compaction.choice import Treatment, view_of
from interpulse.broker.live.dispatch.delayed_entries import deliver_at_of
from interpulse.broker.live.entry_metadata import (
    EntryMetadata,
    broker_entry_metadata_of,
    entry_metadata_of,
    message_metadata_of,
    sticky_slot_of,
)
from interpulse.broker.live.log_search import first_published_since, publish_time_of
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.topic_state import BrokerEntryInterceptor, TopicStateStore
from interpulse.model.broker_entry_metadata import INTERCEPTOR_CLASSES, BrokerEntryFields
from interpulse.model.errors import ServiceNotReady
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import RetentionPolicies
from interpulse.storage.api import MetadataUnavailable, Put
from interpulse.storage.cursors import CursorRecord
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import with_broker_metadata, without_broker_metadata
from tests.support.memory_storage import MemoryMetadataStore

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


INDEX, TIME = INTERCEPTOR_CLASSES
INDEXED, TIMED, BOTH = (
    BrokerEntryFields(indexed=True),
    BrokerEntryFields(timed=True),
    BrokerEntryFields(timed=True, indexed=True),
)
NOTHING_KEPT = TopicSettings(retention=RetentionPolicies(0, 0))


@pytest.fixture
async def indexing(bench: Any) -> Any:
    """A broker that puts time and index in front of entries."""
    await begin(bench, BOTH)
    return bench


async def begin(bench: Any, fields: BrokerEntryFields | None, *, crash: bool = False) -> Any:
    """Start again with these fields; the topic."""
    bench.broker_entry_fields = fields
    await (bench.crash() if crash else bench.restart())
    return await bench.topic()


async def stored(topic: Any) -> list[bytes]:
    return [each.entry for each in await topic.log.read(EARLIEST, entries_max=999, bytes_max=10**7)]


async def indexes(topic: Any) -> list[int | None]:
    """Of all stored entries; None = without."""
    added = map(broker_entry_metadata_of, await stored(topic))
    return [each.index if each.HasField("index") else None for each in added]


async def record_of(bench: Any) -> str:
    found = await bench.metadata.get("/managed-ledgers/public/default/persistent/t")
    return found.value.decode()


@pytest.mark.parametrize(
    ("classes", "expected"),
    [("", None), (INDEX, INDEXED), (TIME, TIMED), (f"{INDEX},{TIME}", BOTH), (f"{TIME},{INDEX}", BOTH)],
)
def test_stamping_by_the_names_of_classes(classes: str, expected: BrokerEntryFields | None) -> None:
    assert BrokerEntryFields.named(classes) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (TIMED, pb.BrokerEntryMetadata(broker_timestamp=77)),
        (INDEXED, pb.BrokerEntryMetadata(index=8)),
        (BOTH, pb.BrokerEntryMetadata(broker_timestamp=77, index=8)),
    ],
)
def test_interceptor_adds_only_what_is_asked_for(bench: Any, fields: BrokerEntryFields, expected: Any) -> None:
    entry = bench.entry(1, num_messages_in_batch=3)
    intercepted = BrokerEntryInterceptor(fields, lambda: 77, 5).intercept(entry, EntryMetadata(3))
    assert intercepted == with_broker_metadata(expected, entry)


def test_interceptor_when_a_client_says_there_is_nothing_in_an_entry_then_counts_one(bench: Any) -> None:
    interceptor = BrokerEntryInterceptor(INDEXED, lambda: 77, -1)
    for count in (None, EntryMetadata(0), EntryMetadata(-5), EntryMetadata(4)):
        last = broker_entry_metadata_of(interceptor.intercept(bench.entry(1), count)).index
    assert last == 6


async def test_topic_when_not_configured_then_entries_and_record_are_as_ever(bench: Any) -> None:
    topic = await bench.topic()
    producer, _ = await bench.producer(topic)
    producer.publish([0], [bench.entry(0)])
    await bench.settle()
    assert await stored(topic) == [bench.entry(0)]
    assert (topic.publishing.broker_entry_interceptor, topic.broker_entry_metadata_possible) == (None, False)
    await bench.restart()
    assert "lastIndex" not in await record_of(bench)


async def test_entry_when_published_then_stored_and_delivered_with_broker_metadata(indexing: Any) -> None:
    topic = await indexing.topic()
    _, early = await indexing.consumer(topic)
    producer, sink = await indexing.producer(topic)
    batch = indexing.entry(1, num_messages_in_batch=3)
    producer.publish([0], [indexing.entry(0)])
    producer.publish([1], [batch], highest_sequence_id=3, num_messages=3)
    producer.publish([4], [indexing.entry(4)])
    await indexing.settle()
    _, late = await indexing.consumer(topic, "late", initial_position=1)
    delivered = [each.entry for each in early.take()]
    assert await stored(topic) == delivered == [each.entry for each in late.take()]
    assert [(each.index, each.broker_timestamp) for each in map(broker_entry_metadata_of, delivered)] == [
        (0, indexing.clock.time_ms),
        (3, indexing.clock.time_ms),
        (4, indexing.clock.time_ms),
    ]
    assert [without_broker_metadata(each) for each in delivered][1] == batch
    assert [each[0] for each in sink.received] == [0, 1, 4]
    assert producer.published.bytes == sum(map(len, map(without_broker_metadata, delivered))), "counted as it was sent"


async def test_marker_when_published_then_counts_and_is_not_delivered(indexing: Any) -> None:
    topic = await indexing.topic()
    _, sink = await indexing.consumer(topic)
    producer, _ = await indexing.producer(topic)
    producer.publish([0], [indexing.entry(0, marker_type=10)], marker=True)
    producer.publish([1], [indexing.entry(1)])
    await indexing.settle()
    assert [broker_entry_metadata_of(each.entry).index for each in sink.take()] == [1]


async def test_non_persistent_topic_then_entries_stay_as_they_are(indexing: Any) -> None:
    topic = await indexing.registry.open(TopicName.parse("non-persistent://public/default/n"))
    _, sink = await indexing.consumer(topic)
    producer, _ = await indexing.producer(topic)
    producer.publish([0], [indexing.entry(0)])
    await indexing.settle()
    assert [each.entry for each in sink.take()] == [indexing.entry(0)]


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("roll", [False, True])
async def test_index_when_started_again_then_goes_on(indexing: Any, crash: bool, roll: bool) -> None:
    topic = await indexing.topic()
    for first in (0, 2):
        await indexing.publish(topic, first, first + 1)
        if roll:
            await topic.log.roll()
        topic = await begin(indexing, BOTH, crash=crash)
    await indexing.publish(topic, 4)
    assert await indexes(topic) == [0, 1, 2, 3, 4]


async def test_index_when_a_write_failed_then_goes_on_behind_what_is_durable(indexing: Any) -> None:
    topic = await indexing.topic()
    await indexing.publish(topic, 0, 1)
    producer, _ = await indexing.producer(topic)
    producer.publish([2], [indexing.entry(2)])
    topic.log.failed(OSError("disk"))
    await indexing.settle()
    topic = await indexing.topic()
    await indexing.publish(topic, 3)
    assert await indexes(topic) == [0, 1, 2]


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("between", [None, TIMED])
async def test_index_when_not_counted_for_a_while_then_goes_on(
    indexing: Any, crash: bool, between: BrokerEntryFields | None
) -> None:
    """The log is mixed then: with broker entry metadata, without or with other fields, with it."""
    topic = await indexing.topic()
    await indexing.publish(topic, 0, 1)
    topic = await begin(indexing, between, crash=crash)
    assert topic.broker_entry_metadata_possible
    await indexing.publish(topic, 2, 3)
    topic = await begin(indexing, between, crash=crash)
    topic = await begin(indexing, BOTH, crash=crash)
    await indexing.publish(topic, 4)
    assert await indexes(topic) == [0, 1, None, None, 2]
    _, sink = await indexing.consumer(topic, initial_position=1)
    entries = [without_broker_metadata(each.entry) for each in sink.take()]
    assert [message_metadata_of(each).sequence_id for each in entries] == [0, 1, 2, 3, 4]


async def test_index_when_turned_on_for_a_topic_with_messages_then_begins_at_zero(bench: Any) -> None:
    topic = await bench.topic()
    await bench.publish(topic, 0, 1)
    topic = await begin(bench, INDEXED)
    await bench.publish(topic, 2)
    assert await indexes(topic) == [None, None, 0]


@pytest.mark.parametrize("crash", [False, True])
async def test_index_when_everything_was_trimmed_then_goes_on(indexing: Any, crash: bool) -> None:
    indexing.settings = NOTHING_KEPT
    topic = await begin(indexing, BOTH)
    await indexing.publish(topic, 0, 1, 2)
    await topic.log.roll()
    await backlog_operations.maintain(topic)
    assert await stored(topic) == []
    topic = await begin(indexing, BOTH, crash=crash)
    await indexing.publish(topic, 3)
    assert await indexes(topic) == [3]


async def test_index_when_trimmed_while_not_counted_then_goes_on(indexing: Any) -> None:
    indexing.settings = NOTHING_KEPT
    topic = await begin(indexing, BOTH)
    await topic.create_subscription("s")
    await indexing.publish(topic, 0, 1, 2)
    topic = await begin(indexing, None, crash=True)
    await topic.log.roll()
    backlog_operations.clear(topic, "s")
    await backlog_operations.maintain(topic)
    assert await stored(topic) == []
    topic = await begin(indexing, BOTH, crash=True)
    await indexing.publish(topic, 3)
    assert await indexes(topic) == [3]


async def test_index_when_truncated_then_goes_on(indexing: Any) -> None:
    topic = await indexing.topic()
    await indexing.publish(topic, 0, 1, 2)
    await backlog_operations.truncate(topic)
    topic = await begin(indexing, BOTH, crash=True)
    await indexing.publish(topic, 3)
    assert await indexes(topic) == [3]


async def test_index_when_deleted_and_created_again_then_begins_at_zero(indexing: Any, topic_name: TopicName) -> None:
    await indexing.publish(await indexing.topic(), 0, 1)
    await indexing.registry.delete(topic_name, force=True)
    topic = await indexing.topic()
    await indexing.publish(topic, 2)
    assert await indexes(topic) == [0]


async def test_trim_when_nothing_new_was_counted_then_the_record_is_not_written_again(indexing: Any) -> None:
    topic = await indexing.topic()
    await indexing.publish(topic, 0)
    await topic.broker_entry_metadata.before_trim()
    before = await indexing.metadata.get("/managed-ledgers/public/default/persistent/t")
    assert '"lastIndex": 0' in before.value.decode()
    await topic.broker_entry_metadata.before_trim()
    assert await indexing.metadata.get("/managed-ledgers/public/default/persistent/t") == before


async def test_time_when_the_broker_noted_its_own_then_that_counts(bench: Any) -> None:
    """Published at 1000 and 1001 by clocks that are late, the second when the broker's said a million."""
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, 0)
    topic = await begin(bench, TIMED)
    await bench.publish(topic, 1)
    now = bench.clock.time_ms
    assert [publish_time_of(each) for each in await stored(topic)] == [1000, now]
    assert await first_published_since(topic.log, 1001) == topic.positions.durable
    assert await first_published_since(topic.log, now + 1) is None
    assert await backlog_operations.expire(topic, "s", 0) == 1, "only what its producer called old"
    bench.clock.time_ms = now + 5001
    assert await backlog_operations.expire(topic, "s", 5) == 1


def test_metadata_of_stamped_entries_is_that_of_the_entry(bench: Any) -> None:
    entry = bench.entry(5, num_messages_in_batch=7, partition_key="k", deliver_at_time=99)
    intercepted = with_broker_metadata(pb.BrokerEntryMetadata(broker_timestamp=1, index=2), entry)
    assert entry_metadata_of(intercepted) == EntryMetadata(7)
    assert message_metadata_of(intercepted) == message_metadata_of(entry)
    assert sticky_slot_of(intercepted) == sticky_slot_of(entry)
    assert deliver_at_of(intercepted) == 99
    single = with_broker_metadata(pb.BrokerEntryMetadata(index=2), bench.entry(5, partition_key="k"))
    assert view_of(single).treatment is Treatment.SINGLE
    assert view_of(single) == view_of(without_broker_metadata(single))


@pytest.mark.parametrize("entry", [b"", b"\x0e", b"\x0e\x02", b"\x0e\x02\x00\x00\x00\x02\xff\xff", b"text"])
def test_broker_metadata_of_what_is_no_entry_is_empty(entry: bytes) -> None:
    assert broker_entry_metadata_of(entry) == pb.BrokerEntryMetadata()


async def test_last_message_and_deduplication_look_behind_the_stamp(indexing: Any) -> None:
    indexing.settings = TopicSettings(deduplication_enabled=True)
    topic = await begin(indexing, BOTH)
    producer, _ = await indexing.producer(topic)
    producer.publish(
        [0], [indexing.entry(0, num_messages_in_batch=3, highest_sequence_id=2)], highest_sequence_id=2, num_messages=3
    )
    await indexing.settle()
    assert (await topic.last_message()).batch_index == 2
    topic = await begin(indexing, BOTH, crash=True)
    producer, sink = await indexing.producer(topic)
    assert producer.last_sequence_id == 2
    producer.publish([2], [indexing.entry(2)])
    producer.publish([3], [indexing.entry(3)])
    await indexing.settle()
    assert await indexes(topic) == [2, 3], "a repeat is not counted"
    assert len(sink.received) == 2
