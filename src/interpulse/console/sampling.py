"""Samples of topics while visitors watch them: one task per topic, for any number of watchers, and bounded memory.

A sample is taken and written as JSON once for all its watchers. These are woken a few at a time, so that a thousand of
them keep no message waiting, and less often the more they are.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from interpulse.console.web.response import EventStream, event, event_of_all, to_json
from interpulse.model.errors import PulsarError, ServiceNotReady

_STORED_MAX: Final = 300
"""Samples of five minutes. A new watcher gets them all, a slow one misses older samples."""
_WOKEN_AT_ONCE: Final = 20
"""Writing to them takes about a millisecond."""

Take = Callable[[], Awaitable[Any]]


class PollingRate:
    """The shared rate of all watchers of one kind: the more there are, the less often each polls."""

    def __init__(self, what: str, *, every_seconds: float, per_second_max: float, most: int) -> None:
        """Allow at most ``most`` watchers; ``what`` names the watched things in the refusal.

        Each watcher has a turn every ``every_seconds``, or less often so that all have ``per_second_max`` together.
        """
        self.watchers = 0
        self._what = what
        self._every_seconds = every_seconds
        self._per_second_max = per_second_max
        self._most = most

    @property
    def seconds(self) -> float:
        """The seconds between two turns of one watcher."""
        return max(self._every_seconds, self.watchers / self._per_second_max)

    def check_room(self) -> None:
        """Raise ServiceNotReady if one more watcher is too many."""
        if self.watchers >= self._most:
            raise ServiceNotReady(f"{self._most} {self._what} are watched already; close one of them")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count one more watcher inside. Raise ServiceNotReady if that is too many."""
        self.check_room()
        self.watchers += 1
        try:
            yield
        finally:
            self.watchers -= 1


@dataclass(slots=True)
class _Series:
    samples: deque[str] = field(default_factory=lambda: deque(maxlen=_STORED_MAX))
    """Samples as JSON."""

    number: int = 0
    """The number of the last sample."""

    watchers: int = 0
    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    def since(self, number: int) -> list[str]:
        """Return the stored samples after this number."""
        stored = len(self.samples)
        return list(islice(self.samples, max(0, stored - (self.number - number)), stored))

    async def change(self) -> None:
        """Return when a sample arrives or the series ends."""
        self.waiting.append(asyncio.get_running_loop().create_future())
        await self.waiting[-1]

    async def wake_all(self) -> None:
        """Wake the current watchers. Yields to other work in between."""
        waiting, self.waiting = self.waiting, []
        for number, watcher in enumerate(waiting, 1):
            if not watcher.done():
                watcher.set_result(None)
            if number % _WOKEN_AT_ONCE == 0:
                await asyncio.sleep(0)

    def end(self) -> None:
        """Wake all watchers at the end of the series."""
        for watcher in self.waiting:
            if not watcher.done():
                watcher.set_result(None)


class Samples:
    """Series by key, each while it has watchers."""

    def __init__(self, rate: PollingRate) -> None:
        self._rate = rate
        self._series: dict[Hashable, _Series] = {}

    def watch(self, key: Hashable, take: Take, check: Callable[[], Awaitable[str]]) -> EventStream:
        """Return the events of a series, a list of samples each; ``take`` returns one sample.

        ``check`` returns the reason that the visitor may no longer see it, else "". Raises ServiceNotReady.
        """
        self._rate.check_room()
        return self._events(key, take, check)

    async def _events(self, key: Hashable, take: Take, check: Callable[[], Awaitable[str]]) -> EventStream:
        series = self._series.setdefault(key, _Series())
        series.watchers += 1
        if series.task is None:
            series.task = asyncio.create_task(self._sample(series, take), name=f"console samples {key}")
        seen = 0
        try:
            with self._rate.watching():
                yield b": begins\n\n"
                while not series.task.done():
                    if new := series.since(seen):
                        seen = series.number
                        yield event_of_all(new)
                    if refusal := await check():
                        yield b"event: ended\n" + event(refusal)
                        return
                    if series.number == seen and not series.task.done():
                        await series.change()
                yield b"event: ended\n" + event("the topic is no longer visible")
        finally:
            series.watchers -= 1
            if not series.watchers:
                series.task.cancel()
                if self._series.get(key) is series:
                    del self._series[key]

    async def _sample(self, series: _Series, take: Take) -> None:
        try:
            while True:
                sample = await take()
                series.number += 1
                series.samples.append(to_json(sample))
                await series.wake_all()
                await asyncio.sleep(self._rate.seconds)
        except PulsarError:
            return  # watchers see the series end
        finally:
            series.end()
