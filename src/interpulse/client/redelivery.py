"""Entries to be asked for again: refused by the application, or not acknowledged in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from interpulse.model.ids import Position

__all__ = ["RedeliveryTimer"]


class RedeliveryTimer:
    """Remembers entries for ``delay_ms`` and then hands over those that are due together."""

    def __init__(self, delay_ms: int, redeliver: Callable[[list[Position]], None]) -> None:
        self._delay = delay_ms / 1000
        self._redeliver = redeliver
        self._due: dict[Position, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._due)

    def add(self, position: Position) -> None:
        """Start (or start again) the delay of an entry."""
        self._due.pop(position, None)
        self._due[position] = self._loop.time() + self._delay
        self._arm()

    def discard(self, position: Position) -> None:
        self._due.pop(position, None)

    def discard_up_to(self, position: Position) -> None:
        self._due = {key: due for key, due in self._due.items() if key > position}

    def clear(self) -> None:
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is None and self._due:
            self._timer = self._loop.call_at(next(iter(self._due.values())), self._on_due)

    def _on_due(self) -> None:
        """All delays are equal, so entries become due in the order they were added."""
        self._timer = None
        now = self._loop.time()
        due = []
        for position, moment in self._due.items():
            if moment > now:
                break
            due.append(position)
        for position in due:
            del self._due[position]
        if due:
            self._redeliver(due)
        self._arm()
