"""A reader of records, which returns nothing that it has not checked.

All private methods run in the reader's worker, so files need no locks. Files stay open; the least recently used one
is closed first.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from interpulse.storage.segments.files import Files, ReadFile
from interpulse.storage.segments.records import (
    DamagedRecord,
    RecordHead,
    Row,
    check_body,
    location,
    parse_entries,
    parse_record_head,
)
from interpulse.storage.segments.segment_set import Extent, Segment
from interpulse.storage.segments.worker import Worker

_OPEN_FILES_MAX = 128
T = TypeVar("T")


@dataclass(eq=False, repr=False)
class UnreadableRecord(Exception):
    """A record differs from its index: where, and why."""

    path: Path
    offset: int
    reason: str


class SegmentReader:
    """Reads the segments of a log directory, in its worker."""

    def __init__(self, files: Files, worker: Worker) -> None:
        """Read through ``files``. The reader owns ``worker``, and stops it."""
        self._files = files
        self._open: OrderedDict[Path, ReadFile] = OrderedDict()
        self._worker = worker

    async def run(self, work: Callable[[], T]) -> T:
        """Run blocking work in the reader's worker."""
        result: Future[T] = Future()
        self._worker.put(lambda: _run(work, result))
        return await asyncio.wrap_future(result)

    async def read(self, extents: Sequence[Extent]) -> list[bytes]:
        """Return the wanted entries of all extents. Raise `UnreadableRecord`, or OSError if the disk cannot be read."""
        return await self.run(lambda: [entry for extent in extents for entry in self._entries(extent)])

    async def check(self, records: Sequence[tuple[Segment, Row]]) -> None:
        """Raise `UnreadableRecord` for the first record that is not what was written."""
        await self.run(lambda: [self._record(segment, row) for segment, row in records])

    def forget(self, paths: Sequence[Path]) -> None:
        """Close files that were unlinked."""
        self._worker.put(lambda: self._close(paths))

    async def close(self) -> None:
        await self.run(lambda: self._close(list(self._open)))
        self._worker.stop()

    def _close(self, paths: Sequence[Path]) -> None:
        for path in paths:
            if path in self._open:
                self._open.pop(path).close()

    def _file(self, path: Path) -> ReadFile:
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path]
        while len(self._open) >= _OPEN_FILES_MAX:
            self._open.popitem(last=False)[1].close()
        file = self._open[path] = self._files.open(path)
        return file

    def _entries(self, extent: Extent) -> list[bytes]:
        head, content = self._record(extent.segment, extent.row)
        try:
            return parse_entries(head, content, extent.skip, extent.count)
        except DamagedRecord as damage:
            raise UnreadableRecord(extent.segment.path, extent.row.offset, str(damage)) from damage

    def _record(self, segment: Segment, row: Row) -> tuple[RecordHead, bytes]:
        content = self._file(segment.path).read(row.length, row.offset)
        try:
            head = parse_record_head(content, location(segment.number, row.offset))
            if (head.ledger_id, head.first, head.entries, head.length) != (*row[:3], row.length):
                raise DamagedRecord("another record is stored here")
            check_body(head, content)
        except DamagedRecord as damage:
            raise UnreadableRecord(segment.path, row.offset, str(damage)) from damage
        return head, content


def _run(work: Callable[[], T], result: Future[T]) -> None:
    if not result.set_running_or_notify_cancel():
        return
    try:
        result.set_result(work())
    except BaseException as error:  # noqa: BLE001 - the caller of `SegmentReader.run` raises it
        result.set_exception(error)
