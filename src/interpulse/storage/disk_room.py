"""Whether the data directory takes what is to be written.

Whoever could not write for want of room says so with `ran_out`. From then on the directory counts as full, until a
probe, written and synced as entries are, has found room again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from pathlib import Path
from typing import Final

from interpulse.model.errors import NoRoomLeft
from interpulse.storage.log.files import Files

__all__ = ["DiskRoom"]

_log = logging.getLogger(__name__)

_PROBE_BYTES: Final = 1024 * 1024
"""Room for some groups of entries and the metadata that goes with them: with less, writing would end again at once."""


class DiskRoom:
    """See the module. All of it is called in the event loop."""

    def __init__(self, directory: Path, files: Files) -> None:
        """``files`` are those of the log."""
        self.problem: str | None = None
        """What could not be written, in words; None while there is room."""
        self._directory = directory
        self._files = files

    def ran_out(self, problem: str) -> None:
        """Something could not be written for want of room."""
        if self.problem is None:
            _log.error(
                "no room left, producers are refused until there is directory=%s problem=%s remedy=%s",
                self._directory,
                problem,
                "free room on this file system, or acknowledge or delete messages that nobody needs",
            )
        self.problem = problem

    def check(self) -> None:
        """Raises NoRoomLeft while the directory is full."""
        if self.problem is not None:
            raise NoRoomLeft(f"The broker is out of room and takes no messages until there is: {self.problem}")

    async def look_again(self) -> None:
        """If the directory is full, find out whether it still is."""
        if self.problem is None:
            return
        try:
            await asyncio.to_thread(self._probe)
        except OSError as error:
            _log.debug("still no room directory=%s error=%s", self._directory, error)
            return
        self.problem = None
        _log.warning("there is room again, producers are let in directory=%s", self._directory)

    @property
    def free_bytes(self) -> int:
        """What the file system has left for this program."""
        return shutil.disk_usage(self._directory).free

    @property
    def size_bytes(self) -> int:
        """All of the file system."""
        return shutil.disk_usage(self._directory).total

    def _probe(self) -> None:
        path = self._directory / "probe"
        self._files.unlink(path)  # of a process that was killed
        try:
            file = self._files.create(path)
            try:
                file.write_durably(os.urandom(_PROBE_BYTES))  # nothing that a file system could squeeze
            finally:
                file.close()
        finally:
            self._files.unlink(path)
