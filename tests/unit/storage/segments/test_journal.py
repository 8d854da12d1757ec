"""Room is given back, groups are shared, statistics count. Promises to logs: test_topic_log and tests/durability."""

from __future__ import annotations

import asyncio
import errno
import logging
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from interpulse.model.errors import PersistenceError
from interpulse.model.ids import EARLIEST, LATEST
from interpulse.storage.api import DataDirectoryUnusable, LedgerRecord, LogDamaged, LogFenced, StorageFull
from interpulse.storage.logs.journal import LedgerGone
from interpulse.storage.logs.topic_log import TopicLog
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.segments import journal as journal_module
from interpulse.storage.segments import writer as writer_module
from interpulse.storage.segments.journal import SegmentJournal, open_log_store
from interpulse.storage.segments.reader import SegmentReader
from interpulse.storage.segments.records import parse_index
from interpulse.storage.segments.worker import ThreadWorker
from tests.simulation.disk import SimulatedDisk
from tests.support.memory_storage import MemoryMetadataStore
from tests.unit.storage.listeners import Listener, read_all

DIRECTORY = Path("/data/log")


async def open_on(disk: SimulatedDisk, metadata: MemoryMetadataStore | None = None) -> TopicLogStore:
    return await open_log_store(DIRECTORY, metadata or MemoryMetadataStore(), files=disk, segment_bytes_max=500)


async def append_durably(log: TopicLog, listener: Listener, *payloads: bytes) -> None:
    for payload in payloads:
        await listener.durable(log.append(payload))


def segments(disk: SimulatedDisk) -> list[str]:
    return sorted(path.stem[-1] for path in disk.names_now if path.suffix == ".seg")


async def test_trim_when_segments_hold_nothing_living_then_unlinked_before_it_returns() -> None:
    disk = SimulatedDisk()
    store = await open_on(disk)
    listener, other_listener = Listener(), Listener()
    log = await store.open("a", listener, create=True)
    other = await store.open("b", other_listener, create=True)
    await append_durably(other, other_listener, b"stays")
    await append_durably(log, listener, *[b"x" * 300] * 6)
    await log.roll()
    await append_durably(log, listener, b"y")
    assert len(segments(disk)) > 2
    await log.trim(LATEST)
    assert len(segments(disk)) == 2, "the one with the other log, and the current one"
    assert await read_all(other) == [b"stays"]
    await store.delete("b")
    assert len(segments(disk)) == 1
    await store.close()


async def test_delete_when_the_current_segment_holds_nothing_else_then_its_room_is_given_back() -> None:
    disk = SimulatedDisk()
    metadata = MemoryMetadataStore()
    store = await open_on(disk, metadata)
    listener = Listener()
    log = await store.open("a", listener, create=True)
    await append_durably(log, listener, b"x")
    await store.delete("a")
    assert disk.names_now == {}
    again = Listener()
    await append_durably(await store.open("a", again, create=True), again, b"y")
    await store.close()
    store = await open_on(disk.healthy(), metadata)
    assert await read_all(await store.open("a", Listener(), create=False)) == [b"y"]
    await store.close()


async def test_delete_when_the_segment_was_read_then_its_file_is_given_back() -> None:
    disk = SimulatedDisk()
    store = await stored(disk, MemoryMetadataStore(), b"x")
    log = await store.open("a", Listener(), create=False)
    assert await read_all(log) == [b"x"]
    assert isinstance(store.journal, SegmentJournal)
    reader = store.journal._reader
    assert list(reader._open) == [DIRECTORY / "0000000001.seg"]
    await store.delete("a")
    await reader.run(lambda: None)
    assert list(reader._open) == [], "an unlinked file that is open keeps its room"
    await store.close()


async def test_delete_when_a_group_is_on_its_way_then_its_records_are_not_kept() -> None:
    disk = SimulatedDisk()
    store = await open_on(disk)
    log = await store.open("a", Listener(), create=True)
    log.append(b"x")
    await asyncio.sleep(0)
    await store.delete("a")
    with pytest.raises(LogFenced):
        log.append(b"y")
    await store.close()
    assert isinstance(store.journal, SegmentJournal)
    assert store.journal._segments.ledger_ids == []


