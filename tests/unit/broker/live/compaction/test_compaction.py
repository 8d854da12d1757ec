"""Compaction of a loaded topic, and what compacted reads see of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from interpulse.broker.live.api import InitialPosition, LastMessage, SubType
from interpulse.broker.live.compaction import compaction
from interpulse.broker.live.compaction.compaction import CompactionStatus
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.topic.topic import Topic
from interpulse.model.errors import Conflict, NotAllowed, PersistenceError
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import RetentionPolicies
from interpulse.storage.cursors import COMPACTION_CURSOR
from tests.unit.broker.live.compaction.test_choice import batch, single

FIRST = MessageId(*EARLIEST)


async def true(condition: Callable[[], bool]) -> None:
    """Threads take part in a compaction, so that turns of the event loop cannot be counted."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  # sinks have no event to wait for
            await asyncio.sleep(0)


async def send(bench: Any, topic: Topic, *messages: tuple[str | None, str]) -> list[Position]:
    """One entry each; an empty text is a tombstone."""
    keyed = [single(text.encode(), **({} if key is None else {"partition_key": key})) for key, text in messages]
    return await send_entries(bench, topic, *keyed)


async def send_entries(bench: Any, topic: Topic, *entries: bytes) -> list[Position]:
    producer, sink = await bench.producer(topic, "sender", producer_id=77)
    for number, entry in enumerate(entries):
        producer.publish([number], [entry])
    await true(lambda: len(sink.received) == len(entries))
    producer.close()
    return [Position(ledger, entry) for _, _, ledger, entry in sink.received]


async def compact(topic: Topic) -> None:
    topic.compaction.begin()
    await ended(topic)
    assert topic.compaction.status is CompactionStatus.SUCCESS, topic.compaction.last_error


async def ended(topic: Topic) -> None:
    await true(lambda: topic.compaction.status is not CompactionStatus.RUNNING)


async def delivered(bench: Any, sink: Any, count: int) -> list[tuple[Position, str]]:
    """What came; nothing comes behind it."""
    await true(lambda: len(sink.deliveries) >= count)
    await bench.settle()
    found = [(each.position, text_of(each.entry)) for each in sink.take()]
    assert len(found) == count, found
    return found


def text_of(entry: bytes) -> str:
    size = int.from_bytes(entry[6:10], "big")
    return entry[10 + size :].decode()


async def texts_read(bench: Any, topic: Topic, count: int, **request: Any) -> list[str]:
    request = {"durable": False, "start_message_id": FIRST, "read_compacted": True} | request
    consumer, sink = await bench.consumer(topic, f"reader-{id(request)}", **request)
    found = await delivered(bench, sink, count)
    consumer.close()
    return [text for _, text in found]


async def forget_log(bench: Any, topic: Topic) -> None:
    """Nothing but what compaction kept is left of the topic."""
    await topic.log.roll()
    await bench.registry.flush()
    await backlog_operations.maintain(topic)
    assert topic.log.first_position is None


async def test_topic_that_was_never_compacted(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("a", "2"))
    assert topic.compaction.shown() == {"status": "NOT_RUN", "lastError": ""}
    assert topic.internal_stats()["compactedLedger"]["ledgerId"] == -1
    assert await texts_read(bench, topic, 2) == ["1", "2"]
    assert await topic.last_message(read_compacted=True) == await topic.last_message()


