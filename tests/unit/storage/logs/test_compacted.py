"""The compacted ledger of a log: memory and segments must not be told apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from interpulse.model.errors import PersistenceError
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.storage.api import LogDamaged, LogEntry, LogFenced
from interpulse.storage.logs.journal import JournalClient, LedgerWriter
from interpulse.storage.logs.topic_log import TopicLog
from tests.support.memory_storage import MemoryJournal
from tests.unit.storage.logs.test_topic_log import NAME, LogBench, bench, fill

__all__ = ["bench"]


async def parts(*given: Sequence[LogEntry]) -> AsyncIterator[Sequence[LogEntry]]:
    for part in given:
        yield part


async def compact(log: TopicLog, *kept: int) -> list[LogEntry]:
    """Keep the entries of these numbers."""
    whole = await log.read(EARLIEST, entries_max=1000, bytes_max=10**9)
    entries = [whole[number] for number in kept]
    await log.compacted.replace(log.last_position, parts(entries[:2], [], entries[2:]))
    return entries


async def kept(log: TopicLog, start: Position = EARLIEST) -> list[LogEntry]:
    return await log.compacted.read(start, entries_max=1000, bytes_max=10**9)


async def filled(bench: LogBench, count: int = 10) -> TopicLog:
    log, listener = await bench.open()
    await fill(log, listener, *(b"payload %d" % number for number in range(count)))
    return log


async def test_log_that_was_never_compacted_has_no_compacted_ledger(bench: LogBench) -> None:
    log = await filled(bench)
    assert log.compacted.current is None
    assert await kept(log) == []
    assert await log.compacted.last() is None
    await log.compacted.drop()
    assert "compactedLedger" not in await bench.record()


async def test_replace_keeps_entries_with_their_positions_through_a_restart(bench: LogBench) -> None:
    log = await filled(bench)
    entries = await compact(log, 1, 4, 5, 9)
    made = log.compacted.current
    assert made is not None
    assert (made.entries, made.horizon) == (4, log.last_position)
    assert await kept(log) == entries
    await bench.restart()
    log, _ = await bench.open()
    assert log.compacted.current == made
    assert await kept(log) == entries
    assert await log.compacted.last() == entries[-1]


async def test_read_from_every_position_begins_at_the_next_entry_kept(bench: LogBench) -> None:
    log = await filled(bench)
    entries = await compact(log, 1, 4, 5, 9)
    ledger = log.last_position.ledger
    for number in range(11):
        expected = [each for each in entries if each.position.entry >= number]
        assert await kept(log, Position(ledger, number)) == expected, number
    assert await kept(log, Position(ledger + 1, 0)) == []


async def test_read_in_steps_meets_every_entry_once(bench: LogBench) -> None:
    log = await filled(bench)
    entries = await compact(log, *range(10))
    found: list[LogEntry] = []
    start = EARLIEST
    while step := await log.compacted.read(start, entries_max=3, bytes_max=10**9):
        assert len(step) <= 3
        found += step
        start = Position(step[-1].position.ledger, step[-1].position.entry + 1)
    assert found == entries
    assert len(await log.compacted.read(EARLIEST, entries_max=9, bytes_max=1)) == 1, "at least one"


async def test_first_when_the_predicate_is_monotone_then_first_match(bench: LogBench) -> None:
    log = await filled(bench)
    entries = await compact(log, 1, 4, 5, 9)
    assert await log.compacted.first(lambda each: each.entry >= b"payload 5") == entries[2]
    assert await log.compacted.first(lambda each: True) == entries[0]
    assert await log.compacted.first(lambda each: False) is None


async def test_second_compaction_replaces_the_first_and_gives_its_room_back(bench: LogBench) -> None:
    log = await filled(bench)
    await compact(log, 1, 4)
    old = log.compacted.current
    entries = await compact(log, 3)
    assert old is not None
    assert log.compacted.current is not None
    assert log.compacted.current.ledger_id > old.ledger_id
    assert await kept(log) == entries
    assert not await bench.store.journal.recover(old.ledger_id)
    assert await bench.metadata.get(f"/ledgers/L{old.ledger_id:010d}") is None


async def test_empty_result_is_a_compacted_ledger_too(bench: LogBench) -> None:
    log = await filled(bench)
    await compact(log)
    await bench.restart()
    log, _ = await bench.open()
    assert log.compacted.current is not None
    assert log.compacted.current.entries == 0
    assert await kept(log) == []
    assert await log.compacted.last() is None


async def test_trim_and_roll_leave_the_compacted_ledger_alone(bench: LogBench) -> None:
    log = await filled(bench)
    entries = await compact(log, 1, 4)
    await log.roll()
    await log.trim(LATEST)
    assert log.first_position is None
    assert await kept(log) == entries
    await bench.restart()
    log, _ = await bench.open()
    assert await kept(log) == entries


async def test_terminated_log_can_be_compacted(bench: LogBench) -> None:
    log = await filled(bench)
    await log.terminate()
    entries = await compact(log, 9)
    await bench.restart()
    log, _ = await bench.open()
    assert log.terminated
    assert await kept(log) == entries


async def test_drop_forgets_everything(bench: LogBench) -> None:
    log = await filled(bench)
    await compact(log, 1, 4)
    old = log.compacted.current
    assert old is not None
    await log.compacted.drop()
    assert log.compacted.current is None
    assert not await bench.store.journal.recover(old.ledger_id)
    await bench.restart()
    log, _ = await bench.open()
    assert log.compacted.current is None


async def test_deletion_of_the_log_takes_the_compacted_ledger_along(bench: LogBench) -> None:
    log = await filled(bench)
    await compact(log, 1, 4)
    made = log.compacted.current
    assert made is not None
    await bench.store.delete(NAME)
    assert not await bench.store.journal.recover(made.ledger_id)
    assert await bench.ledgers_left() == []
    with pytest.raises(LogFenced):
        await kept(log)


async def test_log_when_recreated_during_compaction_then_has_no_compacted_ledger(bench: LogBench) -> None:
    log = await filled(bench)

    async def source() -> AsyncIterator[Sequence[LogEntry]]:
        yield await log.read(EARLIEST, entries_max=5, bytes_max=10**9)
        await bench.store.delete(NAME)
        await bench.open()

    with pytest.raises(LogFenced):
        await log.compacted.replace(log.last_position, source())
    assert "compactedLedger" not in await bench.record()


async def test_source_that_fails_leaves_the_old_state_and_no_ledger(bench: LogBench) -> None:
    log = await filled(bench)
    entries = await compact(log, 1)
    before = await bench.metadata.children("/ledgers")

    async def source() -> AsyncIterator[Sequence[LogEntry]]:
        yield entries
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await log.compacted.replace(log.last_position, source())
    assert await kept(log) == entries
    assert await bench.metadata.children("/ledgers") == before
    made = log.compacted.current
    assert made is not None
    assert not await bench.store.journal.recover(made.ledger_id + 1)


async def test_cancellation_while_writing_leaves_the_old_state(bench: LogBench) -> None:
    log = await filled(bench)
    entries = await compact(log, 1)
    reached = asyncio.Event()

    async def source() -> AsyncIterator[Sequence[LogEntry]]:
        yield entries
        reached.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(log.compacted.replace(log.last_position, source()))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await kept(log) == entries


async def test_cancellation_while_committing_ends_with_what_is_stored(bench: LogBench) -> None:
    log = await filled(bench)
    entries = await log.read(EARLIEST, entries_max=2, bytes_max=10**9)
    commit = bench.metadata.commit
    reached = asyncio.Event()

    async def slow_commit(*args: object, **kwargs: object) -> None:
        reached.set()
        await asyncio.sleep(0)
        await commit(*args, **kwargs)  # type: ignore[arg-type]

    bench.metadata.commit = slow_commit  # type: ignore[method-assign]
    task = asyncio.create_task(log.compacted.replace(log.last_position, parts(entries)))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await log.close()
    log, _ = await bench.open()
    assert await kept(log) == entries


async def test_reader_goes_on_when_the_ledger_is_replaced_under_it(bench: LogBench) -> None:
    log = await filled(bench)
    await compact(log, *range(10))
    first = await log.compacted.read(EARLIEST, entries_max=2, bytes_max=10**9)
    start = Position(first[-1].position.ledger, first[-1].position.entry + 1)
    reading = asyncio.create_task(log.compacted.read(start, entries_max=9, bytes_max=10**9))
    entries = await compact(log, 1, 7, 9)
    assert (await reading)[-1].entry == b"payload 9"
    assert await kept(log, start) == entries[1:]


def spoil(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xff")


@pytest.mark.parametrize("bench", ["segments"], indirect=True)
async def test_damaged_compacted_ledger_fences_the_log_and_then_refuses_to_open(bench: LogBench) -> None:
    log = await filled(bench)
    await compact(log, 1, 4)
    made = log.compacted.current
    assert made is not None
    journal = bench.store.journal
    (segment, rows), *_ = journal._segments.parts(made.ledger_id)  # type: ignore[attr-defined]
    spoil(segment.path, rows.offsets[0] + 45)
    with pytest.raises(LogDamaged):
        await kept(log)
    with pytest.raises(LogFenced):
        log.append(b"x")
    await log.close()
    with pytest.raises(LogDamaged):
        await bench.open()


class SlowJournal(MemoryJournal):
    """Writes nothing before it is told to."""

    def enqueue(self, client: JournalClient) -> None:
        self._waiting.append(client)


async def test_ledger_writer_that_is_abandoned_writes_nothing_more() -> None:
    journal = SlowJournal()
    task = asyncio.create_task(LedgerWriter(journal, 7).write([b"x"]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await journal.close()
    assert await journal.recover(7) is None


async def test_ledger_writer_when_a_write_fails_then_raises() -> None:
    writer = LedgerWriter(SlowJournal(), 7)
    task = asyncio.create_task(writer.write([b"x"]))
    await asyncio.sleep(0)
    writer.failed(PersistenceError("no room"))
    with pytest.raises(PersistenceError, match="no room"):
        await task


async def slow_commits(bench: LogBench, monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """The next commit begins, and ends only when it may: two events."""
    begun, allowed = asyncio.Event(), asyncio.Event()
    commit = bench.metadata.commit

    async def wait_and_commit(*args: Any) -> Any:
        begun.set()
        await allowed.wait()
        return await commit(*args)

    monkeypatch.setattr(bench.metadata, "commit", wait_and_commit)
    return begun, allowed


@pytest.mark.parametrize("before", [(), (1, 2)], ids=["first", "second"])
async def test_drop_while_a_replacement_is_committed_without_a_waiter_leaves_nothing(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch, before: tuple[int, ...]
) -> None:
    log = await filled(bench)
    if before:
        await compact(log, *before)
    begun, allowed = await slow_commits(bench, monkeypatch)
    replacing = asyncio.create_task(compact(log, 3))
    await begun.wait()
    replacing.cancel()
    dropping = asyncio.create_task(log.compacted.drop())
    await asyncio.sleep(0)
    allowed.set()
    await asyncio.gather(dropping, asyncio.create_task(log.compacted.close()))
    assert log.compacted.current is None
    assert "compactedLedger" not in await bench.record()


async def test_close_when_cancelled_then_the_commit_under_way_goes_on(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await filled(bench)
    begun, allowed = await slow_commits(bench, monkeypatch)
    replacing = asyncio.create_task(compact(log, 3))
    await begun.wait()
    closing = asyncio.create_task(log.compacted.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    allowed.set()
    await replacing
    assert log.compacted.current is not None
