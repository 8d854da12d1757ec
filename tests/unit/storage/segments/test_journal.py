"""Room is given back, groups are shared, statistics count. Promises to logs: test_topic_log and tests/durability."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from interpulse.model.errors import PersistenceError
from interpulse.model.ids import EARLIEST, LATEST
from interpulse.storage.api import DataDirectoryUnusable, LogDamaged, LogFenced
from interpulse.storage.journals import LedgerGone
from interpulse.storage.memory import MemoryMetadataStore
from interpulse.storage.segments import journal as journal_module
from interpulse.storage.segments.journal import SegmentJournal
from interpulse.storage.segments.open import open_log_store
from interpulse.storage.segments.reader import SegmentReader
from interpulse.storage.topic_log import TopicLog
from interpulse.storage.topic_log_store import TopicLogStore
from tests.durability.simulated_disk import SimulatedDisk
from tests.unit.storage.listeners import Listener, read_all

DIRECTORY = Path("/data/log")


async def open_on(disk: SimulatedDisk, metadata: MemoryMetadataStore | None = None) -> TopicLogStore:
    return await open_log_store(DIRECTORY, metadata or MemoryMetadataStore(), files=disk, segment_bytes_max=500)


async def publish(log: TopicLog, listener: Listener, *payloads: bytes) -> None:
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
    await publish(other, other_listener, b"stays")
    await publish(log, listener, *[b"x" * 300] * 6)
    await log.roll()
    await publish(log, listener, b"y")
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
    await publish(log, listener, b"x")
    await store.delete("a")
    assert disk.names_now == {}
    again = Listener()
    await publish(await store.open("a", again, create=True), again, b"y")
    await store.close()
    store = await open_on(disk.healthy(), metadata)
    assert await read_all(await store.open("a", Listener(), create=False)) == [b"y"]
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
    await publish(await store.open("a", listener, create=True), listener, b"x")
    await store.close()
    await store.records.delete("a")  # the process died between the commit and the unlink
    assert segments(disk) == ["1"]
    store = await open_on(disk.healthy(), metadata)
    assert segments(disk) == []
    await store.close()


async def test_group_when_more_waits_than_its_bound_then_the_rest_goes_with_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_module, "_GROUP_BYTES_MAX", 1000)
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
    assert store.journal.statistics.groups == 4
    assert store.journal.statistics.group_bytes == 10 * (40 + 4 + 300)
    await store.close()


async def test_read_when_the_log_is_trimmed_meanwhile_then_goes_on_behind() -> None:
    disk = SimulatedDisk()
    store = await open_on(disk)
    listener = Listener()
    log = await store.open("a", listener, create=True)
    await publish(log, listener, b"x" * 600)
    await log.roll()
    await publish(log, listener, b"y")
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
    await publish(log, listener, b"1", b"2", b"3")
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
    await publish(await store.open("a", listener, create=True), listener, *payloads)
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
    store.journal._reader = SegmentReader(disk)  # type: ignore[attr-defined]
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
    await publish(log, listener, b"x")
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


async def test_group_when_one_listener_is_at_fault_then_its_log_is_fenced_and_the_others_hear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = await open_on(SimulatedDisk())
    faulty, other = Listener(), Listener()
    logs = [await store.open(name, each, create=True) for name, each in (("a", faulty), ("b", other))]
    monkeypatch.setattr(faulty, "on_durable", lambda _: 1 // 0)
    positions = [log.append(b"x") for log in logs]
    await other.durable(positions[1])
    assert isinstance(faulty.error, PersistenceError)
    with pytest.raises(LogFenced):
        logs[0].append(b"y")
    await store.close()