async def test_compaction_keeps_the_newest_of_every_key(bench: Any) -> None:
    topic = await bench.topic()
    sent = await send(bench, topic, ("a", "1"), ("b", "1"), (None, "x"), ("a", "2"), ("b", ""), ("c", "1"))
    await compact(topic)
    _, sink = await bench.consumer(topic, "r", durable=False, start_message_id=FIRST, read_compacted=True)
    assert await delivered(bench, sink, 2) == [(sent[3], "2"), (sent[5], "1")]
    assert await texts_read(bench, topic, 6, read_compacted=False) == ["1", "1", "x", "2", "", "1"]
    more = await send(bench, topic, ("a", "3"), ("d", "1"))
    assert await delivered(bench, sink, 2) == [(more[0], "3"), (more[1], "1")]
    assert topic.compaction.shown() == {"status": "SUCCESS", "lastError": ""}
    stats = topic.stats()
    assert stats["compaction"]["lastCompactionRemovedEventCount"] == 4
    assert stats["compaction"]["lastCompactionSucceedTimestamp"] == bench.clock.now_ms()
    inside = topic.internal_stats()
    assert inside["compactedLedger"]["entries"] == 2
    cursor = inside["cursors"][COMPACTION_CURSOR]
    assert cursor["markDeletePosition"] == str(sent[-1])
    assert cursor["properties"] == {"CompactedTopicLedger": inside["compactedLedger"]["ledgerId"]}
    assert COMPACTION_CURSOR in topic.subscription_names()


async def test_compaction_is_measured_once_it_ran(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("b", "1"), ("a", "2"))
    assert topic.measure().compaction is None
    stored = sum(each.size for each in topic.log.ledgers)
    await compact(topic)
    await compact(topic)
    topic.tick(2)
    found, kept = topic.measure().compaction, topic.log.compacted.current
    assert found._replace(duration_ms=0) == (1, 2, 0, 0, stored, kept.size / 2, 2, kept.size), "looked at twice"
    topic.tick(2)
    assert (topic.measure().compaction.read_rate, topic.measure().compaction.write_rate) == (0, 0)


async def test_second_compaction_goes_on_from_the_first(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("b", "1"), ("c", "1"))
    await compact(topic)
    await forget_log(bench, topic)
    await send(bench, topic, ("b", "2"), ("c", ""), ("d", "1"))
    assert await texts_read(bench, topic, 6) == ["1", "1", "1", "2", "", "1"]
    await compact(topic)
    assert await texts_read(bench, topic, 3) == ["1", "2", "1"]
    await bench.restart()
    topic = await bench.topic()
    assert await texts_read(bench, topic, 3) == ["1", "2", "1"]
    assert topic.compaction.shown()["status"] == "NOT_RUN", "of this broker"


async def test_compaction_with_nothing_new_changes_nothing(bench: Any) -> None:
    topic = await bench.topic()
    await compact(topic)
    assert topic.log.compacted.current is None, "an empty topic"
    await send(bench, topic, ("a", "1"))
    await compact(topic)
    before = topic.log.compacted.current
    await compact(topic)
    assert topic.log.compacted.current == before


async def test_compaction_of_many_keys_in_many_pieces(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "KEYS_MAX", 7)
    monkeypatch.setattr(compaction, "_ENTRIES_MAX", 5)
    monkeypatch.setattr(compaction, "_WRITE_BYTES", 100)
    topic = await bench.topic()
    await send(bench, topic, *((f"k{number % 40}", str(number)) for number in range(100)))
    await compact(topic)
    assert await texts_read(bench, topic, 40) == [str(number) for number in range(60, 100)]


async def test_log_is_kept_until_it_is_compacted_and_then_trimmed(bench: Any) -> None:
    bench.settings = replace(bench.settings, compaction_threshold_bytes=10**9)
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("a", "2"))
    await topic.log.roll()
    await backlog_operations.maintain(topic)
    assert topic.log.first_position is not None
    await compact(topic)
    await backlog_operations.maintain(topic)
    assert topic.log.first_position is None
    assert await texts_read(bench, topic, 1) == ["2"]
    assert await texts_read(bench, topic, 0, read_compacted=False) == []


async def test_messages_without_a_key_stay_where_the_broker_is_told_so(bench: Any) -> None:
    bench.settings = replace(bench.settings, compaction_keeps_keyless=True)
    topic = await bench.topic()
    await send(bench, topic, (None, "x"), ("a", "1"), ("a", "2"))
    await compact(topic)
    assert await texts_read(bench, topic, 2) == ["x", "2"]


