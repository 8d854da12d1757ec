"""Looks at one topic-partition over time: how many messages, and since when, follow a position. Pure."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from interpulse.model.ids import Position

_LOOKS_MAX: Final = 600
"""Number of looks that are remembered: ten minutes of changes each second."""


class Look(NamedTuple):
    """End of a topic-partition at a time, and the number of messages that clients had published."""

    at_ms: int
    end: Position
    messages: int


class Looks:
    """The last looks at one topic-partition, in order."""

    def __init__(self) -> None:
        self._looks: deque[Look] = deque(maxlen=_LOOKS_MAX)

    def add(self, look: Look) -> None:
        """Remember a look. A counter that begins again, because the topic was loaded again, forgets those before."""
        if self._looks and look.messages < self._looks[-1].messages:
            self._looks.clear()
        self._looks.append(look)

    def messages_after(self, position: Position, entries: int) -> int:
        """Return the number of messages behind ``position``, of which there are ``entries`` entries.

        Between two looks it is interpolated. An entry has one message at least.
        """
        newest = self._looks[-1]
        before = [look for look in self._looks if look.end <= position]
        after = next((look for look in self._looks if look.end > position), newest)
        if not before:
            return entries
        published = before[-1].messages + _between(before[-1], after, position)
        return max(entries, newest.messages - published)

    def age_ms(self, position: Position, now_ms: int) -> int | None:
        """Return the time since the first look that saw something behind ``position``; None if none did."""
        return next((now_ms - look.at_ms for look in self._looks if look.end > position), None)


def _between(before: Look, after: Look, position: Position) -> int:
    """Return the number of messages from a look up to ``position``, by their share of the entries."""
    if after.end.ledger != before.end.ledger or after.end.entry == before.end.entry:
        return 0
    share = (position.entry - before.end.entry) / (after.end.entry - before.end.entry)
    return round((after.messages - before.messages) * min(1.0, share))
