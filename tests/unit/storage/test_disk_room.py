"""Room on the disk: run out, probed, found again."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from interpulse.model.errors import NoRoomLeft
from interpulse.storage.disk_room import DiskRoom
from tests.durability.simulated_disk import SimulatedDisk


async def test_room_when_nothing_failed_then_nothing_is_probed() -> None:
    disk = SimulatedDisk()
    room = DiskRoom(Path("/data"), disk)
    await room.look_again()
    room.check()
    assert disk.steps == []


async def test_room_when_it_ran_out_then_refused_with_the_reason_until_a_probe_succeeds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = SimulatedDisk(room=100_000)
    room = DiskRoom(Path("/data"), disk)
    room.ran_out("no room left in /data/log")
    room.ran_out("no room left in /data/log")
    assert [record.levelno for record in caplog.records] == [logging.ERROR], "once, not with each entry"
    for _ in range(2):
        await room.look_again()
        with pytest.raises(NoRoomLeft, match=r"out of room .* no room left in /data/log"):
            room.check()
        assert disk.used == 0, "a probe that failed takes no room either"
    disk.room = None
    await room.look_again()
    room.check()
    assert (room.problem, disk.used) == (None, 0)


async def test_room_when_a_process_died_while_it_probed_then_its_file_is_removed() -> None:
    disk = SimulatedDisk()
    disk.create(Path("/data/probe")).write(b"left")
    room = DiskRoom(Path("/data"), disk)
    room.ran_out("full")
    await room.look_again()
    assert (room.problem, disk.names_now) == (None, {})


def test_room_when_measured_then_what_the_file_system_says(tmp_path: Path) -> None:
    room = DiskRoom(tmp_path, SimulatedDisk())
    assert 0 < room.free_bytes < room.size_bytes