async def test_begin_when_it_runs_already_is_a_conflict(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"))
    topic.compaction.begin()
    assert topic.compaction.shown() == {"status": "RUNNING", "lastError": ""}
    with pytest.raises(Conflict, match="Compaction already in progress"):
        topic.compaction.begin()
    await ended(topic)


async def test_compactions_of_many_topics_take_turns(bench: Any) -> None:
    topics = [await bench.topic(TopicName.parse(f"persistent://public/default/t{number}")) for number in range(5)]
    for topic in topics:
        await send(bench, topic, ("a", "1"), ("a", "2"))
    permits = bench.registry.compaction_permits
    await permits.acquire()
    await permits.acquire()
    for topic in topics:
        topic.compaction.begin()
    await bench.settle()
    assert all(topic.compaction.status is CompactionStatus.RUNNING for topic in topics)
    assert all(topic.log.compacted.current is None for topic in topics)
    permits.release()
    for topic in topics:
        await ended(topic)
        assert topic.log.compacted.current is not None
    permits.release()


async def test_compaction_that_fails_says_why_and_can_be_repeated(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("a", "2"))
    replace_ = topic.log.compacted.replace

    async def full(*_: Any) -> None:
        raise PersistenceError("no room")

    monkeypatch.setattr(topic.log.compacted, "replace", full)
    topic.compaction.begin()
    await ended(topic)
    assert topic.compaction.shown() == {"status": "ERROR", "lastError": "no room"}
    assert topic.stats()["compaction"]["lastCompactionFailedTimestamp"] == bench.clock.now_ms()
    assert await texts_read(bench, topic, 2) == ["1", "2"], "the old state"
    monkeypatch.setattr(topic.log.compacted, "replace", replace_)
    await compact(topic)
    assert topic.compaction.shown() == {"status": "SUCCESS", "lastError": ""}


async def test_entries_that_go_meanwhile_fail_the_compaction(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("a", "2"))
    replace_ = topic.log.compacted.replace

    async def after_trimming(*arguments: Any) -> Any:
        topic.compacted_upto(topic.positions.durable)
        await forget_log(bench, topic)
        return await replace_(*arguments)

    monkeypatch.setattr(topic.log.compacted, "replace", after_trimming)
    topic.compaction.begin()
    await ended(topic)
    assert "__compaction" in topic.compaction.last_error
    assert topic.log.compacted.current is None


async def test_unload_ends_a_compaction_under_way(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("a", "2"))
    topic.compaction.begin()
    await bench.registry.unload(topic.name)
    assert topic.compaction.status is CompactionStatus.ERROR
    assert topic.compaction.last_error == "The compaction was stopped before its end"
    again = await bench.topic()
    assert await texts_read(bench, again, 2) == ["1", "2"]
    await compact(again)


async def test_deletion_of_the_topic_ends_a_compaction_under_way(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("a", "2"))
    topic.compaction.begin()
    await bench.registry.delete(topic.name)
    again = await bench.topic()
    assert again.log.compacted.current is None
    assert again.subscription_names() == []


async def test_truncate_forgets_what_compaction_kept(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("a", "2"))
    await compact(topic)
    await send(bench, topic, ("b", "3"))
    await backlog_operations.truncate(topic)
    assert await texts_read(bench, topic, 0) == []
    await send(bench, topic, ("c", "4"))
    await compact(topic)
    assert await texts_read(bench, topic, 1) == ["4"]


@pytest.mark.parametrize("complete", [False, True])
async def test_truncate_forgets_what_a_compaction_kept_that_began_meanwhile(
    bench: Any, monkeypatch: pytest.MonkeyPatch, complete: bool
) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("b", "2"))
    roll = topic.log.roll

    async def roll_and_compact() -> None:
        await roll()
        topic.compaction.begin()
        if complete:
            await ended(topic)

    monkeypatch.setattr(topic.log, "roll", roll_and_compact)
    await backlog_operations.truncate(topic)
    await ended(topic)
    assert topic.log.compacted.current is None
    assert await texts_read(bench, topic, 0) == []


async def test_terminated_topic_can_be_compacted_and_its_end_is_told(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("a", "2"), ("b", "3"), ("b", ""))
    await topic.terminate()
    await compact(topic)
    consumer, sink = await bench.consumer(topic, "r", durable=False, start_message_id=FIRST, read_compacted=True)
    assert [text for _, text in await delivered(bench, sink, 1)] == ["2"]
    consumer.flow(1)
    assert sink.ended == 1


