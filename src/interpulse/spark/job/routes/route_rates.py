"""Copy rates of a route's topic-partitions and estimates of waiting messages, from what the batches wrote.

Pure: time is an argument.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

_WINDOW_S: Final = 10.0


class CopyRate(NamedTuple):
    """Rate per second over the last ten seconds."""

    messages: float = 0.0
    bytes: float = 0.0


class RouteRates:
    """Recent writes of a route."""

    def __init__(self) -> None:
        self._written: deque[tuple[float, Mapping[str, Sequence[int]]]] = deque()
        self._messages_per_entry: dict[str, float] = {}

    def note(self, topics: Mapping[str, Sequence[int]], now: float) -> None:
        """Record the entries, messages and bytes of a completed batch by topic."""
        self._written.append((now, topics))
        for name, (entries, messages, _) in topics.items():
            self._messages_per_entry[name] = messages / entries

    def messages_in(self, name: str, entries: int | None) -> int | None:
        """Estimate the messages in waiting entries from the last written ones."""
        if not entries:
            return entries
        per_entry = self._messages_per_entry.get(name)
        return None if per_entry is None else round(entries * per_entry)

    def all(self, now: float) -> dict[str, CopyRate]:
        """Return the rates of topics that were written to; the others have none."""
        while self._written and self._written[0][0] <= now - _WINDOW_S:
            self._written.popleft()
        rates: dict[str, CopyRate] = {}
        for _, topics in self._written:
            for name, (_, messages, size) in topics.items():
                before = rates.get(name, CopyRate())
                rates[name] = CopyRate(before.messages + messages / _WINDOW_S, before.bytes + size / _WINDOW_S)
        return rates
