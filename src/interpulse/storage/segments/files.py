"""File operations of the log; no other code opens log files. Tests replace them with faulty ones.

Every method raises OSError if the operation failed or may have failed.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import NamedTuple, Protocol

# Linux writes and syncs in one call, so the thread waits for the interpreter once less.
_WRITE_THROUGH: int | None = getattr(os, "RWF_DSYNC", None)
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class AppendFile(Protocol):
    """A file that is written from its beginning to its end."""

    def write(self, content: bytes) -> None:
        """Append bytes, which a crash of the machine may still lose."""

    def write_durably(self, content: bytes) -> None:
        """Append bytes. Content and length are on disk on return."""

    def sync(self) -> None:
        """Bring all written bytes to disk."""

    def close(self) -> None:
        """Close the file without syncing."""


class ReadFile(Protocol):
    """A file that is read at arbitrary offsets."""

    @property
    def size(self) -> int:
        """The size of the file when it was opened."""

    def read(self, length: int, offset: int) -> bytes:
        """Return up to ``length`` bytes; fewer only at the end of the file."""

    def close(self) -> None:
        """Close the file."""


class Room(NamedTuple):
    """Space of a file system, in bytes."""

    total: int
    free: int
    """Free for this program; less than is free for the system's own."""


class Files(Protocol):
    """The operations on the log directory."""

    def create(self, path: Path) -> AppendFile:
        """Create a new, empty file, durable only after `sync_directory`. Raise FileExistsError if it exists."""

    def open(self, path: Path) -> ReadFile:
        """Open a file for reading."""

    def names(self, directory: Path) -> list[str]:
        """Return the names of the files in the directory, which is created if absent."""

    def rewrite(self, path: Path, offset: int, content: bytes) -> None:
        """Write the file's content at ``offset`` once more, and cut off the rest; durable on return.

        Bytes that were read need not be on disk: the process that wrote them may have died before its sync, or its sync
        may have failed, after which the system considers them written. Only writing them again helps.
        """

    def rename(self, source: Path, target: Path) -> None:
        """Replace ``target``; durable only after `sync_directory`."""

    def unlink(self, path: Path) -> None:
        """Remove the file if it exists."""

    def sync_directory(self, directory: Path) -> None:
        """Bring created, renamed and removed names to disk."""

    def room(self, directory: Path) -> Room:
        """Measure the file system of the directory."""


class _DiskAppendFile:
    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._end = 0
        self._write_through = _WRITE_THROUGH

    def write(self, content: bytes) -> None:
        self._write(content, 0)

    def write_durably(self, content: bytes) -> None:
        if self._write_through is not None:
            try:
                self._write(content, self._write_through)
            except OSError as error:
                if error.errno not in _NOT_SUPPORTED:
                    raise
                self._write_through = None  # unsupported by this file system, which refused before writing anything
            else:
                return
        self._write(content, 0)
        self.sync()

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)

    def _write(self, content: bytes, flags: int) -> None:
        left = memoryview(content)
        while left:
            # A disk that fills up accepts a part first, and refuses the rest in the next round.
            written = os.pwritev(self._descriptor, [left], self._end, flags)
            self._end += written
            left = left[written:]


class _DiskReadFile:
    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self._descriptor).st_size

    def read(self, length: int, offset: int) -> bytes:
        content = os.pread(self._descriptor, length, offset)
        if len(content) == length or not content:
            return content
        return content + self.read(length - len(content), offset + len(content))

    def close(self) -> None:
        os.close(self._descriptor)


class DiskFiles:
    """`Files` on the real file system."""

    def create(self, path: Path) -> AppendFile:
        return _DiskAppendFile(path)

    def open(self, path: Path) -> ReadFile:
        return _DiskReadFile(path)

    def names(self, directory: Path) -> list[str]:
        if not directory.exists():
            directory.mkdir(mode=0o700)
            self.sync_directory(directory.parent)
        return sorted(os.listdir(directory))

    def rewrite(self, path: Path, offset: int, content: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY)
        try:
            end = offset + len(content)
            while content:
                content = content[os.pwrite(descriptor, content, end - len(content)) :]
            os.ftruncate(descriptor, end)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        os.rename(source, target)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def sync_directory(self, directory: Path) -> None:
        _sync(directory)

    def room(self, directory: Path) -> Room:
        return _room(directory)


class _NothingWritten:
    """An `AppendFile` that discards its bytes."""

    def write(self, content: bytes) -> None: ...

    def write_durably(self, content: bytes) -> None: ...

    def sync(self) -> None: ...

    def close(self) -> None: ...


class ReadOnlyFiles:
    """`Files` of a directory that must not change. A start repairs only its own memory.

    In place of rewriting what it has read, it syncs that.
    """

    def create(self, path: Path) -> AppendFile:
        return _NothingWritten()

    def open(self, path: Path) -> ReadFile:
        return _DiskReadFile(path)

    def names(self, directory: Path) -> list[str]:
        return sorted(os.listdir(directory)) if directory.exists() else []

    def rewrite(self, path: Path, offset: int, content: bytes) -> None:
        sync_unchanged(path)

    def rename(self, source: Path, target: Path) -> None: ...

    def unlink(self, path: Path) -> None: ...

    def sync_directory(self, directory: Path) -> None:
        sync_unchanged(directory)

    def room(self, directory: Path) -> Room:
        return _room(directory)


def sync_unchanged(path: Path) -> None:
    """Bring what can be read at this path to disk: a process that was killed may not have synced it. Raise OSError.

    Do nothing where nothing can be written.
    """
    try:
        _sync(path)
    except OSError as error:
        if error.errno not in (*_NOT_SUPPORTED, errno.EROFS):
            raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _room(directory: Path) -> Room:
    usage = shutil.disk_usage(directory)
    return Room(usage.total, usage.free)
