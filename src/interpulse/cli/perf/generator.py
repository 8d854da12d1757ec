"""Whether the load generator itself is what limits the load: then figures say nothing about the cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["Generator", "GeneratorFigures"]

_LOOK_EACH_S: Final = 0.1
_LAG_MAX_S: Final = 0.1
_LATE_MAX_S: Final = 0.1
_CAUGHT_UP_S: Final = 0.01
_CPU_MAX: Final = 0.95


@dataclass(frozen=True, slots=True)
class GeneratorFigures:
    """One interval of the generator."""

    cpu: float
    """Of one core, of which one event loop can use no more."""

    loop_lag_max_s: float
    late_max_s: float
    """The longest time between the moment a message was due and that at which it was sent, as far as the generator
    alone was in the way."""

    held_back: bool
    """The schedule waited for answers, as many were outstanding as may be."""

    def limits(self) -> list[str]:
        """Why the generator is the limit; nothing if it is not."""
        found = []
        if self.cpu >= _CPU_MAX:
            found.append(f"its processor is used up ({self.cpu:.0%} of a core)")
        if self.loop_lag_max_s >= _LAG_MAX_S:
            found.append(f"its event loop was {self.loop_lag_max_s * 1000:.0f} ms late")
        if self.late_max_s >= _LATE_MAX_S:
            found.append(f"it was {self.late_max_s * 1000:.0f} ms behind its schedule")
        return found


class Generator:
    """Watches its own process between `start` and `stop`."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, cpu_clock: Callable[[], float] = time.process_time
    ) -> None:
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._since, self._cpu_since = clock(), cpu_clock()
        self._lag = self._late = 0.0
        self._held = self._catches_up = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._since, self._cpu_since = self._clock(), self._cpu_clock()
        self._look(loop, loop.time())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def sends(self, late_s: float) -> None:
        """A message is sent so long after its time. While the schedule catches up, the generator is not to blame."""
        if self._catches_up:
            self._catches_up = late_s > _CAUGHT_UP_S
        else:
            self._late = max(self._late, late_s)

    def waits(self) -> None:
        """As many messages are outstanding as may be."""
        self._held = self._catches_up = True

    def take(self) -> GeneratorFigures:
        """What was seen since the last call."""
        now, cpu = self._clock(), self._cpu_clock()
        used = (cpu - self._cpu_since) / max(now - self._since, 1e-9)
        taken = GeneratorFigures(used, self._lag, self._late, self._held)
        self._since, self._cpu_since = now, cpu
        self._lag = self._late = 0.0
        self._held = self._catches_up
        return taken

    def _look(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        now = loop.time()
        self._lag = max(self._lag, now - due)
        self._timer = loop.call_at(now + _LOOK_EACH_S, self._look, loop, now + _LOOK_EACH_S)
