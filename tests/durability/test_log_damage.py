"""Torn writes at every byte, flipped bits at every byte, files that are gone."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from crc32c import crc32c

from interpulse.storage.api import DataDirectoryUnusable, LogDamaged
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.segments import records
from interpulse.storage.segments.journal import open_log_store
from interpulse.storage.segments.records import RECORD_HEAD, SEGMENT_HEAD, Row, parse_index
from interpulse.storage.segments.segment_set import index_path, segment_path
from tests.durability.scenario import DIRECTORY, Life
from tests.simulation.disk import SimulatedDisk
from tests.support.memory_storage import MemoryMetadataStore
from tests.unit.storage.listeners import Listener, read_all

SEGMENT = segment_path(DIRECTORY, 1)
INDEX = index_path(DIRECTORY, 1)
NAMES = ["a", "b", "c"]


class Killed:
    """One segment with records of three logs, as a killed process leaves it: not sealed."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self.life = Life(self.disk)
        self.ends: list[int] = []  # where each group ends

    async def prepare(self, tail: bytes = b"") -> Killed:
        for name in NAMES:
            await self._publish(name, 2)
        await self._publish("a", 1)
        await self._publish("b", 3)
        if tail:
            log, listener = await self.life.log("a")
            truth = self.life.truths["a"]
            truth.positions.append(log.append(tail))
            truth.appended.append(tail)
            await listener.durable(truth.positions[-1])
            self.ends.append(len(self.disk.content(SEGMENT)))
        await self.life.index_written()
        self.files = copy.deepcopy(self.disk.names_now)
        self.metadata = copy.deepcopy(self.life.metadata)
        self.rows = parse_index(bytes(self.files[INDEX].written), 1).rows
        ledgers = {name: self.life.logs[name][0].ledgers[0].ledger_id for name in NAMES}
        self.names = {ledger: name for name, ledger in ledgers.items()}
        await self.life.close()
        return self

    async def _publish(self, name: str, count: int) -> None:
        await self.life.publish(name, count)
        self.ends.append(len(self.disk.content(SEGMENT)))

    def copy(self, *, index: bool = True) -> SimulatedDisk:
        disk = SimulatedDisk(names_now=copy.deepcopy(self.files))
        if not index:
            del disk.names_now[INDEX]
        return disk

    async def open(self, disk: SimulatedDisk) -> TopicLogStore:
        return await open_log_store(DIRECTORY, copy.deepcopy(self.metadata), files=disk)

    def row_at(self, offset: int) -> Row | None:
        return next((row for row in self.rows if row.offset <= offset < row.offset + row.length), None)


async def contents(store: TopicLogStore) -> dict[str, list[bytes] | LogDamaged]:
    found: dict[str, list[bytes] | LogDamaged] = {}
    for name in NAMES:
        try:
            log = await store.open(name, Listener(), create=False)
            found[name] = await read_all(log)
        except LogDamaged as damage:
            found[name] = damage
    return found


@pytest.fixture
async def killed() -> Killed:
    return await Killed().prepare()


@pytest.mark.parametrize("index", [True, False], ids=["with-index", "without-index"])
async def test_torn_tail_when_cut_at_any_byte_then_earlier_groups_are_whole(killed: Killed, index: bool) -> None:
    whole = {name: killed.life.truths[name].appended for name in NAMES}
    *_, last_begin, last_end = killed.ends
    for end in range(last_begin, last_end):
        disk = killed.copy(index=index)
        del disk.names_now[SEGMENT].written[end:]
        if index:
            del disk.names_now[INDEX].written[-10:]  # its last chunk did not make it either
        store = await killed.open(disk)
        assert await contents(store) == {**whole, "b": whole["b"][:2]}, end
        assert len(disk.content(SEGMENT)) == last_begin
        await store.close()
        again = await killed.open(disk.healthy())
        assert await contents(again) == {**whole, "b": whole["b"][:2]}, end
        await again.close()


async def test_bit_flip_when_at_any_byte_of_a_segment_then_exactly_the_log_of_that_record_is_fenced(
    killed: Killed,
) -> None:
    whole = {name: killed.life.truths[name].appended for name in NAMES}
    for offset in range(killed.ends[-1]):
        disk = killed.copy()
        disk.content(SEGMENT)[offset] ^= 1 << offset % 8
        store = await killed.open(disk)
        found = await contents(store)
        row = killed.row_at(offset)
        expected = killed.names[row.ledger_id] if row else None
        for name in NAMES:
            damage = found[name]
            if name == expected:
                assert row is not None
                assert isinstance(damage, LogDamaged), (offset, name)
                assert (damage.name, damage.segment, damage.offset) == (name, SEGMENT.name, row.offset)
            else:
                assert damage == whole[name], (offset, name)
        await store.close()


async def test_bit_flip_when_at_any_byte_of_the_index_then_nothing_is_lost(killed: Killed) -> None:
    whole = {name: killed.life.truths[name].appended for name in NAMES}
    for offset in range(len(killed.files[INDEX].written)):
        disk = killed.copy()
        disk.content(INDEX)[offset] ^= 1 << offset % 8
        store = await killed.open(disk)
        assert await contents(store) == whole, offset
        await store.close()
        assert parse_index(bytes(disk.content(INDEX)), 1).sealed, "the index was rebuilt"


