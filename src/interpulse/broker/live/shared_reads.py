"""Reads of a topic's log, shared by its subscriptions.

Subscriptions that are close together read a backlog from disk once: who asks for entries that are just being read waits
for that read, and the last pieces are kept for those that are a little behind. A topic with one subscription keeps
nothing.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

from interpulse.model.ids import Position
from interpulse.storage.api import Log, LogEntry

__all__ = ["KEPT_BYTES_MAX", "SharedReads"]

KEPT_BYTES_MAX = 10 * 1024 * 1024
"""Of all pieces together; the newest one stays, however large."""

_position = itemgetter(0)


class _Piece(NamedTuple):
    """What the log held from ``start`` on."""

    start: Position
    entries: list[LogEntry]
    size: int


class SharedReads:
    """See the module."""

    def __init__(self, log: Log, shared: Callable[[], bool]) -> None:
        """``shared`` tells whether anybody else may want what was read."""
        self._log = log
        self._shared = shared
        self._pieces: deque[_Piece] = deque()
        self._under_way: dict[Position, asyncio.Event] = {}
        self._used = False

    @property
    def kept_bytes(self) -> int:
        return sum(each.size for each in self._pieces)

    async def read(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        """As `Log.read`; entries that were read together may come in smaller pieces."""
        while True:
            found = self._kept(start)
            if found:
                self._used = True
                return found
            reading = self._under_way.get(start)
            if reading is None:
                return await self._read(start, entries_max, bytes_max)
            await reading.wait()

    def forget_unused(self) -> None:
        """Called from time to time: what nobody wanted meanwhile goes."""
        if not self._used:
            self._pieces.clear()
        self._used = False

    async def _read(self, start: Position, entries_max: int, bytes_max: int) -> list[LogEntry]:
        done = self._under_way[start] = asyncio.Event()
        try:
            found = await self._log.read(start, entries_max=entries_max, bytes_max=bytes_max)
        finally:
            del self._under_way[start]
            done.set()
        if found and self._shared():
            self._keep(_Piece(start, found, sum(len(each.payload) for each in found)))
        return list(found)

    def _keep(self, piece: _Piece) -> None:
        self._used = True
        self._pieces.append(piece)
        kept = self.kept_bytes
        while kept > KEPT_BYTES_MAX and len(self._pieces) > 1:
            kept -= self._pieces.popleft().size

    def _kept(self, start: Position) -> list[LogEntry]:
        for piece in reversed(self._pieces):
            if piece.start <= start <= piece.entries[-1].position:
                return piece.entries[bisect_left(piece.entries, start, key=_position) :]
        return []
