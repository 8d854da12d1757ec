"""How fast each topic-partition of a route is copied, and how many messages wait, out of what the batches wrote.

Pure: time is an argument.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

__all__ = ["CopyRate", "RouteRates"]

_WINDOW_S: Final = 10.0


class CopyRate(NamedTuple):
    """Per second, over the last ten."""

    messages: float = 0.0
    bytes: float = 0.0


class RouteRates:
    """What was written lately."""

    def __init__(self) -> None:
        self._written: deque[tuple[float, Mapping[str, Sequence[int]]]] = deque()
        self._messages_per_entry: dict[str, float] = {}

    def note(self, topics: Mapping[str, Sequence[int]], now: float) -> None:
        """A batch is over: entries, messages and bytes of the topics it wrote to."""
        self._written.append((now, topics))
        for name, (entries, messages, _) in topics.items():
            self._messages_per_entry[name] = messages / entries

    def messages_in(self, name: str, entries: int | None) -> int | None:
        """About how many messages entries that wait hold, if they are like the last ones that were written."""
        if not entries:
            return entries
        per_entry = self._messages_per_entry.get(name)
        return None if per_entry is None else round(entries * per_entry)

    def all(self, now: float) -> dict[str, CopyRate]:
        """Those of the topics that something was written to; the others stand still."""
        while self._written and self._written[0][0] <= now - _WINDOW_S:
            self._written.popleft()
        found: dict[str, CopyRate] = {}
        for _, topics in self._written:
            for name, (_, messages, size) in topics.items():
                before = found.get(name, CopyRate())
                found[name] = CopyRate(before.messages + messages / _WINDOW_S, before.bytes + size / _WINDOW_S)
        return found
