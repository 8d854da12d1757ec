"""The position of a replication pipeline's cursor on the source, for tasks that copy.

An operator may move the cursor while entries wait for a target that is away; so may time to live. Entries behind the
moved cursor must not be sent any more. Our brokers promise for a moment that the cursor stays
(`wire/cursor_promise.py`); after that moment a task asks again before it sends. Of another broker's cursor, a
task has only the position that the driver received when it planned the batch.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping

from interpulse.model.errors import NotAllowed
from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.lanes import unpack_sequence
from interpulse.wire.cursor_promise import VALID_S

Ask = Callable[[], Awaitable[Position]]


class CursorMoved(NotAllowed):
    """A cursor that was moved past entries that wait to be sent."""


class SourceMarks:
    """The marks of all topic-partitions of one task."""

    def __init__(
        self,
        known: Mapping[str, Position],
        ask: Callable[[str], Awaitable[Position]] | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with the driver's positions.

        ``ask`` returns the position of a topic-partition with the broker's promise.

        ``ask`` is None if there are no promises.
        """
        self._marks = dict(known)
        self._ask = ask
        self._valid_until: dict[str, float] = {}
        self._now = clock

    async def of(self, topic: str, ask: Ask | None = None) -> Position:
        """Return the position up to which nothing may be sent.

        All behind it may be sent before the next turn of the loop.

        ``ask`` is the request of an open reader. Raises the source's refusals.
        """
        if self._ask is not None and self._now() >= self._valid_until.get(topic, 0.0):
            asked_at = self._now()
            position = await (ask() if ask is not None else self._ask(topic))
            self._marks[topic] = max(position, self._marks.get(topic, EARLIEST))
            self._valid_until[topic] = asked_at + VALID_S
        return self._marks.get(topic, EARLIEST)

    async def permit(self, topic: str, sequence_id: int) -> None:
        """Check the cursor before the entry with this sequence id is sent. Raises CursorMoved."""
        mark, position = await self.of(topic), unpack_sequence(sequence_id)
        if position <= mark:
            raise CursorMoved(
                f"{topic}: the cursor was moved to {mark} while {position} waited to be sent; what lies behind the "
                f"cursor is copied next"
            )
