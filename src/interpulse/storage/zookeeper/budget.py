"""A bound on bytes in flight."""

from __future__ import annotations

import asyncio
from collections import deque


class Budget:
    """A number of bytes to take and give back. Callers that exceed it wait in turn."""

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max
        self._max = bytes_max
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, count: int) -> int:
        """Wait until the bytes are free, and return the number to give back. A request above the bound takes all."""
        count = min(count, self._max)
        if self._left >= count and not self._waiting:
            self._left -= count
            return count
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(count)
            else:
                self._waiting.remove((count, turn))
                self._wake()
            raise
        return count

    def give_back(self, count: int) -> None:
        """Free bytes that were taken."""
        self._left += count
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._left:
            count, turn = self._waiting.popleft()
            self._left -= count
            turn.set_result(None)
