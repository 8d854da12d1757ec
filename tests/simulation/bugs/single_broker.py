"""Bugs of a broker on its own and of its clients, which S1 must find."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.producing.deduplication import Deduplication, SequenceState, Verdict
from interpulse.broker.live.producing.sequence_keeper import SequenceKeeper
from interpulse.broker.live.registry.topic_tasks import CursorFlushes
from interpulse.broker.live.topic.topic import Topic
from interpulse.client.producing.send_queue import SendQueue
from interpulse.client.producing.unconfirmed import UnconfirmedEntries
from interpulse.model.ids import Position
from interpulse.storage.segments import recovery
from interpulse.storage.segments.files import Files
from interpulse.storage.segments.journal import SegmentJournal
from interpulse.storage.segments.records import DamagedRecord, Row, location, parse_record_head
from interpulse.storage.segments.writer import GroupWrite, LogWriter
from tests.simulation import disk


def receipt_before_the_sync() -> None:
    """1: the writer answers when the group is handed to it."""
    write = LogWriter.write

    def early(self: LogWriter, group: GroupWrite, done: Any) -> None:
        self._post(done, None, 0.0)
        write(self, group, lambda error, seconds: None)

    LogWriter.write = early  # type: ignore[method-assign]


def sync_left_out() -> None:
    """2: groups are written and not synced."""
    disk._Appending.write_durably = disk._Appending.write  # type: ignore[method-assign]


def failed_write_ignored() -> None:
    """3: the writer reports success whatever the disk says, and goes on with the segment."""

    def write(self: LogWriter, group: GroupWrite, done: Any) -> None:
        try:
            if group.begin is not None:
                self._seal()
                self._begin(group.begin)
            if self._segment is not None:
                self._segment.write_durably(group.content)
        except OSError:
            pass
        self._post(done, None, 0.0)
        self._covered = group.covered
        self._write_index(group.index_chunk)

    LogWriter._write = write  # type: ignore[method-assign]


def failed_group_taken_for_written() -> None:
    """4: the journal overlooks the error of a group."""
    on_written = SegmentJournal._on_written
    SegmentJournal._on_written = lambda self, error, seconds: on_written(self, None, seconds)  # type: ignore[method-assign]


def directory_not_synced() -> None:
    """5: the name of a new segment is not brought to disk."""
    disk.SimulatedDisk.sync_directory = lambda self, directory: None  # type: ignore[method-assign]


def recovery_without_checksums() -> None:
    """6: recovery believes every record whose head can be read."""

    def scan(content: bytes, number: int, begin: int) -> recovery._Scan:
        found = recovery._Scan(end=begin)
        offset = 0
        while offset < len(content):
            try:
                head = parse_record_head(content, location(number, begin + offset), offset)
            except DamagedRecord:
                return found
            found.add(Row(head.ledger_id, head.first, head.entries, begin + offset, head.length), True)
            offset += head.length
        return found

    recovery._scan = scan


def recovered_tail_not_written_again() -> None:
    """7: what recovery read from a segment is not written again, and a second crash loses it."""

    def rewrite(self: disk.SimulatedDisk, path: Any, offset: int, content: bytes) -> None:
        self.step("rewrite")
        del self.names_now[path].written[offset + len(content) :]

    disk.SimulatedDisk.rewrite = rewrite  # type: ignore[method-assign]


def in_flight_taken_for_duplicate() -> None:
    """8: an entry whose first copy waits for the disk is answered as a duplicate."""
    judge = SequenceState.judge

    def wrong(self: SequenceState, last: int) -> Verdict:
        verdict = judge(self, last)
        return Verdict.DUPLICATE if verdict is Verdict.IN_FLIGHT else verdict

    SequenceState.judge = wrong  # type: ignore[method-assign]


def sequence_ids_not_replayed() -> None:
    """9: a restart knows the sequence ids of the snapshot alone."""

    async def resume(self: SequenceKeeper, stored: Any, now_ms: int) -> None:
        prefix = self._host.replicator_prefix
        self.deduplication = Deduplication.restored(stored, now_ms, replicator_prefix=prefix)

    SequenceKeeper.resume = resume  # type: ignore[method-assign]


def sent_again_in_wrong_order() -> None:
    """10: after a reconnect the newest unconfirmed entries are sent first."""
    UnconfirmedEntries.__iter__ = lambda self: (waiting.rest for waiting in reversed(self._waiting))  # type: ignore[method-assign]


def first_unconfirmed_entry_dropped() -> None:
    """11: a reconnect does not send the oldest unconfirmed entry again."""
    register = SendQueue.register

    async def dropping(self: SendQueue, connection: Any) -> None:
        waiting = self._unconfirmed._waiting
        if len(waiting) > 1:
            self._unconfirmed.count -= 1
            waiting.popleft()
        await register(self, connection)

    SendQueue.register = dropping  # type: ignore[method-assign]


def cursors_never_stored() -> None:
    """12: acknowledgements stay in memory."""

    async def flush_all(self: CursorFlushes, *, within_seconds: float | None = None) -> None:
        self.changed.clear()

    CursorFlushes.flush_all = flush_all  # type: ignore[method-assign]


def restored_cursor_ahead() -> None:
    """13: a restored cursor begins one entry too late."""
    restore = Cursor.restore.__func__  # type: ignore[attr-defined]

    def ahead(cls: type[Cursor], log: Any, record: Any, **options: Any) -> Cursor:
        cursor: Cursor = restore(cls, log, record, **options)
        following = log.next_position(cursor.mark_delete)
        if following is not None:
            cursor.mark_delete = Position(*following)
        return cursor

    Cursor.restore = classmethod(ahead)  # type: ignore[assignment, arg-type]


def sequence_ids_of_all_names_mixed() -> None:
    """14: every producer name has the sequence ids of the same one."""
    begin = Deduplication.__init__

    class _OneName(defaultdict[str, SequenceState]):
        def __getitem__(self, name: str) -> SequenceState:
            return super().__getitem__("any")

    def mixing(self: Deduplication, *arguments: Any) -> None:
        begin(self, *arguments)
        self.states = _OneName(SequenceState)

    Deduplication.__init__ = mixing  # type: ignore[assignment, method-assign]


def failed_topic_goes_on_counting() -> None:
    """27: entries that become durable after their topic failed are in its snapshot, without their sequence ids."""
    on_durable = Topic.on_durable

    def moving(self: Topic, last: Position) -> None:
        if self.failed:
            self.positions.durable = last
        on_durable(self, last)

    Topic.on_durable = moving  # type: ignore[method-assign]


def removed_segment_reported() -> None:
    """28: a start reports a segment as lost that was being removed when the broker was killed."""
    size_of = recovery._size_of

    def reporting(path: Path, files: Files) -> int:
        try:
            return size_of(path, files)
        except FileNotFoundError:
            recovery._log.error("log segment is missing segment=%s", path)
            raise

    recovery._size_of = reporting
