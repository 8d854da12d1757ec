"""Promises to the tasks that copy from a replication cursor (`wire/cursor_promise.py`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from interpulse.wire.cursor_promise import HELD_S


class CursorPromises:
    """The promises of one replication cursor. The first is assumed: the topic's previous broker may have given it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._now = clock
        self._until = clock() + HELD_S
        self._settled_at = 0.0

    def give(self) -> None:
        """Note that a task receives the mark-delete position."""
        self._until = self._now() + HELD_S

    def cursor_moved(self) -> None:
        """Note that the cursor moved. Tasks may send the entries that it passed until the current promises end."""
        self._settled_at = self._until

    @property
    def seconds_left(self) -> float:
        """The time until no task sends entries that the cursor has passed."""
        return max(0.0, self._settled_at - self._now())

    async def settled(self) -> None:
        """Return when no task sends entries that the cursor passed before this call."""
        await asyncio.sleep(self.seconds_left)
