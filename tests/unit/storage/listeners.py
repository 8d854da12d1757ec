"""A log listener that remembers, and lets tests wait without sleeping."""

from __future__ import annotations

import asyncio

from interpulse.model.ids import EARLIEST, Position
from interpulse.storage.api import Log


class Listener:
    def __init__(self) -> None:
        self.calls: list[Position] = []
        self.error: Exception | None = None
        self._changed = asyncio.Event()

    @property
    def last(self) -> Position:
        return self.calls[-1] if self.calls else EARLIEST

    def on_durable(self, last: Position) -> None:
        assert self.error is None, "durable after a failure"
        assert last > self.last, "durable positions must grow"
        self.calls.append(last)
        self._changed.set()

    def on_log_failed(self, error: Exception) -> None:
        assert self.error is None, "failed twice"
        self.error = error
        self._changed.set()

    async def durable(self, position: Position) -> None:
        while self.last < position:
            if self.error is not None:
                raise self.error
            self._changed.clear()
            await self._changed.wait()


async def read_all(log: Log, *, entries_max: int = 3, bytes_max: int = 1 << 20) -> list[bytes]:
    found: list[bytes] = []
    position: Position | None = EARLIEST
    while position is not None:
        entries = await log.read(position, entries_max=entries_max, bytes_max=bytes_max)
        if not entries:
            break
        found += [each.entry for each in entries]
        position = log.next_position(entries[-1].position)
    return found
