"""The limit for concurrent loads of topics (``maxConcurrentTopicLoadRequest``); others wait for their turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType


class LoadPermits:
    """The permits of loads: each runs inside ``async with permits:``. Waiting ones continue in order."""

    def __init__(self, limit: Callable[[], int]) -> None:
        """``limit`` is called each time: it is a dynamic setting."""
        self._limit = limit
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def taken(self) -> int:
        """The number of running loads."""
        return self._taken

    async def __aenter__(self) -> None:
        """Wait for a permit, and take it."""
        if self._taken < self._limit() and not self._waiting:
            self._taken += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn  # the task that ends the wait has taken the permit
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Return the permit, also after an error."""
        self._give_back()

    def _give_back(self) -> None:
        self._taken -= 1
        while self._waiting and self._taken < self._limit():
            turn = self._waiting.popleft()
            if not turn.done():  # the waiting task may be cancelled
                self._taken += 1
                turn.set_result(None)
