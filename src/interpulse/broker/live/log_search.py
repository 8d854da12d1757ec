"""Searches in the log of a topic: by publish time, by number, by size, and for the part that may be trimmed.

Clocks of producers differ, so the order by time is that of the log only roughly, unless the broker noted its own time.

A ledger is trimmed as a whole, oldest first, never the current one, and only when every durable cursor has passed it.
Then the retention policy keeps it: for a time after it was full, or while the acknowledged part is below a size.
-1 = without limit, 0 = not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.entry_metadata import broker_entry_metadata_of, message_metadata_of
from interpulse.model.errors import PersistenceError
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.policies.policy_records import RetentionPolicies
from interpulse.storage.api import LedgerRecord, Log

_MEGABYTE = 1024 * 1024


async def first_published_since(log: Log, publish_time_ms: int) -> Position | None:
    """Return the first entry published at or after this time, None if there is none. Reads one entry per halving."""
    ledgers = [ledger for ledger in log.ledgers if ledger.entries]
    low, high = 0, sum(ledger.entries for ledger in ledgers)
    total = high
    while low < high:
        middle = (low + high) // 2
        entries = await log.read(_nth(ledgers, middle), entries_max=1, bytes_max=1)
        if not entries or publish_time_of(entries[0].entry) >= publish_time_ms:
            high = middle
        else:
            low = middle + 1
    return _nth(ledgers, low) if low < total else None


def nth_position(ledgers: Sequence[LedgerRecord], number: int, *, from_end: bool) -> Position | None:
    """Return the ``number``-th entry, from 1, counted from the first entry or back from the last one.

    Counted from the first entry, the result is at most the last one; None if there is no such entry.
    """
    filled = [ledger for ledger in ledgers if ledger.entries]
    total = sum(ledger.entries for ledger in filled)
    index = total - number if from_end else min(number, total) - 1
    return _nth(filled, index) if index >= 0 else None


def publish_time_of(entry: bytes) -> int:
    """Return the publish time in ms, by the broker's clock if it is noted, else by the producer's; 0 if unreadable."""
    added = broker_entry_metadata_of(entry)
    if added.HasField("broker_timestamp"):
        return added.broker_timestamp
    try:
        return message_metadata_of(entry).publish_time
    except PersistenceError:
        return 0


def bytes_after(ledgers: Sequence[LedgerRecord], position: Position) -> int:
    """Estimate the bytes after a position, from the average entry of its ledger."""
    total = 0
    for ledger in ledgers:
        if ledger.ledger_id > position.ledger:
            total += ledger.size
        elif ledger.ledger_id == position.ledger and ledger.entries:
            total += ledger.size * max(0, ledger.entries - 1 - position.entry) // ledger.entries
    return total


def position_leaving(ledgers: Sequence[LedgerRecord], after: Position, size: int) -> Position:
    """Return the first position, not before ``after``, with at most this many bytes after it (`bytes_after`)."""
    left = size
    for ledger in reversed(ledgers):
        if ledger.size > left and ledger.entries:
            return max(after, Position(ledger.ledger_id, ledger.entries - 1 - left * ledger.entries // ledger.size))
        left -= ledger.size
    return after


def _nth(ledgers: Sequence[LedgerRecord], index: int) -> Position:
    for ledger in ledgers:
        if index < ledger.entries:
            return Position(ledger.ledger_id, index)
        index -= ledger.entries
    raise IndexError(index)


def waiting(log: Log, cursor: Cursor | None) -> Iterator[Position]:
    """Yield every durable unacknowledged entry, oldest first; without a cursor, every durable entry."""
    position = EARLIEST if cursor is None else cursor.mark_delete
    while (following := log.next_position(position)) is not None:
        position = following
        if cursor is None or not cursor.is_acknowledged(position):
            yield position


def nth_waiting(log: Log, cursor: Cursor | None, number: int) -> Position | None:
    """Return the ``number``-th unacknowledged entry, from 1; None if there are fewer."""
    return next(islice(waiting(log, cursor), number - 1, None), None)


def after_skipping(log: Log, cursor: Cursor, number: int) -> Position:
    """Return the mark-delete position after the first ``number`` unacknowledged entries."""
    return max(islice(waiting(log, cursor), max(number, 0)), default=cursor.mark_delete)


def trim_before(
    ledgers: Sequence[LedgerRecord], acknowledged: Position, retention: RetentionPolicies, now_ms: int
) -> Position | None:
    """Return the position before which everything may be trimmed; None = nothing.

    ``acknowledged`` is the mark-delete position of the slowest durable cursor, ``LATEST`` when there is none. A ledger
    counts as full from the time at which the next one begins.
    """
    before: Position | None = None
    retained_bytes = sum(ledger.size for ledger in ledgers)
    for ledger, following in pairwise(ledgers):
        passed = acknowledged >= Position(ledger.ledger_id, ledger.entries - 1)
        too_old = 0 <= retention.time_minutes * 60_000 <= now_ms - following.created_ms
        too_large = 0 <= retention.size_mb * _MEGABYTE < retained_bytes
        if not passed or not (too_old or too_large):
            break
        before = Position(following.ledger_id, 0)
        retained_bytes -= ledger.size
    return before