async def test_bit_flip_when_there_is_no_index_then_no_synced_entry_is_lost_silently(
    killed: Killed, caplog: pytest.LogCaptureFixture
) -> None:
    """Two faults at once. The only record of a log, lost with its header, can be reported but not given a name."""
    whole = {name: killed.life.truths[name].appended for name in NAMES}
    last_group = killed.ends[-2]
    for offset in range(SEGMENT_HEAD, last_group):
        disk = killed.copy(index=False)
        disk.content(SEGMENT)[offset] ^= 1 << offset % 8
        row = killed.row_at(offset)
        assert row is not None
        for _ in range(2):  # the second start must not believe what the first one wrote
            store = await killed.open(disk)
            found = await contents(store)
            name = killed.names[row.ledger_id]
            nameless = name == "c" and offset < row.offset + RECORD_HEAD
            assert isinstance(found[name], LogDamaged) or (nameless and "unknown ledgers are lost" in caplog.text), (
                offset
            )
            assert all(isinstance(each, LogDamaged) or each == whole[name] or nameless for name, each in found.items())
            await store.close()
            caplog.clear()
            disk = disk.healthy()


async def test_recovery_when_a_payload_holds_a_copy_of_a_segment_then_it_is_not_taken_for_records(
    killed: Killed,
) -> None:
    image = bytes(killed.files[SEGMENT].written)
    other = await Killed().prepare(tail=image)
    disk = other.copy(index=False)
    del disk.names_now[SEGMENT].written[-1:]
    store = await other.open(disk)
    found = await contents(store)
    assert found["a"] == other.life.truths["a"].appended[:-1]
    assert len(disk.content(SEGMENT)) == other.ends[-2]
    await store.close()


async def test_open_when_a_segment_is_gone_then_only_its_logs_are_fenced(killed: Killed) -> None:
    disk = killed.copy()
    life = Life(disk, copy.deepcopy(killed.metadata))
    await life.publish("d", 2)
    await life.close()
    del disk.names_now[SEGMENT]
    store = await open_log_store(DIRECTORY, life.metadata, files=disk.healthy())
    assert all(isinstance(each, LogDamaged) for each in (await contents(store)).values())
    log = await store.open("d", Listener(), create=False)
    assert await read_all(log) == life.truths["d"].appended
    await store.close()


async def test_open_when_entries_of_a_closed_ledger_are_gone_with_their_index_then_fenced(killed: Killed) -> None:
    disk = killed.copy()
    life = Life(disk, copy.deepcopy(killed.metadata))
    for name in NAMES:
        await life.log(name)  # writes the final counts
    await life.close()
    del disk.names_now[SEGMENT], disk.names_now[INDEX]
    store = await open_log_store(DIRECTORY, life.metadata, files=disk.healthy())
    found = await contents(store)
    assert all(isinstance(each, LogDamaged) and "missing" in each.reason for each in found.values())
    await store.close()


async def test_read_when_record_rots_after_opening_then_log_is_fenced_and_stays_so(killed: Killed) -> None:
    disk = killed.copy()
    store = await killed.open(disk)
    listener = Listener()
    log = await store.open("a", listener, create=False)
    other = await store.open("b", Listener(), create=False)
    disk.content(SEGMENT)[killed.rows[0].offset + killed.rows[0].length - 1] ^= 1
    with pytest.raises(LogDamaged) as damage:
        await read_all(log)
    assert listener.error is damage.value
    await log.close()
    with pytest.raises(LogDamaged):
        await store.open("a", Listener(), create=False)
    assert await read_all(other) == killed.life.truths["b"].appended
    await store.close()


async def test_delete_when_log_is_damaged_then_it_can_be_made_anew(killed: Killed) -> None:
    disk = killed.copy()
    disk.content(SEGMENT)[killed.rows[0].offset] ^= 1
    store = await killed.open(disk)
    with pytest.raises(LogDamaged):
        await store.open("a", Listener(), create=False)
    await store.delete("a")
    log = await store.open("a", Listener(), create=True)
    assert await read_all(log) == []
    await store.close()


async def test_open_when_the_metadata_store_is_another_one_then_refused_and_nothing_removed(killed: Killed) -> None:
    disk = killed.copy()
    with pytest.raises(DataDirectoryUnusable, match="does not belong to this metadata store"):
        await open_log_store(DIRECTORY, MemoryMetadataStore(), files=disk)
    assert set(disk.names_now) == {SEGMENT, INDEX}


async def test_open_when_a_newer_program_wrote_a_segment_then_refused(killed: Killed) -> None:
    disk = killed.copy()
    content = disk.content(SEGMENT)
    content[5] = records.VERSION + 1
    content[SEGMENT_HEAD - 4 : SEGMENT_HEAD] = crc32c(bytes(content[: SEGMENT_HEAD - 4])).to_bytes(4, "little")
    with pytest.raises(DataDirectoryUnusable, match="format 2"):
        await killed.open(disk)


async def test_open_when_the_directory_cannot_be_made_then_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataDirectoryUnusable, match="log"):
        await open_log_store(tmp_path / "file" / "log", MemoryMetadataStore())
