"""Samples of topics while somebody watches them: one task for each topic, however many watch, and bounded memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final

from interpulse.broker.console.web.response import EventStream, event
from interpulse.model.errors import PulsarError, ServiceNotReady

__all__ = ["Samples"]

_EVERY_SECONDS: Final = 1.0
_KEPT: Final = 300
"""Of five minutes: who comes sees what was, who reads slowly misses what is older."""
_WATCHERS_MAX: Final = 1000

Take = Callable[[], Awaitable[Any]]


@dataclass(slots=True)
class _Series:
    samples: deque[tuple[int, Any]] = field(default_factory=lambda: deque(maxlen=_KEPT))
    number: int = 0
    watchers: int = 0
    fresh: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Samples:
    """Series by key, each while it has watchers."""

    def __init__(self, every_seconds: float = _EVERY_SECONDS) -> None:
        self._every_seconds = every_seconds
        self._series: dict[Hashable, _Series] = {}

    @property
    def watchers(self) -> int:
        return sum(series.watchers for series in self._series.values())

    def watch(self, key: Hashable, take: Take, check: Callable[[], Awaitable[str]]) -> EventStream:
        """Events of a series, a list of samples each; ``take`` gives a sample.

        ``check`` says why the visitor may not see it any more, "" while they may. Raises ServiceNotReady.
        """
        if self.watchers >= _WATCHERS_MAX:
            raise ServiceNotReady(f"{_WATCHERS_MAX} charts are watched already; close one of them")
        return self._events(key, take, check)

    async def _events(self, key: Hashable, take: Take, check: Callable[[], Awaitable[str]]) -> EventStream:
        series = self._series.setdefault(key, _Series())
        series.watchers += 1
        if series.task is None:
            series.task = asyncio.create_task(self._sample(series, take), name=f"console samples {key}")
        seen = 0
        try:
            yield b": begins\n\n"
            while not series.task.done():
                new = [sample for number, sample in series.samples if number > seen]
                if new:
                    seen = series.number
                    yield event(new)
                if refusal := await check():
                    yield b"event: ended\n" + event(refusal)
                    return
                if series.number == seen:
                    await series.fresh.wait()
            yield b"event: ended\n" + event("the topic cannot be looked at any more")
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
                series.samples.append((series.number, sample))
                self._announce(series)
                await asyncio.sleep(self._every_seconds)
        except PulsarError:
            return  # the watchers are told
        finally:
            self._announce(series)

    def _announce(self, series: _Series) -> None:
        series.fresh.set()
        series.fresh = asyncio.Event()
