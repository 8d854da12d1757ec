"""The selection of a consumer for each entry, and the entries that wait for one.

`round_robin_selector` selects for Shared, `key_selector` for Key_Shared. *Replays* are entries to be sent outside the
order of the log: returned by a consumer, held for one that cannot take them now, or due after a delay. The selector
owns them, because their order depends on the consumers that may get them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.model.ids import Position


class Replays:
    """A sorted set of positions: most come in order, and most leave from the front."""

    __slots__ = ("_positions",)

    def __init__(self, positions: Iterable[Position] = ()) -> None:
        self._positions = sorted(positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[Position]:
        return iter(self._positions)

    def __contains__(self, position: Position) -> bool:
        index = bisect_left(self._positions, position)
        return index < len(self._positions) and self._positions[index] == position

    def first(self, count: int) -> list[Position]:
        """Return the oldest replays, at most this many; they stay."""
        return self._positions[:count]

    def add(self, position: Position) -> None:
        """Add a position; does nothing if it is present."""
        positions = self._positions
        if not positions or positions[-1] < position:
            positions.append(position)
        elif position not in self:
            positions.insert(bisect_left(positions, position), position)

    def add_all(self, coming: Sequence[Position]) -> None:
        """Add positions, in order, of which none is present."""
        if coming:
            held = self._positions
            behind = bisect_left(held, coming[0])
            held[behind:] = sorted([*coming, *held[behind:]]) if behind < len(held) else coming

    def discard(self, position: Position) -> bool:
        """Remove a position; return False if it was absent."""
        index = bisect_left(self._positions, position)
        if index == len(self._positions) or self._positions[index] != position:
            return False
        del self._positions[index]
        return True

    def discard_all(self, gone: Sequence[Position]) -> None:
        """Remove these positions, which are in order; absent ones are ignored."""
        if not gone:
            return
        positions = self._positions
        start = bisect_left(positions, gone[0])
        if positions[start : start + len(gone)] == gone:
            del positions[start : start + len(gone)]
            return
        end = bisect_right(positions, gone[-1])
        leaving = set(gone)
        positions[start:end] = [position for position in positions[start:end] if position not in leaving]

    def pop_upto(self, position: Position) -> list[Position]:
        """Remove and return everything up to and including this position."""
        end = bisect_right(self._positions, position)
        taken = self._positions[:end]
        del self._positions[:end]
        return taken

    def clear(self) -> None:
        self._positions.clear()


Assignments = list[tuple[Consumer, list[Delivery]]]


class Selection(NamedTuple):
    """Consumers with their entries, and entries held for later; the rest of the batch lacks permits."""

    assignments: Assignments
    held: list[Delivery]

    @property
    def entry_count(self) -> int:
        """The number of entries from the beginning of the batch that were decided."""
        return len(self.held) + sum(len(part) for _, part in self.assignments)
