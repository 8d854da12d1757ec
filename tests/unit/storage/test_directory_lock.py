from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from interpulse.storage.api import DataDirectoryInUse, DataDirectoryUnusable
from interpulse.storage.directory_lock import DirectoryLock

HOLDER = """
import sys
from pathlib import Path
from interpulse.storage.directory_lock import DirectoryLock
lock = DirectoryLock.acquire(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_acquire_when_another_process_holds_it_then_refused_naming_directory_and_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DataDirectoryInUse) as refused:
            DirectoryLock.acquire(tmp_path)
        assert str(tmp_path) in str(refused.value)
        assert str(holder.pid) in str(refused.value)
        holder.kill()
        holder.wait()
    DirectoryLock.acquire(tmp_path).release()


def test_acquire_when_held_in_this_process_then_refused_until_released(tmp_path: Path) -> None:
    with DirectoryLock.acquire(tmp_path / "new" / "deep") as lock, pytest.raises(DataDirectoryInUse):
        DirectoryLock.acquire(lock.directory)
    DirectoryLock.acquire(lock.directory).release()
    lock.release()


def test_acquire_when_path_is_a_file_then_unusable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirectoryUnusable, match="file"):
        DirectoryLock.acquire(tmp_path / "file")


@pytest.mark.skipif(os.getuid() == 0 and not Path("/proc/self").exists(), reason="root may write everywhere else")
def test_acquire_when_directory_takes_no_files_then_unusable() -> None:
    with pytest.raises(DataDirectoryUnusable, match="/proc/self"):
        DirectoryLock.acquire(Path("/proc/self"))


def test_acquire_when_the_owner_cannot_be_written_then_unusable_and_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(DataDirectoryUnusable, match="No space left"):
            DirectoryLock.acquire(tmp_path)
    DirectoryLock.acquire(tmp_path).release()


def test_errors_when_pickled_then_keep_their_fields() -> None:
    in_use = pickle.loads(pickle.dumps(DataDirectoryInUse("/d", "7")))
    assert (in_use.directory, in_use.owner) == ("/d", "7")
    unusable = pickle.loads(pickle.dumps(DataDirectoryUnusable("/d", "full")))
    assert (unusable.directory, unusable.reason) == ("/d", "full")


def test_acquire_unchanged_when_free_then_locks_without_writing(tmp_path: Path) -> None:
    DirectoryLock.acquire(tmp_path).release()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path, *tmp_path.iterdir())}
    with DirectoryLock.acquire_unchanged(tmp_path):
        assert {path: path.stat().st_mtime_ns for path in (tmp_path, *tmp_path.iterdir())} == before
        with pytest.raises(DataDirectoryInUse):
            DirectoryLock.acquire(tmp_path)
    DirectoryLock.acquire(tmp_path).release()


def test_acquire_unchanged_when_a_broker_runs_then_refused(tmp_path: Path) -> None:
    with DirectoryLock.acquire(tmp_path), pytest.raises(DataDirectoryInUse, match=f"process {os.getpid()}"):
        DirectoryLock.acquire_unchanged(tmp_path)


def test_acquire_unchanged_when_no_broker_was_there_then_unusable(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryUnusable, match="no broker has stored data there: the file lock is missing"):
        DirectoryLock.acquire_unchanged(tmp_path)
    assert list(tmp_path.iterdir()) == []
