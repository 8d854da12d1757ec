"""One process per data directory: an advisory lock that ends with its process, however the process ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from interpulse.storage.api import DataDirectoryInUse, DataDirectoryUnusable

_FILE_NAME = "lock"
_PROBE_NAME = ".writable"


class DirectoryLock:
    """A lock on ``<data directory>/lock``. The file names its holder and stays behind, unlocked."""

    def __init__(self, directory: Path, descriptor: int) -> None:
        self.directory = directory
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, directory: Path) -> DirectoryLock:
        """Create the directory if needed and lock it.

        Raise `DataDirectoryInUse` if another process holds it, `DataDirectoryUnusable` if it cannot be written.
        """
        try:
            # the directory holds messages; an existing one keeps its mode
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = directory / _PROBE_NAME  # fails here rather than at the first message
            probe.touch()
            probe.unlink()
            descriptor = os.open(directory / _FILE_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DataDirectoryUnusable(str(directory), error.strerror or str(error)) from error
        _lock(directory, descriptor)
        _write_owner(directory, descriptor)
        return cls(directory, descriptor)

    @classmethod
    def acquire_unchanged(cls, directory: Path) -> DirectoryLock:
        """Lock the directory of a broker without writing anything into it. Errors are those of `acquire`."""
        try:
            descriptor = os.open(directory / _FILE_NAME, os.O_RDONLY)
        except FileNotFoundError as error:
            reason = f"no broker has stored data there: the file {_FILE_NAME} is missing"
            raise DataDirectoryUnusable(str(directory), reason) from error
        except OSError as error:
            raise DataDirectoryUnusable(str(directory), error.strerror or str(error)) from error
        _lock(directory, descriptor)
        return cls(directory, descriptor)

    def release(self) -> None:
        """Unlock the directory."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _lock(directory: Path, descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
        os.close(descriptor)
        raise DataDirectoryInUse(str(directory), owner) from error


def _write_owner(directory: Path, descriptor: int) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    except OSError as error:
        os.close(descriptor)
        raise DataDirectoryUnusable(str(directory), error.strerror or str(error)) from error