async def test_deletion_of_the_subscription_forgets_what_compaction_kept(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("a", "2"))
    await compact(topic)
    await topic.delete_subscription(COMPACTION_CURSOR)
    assert topic.log.compacted.current is None
    assert topic.subscription_names() == []
    assert await texts_read(bench, topic, 2) == ["1", "2"]


async def test_crash_before_the_cursor_is_stored_moves_it_at_the_next_load(bench: Any) -> None:
    topic = await bench.topic()
    sent = await send(bench, topic, ("a", "1"), ("a", "2"))
    await compact(topic)
    await bench.crash()
    topic = await bench.topic()
    assert topic.mark_delete_position(COMPACTION_CURSOR) == sent[-1]
    assert await texts_read(bench, topic, 1) == ["2"]


async def test_time_to_live_leaves_alone_what_was_not_compacted(bench: Any) -> None:
    bench.settings = replace(bench.settings, compaction_threshold_bytes=10**9, message_ttl_seconds=1)
    topic = await bench.topic()
    await topic.create_subscription("s")
    await send(bench, topic, ("a", "1"))
    await backlog_operations.maintain(topic)
    assert topic.subscription("s").cursor.backlog(topic.positions.durable) == 0
    assert topic.subscription(COMPACTION_CURSOR).cursor.backlog(topic.positions.durable) == 1


async def test_threshold_begins_a_compaction_when_enough_has_come(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1" * 200))
    await bench.registry.topic_tasks.compact_due()
    assert topic.compaction.status is CompactionStatus.NOT_RUN, "no threshold"
    bench.settings = replace(bench.settings, compaction_threshold_bytes=400)
    await bench.registry.policies_changed()
    assert topic.subscription_names() == [COMPACTION_CURSOR]
    await bench.registry.topic_tasks.compact_due()
    assert topic.compaction.status is CompactionStatus.NOT_RUN, "too little"
    await send(bench, topic, ("a", "2" * 200))
    await bench.registry.topic_tasks.compact_due()
    await bench.registry.topic_tasks.compact_due()
    await ended(topic)
    assert await texts_read(bench, topic, 1) == ["2" * 200]
    await bench.registry.topic_tasks.compact_due()
    assert topic.compaction.status is CompactionStatus.SUCCESS, "nothing has come since"


async def test_threshold_of_a_topic_that_is_being_deleted_is_no_failure(bench: Any) -> None:
    topic = await bench.topic()
    topic.clients.retire()
    await topic.apply(replace(topic.settings, compaction_threshold_bytes=1))
    assert topic.subscription_names() == []


@pytest.mark.parametrize("sub_type", [SubType.SHARED, SubType.KEY_SHARED])
async def test_compacted_read_of_a_shared_subscription_is_refused(bench: Any, sub_type: SubType) -> None:
    topic = await bench.topic()
    with pytest.raises(NotAllowed, match="readCompacted only allowed on failover or exclusive subscriptions"):
        await bench.consumer(topic, sub_type=sub_type, read_compacted=True)
    assert topic.subscription_names() == []


async def test_compacted_read_of_a_topic_that_is_not_stored_is_refused(bench: Any) -> None:
    topic = await bench.registry.open(TopicName.parse("non-persistent://public/default/n"))
    with pytest.raises(NotAllowed, match="readCompacted only valid on persistent topics"):
        await bench.consumer(topic, read_compacted=True)
    assert topic.subscription_names() == []


async def test_durable_consumers_acknowledge_across_the_horizon(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("a", "2"), ("b", "3"), ("b", "4"))
    await compact(topic)
    await forget_log(bench, topic)
    await send(bench, topic, ("c", "5"))
    request = {"sub_type": SubType.FAILOVER, "read_compacted": True, "initial_position": InitialPosition.EARLIEST}
    consumer, sink = await bench.consumer(topic, "f", **request)
    (first, one), (second, two), (third, three) = await delivered(bench, sink, 3)
    assert (one, two, three) == ("2", "4", "5")
    consumer.acknowledge(first)
    consumer.close()
    consumer, sink = await bench.consumer(topic, "f", **request)
    assert await delivered(bench, sink, 2) == [(second, "4"), (third, "5")]
    consumer.acknowledge_cumulative(third)
    consumer.close()
    assert topic.subscription("f").cursor.backlog(topic.positions.durable) == 0
    _, sink = await bench.consumer(topic, "f", **request)
    await delivered(bench, sink, 0)


async def test_acknowledgements_of_what_only_compaction_has_hide_nothing_of_the_backlog(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, *[(f"k{number}", "x") for number in range(20)])
    await compact(topic)
    await forget_log(bench, topic)
    earliest = InitialPosition.EARLIEST
    consumer, sink = await bench.consumer(topic, "s", read_compacted=True, initial_position=earliest)
    for position, _ in await delivered(bench, sink, 20):
        consumer.acknowledge(position)
    consumer.close()
    await send(bench, topic, ("a", "1"), ("b", "2"))
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 2
    assert backlog_operations.clear(topic, "s") == 2


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_only_compaction_has_comes_again_though_the_log_behind_it_is_acknowledged(
    bench: Any, *, restarted: bool
) -> None:
    topic = await bench.topic()
    await send(bench, topic, *[(f"k{number}", f"{number}") for number in range(5)])
    await compact(topic)
    await forget_log(bench, topic)
    await send(bench, topic, ("z", "5"))
    request = {"read_compacted": True, "initial_position": InitialPosition.EARLIEST}
    consumer, sink = await bench.consumer(topic, "s", **request)
    found = await delivered(bench, sink, 6)
    for position, text in found:
        if text in "045":
            consumer.acknowledge(position)
    consumer.close()
    if restarted:
        await bench.restart()
        topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, "s", **request)
    await true(lambda: len(sink.deliveries) >= 3)
    await bench.settle()
    again = [(each.position, text_of(each.entry)) for each in sink.take()]
    assert {text for _, text in again} >= {"1", "2", "3"}
    assert "5" not in {text for _, text in again}
    for position, _ in again:
        consumer.acknowledge(position)
    assert topic.subscription("s").cursor.mark_delete == found[-1][0] == topic.positions.durable


