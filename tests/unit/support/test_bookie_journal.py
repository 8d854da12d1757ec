"""A bookie with a journal on a simulated disk: an answer means that the change is on it, and stays."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from interpulse.storage.bookkeeper.connection import BookieConnection, ConnectionConfig
from interpulse.storage.bookkeeper.errors import Code
from interpulse.storage.bookkeeper.packets import Digest, DigestType
from interpulse.storage.bookkeeper.protocol import LAST_ENTRY, add_frame
from interpulse.storage.bookkeeper.records import Address
from tests.simulation.disk import SimulatedDisk
from tests.support.bookie_journal import BookieJournal, Job
from tests.support.scripted_bookie import ScriptedBookie
from tests.support.waiting import eventually

DIGEST = Digest(DigestType.CRC32C)
DIRECTORY = Path("/bookie")
LEDGER = 7


def frame(entry_id: int) -> bytes:
    return add_frame(DIGEST.master_key, DIGEST.seal(LEDGER, entry_id, entry_id - 1, 5, b"hello"))


@asynccontextmanager
async def started(disk: SimulatedDisk, put: Callable[[Job], None] | None = None) -> AsyncIterator[ScriptedBookie]:
    open_journal = partial(BookieJournal.open, disk, DIRECTORY, put or (lambda job: job()))
    bookie = ScriptedBookie("b", open_journal=open_journal)
    await bookie.start()
    try:
        yield bookie
    finally:
        await bookie.kill()


@asynccontextmanager
async def connected(bookie: ScriptedBookie) -> AsyncIterator[BookieConnection]:
    connection = await BookieConnection.open(Address(bookie.host, bookie.port), ConnectionConfig())
    try:
        yield connection
    finally:
        connection.end("the test is over")


@pytest.mark.parametrize("seed", range(8))
async def test_entry_when_acknowledged_then_survives_the_loss_of_power(seed: int) -> None:
    disk = SimulatedDisk()
    async with started(disk) as bookie, connected(bookie) as connection:
        for entry_id in range(3):
            assert await connection.add_until_taken(LEDGER, entry_id, frame(entry_id)) == Code.OK
    async with started(disk.after_power_loss(random.Random(seed))) as bookie, connected(bookie) as connection:
        for entry_id in range(3):
            (packet,) = (await connection.read(LEDGER, entry_id)).packets
            assert DIGEST.open(packet, LEDGER, entry_id).payload == b"hello"
        (last,) = (await connection.read(LEDGER, LAST_ENTRY)).packets
        assert DIGEST.open(last, LEDGER).last_confirmed == 1
        assert (await connection.read(LEDGER, 3)).code == Code.NO_ENTRY
        assert (await connection.read(8, 0)).code == Code.NO_LEDGER


async def test_entry_when_not_synced_then_readable_and_not_acknowledged() -> None:
    disk, jobs, codes = SimulatedDisk(), list[Job](), list[int]()
    async with started(disk, jobs.append) as bookie, connected(bookie) as connection:
        for entry_id in (0, 1):
            connection.add(LEDGER, [entry_id], [frame(entry_id)], lambda first, count, code: codes.append(code))
        await eventually(lambda: jobs)
        assert (await connection.read(LEDGER, 1)).code == Code.OK
        assert codes == []
        jobs.pop()()
        await eventually(lambda: len(codes) == 2)
        assert disk.count("sync") == 1, "both in one"


async def test_entries_when_one_sync_is_under_way_then_the_next_takes_all_that_came() -> None:
    disk, jobs = SimulatedDisk(), list[Job]()
    async with started(disk, jobs.append) as bookie, connected(bookie) as connection:
        adding = [asyncio.create_task(connection.add_until_taken(LEDGER, 0, frame(0)))]
        await eventually(lambda: jobs)
        later = range(1, 20)
        adding += [asyncio.create_task(connection.add_until_taken(LEDGER, each, frame(each))) for each in later]
        await eventually(lambda: len(bookie.requests) == 20)
        jobs.pop()()
        await eventually(lambda: jobs)
        assert sum(each.done() for each in adding) == 1
        jobs.pop()()
        assert await asyncio.gather(*adding) == [Code.OK] * 20
        assert disk.count("sync") == 2


async def test_ledger_when_fenced_then_stays_so_after_a_restart() -> None:
    disk, jobs = SimulatedDisk(), list[Job]()
    async with started(disk, jobs.append) as bookie, connected(bookie) as connection:
        fencing = asyncio.create_task(connection.read(LEDGER, LAST_ENTRY, fence_key=DIGEST.master_key))
        await eventually(lambda: jobs)
        assert not fencing.done()
        jobs.pop()()
        assert (await fencing).code == Code.NO_ENTRY
    async with started(disk.after_power_loss(random.Random(0))) as bookie, connected(bookie) as connection:
        assert await connection.add_until_taken(LEDGER, 0, frame(0)) == Code.FENCED
        recovery = add_frame(DIGEST.master_key, DIGEST.seal(LEDGER, 0, -1, 5, b"hello"), recovery=True)
        assert await connection.add_until_taken(LEDGER, 0, recovery) == Code.OK


async def test_entry_when_its_sync_fails_then_never_acknowledged_and_the_bookie_stops() -> None:
    disk = SimulatedDisk()
    async with started(disk) as bookie, connected(bookie) as connection:
        disk.fail_at, disk.error_number = len(disk.steps) + 1, errno.EIO  # after the write
        assert await connection.add_until_taken(LEDGER, 0, frame(0)) == Code.CONNECTION_LOST
        with pytest.raises(OSError, match="Connect call failed"):
            await BookieConnection.open(Address(bookie.host, bookie.port), ConnectionConfig())


@pytest.mark.parametrize("tail", [b"\0" * 9, b"\0" * 40, b"cut", b"\0\0\0\x40" + b"x" * 30], ids=repr)
async def test_journal_when_its_tail_is_cut_or_damaged_then_goes_on_behind_the_last_whole_record(tail: bytes) -> None:
    disk = SimulatedDisk()
    async with started(disk) as bookie, connected(bookie) as connection:
        assert await connection.add_until_taken(LEDGER, 0, frame(0)) == Code.OK
    disk.content(DIRECTORY / "00000000.journal").extend(tail)
    for entry_id in (1, 2):
        async with started(disk) as bookie, connected(bookie) as connection:
            assert (await connection.read(LEDGER, entry_id - 1)).code == Code.OK
            assert await connection.add_until_taken(LEDGER, entry_id, frame(entry_id)) == Code.OK


async def test_entry_when_read_back_then_on_disk_though_its_writer_never_synced_it() -> None:
    disk, jobs = SimulatedDisk(), list[Job]()
    async with started(disk, jobs.append) as bookie, connected(bookie) as connection:
        connection.add(LEDGER, [0], [frame(0)], lambda first, count, code: None)
        await eventually(lambda: jobs)
        disk.fail_at = len(disk.steps) + 1  # the sync, so that the record is only written
        jobs.pop()()
    disk = disk.healthy()
    async with started(disk):
        pass
    async with started(disk.after_power_loss(random.Random(1))) as bookie:
        assert list(bookie.ledgers[LEDGER].entries) == [0]


async def test_faults_when_planted_then_seen_by_readers() -> None:
    async with AsyncExitStack() as stack:
        bookie = await stack.enter_async_context(started(SimulatedDisk()))
        connection = await stack.enter_async_context(connected(bookie))
        for entry_id in range(3):
            assert await connection.add_until_taken(LEDGER, entry_id, frame(entry_id)) == Code.OK
        bookie.lose(LEDGER, 1)
        assert (await connection.read(LEDGER, 1)).code == Code.NO_ENTRY
        bookie.fence(LEDGER)
        assert await connection.add_until_taken(LEDGER, 3, frame(3)) == Code.FENCED
        bookie.slow_s = 0.05
        began = asyncio.get_running_loop().time()
        assert (await connection.read(LEDGER, 0)).code == Code.OK
        assert asyncio.get_running_loop().time() - began >= 0.05
