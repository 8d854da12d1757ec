"""Results of slow work, such as examining all topics: computed in the background and cached for a while.

A page shows the cached result with its age, and never waits long. Results that no page asks for are dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

_FRESH_SECONDS: Final = 2.0
_SHARE: Final = 20
"""The age for renewal in units of the computing time: a watched page takes a twentieth of the processor."""
_WAIT_SECONDS: Final = 0.12
_KEPT_MAX: Final = 16
_UNSEEN_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class CachedResult(Generic[T]):
    """A result with its age. ``value`` is None until the first one is there: ask again in a second."""

    value: T | None
    age_seconds: float = 0.0


@dataclass(slots=True)
class _Entry:
    value: Any = None
    made_at: float | None = None
    took: float = 0.0
    seen_at: float = 0.0
    task: asyncio.Task[Any] | None = None


class ResultCache:
    """Results by key. Bounded: the least recently used ones go first."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Create a cache; ``now`` returns seconds of a monotonic clock."""
        self._now = now
        self._entries: dict[Hashable, _Entry] = {}

    async def get(
        self, key: Hashable, make: Callable[[], Awaitable[T]], *, fresh_seconds: float = _FRESH_SECONDS
    ) -> CachedResult[T]:
        """Return the result of a key, made by ``make`` unless a fresh one is cached. Raise the failure of ``make``."""
        now = self._now()
        self._forget(now)
        entry = self._entries.setdefault(key, _Entry())
        entry.seen_at = now
        if entry.task is None and _is_stale(entry, now, fresh_seconds):
            entry.task = asyncio.create_task(self._make(entry, make), name=f"console result {key}")
        if entry.task is not None:
            await asyncio.wait({entry.task}, timeout=_WAIT_SECONDS)
        if entry.task is not None and entry.task.done():
            task, entry.task = entry.task, None
            if task.cancelled():  # invalidated meanwhile
                return CachedResult(None)
            task.result()
        age = 0.0 if entry.made_at is None else self._now() - entry.made_at
        return CachedResult(entry.value, age)

    def forget(self) -> None:
        """Drop all results and cancel work under way. Called after a change and at the end."""
        for entry in self._entries.values():
            if entry.task is not None:
                entry.task.cancel()
        self._entries.clear()

    async def _make(self, entry: _Entry, make: Callable[[], Awaitable[Any]]) -> None:
        begin = self._now()
        value = await make()
        entry.value, entry.made_at, entry.took = value, self._now(), self._now() - begin

    def _forget(self, now: float) -> None:
        idle = {key: entry for key, entry in self._entries.items() if entry.task is None}
        oldest_first = sorted(idle, key=lambda key: idle[key].seen_at)
        for key in oldest_first:
            unseen = now - idle[key].seen_at > _UNSEEN_SECONDS
            if unseen or len(self._entries) > _KEPT_MAX:
                del self._entries[key]


def _is_stale(entry: _Entry, now: float, fresh_seconds: float) -> bool:
    return entry.made_at is None or now - entry.made_at > max(fresh_seconds, _SHARE * entry.took)
