"""Files that a driver keeps between micro-batches, and the disk that holds them. Tests replace the disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Hashable
from pathlib import Path
from typing import Final, Protocol

_NOT_SUPPORTED: Final = (errno.EINVAL, errno.ENOTSUP)
"""Errors of file systems that cannot sync directories, such as some of networks."""


class StateDisk(Protocol):
    """The operations on files of a driver. Each raises OSError if it failed."""

    def read(self, path: Path) -> str | None:
        """Return the content of a file, or None if there is none."""

    def version(self, path: Path) -> Hashable:
        """Return a value that changes when the file is replaced, or None if there is no file."""

    def names(self, directory: Path) -> list[str]:
        """Return the names in a directory, none if there is no directory."""

    def write(self, path: Path, text: str, *, synced: bool) -> None:
        """Write a file, in a directory that is created if absent. A crash may lose what is not ``synced``."""

    def rename(self, source: Path, target: Path) -> None:
        """Replace ``target``; durable only after `sync_directory`."""

    def unlink(self, path: Path) -> None:
        """Remove a file if it exists."""

    def sync_directory(self, directory: Path) -> None:
        """Bring created, renamed and removed names to disk."""


class LocalDisk:
    """`StateDisk` of this machine."""

    def read(self, path: Path) -> str | None:
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def version(self, path: Path) -> Hashable:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return None
        return status.st_mtime_ns, status.st_ino

    def names(self, directory: Path) -> list[str]:
        try:
            return os.listdir(directory)
        except FileNotFoundError:
            return []

    def write(self, path: Path, text: str, *, synced: bool) -> None:
        self._create(path.parent)
        with path.open("w", encoding="utf-8") as file:
            file.write(text)
            if synced:
                file.flush()
                os.fsync(file.fileno())

    def rename(self, source: Path, target: Path) -> None:
        source.replace(target)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def sync_directory(self, directory: Path) -> None:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
        finally:
            os.close(descriptor)

    def _create(self, directory: Path) -> None:
        """Create a directory and its parents if absent, durably."""
        if not directory.is_dir():
            self._create(directory.parent)
            directory.mkdir(exist_ok=True)
            self.sync_directory(directory.parent)


LOCAL_DISK: Final = LocalDisk()


def write_atomically(path: Path, text: str, *, durable: bool = True, disk: StateDisk = LOCAL_DISK) -> None:
    """Replace a file so that a reader sees the old or the new content. With ``durable``, it also survives a crash."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    disk.write(temporary, text, synced=durable)
    disk.rename(temporary, path)
    if durable:
        disk.sync_directory(path.parent)
