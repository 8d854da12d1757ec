"""Time and randomness of a simulated world, in place of the machine's.

`install` replaces functions of `time`, `random` and `os`. It comes before the first import of interpulse: defaults such
as ``now=time.monotonic`` keep the function that they find. Without a world the functions of the machine answer.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

real_monotonic = time.monotonic
real_time_ns = time.time_ns
real_process_time = time.process_time


class Source(Protocol):
    """The time and the randomness of one moment in a world."""

    def monotonic_ns(self) -> int:
        """Return the time that never jumps."""

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970 by the clock of the node that runs."""

    def randomness(self) -> random.Random:
        """Return the randomness of the node that runs."""


_source: Source | None = None

_DRAWN = (
    *("betavariate", "choice", "choices", "expovariate", "gauss", "getrandbits", "randbytes", "randint"),
    *("random", "randrange", "sample", "shuffle", "triangular", "uniform"),
)


def enter(source: Source) -> None:
    """Let this world answer from now on."""
    global _source
    _source = source


def install() -> None:
    """Replace the functions. Raise RuntimeError after the first import of interpulse."""
    if "interpulse" in sys.modules:
        raise RuntimeError("interpulse is loaded, and may hold the machine's clock: install the patches first")
    for module, name, of_world in (
        (time, "time", lambda source: source.wall_ns() / 1e9),
        (time, "time_ns", lambda source: source.wall_ns()),
        (time, "monotonic", lambda source: source.monotonic_ns() / 1e9),
        (time, "monotonic_ns", lambda source: source.monotonic_ns()),
        (time, "perf_counter", lambda source: source.monotonic_ns() / 1e9),
        (time, "perf_counter_ns", lambda source: source.monotonic_ns()),
    ):
        _replace(module, name, of_world)
    real_clock = time.clock_gettime
    time.clock_gettime = lambda clock: real_clock(clock) if _source is None else _source.monotonic_ns() / 1e9
    for name in _DRAWN:
        _replace_drawn(random, name, name)
    _replace_drawn(os, "urandom", "randbytes")
    random._urandom = os.urandom  # type: ignore[attr-defined]  # `SystemRandom` and thereby `secrets`


def _replace(module: object, name: str, of_world: Callable[[Any], float]) -> None:
    real = getattr(module, name)
    setattr(module, name, lambda: real() if _source is None else of_world(_source))


def _replace_drawn(module: object, name: str, method: str) -> None:
    real = getattr(module, name)

    def drawn(*arguments: Any, **options: Any) -> Any:
        draw = real if _source is None else getattr(_source.randomness(), method)
        return draw(*arguments, **options)

    setattr(module, name, drawn)
