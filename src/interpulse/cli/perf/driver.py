"""Open load: events start when they are due, whatever happened to earlier ones."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from interpulse.cli.perf.measured_run import MeasuredRun
from interpulse.cli.perf.schedule import Schedule
from interpulse.cli.support.running import CommandFailed

LATENCY_MAX_US: Final = 3_600_000_000
_BEGUN_AT_ONCE: Final = 100
"""Due events to start before looking at answers."""
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

    def schedule(self, start: float) -> Schedule:
        return Schedule(self.rate, start, self.count_max, self.duration_s)


class Outstanding:
    """Counter of events without an answer, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.count = 0
        self._changed = asyncio.Event()

    @property
    def is_full(self) -> bool:
        return self.count >= self._limit

    def add(self) -> None:
        self.count += 1

    def remove(self) -> None:
        self.count -= 1
        self._changed.set()

    async def room(self) -> None:
        while self.is_full:
            await self._change()

    async def none(self) -> None:
        while self.count:
            await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class Driver:
    """Runner of a load. Starts its events and measures each from its due time to its answer."""

    def __init__(self, run: MeasuredRun, load: Load) -> None:
        self._run = run
        self._load = load
        self._loop = asyncio.get_running_loop()
        self._schedule = load.schedule(self._loop.time())
        self._outstanding = Outstanding(load.outstanding_max)
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
                await self._outstanding.none()
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
            if self._outstanding.is_full:
                if self._load.rate:
                    self._run.generator.waits()
                await self._outstanding.room()
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
