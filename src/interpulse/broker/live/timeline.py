"""Finds entries by the time they were published at.

Clocks of producers differ, so the order by time is that of the log only roughly, unless the broker noted its own time.
"""

from __future__ import annotations

from collections.abc import Sequence

from interpulse.broker.live.entry_metadata import broker_entry_metadata_of, message_metadata_of
from interpulse.model.errors import PersistenceError
from interpulse.model.ids import Position
from interpulse.storage.api import LedgerRecord, Log

__all__ = ["bytes_after", "first_published_since", "nth_position", "position_leaving", "publish_time_of"]


async def first_published_since(log: Log, publish_time_ms: int) -> Position | None:
    """The first entry published at or after this time, None if there is none. Reads one entry per halving."""
    ledgers = [each for each in log.ledgers if each.entries]
    low, high = 0, sum(each.entries for each in ledgers)
    total = high
    while low < high:
        middle = (low + high) // 2
        found = await log.read(_nth(ledgers, middle), entries_max=1, bytes_max=1)
        if not found or publish_time_of(found[0].entry) >= publish_time_ms:
            high = middle
        else:
            low = middle + 1
    return _nth(ledgers, low) if low < total else None


def nth_position(ledgers: Sequence[LedgerRecord], number: int, *, from_end: bool) -> Position | None:
    """The ``number``-th entry, from 1, counted from the first entry or back from the last one.

    Counted from the first one it is the last entry at most; None where there is no such entry.
    """
    held = [each for each in ledgers if each.entries]
    total = sum(each.entries for each in held)
    index = total - number if from_end else min(number, total) - 1
    return _nth(held, index) if index >= 0 else None


def publish_time_of(entry: bytes) -> int:
    """Milliseconds: by the broker's clock if it noted that, else by the producer's; 0 if it cannot be understood."""
    added = broker_entry_metadata_of(entry)
    if added.HasField("broker_timestamp"):
        return added.broker_timestamp
    try:
        return message_metadata_of(entry).publish_time
    except PersistenceError:
        return 0


def bytes_after(ledgers: Sequence[LedgerRecord], position: Position) -> int:
    """About how many bytes lie behind a position, from the average entry of its ledger."""
    total = 0
    for each in ledgers:
        if each.ledger_id > position.ledger:
            total += each.size
        elif each.ledger_id == position.ledger and each.entries:
            total += each.size * max(0, each.entries - 1 - position.entry) // each.entries
    return total


def position_leaving(ledgers: Sequence[LedgerRecord], after: Position, size: int) -> Position:
    """The first position, not before ``after``, behind which lie at most so many bytes as `bytes_after` counts them."""
    left = size
    for each in reversed(ledgers):
        if each.size > left and each.entries:
            return max(after, Position(each.ledger_id, each.entries - 1 - left * each.entries // each.size))
        left -= each.size
    return after


def _nth(ledgers: Sequence[LedgerRecord], index: int) -> Position:
    for each in ledgers:
        if index < each.entries:
            return Position(each.ledger_id, index)
        index -= each.entries
    raise IndexError(index)