async def test_open_when_ledgers_died_while_no_process_ran_then_their_segments_are_removed() -> None:
    disk, metadata = SimulatedDisk(), MemoryMetadataStore()
    store = await open_on(disk, metadata)
    listener = Listener()
    await append_durably(await store.open("a", listener, create=True), listener, b"x")
    await store.close()
    await store.records.delete("a")  # the process died between the commit and the unlink
    assert segments(disk) == ["1"]
    store = await open_on(disk.healthy(), metadata)
    assert segments(disk) == []
    await store.close()


async def test_statistics_when_groups_are_written_then_bytes_and_seconds_add_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer_module, "time", SimpleNamespace(perf_counter=count(100.0, 0.25).__next__))
    store = await open_on(SimulatedDisk())
    listener = Listener()
    await append_durably(await store.open("a", listener, create=True), listener, b"x", b"y", b"z")
    statistics = store.journal.statistics
    assert (statistics.groups, statistics.group_bytes, statistics.failed_groups) == (3, 3 * 45, 0)
    assert (statistics.group_seconds.count, statistics.group_seconds.sum) == (3, 3 * 0.25)
    await store.close()


@pytest.mark.parametrize(("bound", "groups"), [(3 * 344, 4), (3 * 344 + 1, 3)])
async def test_group_when_more_waits_than_its_bound_then_the_rest_goes_with_the_next(
    monkeypatch: pytest.MonkeyPatch, bound: int, groups: int
) -> None:
    monkeypatch.setattr(journal_module, "_GROUP_BYTES_MAX", bound)
    store = await open_on(SimulatedDisk())
    logs = []
    for number in range(10):
        listener = Listener()
        logs.append((await store.open(f"log-{number}", listener, create=True), listener))
    for log, _ in logs:
        log.append(b"x" * 300)
    for log, listener in logs:
        await listener.durable(log.last_appended)
    assert isinstance(store.journal, SegmentJournal)
    assert store.journal.statistics.groups == groups
    assert store.journal.statistics.group_bytes == 10 * (40 + 4 + 300)
    await store.close()


async def test_read_when_the_log_is_trimmed_meanwhile_then_goes_on_behind() -> None:
    disk = SimulatedDisk()
    store = await open_on(disk)
    listener = Listener()
    log = await store.open("a", listener, create=True)
    await append_durably(log, listener, b"x" * 600)
    await log.roll()
    await append_durably(log, listener, b"y")
    journal = store.journal
    real = journal.read

    async def trimmed_first(*wanted: object) -> list[bytes]:
        journal.read = real  # type: ignore[method-assign]
        await log.trim(LATEST)
        return await real(*wanted)  # type: ignore[arg-type]

    journal.read = trimmed_first  # type: ignore[method-assign, assignment]
    entries = await log.read(EARLIEST, entries_max=10, bytes_max=10_000)
    assert [each.entry for each in entries] == [b"y"]
    await store.close()


async def test_verify_when_the_log_is_larger_than_checked_at_opening_then_older_damage_shows_at_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_module, "_VERIFY_RECORDS_MAX", 2)
    disk, metadata = SimulatedDisk(), MemoryMetadataStore()
    store = await open_on(disk, metadata)
    listener = Listener()
    log = await store.open("a", listener, create=True)
    await append_durably(log, listener, b"1", b"2", b"3")
    await store.close()
    disk.content(DIRECTORY / "0000000001.seg")[25] ^= 1
    store = await open_on(disk.healthy(), metadata)
    log = await store.open("a", Listener(), create=False)
    with pytest.raises(LogDamaged):
        await read_all(log)
    await store.close()


async def stored(disk: SimulatedDisk, metadata: MemoryMetadataStore, *payloads: bytes) -> TopicLogStore:
    """A store that was restarted over one log ``a``, so that nothing is in memory or checked."""
    store = await open_on(disk, metadata)
    listener = Listener()
    await append_durably(await store.open("a", listener, create=True), listener, *payloads)
    await store.close()
    return await open_on(disk, metadata)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file"), LogDamaged),
        (OSError(errno.EIO, "Input/output error"), PersistenceError),
    ],
    ids=["file-gone", "disk-fails"],
)
async def test_open_and_read_when_the_segment_cannot_be_read_then_typed_error(
    error: OSError, expected: type[PersistenceError]
) -> None:
    disk = SimulatedDisk()
    store = await stored(disk, MemoryMetadataStore(), b"x")
    disk.open_error = error
    with pytest.raises(expected) as refused:
        await store.open("a", Listener(), create=False)
    assert type(refused.value) is expected
    disk.open_error = None
    listener = Listener()
    log = await store.open("a", listener, create=False)
    await store.journal._reader.close()  # type: ignore[attr-defined]
    store.journal._reader = SegmentReader(disk, ThreadWorker("log-reader"))  # type: ignore[attr-defined]
    disk.open_error = error
    with pytest.raises(expected):
        await read_all(log)
    assert (listener.error is None) == (expected is PersistenceError), "only damage is for good"
    await store.close()


