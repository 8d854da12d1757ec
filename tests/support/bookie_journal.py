"""The journal of a scripted bookie: every change in the order of arrival, synced before it is answered.

Records that arrive while others are being written are written together. A start reads the files of all earlier
processes, makes them durable, and begins a new one.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import partial
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from interpulse.storage.segments.files import AppendFile, Files

Job = Callable[[], None]

KEY_SIZE: Final = 20

_FRONT: Final = Struct(">II")  # length of the body, checksum of the body
_BODY: Final = Struct(f">Bqq{KEY_SIZE}s")


class Kind(IntEnum):
    """The change that a record holds."""

    ADD = 1
    FENCE = 2


class Record(NamedTuple):
    """One change of a ledger on a bookie."""

    kind: Kind
    ledger_id: int
    entry_id: int
    key: bytes
    packet: bytes = b""

    def pack(self) -> bytes:
        body = _BODY.pack(self.kind, self.ledger_id, self.entry_id, self.key) + self.packet
        return _FRONT.pack(len(body), zlib.crc32(body)) + body


class BookieJournal:
    """The journal in one directory. Create it with `open`."""

    def __init__(self, file: AppendFile, put: Callable[[Job], None]) -> None:
        self.on_failed: Callable[[OSError], None] = lambda error: None
        """Called once, when nothing more can be written. The last records may or may not be on disk."""
        self._file = file
        self._put = put
        self._loop = asyncio.get_running_loop()
        self._records: list[bytes] = []
        self._callbacks: list[Job] = []
        self._busy = False
        self._failed = False

    @classmethod
    def open(
        cls, files: Files, directory: Path, put: Callable[[Job], None] = lambda job: job()
    ) -> tuple[BookieJournal, list[Record]]:
        """Read the journal back and begin a new file. Raise OSError.

        ``put`` runs the jobs of the disk, one after the other; by default immediately.
        """
        names = files.names(directory)
        records = [record for name in names for record in _read_back(files, directory / name)]
        file = files.create(directory / f"{len(names):08d}.journal")
        files.sync_directory(directory)
        return cls(file, put), records

    def append(self, record: Record) -> None:
        """Write a record; `when_synced` reports it."""
        self._records.append(record.pack())

    def when_synced(self, callback: Job) -> None:
        """Call back when all records so far are on disk, never if that fails."""
        if self._failed:
            return
        if not self._records and not self._busy:
            callback()
            return
        self._callbacks.append(callback)
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._begin)

    def close(self) -> None:
        """Close the file without syncing."""
        self._file.close()

    def _begin(self) -> None:
        records, self._records = b"".join(self._records), []
        callbacks, self._callbacks = self._callbacks, []
        self._put(partial(self._write, records, callbacks))

    def _write(self, records: bytes, callbacks: list[Job]) -> None:
        error = None
        try:
            if records:
                self._file.write_durably(records)
        except OSError as problem:
            error = problem
        self._loop.call_soon_threadsafe(self._written, callbacks, error)

    def _written(self, callbacks: list[Job], error: OSError | None) -> None:
        if error is not None:
            self._failed = True
            self.on_failed(error)
            return
        self._busy = bool(self._records or self._callbacks)
        if self._busy:
            self._begin()
        for callback in callbacks:
            callback()


def _read_back(files: Files, path: Path) -> Iterator[Record]:
    """Yield the intact records of a file, and make them durable: the process that wrote them may not have synced."""
    file = files.open(path)
    try:
        raw = file.read(file.size, 0)
    finally:
        file.close()
    intact = 0
    for record, end in records_in(raw):
        yield record
        intact = end
    files.rewrite(path, 0, raw[:intact])


def records_in(raw: bytes) -> Iterator[tuple[Record, int]]:
    """Yield the records and their ends, up to the first that is cut or damaged."""
    at = 0
    while len(raw) - at >= _FRONT.size:
        length, checksum = _FRONT.unpack_from(raw, at)
        at += _FRONT.size
        body = raw[at : at + length]
        at += length
        if len(body) < max(length, _BODY.size) or zlib.crc32(body) != checksum:
            return
        kind, ledger_id, entry_id, key = _BODY.unpack_from(body)
        yield Record(Kind(kind), ledger_id, entry_id, key, body[_BODY.size :]), at
