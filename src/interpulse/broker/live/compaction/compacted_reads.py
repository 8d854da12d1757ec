"""Reads of a compacted topic: the compacted entries up to the horizon, then the log.

Only Exclusive and Failover consumers and readers of persistent topics can ask for it. They use the same cursor and feed
as other consumers. Positions are those of the log, so a read may begin before the first entry of the log.
"""

from __future__ import annotations

from interpulse.broker.live.api import LastMessage
from interpulse.broker.live.compaction.compaction_entries import last_index_left
from interpulse.broker.live.requests import SubscribeRequest, SubType
from interpulse.broker.live.timeline import first_published_since, publish_time_of
from interpulse.model.errors import NotAllowed
from interpulse.model.ids import EARLIEST, Position
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


async def last_kept(log: Log) -> LastMessage:
    """Return the last compacted message."""
    last = await log.compacted.last()
    return LastMessage(EARLIEST, -1) if last is None else LastMessage(last.position, last_index_left(last.entry))


async def first_since(log: Log, publish_time_ms: int, *, compacted: bool) -> Position | None:
    """Return the first entry published at or after this time, None if there is none."""
    if compacted:
        compacted_entry = await log.compacted.first(lambda entry: publish_time_of(entry.entry) >= publish_time_ms)
        first = log.first_position
        if compacted_entry is not None and (first is None or compacted_entry.position < first):
            return compacted_entry.position
    return await first_published_since(log, publish_time_ms)
