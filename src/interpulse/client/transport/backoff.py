"""Pauses between attempts, and retries."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from interpulse.model.errors import OperationTimeout, PulsarError

Answer = TypeVar("Answer")
_HELD_S: Final = 1.0


class Backoff:
    """Growing pauses: doubled each time up to a limit, each shortened by up to a tenth at random."""

    def __init__(self, initial_ms: int = 100, max_ms: int = 60_000) -> None:
        self._initial = initial_ms / 1000
        self._max = max_ms / 1000
        self._next = self._initial

    def next_pause(self) -> float:
        """Return the seconds to wait before the next attempt."""
        pause = self._next
        self._next = min(self._next * 2, self._max)
        return pause * random.uniform(0.9, 1.0)

    def reset(self) -> None:
        self._next = self._initial

    def pause_after(self, lasted: float) -> float:
        """Return the seconds to wait before reconnecting, after a connection that lasted ``seconds``.

        None after a lasting connection. The pauses grow while a peer accepts connections and closes them immediately.
        """
        if lasted < _HELD_S:
            return self.next_pause()
        self.reset()
        return 0.0


async def retry(
    attempt: Callable[[], Awaitable[Answer]],
    *,
    backoff: Backoff,
    timeout_ms: int | None,
    attempt_timeout_ms: int | None = None,
    retriable: Callable[[PulsarError], bool] = lambda error: error.retriable,
    patient: bool = False,
    on_pause: Callable[[PulsarError, float], None] = lambda failure, pause: None,
) -> Answer:
    """Call ``attempt`` until it succeeds, fails permanently, or time runs out. Raise the last failure.

    ``timeout_ms`` None: no limit. ``attempt_timeout_ms`` ends a single attempt, and another one follows. ``patient``:
    an attempt has no time limit, and the timeout only limits when one may start. ``on_pause`` receives the failure of
    an attempt and the seconds before the next one.
    """
    loop = asyncio.get_running_loop()
    deadline = math.inf if timeout_ms is None else loop.time() + timeout_ms / 1000
    longest = math.inf if attempt_timeout_ms is None or patient else attempt_timeout_ms / 1000
    failure: PulsarError | None = None
    try:
        while True:
            started = loop.time()
            end = min(math.inf if patient else deadline, started + longest)
            try:
                async with asyncio.timeout_at(None if end == math.inf else end):
                    return await attempt()
            except TimeoutError as ended:
                failure = (
                    _reason_within(ended) or failure or OperationTimeout(f"no answer within {end - started:.3g} s")
                )
            except PulsarError as error:
                if not retriable(error):
                    raise
                failure = error
            pause = backoff.next_pause()
            if loop.time() + pause >= deadline:
                raise failure
            on_pause(failure, pause)
            await asyncio.sleep(pause)
    except asyncio.CancelledError as ended:
        if ended.__cause__ is None:
            ended.__cause__ = failure  # for a `retry` around this one, whose attempt took too long
        raise


def _reason_within(ended: TimeoutError) -> PulsarError | None:
    """Return the reason why an attempt that took too long kept retrying, if it did."""
    cancelled = ended.__cause__
    reason = None if cancelled is None else cancelled.__cause__
    return reason if isinstance(reason, PulsarError) else None
