"""Open load: events start when they are due, whatever happened to earlier ones."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from interpulse.cli.perf.measured_run import MeasuredRun
from interpulse.cli.support.running import CommandFailed

LATENCY_MAX_US: Final = 3_600_000_000
_BEGUN_AT_ONCE: Final = 100
"""Due events to start before looking at answers."""
_ENDLESS: Final = 2**63
_ANSWERS_WAIT_S: Final = 10.0
_MISSED_S: Final = 0.1
"""Seconds of missed events that are not reported: a run that ends in the middle of a burst misses a few."""


@dataclass(frozen=True, slots=True)
class Load:
    """Rate, limits and schedule of a run."""

    rate: float
    count_max: int
    duration_s: float
    warmup_s: float
    outstanding_max: int
    ends_on_failure: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """Evenly spaced events: ``rate`` per second from ``start`` on, in seconds of some clock.

    The number of an event determines its due time, which does not move when the cluster is slow. Measuring from that
    time avoids coordinated omission: a message that waits because the previous one hangs counts as late. A rate of 0
    has no due times.
    """

    rate: float
    start: float
    count_max: int = 0
    """Total number of events; 0 means no limit."""

    duration_s: float = 0
    """Length in seconds; 0 means no limit."""

    def due(self, now: float) -> int:
        """Return how many events are due by then; the first is due at the start. Without due times, return all."""
        came = math.floor((now - self.start) * self.rate) + 1 if self.rate else _ENDLESS
        return min(max(0, came), self._count)

    def intended(self, index: int, now: float) -> float:
        """Return the due time of an event, counted from 0; without due times, the current time."""
        return self.start + index / self.rate if self.rate else now

    def is_over(self, index: int, now: float) -> bool:
        """Return True once enough events have started or the time is up."""
        return index >= self._count or (bool(self.duration_s) and now >= self.start + self.duration_s)

    def missed(self, index: int, now: float) -> int:
        """Return how many due events did not start when ``index`` of them did."""
        return max(0, self.due(now) - index) if self.rate else 0

    @property
    def _count(self) -> int:
        limits = [self.count_max] if self.count_max else []
        if self.rate and self.duration_s:
            limits.append(math.ceil(self.duration_s * self.rate))
        return min(limits, default=_ENDLESS)


class Outstanding:
    """Counter of events without an answer."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = asyncio.Event()

    def add(self) -> None:
        self.count += 1

    def remove(self) -> None:
        self.count -= 1
        self._changed.set()

    async def below(self, count: int) -> None:
        """Wait until fewer than ``count`` are outstanding."""
        while self.count >= count:
            self._changed.clear()
            await self._changed.wait()


class Driver:
    """Runner of a load. Starts its events and measures each from its due time to its answer."""

    def __init__(self, run: MeasuredRun, load: Load) -> None:
        self._run = run
        self._load = load
        self._loop = asyncio.get_running_loop()
        self._schedule = Schedule(load.rate, self._loop.time(), load.count_max, load.duration_s)
        self._outstanding = Outstanding()
        self._begun = 0
        self._failure: BaseException | None = None
        self._over = False

    async def drive(self, begin: Callable[[int, float], Awaitable[None]]) -> None:
        """Call ``begin`` with the number and due time of each event. Its end is reported to `answered` or `failed`.

        Returns when the load is over, after waiting at most ten seconds for outstanding answers; later ones do not
        count. Raises CommandFailed if an event failed and the load stops on failures.
        """
        end = self._schedule.start + self._load.duration_s if self._load.duration_s else None
        try:
            with contextlib.suppress(TimeoutError):  # the time is up, whatever is waited for
                async with asyncio.timeout_at(end):
                    while not self._schedule.is_over(self._begun, self._loop.time()):
                        await self._begin_due(begin)
            async with asyncio.timeout(_ANSWERS_WAIT_S):
                await self._outstanding.below(1)
            self._check_failure()
        except TimeoutError:
            self._run.warn(f"no answer came for the last ones within {_ANSWERS_WAIT_S:.0f} s; they are in no latency")
        finally:
            self._over = True
            missed = self._schedule.missed(self._begun, self._loop.time())
            self._run.left(self._outstanding.count)
            self._run.note(notSent=missed)
            if missed > self._load.rate * _MISSED_S:
                self._run.warn(f"{missed} came due and were not sent: the run was behind its schedule when it ended")

    async def _begin_due(self, begin: Callable[[int, float], Awaitable[None]]) -> None:
        now = self._loop.time()
        due = min(self._schedule.due(now) - self._begun, _BEGUN_AT_ONCE)
        if due <= 0:
            await asyncio.sleep(max(0.0, self._schedule.intended(self._begun, now) - now))
        for _ in range(due):
            if self._outstanding.count >= self._load.outstanding_max:
                if self._load.rate:
                    self._run.generator.waits()
                await self._outstanding.below(self._load.outstanding_max)
            self._check_failure()
            now = self._loop.time()
            if self._load.duration_s and self._schedule.is_over(self._begun, now):
                break
            intended = self._schedule.intended(self._begun, now)
            self._run.generator.sends(now - intended)
            self._outstanding.add()
            self._begun += 1
            await begin(self._begun - 1, intended)
        if due > 0:
            await asyncio.sleep(0)

    def answered(self, size: int, intended: float) -> None:
        """Record the answer to the event that was due at ``due``."""
        if self._over:
            return
        self._outstanding.remove()
        now = self._loop.time()
        warm = now >= self._schedule.start + self._load.warmup_s
        self._run.done(size, round((now - intended) * 1e6) if warm else None)

    def failed(self, error: BaseException) -> None:
        if self._over:
            return
        self._outstanding.remove()
        self._run.failed(error)
        self._failure = error

    def _check_failure(self) -> None:
        if self._failure is not None and self._load.ends_on_failure:
            raise CommandFailed(f"A message failed, and --exit-on-failure ends the run then: {self._failure}")
