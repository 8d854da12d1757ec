"""A file system of a few megabytes that a test can fill and empty again."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["SmallDisk", "small_disk"]


class SmallDisk:
    """See the module."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._filler = directory / "filler"

    def fill(self) -> None:
        """Leave no room at all."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (64 * 1024, 4096):
                try:
                    while file.write(b"\0" * size) == size:
                        pass
                except OSError as error:
                    assert error.errno == errno.ENOSPC  # noqa: PT017 - the last loop shall end so

    def make_room(self) -> None:
        """Give back what `fill` took."""
        self._filler.unlink()


@contextmanager
def small_disk(directory: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount one at ``directory``; where that is not allowed the test is skipped, and says so."""
    mount = shutil.which("mount")
    directory.mkdir()
    command = [str(mount), "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(directory)]
    if mount is None or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("a file system can be mounted by root only; broker.faults.disk_full() stands in for it elsewhere")
    try:
        yield SmallDisk(directory)
    finally:
        subprocess.run(["umount", str(directory)], check=True)