async def test_log_is_all_that_counts_once_it_is_read_instead_of_what_was_compacted(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("b", "2"))
    await compact(topic)
    await forget_log(bench, topic)
    [last] = await send(bench, topic, ("z", "3"))
    request = {"initial_position": InitialPosition.EARLIEST}
    consumer, sink = await bench.consumer(topic, "s", read_compacted=True, **request)
    *_, (position, _) = await delivered(bench, sink, 3)
    consumer.acknowledge(position)
    assert topic.subscription("s").cursor.mark_delete < position
    consumer.close()
    _, sink = await bench.consumer(topic, "s", **request)
    await delivered(bench, sink, 0)
    assert topic.subscription("s").cursor.mark_delete == last


async def test_takeover_by_a_consumer_of_the_other_kind_reads_its_own_way(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("a", "2"))
    await compact(topic)
    request = {"sub_type": SubType.FAILOVER, "initial_position": InitialPosition.EARLIEST}
    consumer, sink = await bench.consumer(topic, "f", consumer_name="a", read_compacted=True, **request)
    assert [text for _, text in await delivered(bench, sink, 1)] == ["2"]
    consumer.close()
    _, sink = await bench.consumer(topic, "f", consumer_name="b", **request)
    assert [text for _, text in await delivered(bench, sink, 2)] == ["1", "2"]


