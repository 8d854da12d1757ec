from __future__ import annotations

import errno
import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from interpulse.storage.segments import files
from interpulse.storage.segments.files import DiskFiles, ReadOnlyFiles


@pytest.fixture(params=["write-through", "write-and-sync"])
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> DiskFiles:
    if request.param == "write-and-sync":
        monkeypatch.setattr(files, "_WRITE_THROUGH", None)
    return DiskFiles()


def test_append_when_written_in_pieces_then_read_back_as_one(disk: DiskFiles, tmp_path: Path) -> None:
    directory = tmp_path / "log"
    assert disk.names(directory) == []
    file = disk.create(directory / "a")
    file.write(b"one ")
    file.write_durably(b"two ")
    file.write(b"")
    file.write(b"three")
    file.sync()
    file.close()
    disk.sync_directory(directory)
    reading = disk.open(directory / "a")
    assert reading.size == 13
    assert reading.read(100, 0) == b"one two three"
    assert reading.read(3, 4) == b"two"
    assert reading.read(3, 99) == b""
    reading.close()
    assert disk.names(directory) == ["a"]


def test_create_when_the_file_exists_then_refused(disk: DiskFiles, tmp_path: Path) -> None:
    disk.create(tmp_path / "a").close()
    with pytest.raises(FileExistsError):
        disk.create(tmp_path / "a")


def test_rewrite_when_done_then_the_rest_is_cut(disk: DiskFiles, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    disk.rewrite(tmp_path / "a", 4, b"456")
    assert (tmp_path / "a").read_bytes() == b"0123456"
    disk.rewrite(tmp_path / "a", 3, b"")
    assert (tmp_path / "a").read_bytes() == b"012"


def test_unlink_and_rename_when_done_then_names_follow(disk: DiskFiles, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    disk.rename(tmp_path / "a", tmp_path / "b")
    disk.unlink(tmp_path / "a")
    assert disk.names(tmp_path) == ["b"]
    disk.unlink(tmp_path / "b")
    assert disk.names(tmp_path) == []


def test_write_when_the_disk_takes_only_a_part_then_the_rest_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwritev

    def stingy(descriptor: int, buffers: list[memoryview], offset: int, flags: int = 0) -> int:
        return real(descriptor, [buffers[0][:3]], offset, flags)

    monkeypatch.setattr(os, "pwritev", stingy)
    file = DiskFiles().create(tmp_path / "a")
    file.write_durably(b"0123456789")
    file.close()
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_rewrite_when_the_disk_takes_only_a_part_then_the_rest_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, content, offset: real(descriptor, content[:3], offset))
    (tmp_path / "a").write_bytes(b"0123456789")
    DiskFiles().rewrite(tmp_path / "a", 1, b"abcdefgh")
    assert (tmp_path / "a").read_bytes() == b"0abcdefgh"


def test_read_when_the_disk_gives_only_a_part_then_the_rest_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, length, offset: real(descriptor, min(length, 3), offset))
    (tmp_path / "a").write_bytes(b"0123456789")
    reading = DiskFiles().open(tmp_path / "a")
    assert reading.read(7, 1) == b"1234567"
    assert reading.read(7, 6) == b"6789"
    reading.close()


def test_create_when_done_then_only_the_owner_writes_and_none_executes(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        DiskFiles().create(tmp_path / "a").close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


@pytest.mark.skipif(files._WRITE_THROUGH is None, reason="this system cannot write through at all")
def test_write_durably_when_written_through_then_in_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    real = os.pwritev

    def watched(descriptor: int, buffers: list[memoryview], offset: int, flags: int = 0) -> int:
        calls.append(flags)
        return real(descriptor, buffers, offset, flags)

    monkeypatch.setattr(os, "pwritev", watched)
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: calls.append("sync"))
    file = DiskFiles().create(tmp_path / "a")
    file.write(b"01")
    file.write_durably(b"23")
    file.close()
    assert calls == [0, os.RWF_DSYNC]


@pytest.mark.skipif(files._WRITE_THROUGH is None, reason="this system cannot write through at all")
def test_write_durably_when_file_system_cannot_write_through_then_synced_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_write, real_sync = os.pwritev, os.fdatasync
    synced: list[None] = []

    def picky(descriptor: int, buffers: list[memoryview], offset: int, flags: int = 0) -> int:
        if flags:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return real_write(descriptor, buffers, offset)

    monkeypatch.setattr(os, "pwritev", picky)
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: synced.append(real_sync(descriptor)))
    file = DiskFiles().create(tmp_path / "a")
    file.write_durably(b"01")
    file.write_durably(b"23")
    file.close()
    assert (tmp_path / "a").read_bytes() == b"0123"
    assert len(synced) == 2


def test_write_durably_when_the_disk_is_full_then_the_error_goes_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwritev", full)
    file = DiskFiles().create(tmp_path / "a")
    with pytest.raises(OSError, match="No space"):
        file.write_durably(b"01")
    file.close()


def test_read_only_files_when_everything_is_tried_then_the_directory_stays_as_it_is(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"content")
    disk = ReadOnlyFiles()
    file = disk.create(tmp_path / "new")
    file.write(b"a")
    file.write_durably(b"b")
    file.sync()
    file.close()
    disk.rewrite(kept, 0, b"other")
    disk.rename(kept, tmp_path / "renamed")
    disk.unlink(kept)
    disk.sync_directory(tmp_path)
    assert disk.names(tmp_path) == ["kept"]
    assert disk.names(tmp_path / "absent") == []
    assert not (tmp_path / "absent").exists()
    reading = disk.open(kept)
    assert reading.read(100, 0) == b"content"
    reading.close()


def test_read_only_files_when_a_start_would_write_again_then_syncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    kept = tmp_path / "kept"
    kept.write_bytes(b"content")
    disk = ReadOnlyFiles()
    disk.rewrite(kept, 0, b"content")
    disk.sync_directory(tmp_path)
    assert synced == [str(kept), str(tmp_path)]


@pytest.mark.parametrize(("number", "raised"), [(errno.EROFS, False), (errno.EINVAL, False), (errno.EIO, True)])
def test_read_only_files_when_a_sync_fails_then_only_a_failing_disk_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, raised: bool
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output") if raised else nullcontext():
        ReadOnlyFiles().sync_directory(tmp_path)
