"""Topics that brokers share: their cursor names the compacted ledger, whatever happens beside, and whoever wrote it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from interpulse.broker.live.compaction.compaction import CompactionStatus
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.topic.topic import Topic
from interpulse.model.errors import PersistenceError
from interpulse.model.ids import MessageId, Position
from interpulse.storage.api import Change, CompactedLedger, LogEntry, MetadataUnavailable, Put
from interpulse.storage.bookkeeper.records import Quorum
from interpulse.storage.cursors import COMPACTED_LEDGER, COMPACTION_CURSOR, CursorRecord
from interpulse.storage.managed_ledger.cursor_codec import IN_RECORD, decode_record, encode_entry, encode_record
from interpulse.storage.managed_ledger.topic_codec import PulsarCompacted
from tests.unit.broker.live.compaction.test_compaction import compact, ended, send, texts_read, true
from tests.unit.broker.live.conftest import LiveBench, running

KEY = f"/managed-ledgers/public/default/persistent/t/{COMPACTION_CURSOR}"


@pytest.fixture
async def bench() -> AsyncIterator[LiveBench]:
    async with running(LiveBench(shared=True)) as bench:
        yield bench


class Commits:
    """The commits of one bench, and faults of those that name a compacted ledger."""

    def __init__(self, bench: LiveBench, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.allowed = asyncio.Event(), asyncio.Event()
        self.allowed.set()
        self.before: Exception | None = None
        self.after: Exception | None = None
        self._commit = bench.metadata.commit
        monkeypatch.setattr(bench.metadata, "commit", self.commit)

    async def commit(self, changes: Any, *rest: Any, **more: Any) -> None:
        if not any(names_a_ledger(each) for each in changes):
            await self._commit(changes, *rest, **more)
            return
        self.begun.set()
        await self.allowed.wait()
        if self.before is not None:
            raise self.before
        await self._commit(changes, *rest, **more)
        if self.after is not None:
            raise self.after


def names_a_ledger(change: Change) -> bool:
    if not isinstance(change, Put) or change.key != KEY:
        return False
    return COMPACTED_LEDGER in decode_record(change.value).state.numbers


async def stored(bench: LiveBench) -> tuple[int | None, Position, int]:
    """The ledger and the horizon in the record, and where newer states are."""
    found = await bench.metadata.get(KEY)
    assert found is not None
    record = decode_record(found.value)
    return record.state.numbers.get(COMPACTED_LEDGER), record.state.mark_delete, record.ledger_id


def current(topic: Topic) -> CompactedLedger:
    found = topic.log.compacted.current
    assert found is not None
    return found


async def filled(bench: LiveBench) -> tuple[Topic, list[Position]]:
    topic = await bench.topic()
    return topic, await send(bench, topic, ("a", "1"), ("b", "1"), ("a", "2"))


async def fails(topic: Topic, error: str) -> None:
    topic.compaction.begin()
    await ended(topic)
    assert topic.compaction.status is CompactionStatus.ERROR
    assert error in topic.compaction.last_error


async def test_cursor_when_its_topic_was_compacted_then_names_the_ledger_and_stands_at_the_horizon(
    bench: LiveBench,
) -> None:
    topic, sent = await filled(bench)
    await compact(topic)
    ledger = current(topic).ledger_id
    assert await stored(bench) == (ledger, sent[-1], IN_RECORD)
    form = PulsarCompacted()
    assert [form.unpack(each).position for each in bench.journal._ledgers[ledger]] == sent[1:]
    await send(bench, topic, ("a", "3"))
    topic.subscriptions[COMPACTION_CURSOR].properties_changed({"x": "y"})
    await bench.registry.flush()
    named, horizon, _ = await stored(bench)
    assert (named, horizon) == (ledger, sent[-1]), "every later state of the cursor names it too"


async def test_topic_when_its_broker_dies_after_a_compaction_then_the_next_one_serves_what_was_kept(
    bench: LiveBench,
) -> None:
    topic, _ = await filled(bench)
    await compact(topic)
    made = current(topic)
    await topic.log.roll()
    await backlog_operations.trim(topic)
    await bench.crash()
    topic = await bench.topic()
    assert (current(topic)[:3], current(topic).horizon) == (made[:3], made.horizon)
    assert await texts_read(bench, topic, 2) == ["1", "2"]
    assert topic.internal_stats()["compactedLedger"]["size"] == made.size
    await send(bench, topic, ("b", "3"))
    await compact(topic)
    assert await texts_read(bench, topic, 2) == ["2", "3"]
    assert made.ledger_id not in bench.journal._ledgers


@pytest.mark.parametrize("orderly", [True, False], ids=["in its record", "in its ledger"])
async def test_topic_when_a_real_broker_compacted_it_then_is_served_and_compacted_again(
    bench: LiveBench, orderly: bool
) -> None:
    topic, sent = await filled(bench)
    [kept] = await topic.log.read(sent[1], entries_max=1, bytes_max=1)
    await bench.registry.unload(topic.name)
    bench.journal._ledgers[900] = [PulsarCompacted().pack(LogEntry(sent[1], kept.entry))]
    state = CursorRecord(sent[1], numbers={COMPACTED_LEDGER: 900})
    record = encode_record(COMPACTION_CURSOR, state)
    if not orderly:
        ledger = await bench.cursor_ledgers.create(Quorum(1, 1, 1))
        await ledger.add(encode_entry(COMPACTION_CURSOR, state))
        record = encode_record(COMPACTION_CURSOR, CursorRecord(), ledger_id=ledger.ledger_id)
    await bench.metadata.commit([Put(KEY, record)])
    topic = await bench.topic()
    assert current(topic)[:2] == (900, 1)
    assert await stored(bench) == (900, sent[1], IN_RECORD)
    assert await texts_read(bench, topic, 2) == ["1", "2"]
    assert topic.internal_stats()["cursors"][COMPACTION_CURSOR]["properties"] == {COMPACTED_LEDGER: 900}
    topic.subscriptions[COMPACTION_CURSOR].properties_changed({"x": "y"})
    await topic.flush()
    assert (await stored(bench))[:2] == (900, sent[1])
    await compact(topic)
    assert 900 not in bench.journal._ledgers
    assert await texts_read(bench, topic, 2) == ["1", "2"]


async def test_compaction_when_its_ledger_cannot_be_named_then_the_old_one_counts_and_nothing_is_trimmed(
    bench: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = Commits(bench, monkeypatch)
    topic, sent = await filled(bench)
    await compact(topic)
    old = current(topic)
    await topic.log.roll()
    await send(bench, topic, ("b", "3"))
    await topic.log.roll()
    commits.before = MetadataUnavailable("ZooKeeper is away")
    await fails(topic, "ZooKeeper is away")
    assert current(topic) == old
    assert topic.mark_delete_position(COMPACTION_CURSOR) == sent[-1]
    commits.before = None
    await backlog_operations.trim(topic)
    assert await texts_read(bench, topic, 3) == ["1", "2", "3"]
    await topic.flush()
    assert (await stored(bench))[:2] == (old.ledger_id, sent[-1])
    await compact(topic)
    assert await texts_read(bench, topic, 2) == ["2", "3"]


async def test_topic_when_the_naming_was_applied_without_an_answer_then_the_next_broker_finds_the_new_ledger(
    bench: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = Commits(bench, monkeypatch)
    topic, _ = await filled(bench)
    await compact(topic)
    [more] = await send(bench, topic, ("b", "3"))
    commits.after = PersistenceError("no answer")
    await fails(topic, "no answer")
    commits.after = None
    await bench.crash()
    topic = await bench.topic()
    assert current(topic).horizon == more
    assert await texts_read(bench, topic, 2) == ["2", "3"]


async def test_log_while_the_ledger_is_being_named_then_is_not_trimmed_up_to_it(
    bench: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = Commits(bench, monkeypatch)
    topic, sent = await filled(bench)
    await topic.log.roll()
    commits.allowed.clear()
    topic.compaction.begin()
    await commits.begun.wait()
    await backlog_operations.trim(topic)
    first = topic.log.first_position
    commits.allowed.set()
    await ended(topic)
    assert first == sent[0]
    await backlog_operations.trim(topic)
    assert topic.log.first_position is None


async def test_cursor_when_it_is_stored_while_the_ledger_is_being_named_then_does_not_fall_behind(
    bench: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = Commits(bench, monkeypatch)
    topic, sent = await filled(bench)
    commits.allowed.clear()
    topic.compaction.begin()
    await commits.begun.wait()
    topic.subscriptions[COMPACTION_CURSOR].properties_changed({"x": "y"})
    flushing = asyncio.create_task(topic.flush())
    await bench.settle()
    commits.allowed.set()
    await asyncio.gather(flushing, ended(topic))
    await bench.crash()
    topic = await bench.topic()
    assert current(topic).horizon == sent[-1]
    assert topic.subscriptions[COMPACTION_CURSOR].properties == {"x": "y"}


@pytest.mark.parametrize("end", [Topic.close, Topic.abandon], ids=["close", "abandon"])
async def test_topic_when_it_ends_while_the_ledger_is_being_named_then_the_record_names_one_that_is_there(
    bench: LiveBench, monkeypatch: pytest.MonkeyPatch, end: Callable[[Topic], Awaitable[None]]
) -> None:
    commits = Commits(bench, monkeypatch)
    topic, sent = await filled(bench)
    commits.allowed.clear()
    topic.compaction.begin()
    await commits.begun.wait()
    ending: asyncio.Task[None] = asyncio.create_task(end(topic))  # type: ignore[arg-type]
    await bench.settle()
    commits.allowed.set()
    await ending
    ledger, horizon, _ = await stored(bench)
    assert horizon == sent[-1]
    assert ledger in bench.journal._ledgers


async def test_topic_when_another_broker_may_have_it_then_names_no_ledger_any_more(bench: LiveBench) -> None:
    topic, _ = await filled(bench)
    await compact(topic)
    old = current(topic)
    await send(bench, topic, ("b", "3"))
    reading = topic.log.compacted.replace

    async def forsaken(*given: Any) -> CompactedLedger:
        topic.forsake()
        return await reading(*given)

    topic.log.compacted.replace = forsaken  # type: ignore[method-assign, assignment]
    await fails(topic, "another broker may own the topic")
    assert (await stored(bench))[0] == old.ledger_id
    assert old.ledger_id in bench.journal._ledgers
    await topic.depart()


async def test_topic_when_deleted_then_its_compacted_ledger_goes_too(bench: LiveBench) -> None:
    topic, _ = await filled(bench)
    await compact(topic)
    ledger = current(topic).ledger_id
    await bench.registry.delete(topic.name)
    assert ledger not in bench.journal._ledgers


async def test_topic_when_deleted_after_its_broker_died_then_its_compacted_ledger_goes_too(bench: LiveBench) -> None:
    topic, _ = await filled(bench)
    await compact(topic)
    await bench.registry.flush()
    ledger = current(topic).ledger_id
    await bench.crash()
    await bench.logs.delete(topic.name.log_name)
    assert ledger not in bench.journal._ledgers


async def test_threshold_of_a_shared_topic_keeps_its_log_and_begins_a_compaction(bench: LiveBench) -> None:
    bench.settings = replace(bench.settings, compaction_threshold_bytes=1)
    topic, _ = await filled(bench)
    topic.compaction.begin_if_due()
    await true(lambda: topic.compaction.status is CompactionStatus.SUCCESS)
    assert await texts_read(bench, topic, 2) == ["1", "2"]


async def test_resets_in_a_cluster_are_stored_with_acknowledgements_and_settings(bench: LiveBench) -> None:
    topic = await bench.topic()
    await bench.publish(topic, *range(3))
    consumer, _ = await bench.consumer(topic)
    await consumer.seek(MessageId(1, 1))
    topic.subscription("s").skip_to(Position(1, 1))
    await bench.registry.flush()
    await bench.crash()
    cursor = (await bench.topic()).subscription("s").cursor
    assert (cursor.resets, cursor.mark_delete) == (1, Position(1, 1))
