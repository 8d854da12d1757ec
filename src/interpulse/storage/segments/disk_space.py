"""The free space of the data directory, which decides whether entries and metadata may be written.

Messages leave a *reserve* to metadata, so that cursors, expiry, truncation and deletion, which free space, still work
when messages are refused. The file system is measured each second, and after every write of as many bytes as it had
above the reserve; never per message. Other failed writes are reported with `ran_out`.

From then on the directory counts as full, until the free space is a quarter above the reserve and a probe, written and
synced like entries, succeeds.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from interpulse.model.errors import NoRoomLeft
from interpulse.storage.segments.files import Files

_log = logging.getLogger(__name__)

_PROBE_BYTES: Final = 1024 * 1024
"""Space for some groups of entries and their metadata. With less, writing would stop again immediately."""
_MIB: Final = 1024 * 1024
_HYSTERESIS: Final = 0.25
"""The share above the reserve that must be free again, so that producers are not admitted and refused by turns."""
_SHARE_MAX: Final = 10
"""The reserve is at most this fraction of the file system, since small file systems hold messages as well."""


class DiskSpace:
    """The state of the data directory's free space. Used only in the event loop. See the module."""

    def __init__(self, directory: Path, files: Files, reserve_bytes: int = 0) -> None:
        """Watch a directory.

        ``files`` are those of the log. ``reserve_bytes`` is the space that messages leave free; 0 = nothing.
        """
        self.problem: str | None = None
        """The failed write, or the free space, in words; None while there is enough."""
        self.on_full: Callable[[], None] = lambda: None
        """Called each time the space has run out."""
        self._directory = directory
        self._files = files
        self._reserve_bytes = reserve_bytes
        self._unmeasured_bytes: float = 0  # bytes that messages may take before the next measurement

    def ran_out(self, problem: str) -> None:
        """Refuse producers, because a write failed or must not be tried for lack of space."""
        fresh, self.problem = self.problem is None, problem
        if fresh:
            _log.error(
                "no room left, producers are refused until there is directory=%s problem=%s remedy=%s",
                self._directory,
                problem,
                "free room on this file system, or acknowledge or delete messages that are not needed",
            )
            self.on_full()

    def takes(self, size: int) -> None:
        """Count ``size`` bytes that messages are about to take."""
        self._unmeasured_bytes -= size
        if self._unmeasured_bytes < 0 and self.problem is None:
            self._unmeasured_bytes = self._above_reserve() - size
            if self._unmeasured_bytes < 0:
                self.ran_out(self._space_left())

    def measure(self) -> None:
        """Measure the file system, and refuse producers if less than the reserve is free."""
        if self._above_reserve() < 0:
            self.ran_out(self._space_left())

    def check(self) -> None:
        """Raise NoRoomLeft while the directory is full."""
        if self.problem is not None:
            raise NoRoomLeft(f"The broker is out of room and accepts no messages until there is: {self.problem}")

    async def recheck(self) -> None:
        """Measure again. If the directory is full, probe whether it still is."""
        if self.problem is None:
            self.measure()
            return
        if self._above_reserve(1 + _HYSTERESIS) < 0:
            return
        try:
            await asyncio.to_thread(self._probe)
        except OSError as error:
            _log.debug("disk is still full directory=%s error=%s", self._directory, error)
            return
        self.problem = None
        self._unmeasured_bytes = 0
        _log.warning("there is room again, producers are let in directory=%s", self._directory)

    @property
    def free_bytes(self) -> int:
        """The free bytes of the file system for this program."""
        return self._files.room(self._directory).free

    @property
    def size_bytes(self) -> int:
        """The bytes of the whole file system."""
        return self._files.room(self._directory).total

    def _reserve(self, size: int) -> int:
        return min(self._reserve_bytes, size // _SHARE_MAX)

    def _above_reserve(self, times: float = 1) -> float:
        """Return the space above ``times`` reserves; infinite without a reserve, as only failed writes show a lack."""
        if not self._reserve_bytes:
            return sys.maxsize
        room = self._files.room(self._directory)
        return room.free - self._reserve(room.total) * times

    def _space_left(self) -> str:
        room = self._files.room(self._directory)
        return (
            f"{room.free / _MIB:.1f} MiB are left in {self._directory}, of which messages leave "
            f"{self._reserve(room.total) / _MIB:.1f} MiB to metadata (diskReserveInMB={self._reserve_bytes // _MIB})"
        )

    def _probe(self) -> None:
        path = self._directory / "probe"
        self._files.unlink(path)  # left by a process that was killed
        try:
            with closing(self._files.create(path)) as file:
                file.write_durably(os.urandom(_PROBE_BYTES))  # random, so that no file system can compress it
        finally:
            self._files.unlink(path)
