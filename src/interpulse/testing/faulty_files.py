"""`Files` of a log with a disk that can be full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from interpulse.storage.segments.files import AppendFile, Files, ReadFile
from interpulse.testing.fault import Fault


class FaultyFiles:
    """Wraps another `Files`, and refuses writes while a fault is on. Reading and removing go on."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.full: Fault | None = None
        """The active fault, which counts the refused groups of entries."""

    def create(self, path: Path) -> AppendFile:
        self._refuse(path, counted=True)
        return _FaultyAppendFile(self, path, self._files.create(path))

    def open(self, path: Path) -> ReadFile:
        return self._files.open(path)

    def names(self, directory: Path) -> list[str]:
        return self._files.names(directory)

    def rewrite(self, path: Path, offset: int, content: bytes) -> None:
        self._files.rewrite(path, offset, content)

    def rename(self, source: Path, target: Path) -> None:
        self._files.rename(source, target)

    def unlink(self, path: Path) -> None:
        self._files.unlink(path)

    def sync_directory(self, directory: Path) -> None:
        self._files.sync_directory(directory)

    def _refuse(self, path: Path, *, counted: bool) -> None:
        full = self.full
        if full is not None and (full.act() if counted else full.active):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


class _FaultyAppendFile:
    def __init__(self, owner: FaultyFiles, path: Path, file: AppendFile) -> None:
        self._owner = owner
        self._path = path
        self._file = file
        self.sync = file.sync
        self.close = file.close

    def write(self, content: bytes) -> None:
        self._owner._refuse(self._path, counted=False)  # the index, which a group of entries does not need
        self._file.write(content)

    def write_durably(self, content: bytes) -> None:
        self._owner._refuse(self._path, counted=True)
        self._file.write_durably(content)
