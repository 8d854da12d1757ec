"""The delay of the event loop: while it works for one client, all others wait."""

from __future__ import annotations

import asyncio
from typing import Final

from interpulse.storage.meters import Histogram

LAG_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

_EACH_SECONDS: Final = 0.2


class LoopLag:
    """A probe of the clock, five times a second between `start` and `stop`."""

    def __init__(self, each_seconds: float = _EACH_SECONDS) -> None:
        self.seconds = Histogram(LAG_SECONDS)
        self._each_seconds = each_seconds
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._due(loop, loop.time())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _due(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        now = loop.time()
        self.seconds.add(max(0.0, now - due))
        due = now + self._each_seconds
        self._timer = loop.call_at(due, self._due, loop, due)
