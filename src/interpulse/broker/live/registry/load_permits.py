"""How many topics are loaded at once (``maxConcurrentTopicLoadRequest``); one more waits for its turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType

__all__ = ["LoadPermits"]


class LoadPermits:
    """Each load runs inside ``async with permits:``. Those that wait go on in the order in which they came."""

    def __init__(self, limit: Callable[[], int]) -> None:
        """``limit`` is asked each time: it is a dynamic setting."""
        self._limit = limit
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def taken(self) -> int:
        """How many run now."""
        return self._taken

    async def __aenter__(self) -> None:
        """Take a permit, when there is one."""
        if self._taken < self._limit() and not self._waiting:
            self._taken += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn  # whoever ends it has taken the permit
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back, whatever happened."""
        self._give_back()

    def _give_back(self) -> None:
        self._taken -= 1
        while self._waiting and self._taken < self._limit():
            turn = self._waiting.popleft()
            if not turn.done():  # who waited for it may be gone
                self._taken += 1
                turn.set_result(None)
