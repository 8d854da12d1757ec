"""Positions in the log of one topic, compacted or not, and reads that begin with compacted entries.

A cursor's position is the last entry that it has passed, so the next entry comes after it. Only Exclusive and Failover
consumers and readers of persistent topics can ask for the compacted topic: the compacted entries up to the horizon,
then the log. They use the same cursor and feed as other consumers. Positions are those of the log, so a read may begin
before the first entry of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interpulse.broker.live.api import LastMessage, SubscribeRequest, SubType
from interpulse.broker.live.compaction.choice import last_index_left
from interpulse.broker.live.entry_metadata import entry_metadata_of, message_metadata_of
from interpulse.broker.live.log_search import first_published_since, publish_time_of
from interpulse.model.errors import NotAllowed, NotFound, PersistenceError
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.storage.api import CompactedLedger, Log, LogEntry

_TYPES = (SubType.EXCLUSIVE, SubType.FAILOVER)


def check_allowed(request: SubscribeRequest, *, is_persistent: bool) -> None:
    """Raise NotAllowed for a compacted read that is impossible."""
    if not request.read_compacted:
        return
    if not is_persistent:
        raise NotAllowed("readCompacted only valid on persistent topics")
    if request.sub_type not in _TYPES:
        raise NotAllowed("readCompacted only allowed on failover or exclusive subscriptions")


def horizon_ahead(log: Log, start: Position) -> CompactedLedger | None:
    """Return the compacted ledger if a read from ``start`` on needs it."""
    current = log.compacted.current
    return current if current is not None and start <= current.horizon else None


async def read_on(
    log: Log, compacted: CompactedLedger, start: Position, *, entries_max: int, bytes_max: int
) -> list[LogEntry]:
    """Return entries from ``start`` on, which is before the horizon; empty at the end of the log. Raises LogDamaged."""
    entries = await log.compacted.read(start, entries_max=entries_max, bytes_max=bytes_max)
    if entries:
        return entries
    behind = Position(compacted.horizon.ledger, compacted.horizon.entry + 1)
    return await log.read(behind, entries_max=entries_max, bytes_max=bytes_max)


async def first_since(log: Log, publish_time_ms: int, *, compacted: bool) -> Position | None:
    """Return the first entry published at or after this time, None if there is none."""
    if compacted:
        compacted_entry = await log.compacted.first(lambda entry: publish_time_of(entry.entry) >= publish_time_ms)
        first = log.first_position
        if compacted_entry is not None and (first is None or compacted_entry.position < first):
            return compacted_entry.position
    return await first_published_since(log, publish_time_ms)


class LogPositions:
    """Positions in the log of one topic."""

    def __init__(self, log: Log) -> None:
        self.durable = log.last_position
        """The last durable entry that the topic has seen; the owner updates it."""
        self._log = log

    def before(self, target: MessageId, *, compacted: bool = False) -> Position:
        """Return the cursor position before ``target``, within the log or its compacted entries."""
        before = Position(target.ledger, max(target.entry, 0) - 1)
        return max(self.before_first(compacted=compacted), min(before, self.durable))

    async def before_time(self, publish_time_ms: int, *, compacted: bool = False) -> Position:
        """Return the cursor position before the first entry published at or after this time."""
        first = await first_since(self._log, publish_time_ms, compacted=compacted)
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
            if read_compacted and horizon_ahead(self._log, position) is not None:
                break
            try:
                entry = await self.read_entry(position)
            except NotFound:
                break  # it was trimmed, and everything before it
            if not entry_metadata_of(entry.entry).is_marker:
                return LastMessage(position, _batch_size(entry.entry) - 1)
            position = self._previous(position)
        last = await self._log.compacted.last() if read_compacted else None
        return LastMessage(EARLIEST, -1) if last is None else LastMessage(last.position, last_index_left(last.entry))

    def _previous(self, position: Position) -> Position | None:
        if position.entry > 0:
            return Position(position.ledger, position.entry - 1)
        for ledger in reversed(self._log.ledgers):
            if ledger.ledger_id < position.ledger and ledger.entries:
                return Position(ledger.ledger_id, ledger.entries - 1)
        return None

    def unknown(self, positions: Iterable[Position]) -> Iterator[Position]:
        """Yield the positions that the log never had, or does not have yet. It had those that were trimmed."""
        entries = {ledger.ledger_id: ledger.entries for ledger in self._log.ledgers}
        first = min(entries, default=LATEST.ledger)
        for position in positions:
            ledger, entry = position
            if position > self.durable or (ledger >= first and entry >= entries.get(ledger, 0)):
                yield position

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
