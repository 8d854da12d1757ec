"""Snapshots of sequence ids; what producers see of them stands in test_producer."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import TopicSettings
from interpulse.model.errors import MetadataError, PersistenceError
from interpulse.model.ids import Position
from interpulse.storage.api import Put


@pytest.fixture
async def topic(bench: Any) -> Any:
    bench.settings = TopicSettings(deduplication_enabled=True, deduplication_entries_interval=3)
    return await bench.topic()


async def test_snapshot_is_stored_after_so_many_entries(bench: Any, topic: Any) -> None:
    await bench.publish(topic, 0, 1)
    await bench.registry.flush()
    assert topic.sequences.needed_from == Position(1, -1)
    await bench.publish(topic, 2, 3)
    await bench.registry.flush()
    assert topic.sequences.needed_from == Position(1, 3)


async def test_snapshot_is_stored_some_time_after_an_entry(bench: Any, topic: Any) -> None:
    await topic.apply(TopicSettings(deduplication_enabled=True, deduplication_snapshot_seconds=60))
    topic.tick(10)
    bench.clock.time_ms += 59_000
    await bench.publish(topic, 0)
    topic.tick(10)
    await bench.registry.flush()
    assert topic.sequences.needed_from == Position(1, -1)
    bench.clock.time_ms += 1_000
    topic.tick(10)
    await bench.registry.flush()
    assert topic.sequences.needed_from == Position(1, 0)


async def test_snapshot_that_could_not_be_stored_is_tried_again(
    bench: Any, topic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.publish(topic, 0, 1, 2)

    async def refuse(*_: Any) -> None:
        raise MetadataError("full")

    with monkeypatch.context() as patch:
        patch.setattr(bench.metadata, "commit", refuse)
        await bench.registry.flush()
    assert topic.sequences.needed_from == Position(1, -1)
    await bench.registry.flush()
    assert topic.sequences.needed_from == Position(1, 2)


async def test_snapshot_that_becomes_due_while_cursors_cannot_be_stored_is_stored_with_the_next(
    bench: Any, topic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer, _ = await bench.consumer(topic)
    await bench.publish(topic, 0, 1)
    consumer.acknowledge_cumulative(topic.positions.durable)

    async def becomes_due(*_: Any) -> None:
        topic.sequences.request_snapshot()
        raise MetadataError("full")

    with monkeypatch.context() as patch:
        patch.setattr(bench.metadata, "commit", becomes_due)
        await bench.registry.flush()
    await bench.registry.flush()
    assert topic.sequences.needed_from == Position(1, 1)


async def test_resume_counts_what_it_replayed_towards_the_next_snapshot(bench: Any, topic: Any) -> None:
    await bench.publish(topic, 0, 1)
    await bench.crash()
    topic = await bench.topic()
    assert topic.publishing.deduplication.last_sequence_id("filler") == 1
    await bench.publish(topic, 2)
    await bench.registry.flush()
    assert topic.sequences.needed_from == topic.positions.durable


async def test_snapshot_when_the_topic_failed_before_an_entry_was_durable_then_the_next_load_replays_the_entry(
    bench: Any, topic: Any
) -> None:
    await bench.publish(topic, 0)
    producer, sink = await bench.producer(topic)
    producer.publish([7], [bench.entry(7)])
    topic.read_failed(PersistenceError("a sector is unreadable"))
    assert [number for number, _ in sink.failures] == [7]
    await bench.settle()  # the entry is durable, although its publish was refused
    again = await bench.topic()
    assert again is not topic
    assert again.log.last_position == Position(1, 1)
    assert again.publishing.deduplication.last_sequence_id("p") == 7


async def test_damaged_snapshot_then_the_topic_cannot_be_loaded(bench: Any, topic: Any) -> None:
    await bench.registry.unload(topic.name)
    await bench.metadata.commit([Put(f"/managed-ledgers/{topic.name.log_name}/pulsar.dedup", b"[]")])
    with pytest.raises(MetadataError, match="the cursor pulsar"):
        await bench.topic()


async def test_snapshot_is_forgotten_when_deduplication_was_off_at_load(bench: Any, topic: Any) -> None:
    await bench.publish(topic, 5)
    await bench.registry.unload(topic.name)
    bench.settings = TopicSettings()
    assert (await bench.topic()).publishing.deduplication is None
    assert "pulsar.dedup" not in await bench.metadata.children(f"/managed-ledgers/{topic.name.log_name}")
