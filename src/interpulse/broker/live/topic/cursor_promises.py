"""What tasks that copy from a replication cursor may rely on (`wire/commands/cursor_promise.py`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from interpulse.wire.commands.cursor_promise import HELD_S

__all__ = ["CursorPromises"]


class CursorPromises:
    """Of one replication cursor. It begins with a promise: the broker that had the topic before may have given one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._now = clock
        self._until = clock() + HELD_S
        self._settled_at = 0.0

    def give(self) -> None:
        """A task was told the mark-delete position."""
        self._until = self._now() + HELD_S

    def cursor_moved(self) -> None:
        """Tasks may send what the cursor was moved past until the promises given so far are over."""
        self._settled_at = self._until

    @property
    def seconds_left(self) -> float:
        """The time until no task sends any more what the cursor was moved past before."""
        return max(0.0, self._settled_at - self._now())

    async def settled(self) -> None:
        """Return when no task sends any more what the cursor was moved past before this call."""
        await asyncio.sleep(self.seconds_left)