async def test_start_and_seek_find_places_that_are_only_in_the_compacted_ledger(bench: Any) -> None:
    topic = await bench.topic()
    sent = await send(bench, topic, *((f"k{number % 5}", str(number)) for number in range(10)))
    await compact(topic)
    await forget_log(bench, topic)
    await send(bench, topic, ("x", "new"))
    start = MessageId(sent[7].ledger, sent[7].entry)
    assert await texts_read(bench, topic, 4, start_message_id=start) == ["7", "8", "9", "new"]
    compacted_out = MessageId(sent[2].ledger, sent[2].entry)
    assert await texts_read(bench, topic, 6, start_message_id=compacted_out) == ["5", "6", "7", "8", "9", "new"]
    consumer, sink = await bench.consumer(topic, "r", durable=False, start_message_id=FIRST, read_compacted=True)
    await delivered(bench, sink, 6)
    await consumer.seek(MessageId(sent[8].ledger, sent[8].entry))
    _, sink = await bench.consumer(topic, "r", durable=False, read_compacted=True)
    assert [text for _, text in await delivered(bench, sink, 3)] == ["8", "9", "new"]


async def test_seek_to_a_time_looks_into_the_compacted_ledger(bench: Any) -> None:
    topic = await bench.topic()
    entries = [bench.entry(number, partition_key=f"k{number}") for number in range(6)]
    sent = await send_entries(bench, topic, *entries[:5])
    await compact(topic)
    await forget_log(bench, topic)
    sent += await send_entries(bench, topic, entries[5])
    for time_ms, number in ((1, 0), (1_003, 3), (1_005, 5)):
        before = Position(sent[number].ledger, sent[number].entry - 1)
        assert await topic.positions.before_time(time_ms, compacted=True) == before, time_ms
    assert await topic.positions.before_time(1, compacted=False) == topic.positions.before_first()
    assert await topic.positions.before_time(2_000, compacted=True) == topic.positions.durable


@pytest.mark.parametrize("trimmed", [False, True])
async def test_last_message_as_compaction_left_it(bench: Any, trimmed: bool) -> None:
    topic = await bench.topic()
    sent = await send_entries(
        bench,
        topic,
        batch(("a", b"1"), ("b", b"1"), ("c", b"1")),
        single(b"2", partition_key="c"),
        single(b"", partition_key="c"),
    )
    await compact(topic)
    if trimmed:
        await forget_log(bench, topic)
    assert await topic.last_message(read_compacted=True) == LastMessage(sent[0], 1)
    (more,) = await send(bench, topic, ("d", "1"))
    assert await topic.last_message(read_compacted=True) == LastMessage(more, -1)


async def test_last_message_when_everything_was_removed(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("a", ""))
    await compact(topic)
    assert await topic.last_message(read_compacted=True) == LastMessage(EARLIEST, -1)
    assert (await topic.last_message()).position == topic.positions.durable
    _, sink = await bench.consumer(topic, "r", durable=False, start_message_id=FIRST, read_compacted=True)
    await delivered(bench, sink, 0)
    await send(bench, topic, ("b", "1"))
    assert [text for _, text in await delivered(bench, sink, 1)] == ["1"]


async def test_reader_with_few_permits_gets_the_rest_from_a_newer_compaction(bench: Any) -> None:
    topic = await bench.topic()
    await send(bench, topic, *((f"k{number}", str(number)) for number in range(10)))
    await compact(topic)
    consumer, sink = await bench.consumer(
        topic, "r", permits=3, durable=False, start_message_id=FIRST, read_compacted=True
    )
    assert [text for _, text in await delivered(bench, sink, 3)] == ["0", "1", "2"]
    await send(bench, topic, ("k4", ""), ("k1", "new"))
    await compact(topic)
    consumer.redeliver()
    consumer.acknowledge_cumulative(Position(topic.log.ledgers[0].ledger_id, 2))
    consumer.redeliver()
    consumer.flow(100)
    assert [text for _, text in await delivered(bench, sink, 7)] == ["3", "5", "6", "7", "8", "9", "new"]


async def test_retention_keeps_the_log_beside_the_compacted_ledger(bench: Any) -> None:
    bench.settings = replace(bench.settings, retention=RetentionPolicies(-1, -1))
    topic = await bench.topic()
    await send(bench, topic, ("a", "1"), ("a", "2"))
    await compact(topic)
    await topic.log.roll()
    await backlog_operations.maintain(topic)
    assert await texts_read(bench, topic, 2, read_compacted=False) == ["1", "2"]
    assert await texts_read(bench, topic, 1) == ["2"]
