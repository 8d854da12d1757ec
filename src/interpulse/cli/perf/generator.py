"""Load of the generator itself. Where it is the limit, the measurement says nothing about the cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_LOOK_EACH_S: Final = 0.1
_LAG_MAX_S: Final = 0.1
_LATE_MAX_S: Final = 0.1
_CAUGHT_UP_S: Final = 0.01
_CPU_MAX: Final = 0.95


@dataclass(frozen=True, slots=True)
class GeneratorFigures:
    """Measurements of one interval."""

    cpu: float
    """Share of one core. An event loop can use no more than one."""

    loop_lag_max_s: float
    late_max_s: float
    """Longest delay in seconds between due and sending time for which the generator alone is responsible."""

    held_back: bool
    """True if the schedule waited for answers because the maximum number of messages was outstanding."""

    def limits(self) -> list[str]:
        """Return the reasons why the generator is the limit; empty if it is not."""
        reasons = []
        if self.cpu >= _CPU_MAX:
            reasons.append(f"its processor is used up ({self.cpu:.0%} of a core)")
        if self.loop_lag_max_s >= _LAG_MAX_S:
            reasons.append(f"its event loop was {self.loop_lag_max_s * 1000:.0f} ms late")
        if self.late_max_s >= _LATE_MAX_S:
            reasons.append(f"it was {self.late_max_s * 1000:.0f} ms behind its schedule")
        return reasons


class Generator:
    """Observer of its own process between `start` and `stop`."""

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
        """Record the delay of a message. While the schedule catches up, the generator is not responsible."""
        if self._catches_up:
            self._catches_up = late_s > _CAUGHT_UP_S
        else:
            self._late = max(self._late, late_s)

    def waits(self) -> None:
        """Record that the maximum number of messages is outstanding."""
        self._held = self._catches_up = True

    def take(self) -> GeneratorFigures:
        """Return the measurements since the last call."""
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
