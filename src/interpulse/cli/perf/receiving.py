"""Load of ``perf consume`` and ``perf read``: received messages, each measured from its publishing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from interpulse.cli.messaging import Pace
from interpulse.cli.perf.measured_run import MeasuredRun
from interpulse.clock import now_ms
from interpulse.model.errors import AlreadyClosed

if TYPE_CHECKING:
    from interpulse.client.messages import Message

LATENCY_MAX_MS: Final = 10 * 86_400_000
_FUTURE_MS: Final = 5
"""Tolerated difference between the clocks of one machine."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """A consumer or a reader."""

    receive: Callable[[], Awaitable[Message]]
    done_with: Callable[[Message], None]


async def receive_all(
    run: MeasuredRun, receivers: Sequence[Receiver], *, rate: float, count_max: int, duration_s: float
) -> None:
    """Receive until ``count_max`` messages have arrived or the time is up, whichever is first. 0 means no limit."""
    pace = Pace(rate)
    enough = asyncio.Event()

    async def receive(receiver: Receiver) -> None:
        while True:
            message = await receiver.receive()
            await pace.wait()
            _measure(run, message)
            receiver.done_with(message)
            if count_max and run.messages >= count_max:
                enough.set()
                return

    tasks = [asyncio.create_task(receive(receiver)) for receiver in receivers]
    waiting = asyncio.create_task(enough.wait())
    everything: set[asyncio.Task[Any]] = {waiting, *tasks}
    try:
        await asyncio.wait(everything, timeout=duration_s or None, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done() and (error := task.exception()) is not None and not isinstance(error, AlreadyClosed):
                raise error
    finally:
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)


def _measure(run: MeasuredRun, message: Message) -> None:
    latency = now_ms() - message.publish_time_ms
    if latency < -_FUTURE_MS:
        run.warn(
            "messages come from the future: the clock of their producer goes before this one; latencies mean nothing"
        )
    run.done(len(message.content or b""), min(max(latency, 0), LATENCY_MAX_MS))
