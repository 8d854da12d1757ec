"""Reads of a topic's log, shared by its subscriptions, and the bound on entries that were read and not yet delivered.

Subscriptions at close positions read a backlog from disk once: a read of entries that are already being read waits for
that read, and the last pieces are cached for subscriptions a little behind, as long as the read buffer limiter allows.
Entries in the log's memory are also looked up once for all. A topic with one subscription caches nothing.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Sized
from itertools import count
from operator import itemgetter
from typing import NamedTuple
from weakref import WeakMethod

from interpulse.model.ids import Position
from interpulse.storage.api import Log, LogEntry

KEPT_BYTES_MAX = 10 * 1024 * 1024
"""Bytes of all pieces of a topic; the newest one stays, at any size."""

_LOOKED_UP_MAX = 4
"""Pieces that the log also has in memory. They save little, and subscriptions that drain a topic together are close."""

_LOOKED_UP_ENTRIES = 1000
_LOOKED_UP_ENTRIES_MIN = 100
"""Entries of the smallest piece worth caching; fewer are looked up as quickly in the log."""

_position, _entry = itemgetter(0), itemgetter(1)


class ReadBufferLimiter:
    """One bound, for the whole broker, on entries that were read and not delivered.

    Each owner registers the size of such entries and a callback that frees them. Above the bound, the entries that were
    read first are freed, and are read again when they are wanted. The entries that were read last stay, at any size, so
    every subscription makes progress.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._numbers = count()
        self._held: dict[int, tuple[int, WeakMethod[Callable[[int], None]]]] = {}
        """Size and callback of each registration, oldest first."""
        self.bytes_held = 0

    def hold(self, size: int, let_go: Callable[[int], None]) -> int:
        """Register ``size`` bytes, and return their number. The method ``let_go(number)`` is called to free them.

        The owner is not kept alive: the bytes of a deleted one count until their turn comes.
        """
        number = next(self._numbers)
        self._held[number] = size, WeakMethod(let_go)
        self.bytes_held += size
        while self.bytes_held > self._bytes_max and len(self._held) > 1:
            oldest = next(iter(self._held))
            _, owners_method = self._held[oldest]
            self.free(oldest)
            if (forget := owners_method()) is not None:
                forget(oldest)
        return number

    def shrink(self, number: int, size: int) -> None:
        """Reduce a registration to ``size`` bytes; does nothing if it was freed."""
        held = self._held.get(number)
        if held is not None:
            self._held[number] = size, held[1]
            self.bytes_held += size - held[0]

    def free(self, number: int) -> None:
        """End a registration; does nothing if it was freed."""
        held = self._held.pop(number, None)
        if held is not None:
            self.bytes_held -= held[0]


class _Piece(NamedTuple):
    """The entries of the log from ``start`` on."""

    start: Position
    entries: list[LogEntry]
    size: int


class SharedReads:
    """The shared reads of one topic."""

    __slots__ = ("__weakref__", "_log", "_looked_up", "_pieces", "_readers", "_under_way", "_used", "limiter")

    def __init__(self, log: Log, readers: Sized, limiter: ReadBufferLimiter) -> None:
        """``readers`` is a live view of the topic's subscriptions."""
        self.limiter = limiter
        self._log = log
        self._readers = readers
        self._pieces: dict[int, _Piece] = {}
        """Pieces by their number in the limiter, oldest first."""
        self._looked_up: list[int] = []
        """The numbers of pieces that the log also has in memory."""
        self._under_way: dict[Position, asyncio.Event] = {}
        self._used = False

    @property
    def kept_bytes(self) -> int:
        return sum(piece.size for piece in self._pieces.values())

    async def read(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        """Read entries; see `Log.read`. Shared entries may come in smaller pieces."""
        while True:
            cached = self._kept(start, entries_max)
            if cached:
                return cached
            reading = self._under_way.get(start)
            if reading is None:
                return await self._read(start, entries_max, bytes_max)
            await reading.wait()

    def read_cached(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry] | None:
        """Return entries in memory; see `Log.read_cached`. Shared entries may come in smaller pieces."""
        if not self._shared():
            return self._log.read_cached(start, entries_max=entries_max, bytes_max=bytes_max)
        cached = self._kept(start, entries_max)
        if cached:
            return cached
        entries = self._log.read_cached(start, entries_max=max(entries_max, _LOOKED_UP_ENTRIES), bytes_max=bytes_max)
        if entries is None:
            return None
        if len(entries) >= _LOOKED_UP_ENTRIES_MIN:
            self._looked_up.append(self._keep(_Piece(start, entries, sum(map(len, map(_entry, entries))))))
            if len(self._looked_up) > _LOOKED_UP_MAX:
                self._drop(self._looked_up.pop(0))
        return entries[:entries_max]

    def forget_unused(self) -> None:
        """Drop pieces that were not read since the last call. Call it periodically."""
        if not self._used:
            for number in list(self._pieces):
                self._drop(number)
        self._used = False

    def _shared(self) -> bool:
        return len(self._readers) > 1

    async def _read(self, start: Position, entries_max: int, bytes_max: int) -> list[LogEntry]:
        done = self._under_way[start] = asyncio.Event()
        try:
            entries = await self._log.read(start, entries_max=entries_max, bytes_max=bytes_max)
        finally:
            del self._under_way[start]
            done.set()
        if entries and self._shared():
            self._keep(_Piece(start, entries, sum(len(entry.entry) for entry in entries)))
        return list(entries)

    def _keep(self, piece: _Piece) -> int:
        self._used = True
        number = self.limiter.hold(piece.size, self._let_go)
        self._pieces[number] = piece
        size = self.kept_bytes
        while size > KEPT_BYTES_MAX and len(self._pieces) > 1:
            size -= self._drop(next(iter(self._pieces)))
        return number

    def _drop(self, number: int) -> int:
        self.limiter.free(number)
        piece = self._pieces.pop(number, None)
        return piece.size if piece is not None else 0

    def _let_go(self, number: int) -> None:
        del self._pieces[number]

    def _kept(self, start: Position, entries_max: int) -> list[LogEntry]:
        for piece in reversed(self._pieces.values()):
            if piece.start <= start <= piece.entries[-1].position:
                self._used = True
                first = bisect_left(piece.entries, start, key=_position)
                return piece.entries[first : first + entries_max]
        return []
