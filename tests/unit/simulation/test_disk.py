"""The disk in memory: what survives an end of the process, and of the machine."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from tests.simulation.disk import PowerLost, SimulatedDisk

DIRECTORY = Path("/data")
FILE = DIRECTORY / "file"


def _synced(content: bytes = b"synced") -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.create(FILE).write_durably(content)
    disk.sync_directory(DIRECTORY)
    return disk


def _outcomes(disk: SimulatedDisk) -> list[SimulatedDisk]:
    return [disk.after_power_loss(random.Random(seed)) for seed in range(50)]


def test_power_loss_when_all_is_synced_then_it_is_there() -> None:
    assert all(after.content(FILE) == b"synced" for after in _outcomes(_synced()))


def test_power_loss_when_the_directory_is_not_synced_then_the_name_may_be_gone() -> None:
    disk = SimulatedDisk()
    disk.create(FILE).write_durably(b"synced")
    assert {FILE in after.names_now for after in _outcomes(disk)} == {True, False}


def test_power_loss_when_a_file_was_removed_then_it_may_be_back_until_the_directory_is_synced() -> None:
    disk = _synced()
    disk.unlink(FILE)
    assert {FILE in after.names_now for after in _outcomes(disk)} == {True, False}
    disk.sync_directory(DIRECTORY)
    assert {FILE in after.names_now for after in _outcomes(disk)} == {False}


def test_power_loss_when_bytes_are_not_synced_then_they_are_there_gone_cut_or_zeroed() -> None:
    disk = SimulatedDisk()
    file = disk.create(FILE)
    file.write_durably(b"synced")
    disk.sync_directory(DIRECTORY)
    file.write(b"-rest")
    rests = {bytes(after.content(FILE)).removeprefix(b"synced") for after in _outcomes(disk)}
    assert {b"-rest", b"", bytes(5)} <= rests
    assert any(b"-rest".startswith(rest) and 0 < len(rest) < 5 for rest in rests)


def test_sync_when_an_earlier_one_failed_then_it_brings_nothing_to_disk() -> None:
    disk = _synced()
    disk.unlink(FILE)
    file = disk.create(FILE)
    disk.sync_directory(DIRECTORY)
    file.write(b"rest")
    disk.fails_next = "sync"
    with pytest.raises(OSError, match="simulated failure"):
        file.sync()
    file.sync()
    assert b"" in {bytes(after.content(FILE)) for after in _outcomes(disk)}


def test_write_when_it_fails_then_a_part_of_it_is_in_the_file() -> None:
    disk = _synced(b"")
    disk.fails_next = "write"
    disk.torn = lambda size: 2
    file = disk.create(DIRECTORY / "other")
    with pytest.raises(OSError, match="simulated failure"):
        file.write(b"content")
    assert disk.content(DIRECTORY / "other") == b"co"
    file.write(b"!")
    assert disk.content(DIRECTORY / "other") == b"co!"


def test_write_when_the_disk_is_full_then_what_fits_is_written() -> None:
    disk = SimulatedDisk(capacity=4)
    file = disk.create(FILE)
    with pytest.raises(OSError, match="No space left") as refused:
        file.write(b"content")
    assert refused.value.errno == errno.ENOSPC
    assert disk.content(FILE) == b"cont"
    assert disk.room(DIRECTORY).free == 0


def test_steps_when_the_power_is_lost_after_some_then_no_later_one_happens() -> None:
    disk = SimulatedDisk()
    disk.die_after(2, random.Random(1))
    file = disk.create(FILE)
    file.write(b"content")
    with pytest.raises(PowerLost):
        file.sync()
    with pytest.raises(PowerLost):
        disk.unlink(FILE)
    assert FILE in disk.names_now


def test_kill_when_bytes_are_not_synced_then_they_are_there() -> None:
    disk = SimulatedDisk()
    disk.create(FILE).write(b"content")
    disk.die_after(0, random.Random(1))
    after = disk.healthy()
    assert after.content(FILE) == b"content"
    after.unlink(FILE)  # its steps succeed


def test_file_when_a_process_dies_in_its_sync_then_a_later_sync_brings_it_to_disk() -> None:
    disk = SimulatedDisk()
    file = disk.create(FILE)
    file.write(b"content")
    disk.sync_directory(FILE.parent)
    disk.die_after(0, random.Random(1))
    with pytest.raises(PowerLost):
        file.sync()
    after = disk.healthy()
    after.sync_file(FILE)
    assert after.after_power_loss(random.Random(1)).content(FILE) == b"content"


def test_bit_when_it_flips_then_one_synced_byte_differs() -> None:
    disk = _synced(bytes(100))
    disk.flip_bit(random.Random(1))
    assert sum(byte.bit_count() for byte in disk.content(FILE)) == 1


def test_reads_when_they_fail_then_only_the_given_number_does() -> None:
    disk = _synced()
    disk.reads_failing = 1
    file = disk.open(FILE)
    with pytest.raises(OSError, match="simulated failure"):
        file.read(6, 0)
    assert file.read(6, 0) == b"synced"
