"""The position of a replication pipeline's cursor on the source, for tasks that copy.

An operator may move the cursor while entries wait to be sent, because the target is away; so may time to live. What it
was moved past is not sent any more. A broker of ours promises for a moment that it stands where it does
(`wire/commands/cursor_promise.py`); after that moment it is asked again before anything is sent. Of another broker's
cursor, a task knows only the position that the driver received when it planned the batch.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping

from interpulse.model.errors import NotAllowed
from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.lanes import unpack_sequence
from interpulse.wire.commands.cursor_promise import VALID_S

__all__ = ["CursorMoved", "SourceMarks"]

Ask = Callable[[], Awaitable[Position]]


class CursorMoved(NotAllowed):
    """The cursor was moved past entries that wait to be sent."""


class SourceMarks:
    """The marks of all topic-partitions of one task."""

    def __init__(
        self,
        known: Mapping[str, Position],
        ask: Callable[[str], Awaitable[Position]] | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``known``: what the driver knew. ``ask`` gives the position of a topic-partition with the broker's promise;
        None where there are no promises."""
        self._marks = dict(known)
        self._ask = ask
        self._valid_until: dict[str, float] = {}
        self._now = clock

    async def of(self, topic: str, ask: Ask | None = None) -> Position:
        """Nothing up to this position may be sent, all behind it may be sent before the next turn of the loop.

        ``ask`` is an open reader's way to ask. Raises what the source answers.
        """
        if self._ask is not None and self._now() >= self._valid_until.get(topic, 0.0):
            asked_at = self._now()
            position = await (ask() if ask is not None else self._ask(topic))
            self._marks[topic] = max(position, self._marks.get(topic, EARLIEST))
            self._valid_until[topic] = asked_at + VALID_S
        return self._marks.get(topic, EARLIEST)

    async def permit(self, topic: str, sequence_id: int) -> None:
        """Ask before the entry of a lane with this sequence id is sent. Raises CursorMoved."""
        mark, position = await self.of(topic), unpack_sequence(sequence_id)
        if position <= mark:
            raise CursorMoved(
                f"{topic}: the cursor was moved to {mark} while {position} waited to be sent; what lies behind the "
                f"cursor is copied next"
            )