async def test_open_when_the_directory_cannot_be_read_then_typed_error() -> None:
    disk = SimulatedDisk()
    metadata = MemoryMetadataStore()
    store = await stored(disk, metadata, b"x")
    await store.close()
    disk.open_error = OSError(errno.EACCES, "Permission denied")
    with pytest.raises(DataDirectoryUnusable, match="Permission denied"):
        await open_on(disk, metadata)


async def test_open_when_the_metadata_is_of_another_store_then_refused_naming_the_ledger() -> None:
    disk = SimulatedDisk()
    await (await stored(disk, MemoryMetadataStore(), b"x")).close()
    with pytest.raises(DataDirectoryUnusable) as refused:
        await open_on(disk.healthy(), MemoryMetadataStore())
    assert str(refused.value) == (
        "data directory /data/log cannot be used: "
        "ledger 1 does not belong to this metadata store; was metadata.sqlite removed or replaced?"
    )


@pytest.mark.parametrize("missing", [False, True], ids=["empty", "missing"])
async def test_open_when_a_log_is_damaged_then_the_log_line_names_it_and_the_offset(
    caplog: pytest.LogCaptureFixture, missing: bool
) -> None:
    disk, metadata = SimulatedDisk(), MemoryMetadataStore()
    await (await stored(disk, metadata, b"x")).close()
    if missing:
        disk.unlink(DIRECTORY / "0000000001.seg")
    else:
        disk.content(DIRECTORY / "0000000001.seg").clear()
    store = await open_on(disk.healthy(), metadata)
    assert [each.getMessage() for each in caplog.records if each.name == journal_module.__name__] == [
        "log is damaged log=a segment=/data/log/0000000001.seg offset=20"
    ]
    await store.close()


async def test_open_when_killed_between_a_segment_and_its_index_then_the_rest_is_removed_without_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk, metadata = SimulatedDisk(), MemoryMetadataStore()
    store = await stored(disk, metadata, b"x")
    disk.fail_at, disk.for_good = len(disk.steps) + 1, True  # the removal of the index
    await store.delete("a")
    await store.close()
    assert [path.name for path in disk.names_now] == ["0000000001.idx"]
    disk = disk.healthy()
    await (await open_on(disk, metadata)).close()
    assert disk.names_now == {}
    assert [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR] == []


async def test_verify_when_this_process_wrote_the_records_then_they_are_not_read() -> None:
    disk = SimulatedDisk()
    store = await open_on(disk)
    listener = Listener()
    log = await store.open("a", listener, create=True)
    await append_durably(log, listener, b"x")
    await log.close()
    disk.open_error = OSError(errno.EIO, "Input/output error")
    await (await store.open("a", Listener(), create=False)).close()
    await store.close()


async def test_open_when_an_error_has_no_text_then_the_error_is_named() -> None:
    disk = SimulatedDisk()
    store = await stored(disk, MemoryMetadataStore(), b"x")
    disk.open_error = OSError("odd")
    with pytest.raises(PersistenceError, match=r"^log in /data/log cannot be written or read: odd$"):
        await store.open("a", Listener(), create=False)
    await store.close()


async def test_read_when_a_ledger_is_unknown_then_gone() -> None:
    store = await open_on(SimulatedDisk())
    with pytest.raises(LedgerGone):
        await store.journal.read("a", 77, 0, 1, 1)
    await store.close()


async def test_forget_when_a_group_is_on_its_way_then_current_segment_stays_in_use() -> None:
    disk = SimulatedDisk()
    store = await open_on(disk)
    listener, other_listener = Listener(), Listener()
    log = await store.open("a", listener, create=True)
    other = await store.open("b", other_listener, create=True)
    await append_durably(log, listener, b"x")
    last = other.append(b"y")
    await asyncio.sleep(0)
    await store.delete("a")
    await other_listener.durable(last)
    assert await read_all(other) == [b"y"]
    await store.close()


