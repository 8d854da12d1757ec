"""Reading a topic as compaction left it: what was kept up to the horizon, and the log behind it.

Only Exclusive and Failover consumers and readers of persistent topics can ask for it. They go through the same cursor
and feed as other consumers; positions are those of the log, so they may begin before what is left of the log itself.
"""

from __future__ import annotations

from interpulse.broker.live.api import LastMessage
from interpulse.broker.live.compaction.compaction_entries import last_index_left
from interpulse.broker.live.requests import SubscribeRequest, SubType
from interpulse.broker.live.timeline import first_published_since, publish_time_of
from interpulse.model.errors import NotAllowed
from interpulse.model.ids import EARLIEST, Position
from interpulse.storage.api import CompactedLedger, Log, LogEntry

__all__ = ["check_allowed", "first_since", "horizon_ahead", "last_kept", "read_on"]

_TYPES = (SubType.EXCLUSIVE, SubType.FAILOVER)


def check_allowed(request: SubscribeRequest, *, is_persistent: bool) -> None:
    """Raises NotAllowed for a compacted read that cannot be."""
    if not request.read_compacted:
        return
    if not is_persistent:
        raise NotAllowed("readCompacted only valid on persistent topics")
    if request.sub_type not in _TYPES:
        raise NotAllowed("readCompacted only allowed on failover or exclusive subscriptions")


def horizon_ahead(log: Log, start: Position) -> CompactedLedger | None:
    """The compacted ledger, if a read from ``start`` on has to look into it."""
    current = log.compacted.current
    return current if current is not None and start <= current.horizon else None


async def read_on(
    log: Log, compacted: CompactedLedger, start: Position, *, entries_max: int, bytes_max: int
) -> list[LogEntry]:
    """Entries from ``start`` on, which lies before the horizon; empty at the end of the log. Raises LogDamaged."""
    kept = await log.compacted.read(start, entries_max=entries_max, bytes_max=bytes_max)
    if kept:
        return kept
    behind = Position(compacted.horizon.ledger, compacted.horizon.entry + 1)
    return await log.read(behind, entries_max=entries_max, bytes_max=bytes_max)


async def last_kept(log: Log) -> LastMessage:
    """The last message that compaction kept."""
    last = await log.compacted.last()
    return LastMessage(EARLIEST, -1) if last is None else LastMessage(last.position, last_index_left(last.entry))


async def first_since(log: Log, publish_time_ms: int, *, compacted: bool) -> Position | None:
    """The first entry published at or after this time, None if there is none."""
    if compacted:
        kept = await log.compacted.first(lambda each: publish_time_of(each.entry) >= publish_time_ms)
        first = log.first_position
        if kept is not None and (first is None or kept.position < first):
            return kept.position
    return await first_published_since(log, publish_time_ms)
