"""A file system of a few megabytes that a test can fill and empty again."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_NAMESPACE_VARIABLE = "INTERPULSE_TEST_MOUNTS"
_UNSHARE = ("unshare", "-rm")
"""A namespace in which an ordinary user may mount."""
_SECONDS_MAX = 600


class CannotMount(Exception):
    """The user of the tests may not mount a file system here."""


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
    """Mount one at ``directory``. Raises CannotMount."""
    directory.mkdir()
    if not _succeeds("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(directory)):
        raise CannotMount
    try:
        yield SmallDisk(directory)
    finally:
        subprocess.run(["umount", str(directory)], check=True)


def with_small_disk(directory: Path, megabytes: int) -> list[str]:
    """What stands before the command line of a process that alone has such a disk at ``directory``.

    It is gone with the process. Skips the test where that is not allowed.
    """
    _skip_unless(_succeeds(*_UNSHARE, "true"))
    directory.mkdir(parents=True)
    mount = f'mount -t tmpfs -o size={megabytes}m tmpfs "$0" && exec "$@"'
    return [*_UNSHARE, "sh", "-c", mount, str(directory)]


def disk_within(pid: int, directory: Path) -> SmallDisk:
    """The disk of a process that was started so."""
    return SmallDisk(Path(f"/proc/{pid}/root", *directory.parts[1:]))


def run_where_mounting_is_allowed(test: pytest.Function) -> None:
    """Run the test once more, in a namespace of its own; skipped where there is none."""
    _skip_unless(_NAMESPACE_VARIABLE not in os.environ and _succeeds(*_UNSHARE, "true"))
    again = [*_UNSHARE, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", test.nodeid]
    environment = os.environ | {_NAMESPACE_VARIABLE: "1"}
    done = subprocess.run(
        again, cwd=test.config.rootpath, env=environment, capture_output=True, text=True, timeout=_SECONDS_MAX
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout, done.stdout


def _skip_unless(allowed: bool) -> None:
    if not allowed:
        pytest.skip("neither mount nor unshare -rm is allowed; scripted faults stand in for a full disk elsewhere")


def _succeeds(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