async def test_close_when_callers_were_cancelled_then_goes_on() -> None:
    store = await open_on(SimulatedDisk())
    listener = Listener()
    log = await store.open("a", listener, create=True)
    last = log.append(b"x")
    closing = asyncio.ensure_future(store.journal.close())
    await asyncio.sleep(0)
    closing.cancel()
    await listener.durable(last)
    await store.close()


async def test_close_when_entries_wait_then_their_segment_is_sealed_too() -> None:
    disk = SimulatedDisk()
    store = await open_on(disk)
    listener = Listener()
    log = await store.open("a", listener, create=True)
    last = log.append(b"x")
    await store.journal.close()
    assert listener.last == last
    assert parse_index(bytes(disk.content(DIRECTORY / "0000000001.idx")), 1).sealed


async def test_group_when_one_listener_raises_then_only_its_log_is_fenced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = await open_on(SimulatedDisk())
    faulty, other = Listener(), Listener()
    logs = [await store.open(name, each, create=True) for name, each in (("a", faulty), ("b", other))]
    monkeypatch.setattr(faulty, "on_durable", lambda _: 1 // 0)
    positions = [log.append(b"x") for log in logs]
    await other.durable(positions[1])
    assert isinstance(faulty.error, PersistenceError)
    assert str(faulty.error) == "broken after a write: ZeroDivisionError('integer division or modulo by zero')"
    with pytest.raises(LogFenced):
        logs[0].append(b"y")
    await store.close()


async def only_ledger(store: TopicLogStore, name: str) -> int:
    """The ledger that the log filled before the store was opened again."""
    record = await store.records.get(name)
    assert record is not None
    return record.ledgers[0].ledger_id


async def removed(store: TopicLogStore) -> None:
    """Files that were given up before are gone."""
    assert isinstance(store.journal, SegmentJournal)
    await store.journal.unlink([])


async def test_group_when_its_write_fails_then_only_its_logs_are_fenced() -> None:
    disk, metadata = SimulatedDisk(), MemoryMetadataStore()
    store = await open_on(disk, metadata)
    listener, other_listener = Listener(), Listener()
    log = await store.open("a", listener, create=True)
    other = await store.open("b", other_listener, create=True)
    await append_durably(log, listener, b"1")
    disk.fail_at, disk.for_good = 0, True
    log.append(b"2")
    with pytest.raises(PersistenceError, match=r"^log in /data/log cannot be written or read: simulated failure of"):
        await listener.durable(LATEST)
    disk.fail_at = None
    await append_durably(other, other_listener, b"3")
    assert isinstance(store.journal, SegmentJournal)
    assert store.journal.statistics.failed_groups == 1
    assert segments(disk) == ["1", "2"]
    await store.delete("a")
    assert segments(disk) == ["2"], "what failed is ended, and removed with the last of its logs"
    assert await read_all(other) == [b"3"]
    await store.close()


async def test_group_when_the_disk_is_full_then_each_log_fails_once() -> None:
    disk = SimulatedDisk(capacity=0)
    problems: list[str] = []
    written: list[int] = []
    store = await open_log_store(
        DIRECTORY, MemoryMetadataStore(), files=disk, on_full=problems.append, on_write=written.append
    )
    for name in ("a", "b"):
        listener = Listener()
        log = await store.open(name, listener, create=True)
        log.append(b"x")
        with pytest.raises(StorageFull, match="no room left in /data/log: No space left on device"):
            await listener.durable(LATEST)
    assert problems == ["no room left in /data/log: No space left on device"] * 2
    assert written == [45, 45]
    assert isinstance(store.journal, SegmentJournal)
    assert store.journal.statistics.failed_groups == 2
    await removed(store)
    assert disk.names_now == {}
    disk.capacity = None
    listener = Listener()
    await append_durably(await store.open("c", listener, create=True), listener, b"y")
    assert problems[2:] == []
    await store.close()


@pytest.mark.parametrize(("payload", "expected"), [(435, ["1"]), (436, ["1", "2"])])
async def test_segment_when_it_has_its_size_then_the_next_group_begins_another(
    payload: int, expected: list[str]
) -> None:
    disk = SimulatedDisk()
    store = await open_on(disk)
    listener = Listener()
    await append_durably(await store.open("a", listener, create=True), listener, b"x" * payload, b"y")
    assert segments(disk) == expected, "20 bytes of the segment's head and 44 of the record, of 500"
    await store.close()


async def test_delete_when_a_log_is_in_several_segments_then_all_of_them_are_removed() -> None:
    disk = SimulatedDisk()
    store = await open_on(disk)
    listener = Listener()
    await append_durably(await store.open("a", listener, create=True), listener, b"x" * 600, b"y")
    assert segments(disk) == ["1", "2"]
    await store.delete("a")
    assert disk.names_now == {}
    await store.close()


async def test_open_when_a_read_found_damage_then_the_log_stays_refused() -> None:
    disk, metadata = SimulatedDisk(), MemoryMetadataStore()
    store = await stored(disk, metadata, b"x")
    listener = Listener()
    log = await store.open("a", listener, create=False)
    disk.content(DIRECTORY / "0000000001.seg")[-1] ^= 1
    refusal = "^log a is damaged in 0000000001.seg at byte 20: the checksum of the entries is wrong$"
    with pytest.raises(LogDamaged, match=refusal):
        await read_all(log)
    await log.close()
    disk.content(DIRECTORY / "0000000001.seg")[-1] ^= 1
    with pytest.raises(LogDamaged, match=refusal):
        await store.open("a", Listener(), create=False)
    await store.delete("a")
    assert isinstance(store.journal, SegmentJournal)
    assert store.journal._damaged == {}, "nothing is kept of a log that is gone"
    await store.close()


async def test_verify_when_records_are_missing_then_it_says_which_and_where() -> None:
    disk, metadata = SimulatedDisk(), MemoryMetadataStore()
    store = await stored(disk, metadata, b"x" * 600, b"y")
    ledger = await only_ledger(store, "a")

    async def refusal(ledger_id: int, entries: int) -> tuple[str, str, int, str]:
        with pytest.raises(LogDamaged) as refused:
            await store.journal.verify("a", [LedgerRecord(ledger_id, entries, 0, 0)])
        return refused.value.name, refused.value.segment, refused.value.offset, refused.value.reason

    await store.journal.verify("a", [LedgerRecord(ledger, 2, 0, 0)])
    assert await refusal(77, 2) == ("a", "log", -1, "entries from 77:0 on are missing")
    assert await refusal(ledger, 3) == ("a", "0000000002.seg", -1, f"entries from {ledger}:2 on are missing")
    await store.close()
    for kind in ("seg", "idx"):
        disk.unlink(DIRECTORY / f"0000000001.{kind}")
    store = await open_on(disk.healthy(), metadata)
    assert await refusal(ledger, 2) == (
        "a",
        "0000000002.seg",
        20,
        f"entries from {ledger}:0 to before 1 are missing",
    )
    await store.close()
    disk.content(DIRECTORY / "0000000002.seg").clear()
    store = await open_on(disk.healthy(), metadata)
    assert await refusal(ledger, 2) == ("a", "0000000002.seg", 20, "a record is lost or damaged")
    await store.close()


RECORD = 40 + 4 + 600
"""Bytes of the record of an entry that fills a segment."""


@pytest.mark.parametrize(
    ("records_max", "bytes_max", "damaged", "openings"),
    [
        (2, 1 << 20, 3, 1),
        (2, 1 << 20, 2, 2),
        (2, 1 << 20, 1, 2),
        (9, 2 * RECORD, 3, 1),
        (9, 2 * RECORD, 2, 2),
        (9, 2 * RECORD + 1, 2, 1),
        (9, 2 * RECORD + 1, 1, 2),
    ],
)
async def test_verify_when_a_log_is_large_then_each_opening_checks_more(
    monkeypatch: pytest.MonkeyPatch, records_max: int, bytes_max: int, damaged: int, openings: int
) -> None:
    monkeypatch.setattr(journal_module, "_VERIFY_RECORDS_MAX", records_max)
    monkeypatch.setattr(journal_module, "_VERIFY_BYTES_MAX", bytes_max)
    disk = SimulatedDisk()
    store = await stored(disk, MemoryMetadataStore(), *[b"x" * 600] * 4)
    ledgers = [LedgerRecord(await only_ledger(store, "a"), 4, 0, 0)]
    disk.content(DIRECTORY / f"000000000{damaged}.seg")[-1] ^= 1
    for _ in range(openings - 1):
        await store.journal.verify("a", ledgers)
    with pytest.raises(LogDamaged, match=f"damaged in 000000000{damaged}.seg at byte 20: the checksum of the entries"):
        await store.journal.verify("a", ledgers)
    await store.close()
