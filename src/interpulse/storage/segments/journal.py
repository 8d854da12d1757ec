"""`Journal` on disk: group commit into shared segments. See docs/on-disk-format.md.

A group is everything that waits when the writer is free, so a sync never waits for entries, and entries wait for at
most one sync. The next group collects while the writer works on one.

The next group is on its way before the logs are informed of the last one, so that the disk works while callbacks run.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interpulse.model.errors import PersistenceError
from interpulse.storage.api import Change, DataDirectoryUnusable, LedgerRecord, LogDamaged, MetadataStore, StorageFull
from interpulse.storage.logs.journal import JournalClient, JournalStatistics, LedgerGone, LedgerPurpose, Run, Sealed
from interpulse.storage.logs.tail_cache import within
from interpulse.storage.logs.topic_log import LogConfig
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.segments.files import DiskFiles, Files
from interpulse.storage.segments.ledger_owners import LedgerIds, living_ledgers, owner_changes
from interpulse.storage.segments.reader import SegmentReader, UnreadableRecord
from interpulse.storage.segments.records import (
    SEGMENT_HEAD,
    LedgerRows,
    Row,
    encode_chunk,
    encode_record,
    location,
    split_run,
)
from interpulse.storage.segments.recovery import recover_segments
from interpulse.storage.segments.segment_set import Segment, SegmentSet, segment_path
from interpulse.storage.segments.worker import StartWorker, ThreadWorker
from interpulse.storage.segments.writer import GroupWrite, LogWriter

_log = logging.getLogger(__name__)

_GROUP_BYTES_MAX = 8 * 1024 * 1024  # bounds the wait of the next group; one log's run may exceed it
_VERIFY_BYTES_MAX = 64 * 1024 * 1024  # per opening of a log: about 30 ms. Older records are checked when they are read
_VERIFY_RECORDS_MAX = 20_000


@dataclass(slots=True)
class _Group:
    """A group commit in progress."""

    start: int
    clients: list[tuple[JournalClient, list[Run]]] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    size: int = 0

    def add(self, number: int, run: Run) -> None:
        """Encode a run behind the present ones."""
        for part in split_run(run):
            offset = self.start + self.size
            record = encode_record(part, self.size, location(number, offset))
            length = sum(map(len, record))
            self.parts += record
            self.rows.append(Row(part.ledger_id, part.first, len(part.entries), offset, length))
            self.size += length


class SegmentJournal:
    """All segments of one directory. Create it with `open_log_store`."""

    def __init__(
        self,
        directory: Path,
        writer: LogWriter,
        reader: SegmentReader,
        segments: SegmentSet,
        ids: LedgerIds,
        segment_bytes_max: int,
        on_full: Callable[[str], None],
        on_write: Callable[[int], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._directory = directory
        self._reader = reader
        self._segments = segments
        self._ids = ids
        self._segment_bytes_max = segment_bytes_max
        self._on_full = on_full
        self._on_write = on_write
        self._writer = writer
        self._next_number = segments.next_number
        self._active: Segment | None = None
        self._waiting: deque[JournalClient] = deque()
        self._group: _Group | None = None
        self._scheduled = False
        self._dropped: set[int] = set()  # ledgers dropped while a group was being written
        self._damaged: dict[int, UnreadableRecord] = {}
        self._idle: list[asyncio.Future[None]] = []
        self.statistics = JournalStatistics()
        self.counts_may_follow = True

    # ledgers

    async def create(self, log: str, purpose: LedgerPurpose) -> int:
        return await self._ids.take()

    def record_changes(self, log: str, before: Collection[int], after: Collection[int]) -> list[Change]:
        return owner_changes(log, before, after)

    async def recover(self, ledger_id: int) -> Sealed | None:
        sealed = Sealed(*self._segments.measure(ledger_id))
        return sealed if sealed.entries else None

    async def seal(self, ledger_id: int) -> Sealed:
        return Sealed(*self._segments.measure(ledger_id))

    def abandon(self, ledger_id: int) -> None: ...

    # writing

    def enqueue(self, client: JournalClient) -> None:
        self._waiting.append(client)
        if self._group is None and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._start_group)

    def _start_group(self) -> None:
        self._scheduled = False
        if self._group is not None:
            return
        active = self._active
        if active is not None and active.size >= self._segment_bytes_max:
            active = None
        number, start = (self._next_number, SEGMENT_HEAD) if active is None else (active.number, active.size)
        group = self._collect(number, start)
        if not group.rows:
            for waiter in self._idle:
                _answer(waiter)
            self._idle.clear()
            return
        if active is None:
            self._begin_segment(number)
        self._group = group
        self._on_write(group.size)
        covered = group.start + group.size
        chunk = encode_chunk(group.rows, covered)
        self._writer.write(
            GroupWrite(number if active is None else None, b"".join(group.parts), chunk, covered), self._on_written
        )

    def _collect(self, number: int, start: int) -> _Group:
        group = _Group(start)
        while self._waiting and group.size < _GROUP_BYTES_MAX:
            client = self._waiting.popleft()
            runs = client.take_pending()
            for run in runs:
                group.add(number, run)
            if runs:
                group.clients.append((client, runs))
        return group

    def _begin_segment(self, number: int) -> None:
        if self._active is not None:
            self._active.sealed = True
        self._next_number = number + 1
        self._active = Segment(number, segment_path(self._directory, number))
        self._segments.begin(self._active)
        self.unlink(self._segments.remove_empty())

    def _on_written(self, error: Exception | None, seconds: float) -> None:
        group, self._group = self._group, None
        assert group is not None
        if error is not None:
            self._fail_group(group, error)
            return
        self._note_durable(group, seconds)
        self._start_group()
        for client, runs in group.clients:
            try:
                client.committed(runs)
            except Exception as fault:  # noqa: BLE001 - a bug in one log must not keep the others from their outcome
                _log.exception("log failed after its entries were written")
                client.failed(PersistenceError(f"broken after a write: {fault!r}"))

    def _note_durable(self, group: _Group, seconds: float) -> None:
        assert self._active is not None
        self._active.size = group.start + group.size
        for row in group.rows:
            if row.ledger_id not in self._dropped:
                self._segments.add(self._active, row)
        self._dropped.clear()
        self.statistics.count(group.size, seconds)

    def _fail_group(self, group: _Group, error: Exception) -> None:
        """Fence the logs of a group, of which an unknown part is on disk, and begin a new segment."""
        assert self._active is not None
        _log.error("log write failed segment=%s error=%s", self._active.path, error)
        self.statistics.failed_groups += 1
        self._active.sealed = True
        self._active = None
        self._dropped.clear()
        self.unlink(self._segments.remove_empty())
        refusal = _as_persistence_error(error, self._directory)
        if isinstance(refusal, StorageFull):
            self._on_full(str(refusal))
        for client, _ in group.clients:
            client.failed(refusal)
        self._start_group()

    # reading

    async def read(self, name: str, ledger_id: int, first: int, entries_max: int, bytes_max: int) -> list[bytes]:
        extents = self._segments.extents(ledger_id, first, entries_max, bytes_max)
        if not extents:
            raise LedgerGone(ledger_id)
        try:
            return within(await self._reader.read(extents), bytes_max)
        except UnreadableRecord as damage:
            self._damaged[ledger_id] = damage
            raise _as_log_damaged(name, damage) from damage
        except FileNotFoundError as error:
            if not self._segments.extents(ledger_id, first, 1, 1):
                raise LedgerGone(ledger_id) from error
            raise LogDamaged(name, extents[0].segment.path.name, -1, "the segment is missing") from error
        except OSError as error:
            raise _as_persistence_error(error, self._directory) from error

    async def verify(self, name: str, ledgers: Sequence[LedgerRecord]) -> None:
        for ledger in ledgers:
            if ledger.ledger_id in self._damaged:
                raise _as_log_damaged(name, self._damaged[ledger.ledger_id])
            self._check_dense(name, ledger)
        unchecked = self._unchecked(ledgers)
        records = [(segment, row) for segment, _, rows in unchecked for row in rows]
        if not records:
            return
        try:
            await self._reader.check(records)
        except UnreadableRecord as damage:
            raise _as_log_damaged(name, damage) from damage
        except FileNotFoundError as error:
            raise LogDamaged(name, records[0][0].path.name, -1, "the segment is missing") from error
        except OSError as error:
            raise _as_persistence_error(error, self._directory) from error
        for _, ledger_rows, rows in unchecked:
            ledger_rows.verified = len(rows) == len(ledger_rows.firsts)

    def _check_dense(self, name: str, ledger: LedgerRecord) -> None:
        """Raise `LogDamaged` unless every entry of the ledger has a record, according to the indexes."""
        expected = 0
        where = "log"
        for segment, rows in self._segments.parts(ledger.ledger_id):
            where = segment.path.name
            if rows.damaged_at is not None:
                raise LogDamaged(name, where, rows.damaged_at, "a record is lost or damaged")
            if rows.begin != expected:
                reason = f"entries from {ledger.ledger_id}:{expected} to before {rows.begin} are missing"
                raise LogDamaged(name, where, rows.offsets[0], reason)
            expected = rows.end
        if expected < ledger.entries:
            raise LogDamaged(name, where, -1, f"entries from {ledger.ledger_id}:{expected} on are missing")

    def _unchecked(self, ledgers: Sequence[LedgerRecord]) -> list[tuple[Segment, LedgerRows, list[Row]]]:
        """Return the newest records of these ledgers that were not compared with their checksums since the start."""
        unchecked_records = []
        bytes_left, records_left = _VERIFY_BYTES_MAX, _VERIFY_RECORDS_MAX
        for ledger in reversed(ledgers):
            for segment, ledger_rows in reversed(list(self._segments.parts(ledger.ledger_id))):
                if ledger_rows.verified:
                    continue
                rows: list[Row] = []
                for index in range(len(ledger_rows.firsts) - 1, -1, -1):
                    if bytes_left <= 0 or records_left <= 0:
                        break
                    rows.append(ledger_rows.row(index, ledger.ledger_id))
                    bytes_left -= rows[-1].length
                    records_left -= 1
                unchecked_records.append((segment, ledger_rows, rows))
        return unchecked_records

    # upkeep

    async def forget(self, ledger_ids: Iterable[int]) -> None:
        gone = list(ledger_ids)
        if not gone:
            return
        if self._group is not None:
            self._dropped.update(gone)
        for ledger_id in gone:
            self._damaged.pop(ledger_id, None)
        empty = self._segments.forget(gone)
        if self._group is None and self._active is not None and not self._active.ledgers:
            # a segment without a living ledger ends, so that its space is released immediately
            self._active.sealed = True
            self._active = None
            self._writer.seal(lambda: None)
            empty += self._segments.remove_empty()
        await self.unlink(empty)

    def unlink(self, segments: Sequence[Segment]) -> asyncio.Future[None]:
        """Remove the files of segments that are no longer in the set. The future is done when they are gone."""
        gone: asyncio.Future[None] = self._loop.create_future()
        self._writer.unlink([segment.number for segment in segments], lambda: _answer(gone))
        self._reader.forget([segment.path for segment in segments])
        return gone

    async def close(self) -> None:
        while self._group is not None or self._waiting:
            idle: asyncio.Future[None] = self._loop.create_future()
            self._idle.append(idle)
            await idle
        sealed: asyncio.Future[None] = self._loop.create_future()
        self._writer.seal(lambda: _answer(sealed))
        await sealed
        self._writer.stop()
        await self._reader.close()


def _answer(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():  # the waiting caller may have been cancelled
        waiter.set_result(None)


def _as_persistence_error(error: Exception, directory: Path) -> PersistenceError:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"no room left in {directory}: {error.strerror}")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return PersistenceError(f"log in {directory} cannot be written or read: {reason}")


def _as_log_damaged(name: str, damage: UnreadableRecord) -> LogDamaged:
    return LogDamaged(name, damage.path.name, damage.offset, damage.reason)


async def open_log_store(
    directory: Path,
    metadata: MetadataStore,
    *,
    config: LogConfig | None = None,
    segment_bytes_max: int = 64 * 1024 * 1024,
    files: Files | None = None,
    worker: StartWorker = ThreadWorker,
    on_full: Callable[[str], None] = lambda problem: None,
    on_write: Callable[[int], None] = lambda size: None,
) -> TopicLogStore:
    """Open the logs in ``directory`` (created if absent), whose records are in ``metadata``.

    ``worker`` starts the threads of the writer and of the reader.
    ``on_full`` is called with the problem when entries could not be written for lack of space, ``on_write`` with the
    bytes of every group of entries that is about to be written. Raise `DataDirectoryUnusable` if the directory cannot
    be used or belongs to another metadata store.
    """
    files = files or DiskFiles()
    ids = LedgerIds(metadata)
    reader = SegmentReader(files, worker("log-reader"))
    try:
        recovered = await reader.run(lambda: recover_segments(directory, files))
        segments = SegmentSet(recovered)
        dead = await _take_dead_segments(directory, metadata, ids, segments)
    except OSError as error:
        await reader.close()
        raise DataDirectoryUnusable(str(directory), error.strerror or str(error)) from error
    except BaseException:
        await reader.close()
        raise
    post = asyncio.get_running_loop().call_soon_threadsafe
    writer = LogWriter(directory, files, post, worker("log-writer"))
    journal = SegmentJournal(directory, writer, reader, segments, ids, segment_bytes_max, on_full, on_write)
    await journal.unlink(dead)
    return TopicLogStore(metadata, journal, config)


async def _take_dead_segments(
    directory: Path, metadata: MetadataStore, ids: LedgerIds, segments: SegmentSet
) -> list[Segment]:
    """Drop the ledgers without a log, and return the segments that held nothing else."""
    unreserved = await ids.first_unreserved()
    strangers = [ledger for ledger in segments.ledger_ids if ledger >= unreserved]
    if strangers:
        reason = (
            f"ledger {strangers[0]} does not belong to this metadata store; was metadata.sqlite removed or replaced?"
        )
        raise DataDirectoryUnusable(str(directory), reason)
    owners = await living_ledgers(metadata, segments.ledger_ids)
    for ledger_id, name in owners.items():
        for segment, rows in segments.parts(ledger_id):
            if rows.damaged_at is not None:
                _log.error("log is damaged log=%s segment=%s offset=%d", name, segment.path, rows.damaged_at)
    dead = segments.forget([ledger for ledger in segments.ledger_ids if ledger not in owners])
    return dead + segments.remove_empty()
