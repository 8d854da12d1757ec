"""How long to wait before trying again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from interpulse.model.errors import OperationTimeout, PulsarError

__all__ = ["Backoff", "retry"]

Answer = TypeVar("Answer")
_HELD_S: Final = 1.0


class Backoff:
    """Growing pauses: doubled each time up to a limit, each shortened by up to a tenth at random."""

    def __init__(self, initial_ms: int = 100, max_ms: int = 60_000) -> None:
        self._initial = initial_ms / 1000
        self._max = max_ms / 1000
        self._next = self._initial

    def next_pause(self) -> float:
        """Seconds to wait before the next attempt."""
        pause = self._next
        self._next = min(self._next * 2, self._max)
        return pause * random.uniform(0.9, 1.0)

    def reset(self) -> None:
        self._next = self._initial

    def pause_after(self, lasted: float) -> float:
        """Seconds to wait before coming back, when what was reached before lasted that many seconds.

        None after something that held; growing pauses while a peer lets us in and throws us out again.
        """
        if lasted < _HELD_S:
            return self.next_pause()
        self.reset()
        return 0.0


async def retry(
    attempt: Callable[[], Awaitable[Answer]],
    *,
    timeout_ms: int,
    backoff: Backoff,
    retriable: Callable[[PulsarError], bool] = lambda error: error.retriable,
    patient: bool = False,
) -> Answer:
    """Call ``attempt`` until it succeeds, fails for good, or the time is over (then the last failure is raised).

    ``patient``: an attempt may take as long as it likes; the time only limits how often it is begun.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    failure: PulsarError | None = None
    while True:
        try:
            async with asyncio.timeout_at(None if patient else deadline):
                return await attempt()
        except TimeoutError:
            raise failure or OperationTimeout(f"no answer within {timeout_ms} ms") from None
        except PulsarError as error:
            pause = backoff.next_pause()
            if not retriable(error) or loop.time() + pause >= deadline:
                raise
            failure = error
        await asyncio.sleep(pause)
