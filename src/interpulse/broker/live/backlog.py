"""Walks over the unacknowledged entries of a cursor."""

from __future__ import annotations

from collections.abc import Iterator

from interpulse.broker.live.cursor import Cursor
from interpulse.model.ids import EARLIEST, Position
from interpulse.storage.api import Log


def waiting(log: Log, cursor: Cursor | None) -> Iterator[Position]:
    """Yield every durable unacknowledged entry, oldest first; without a cursor, every durable entry."""
    position = EARLIEST if cursor is None else cursor.mark_delete
    while (following := log.next_position(position)) is not None:
        position = following
        if cursor is None or not cursor.is_acknowledged(position):
            yield position


def nth_waiting(log: Log, cursor: Cursor | None, number: int) -> Position | None:
    """Return the ``number``-th unacknowledged entry, from 1; None if there are fewer."""
    for count, position in enumerate(waiting(log, cursor), 1):
        if count >= number:
            return position
    return None


def after_skipping(log: Log, cursor: Cursor, number: int) -> Position:
    """Return the mark-delete position after the first ``number`` unacknowledged entries."""
    upto = cursor.mark_delete
    if number > 0:
        for count, position in enumerate(waiting(log, cursor), 1):
            upto = position
            if count >= number:
                break
    return upto
