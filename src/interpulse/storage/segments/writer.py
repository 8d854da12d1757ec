"""The writer of segments: group after group, each made durable before its logs are informed.

The event loop passes bytes that are ready to be written and gets one call per group, in order. The two share nothing
else. After a failed write or sync the segment is never touched again, since an unknown part of it is on disk, and the
next group must begin a new one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from interpulse.storage.segments.files import AppendFile, Files
from interpulse.storage.segments.records import encode_chunk, pack_index_head, pack_segment_head
from interpulse.storage.segments.segment_set import index_path, segment_path
from interpulse.storage.segments.worker import Worker

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GroupWrite:
    """The bytes of one group commit. ``begin`` is the number of a new segment to begin with it."""

    begin: int | None
    content: bytes
    index_chunk: bytes
    covered: int


class LogWriter:
    """Writes groups, seals and unlinks segments, in its worker and in the order of the calls.

    ``post`` runs a callback in the event loop (``loop.call_soon_threadsafe``).
    """

    def __init__(self, directory: Path, files: Files, post: Callable[..., object], worker: Worker) -> None:
        """Write into ``directory``. The writer owns ``worker``, and stops it."""
        self._directory = directory
        self._files = files
        self._post = post
        self._worker = worker
        self._segment: AppendFile | None = None
        self._index: AppendFile | None = None
        self._covered = 0

    def write(self, group: GroupWrite, done: Callable[[Exception | None, float], None]) -> None:
        """Make a group durable, then call ``done(error, seconds)`` in the event loop."""
        self._worker.put(lambda: self._write(group, done))

    def seal(self, done: Callable[[], None]) -> None:
        """End the current segment. The next group must begin a new one."""
        self._worker.put(lambda: self._and_then(self._seal, done))

    def unlink(self, numbers: Sequence[int], done: Callable[[], None]) -> None:
        """Remove segments without a living ledger."""
        self._worker.put(lambda: self._and_then(lambda: self._unlink(numbers), done))

    def stop(self) -> None:
        """Return once all work is done. Nothing may be written afterwards."""
        self._worker.stop()

    def _and_then(self, work: Callable[[], None], done: Callable[[], None]) -> None:
        work()
        self._post(done)

    def _write(self, group: GroupWrite, done: Callable[[Exception | None, float], None]) -> None:
        began = time.perf_counter()
        failure: Exception | None = None
        try:
            if group.begin is not None:
                self._seal()
                self._begin(group.begin)
            assert self._segment is not None, "the first group begins a segment"
            self._segment.write_durably(group.content)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the group is not durable and must be answered so
            self._abandon()
            failure = error
        self._post(done, failure, time.perf_counter() - began)
        if failure is None:
            self._covered = group.covered
            self._write_index(group.index_chunk)

    def _begin(self, number: int) -> None:
        self._segment = self._files.create(segment_path(self._directory, number))
        self._index = self._files.create(index_path(self._directory, number))
        self._segment.write_durably(pack_segment_head(number))
        self._index.write(pack_index_head(number))
        self._files.sync_directory(self._directory)

    def _write_index(self, chunk: bytes) -> None:
        if self._index is None:
            return
        try:
            self._index.write(chunk)
        except OSError as error:
            # The segment is complete; without its index the next start reads the segment itself.
            _log.warning("log index not written error=%s", error)
            self._close(self._index)
            self._index = None

    def _seal(self) -> None:
        if self._index is not None:
            try:
                self._index.write(encode_chunk([], self._covered, sealed=True))
                self._index.sync()
            except OSError as error:
                _log.warning("log index not sealed error=%s", error)
        self._abandon()

    def _abandon(self) -> None:
        for file in (self._segment, self._index):
            if file is not None:
                self._close(file)
        self._segment = self._index = None

    def _close(self, file: AppendFile) -> None:
        try:
            file.close()
        except OSError as error:
            _log.warning("log file not closed cleanly error=%s", error)

    def _unlink(self, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        try:
            for number in numbers:
                self._files.unlink(segment_path(self._directory, number))
                self._files.unlink(index_path(self._directory, number))
            self._files.sync_directory(self._directory)
        except OSError as error:
            # The next start finds the segment without a living ledger and removes it.
            _log.warning("log segment not removed error=%s", error)
