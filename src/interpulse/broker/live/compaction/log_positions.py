"""Positions in the log of one topic: the last durable one, the first readable one, and those of cursors.

A cursor's position is the last entry that it has passed, so the next entry comes after it.
"""

from __future__ import annotations

from interpulse.broker.live.api import LastMessage
from interpulse.broker.live.compaction import compacted_reads
from interpulse.broker.live.entry_metadata import entry_metadata_of, message_metadata_of
from interpulse.model.errors import NotFound, PersistenceError
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.storage.api import Log, LogEntry


class LogPositions:
    """Positions in the log of one topic."""

    def __init__(self, log: Log) -> None:
        self.durable = log.last_position
        """The last durable entry that the topic has seen; the owner updates it."""
        self._log = log

    def end_reached(self, position: Position) -> bool:
        """Return True if the topic is terminated and has nothing after this position."""
        return self._log.terminated and position >= self.durable

    def before(self, target: MessageId, *, compacted: bool = False) -> Position:
        """Return the cursor position before ``target``, within the log or its compacted entries."""
        before = Position(target.ledger, max(target.entry, 0) - 1)
        return max(self.before_first(compacted=compacted), min(before, self.durable))

    async def before_time(self, publish_time_ms: int, *, compacted: bool = False) -> Position:
        """Return the cursor position before the first entry published at or after this time."""
        first = await compacted_reads.first_since(self._log, publish_time_ms, compacted=compacted)
        return self.durable if first is None else Position(first.ledger, first.entry - 1)

    def before_first(self, *, compacted: bool = False) -> Position:
        """Return the cursor position before the first readable entry."""
        if compacted and self._log.compacted.current is not None:
            return EARLIEST
        first = self._log.first_position
        return self.durable if first is None else Position(first.ledger, first.entry - 1)

    async def last_message(self, *, read_compacted: bool = False) -> LastMessage:
        """Return the last durable message, or the last compacted one on request."""
        position: Position | None = self.durable
        while position is not None and position.entry >= 0:
            if read_compacted and compacted_reads.horizon_ahead(self._log, position) is not None:
                break
            try:
                entry = await self.read_entry(position)
            except NotFound:
                break  # it was trimmed, and everything before it
            if not entry_metadata_of(entry.entry).is_marker:
                return LastMessage(position, _batch_size(entry.entry) - 1)
            position = self._previous(position)
        return await compacted_reads.last_kept(self._log) if read_compacted else LastMessage(EARLIEST, -1)

    def _previous(self, position: Position) -> Position | None:
        """Return the entry before another one, possibly in an earlier ledger."""
        if position.entry > 0:
            return Position(position.ledger, position.entry - 1)
        for ledger in reversed(self._log.ledgers):
            if ledger.ledger_id < position.ledger and ledger.entries:
                return Position(ledger.ledger_id, ledger.entries - 1)
        return None

    async def read_entry(self, position: Position) -> LogEntry:
        """Return one entry; raise NotFound if it does not exist (any more)."""
        entries = await self._log.read(position, entries_max=1, bytes_max=1) if position <= self.durable else []
        if not entries or entries[0].position != position:
            raise NotFound(f"Message not found: {position}")
        return entries[0]

    async def batch_size(self, position: Position) -> int:
        """Return the batch size of the entry at a position; 0 if there is no batch."""
        try:
            return _batch_size((await self.read_entry(position)).entry)
        except NotFound:
            return 0


def _batch_size(entry: bytes) -> int:
    try:
        metadata = message_metadata_of(entry)
    except PersistenceError:
        return 0
    return metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else 0
