"""Room on the disk: run out, probed, found again."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from interpulse.model.errors import NoRoomLeft
from interpulse.storage.segments.disk_space import DiskSpace
from interpulse.storage.segments.files import DiskFiles, Room
from tests.simulation.disk import SimulatedDisk


async def test_room_when_nothing_failed_then_nothing_is_probed() -> None:
    disk = SimulatedDisk()
    disk_space = DiskSpace(Path("/data"), disk)
    await disk_space.recheck()
    disk_space.check()
    assert disk.steps == []


async def test_room_when_it_ran_out_then_refused_with_the_reason_until_a_probe_succeeds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = SimulatedDisk(capacity=100_000)
    disk_space = DiskSpace(Path("/data"), disk)
    disk_space.ran_out("no room left in /data/log")
    disk_space.ran_out("no room left in /data/log")
    assert [record.levelno for record in caplog.records] == [logging.ERROR], "once, not with each entry"
    for _ in range(2):
        await disk_space.recheck()
        with pytest.raises(NoRoomLeft, match=r"out of room .* no room left in /data/log"):
            disk_space.check()
        assert disk.used == 0, "a probe that failed takes no room either"
    disk.capacity = None
    await disk_space.recheck()
    disk_space.check()
    assert (disk_space.problem, disk.used) == (None, 0)


async def test_room_when_a_process_died_while_it_probed_then_its_file_is_removed() -> None:
    disk = SimulatedDisk()
    disk.create(Path("/data/probe")).write(b"left")
    disk_space = DiskSpace(Path("/data"), disk)
    disk_space.ran_out("full")
    await disk_space.recheck()
    assert (disk_space.problem, disk.names_now) == (None, {})


def test_room_when_measured_then_that_of_the_file_system(tmp_path: Path) -> None:
    disk_space = DiskSpace(tmp_path, DiskFiles())
    assert 0 < disk_space.free_bytes < disk_space.size_bytes


MIB = 1024 * 1024
DATA = Path("/data")


class Measured(SimulatedDisk):
    """A disk with the free space that a test sets, which counts how often it is measured."""

    total = 10_000 * MIB
    free = 1_000 * MIB
    measurements = 0

    def room(self, directory: Path) -> Room:
        self.measurements += 1
        return Room(self.total, self.free)


@pytest.fixture
def measured() -> Measured:
    return Measured()


def disk_space_of(measured: Measured, reserve_mib: int) -> DiskSpace:
    return DiskSpace(DATA, measured, reserve_mib * MIB)


@pytest.mark.parametrize(
    ("total_mib", "free_mib", "reserve_mib", "full"),
    [
        (10_000, 64, 64, False),
        (10_000, 63, 64, True),
        (100, 10, 64, False),
        (100, 9, 64, True),
        (10_000, 0, 0, False),
    ],
)
def test_room_when_less_than_the_reserve_is_left_then_full(
    measured: Measured, total_mib: int, free_mib: int, reserve_mib: int, full: bool
) -> None:
    measured.total, measured.free = total_mib * MIB, free_mib * MIB
    disk_space = disk_space_of(measured, reserve_mib)
    disk_space.measure()
    assert (disk_space.problem is not None) == full


def test_room_when_messages_use_up_the_spare_space_then_measured_again(
    measured: Measured,
) -> None:
    disk_space = disk_space_of(measured, 64)
    told: list[str | None] = []
    disk_space.on_full = lambda: told.append(disk_space.problem)
    disk_space.takes(1)
    first = measured.measurements
    for _ in range(100_000):
        disk_space.takes(9_000)
    assert (measured.measurements, disk_space.problem) == (first, None)
    measured.free = 70 * MIB
    for _ in range(10):
        disk_space.takes(10 * MIB)
    assert disk_space.problem is not None, "the reserve would be broken into"
    assert "diskReserveInMB=64" in disk_space.problem
    assert told == [disk_space.problem]


async def test_room_when_a_quarter_above_the_reserve_is_free_then_producers_are_admitted(
    measured: Measured,
) -> None:
    disk_space = disk_space_of(measured, 64)
    measured.free = 63 * MIB
    await disk_space.recheck()
    for free_mib, full in ((64, True), (79, True), (80, False), (64, False), (63, True)):
        measured.free = free_mib * MIB
        await disk_space.recheck()
        assert (disk_space.problem is not None) == full, free_mib
