"""Which copy on the target a position of the source has got to: found by halving, as copies keep the order they had."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.job.inspection.copied_entries import CopiedEntry
from interpulse.spark.job.source_backlog import last_entry, ledger_counts

__all__ = ["Found", "LogPlaces", "Probe", "last_copy_upto"]

Probe = Callable[[Position, Position], Awaitable[CopiedEntry | None]]
"""The first copy of ``(after, upto]``, None if there is none: others may have published there as well."""


class LogPlaces(NamedTuple):
    """The entries of a log by their numbers: ``ledgers`` with the number of the first entry behind each."""

    ledgers: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, stats: Mapping[str, Any]) -> LogPlaces:
        """From internal stats."""
        last = last_entry(stats).ledger
        counts = [(number, count) for number, count in ledger_counts(stats) if number <= last]
        ends = accumulate(count for _, count in counts)
        return cls(tuple((number, end) for (number, _), end in zip(counts, ends, strict=True)))

    @property
    def total(self) -> int:
        return self.ledgers[-1][1] if self.ledgers else 0

    def before(self, number: int) -> Position:
        """The position behind which the entry of that number comes."""
        first = 0
        for ledger, end in self.ledgers:
            if number < end:
                return Position(ledger, number - first - 1)
            first = end
        return self.at(self.total - 1)

    def at(self, number: int) -> Position:
        if not 0 <= number < self.total:
            return EARLIEST
        before = self.before(number)
        return Position(before.ledger, before.entry + 1)

    def number_of(self, position: Position) -> int:
        first = 0
        for ledger, end in self.ledgers:
            if position.ledger == ledger:
                return first + position.entry
            first = end
        return self.total


class Found(NamedTuple):
    """``there``: where the last copy up to a position stands; ``is_final``: nothing up to there is still to come."""

    there: Position | None
    is_final: bool


async def last_copy_upto(places: LogPlaces, source: Position, probe: Probe) -> Found:
    """Find the last copy of the entries up to ``source``; they rise along the target."""
    found: CopiedEntry | None = None
    is_passed = False
    low, high = 0, places.total
    while low < high:
        middle = (low + high) // 2
        copy = await probe(places.before(middle), places.at(high - 1))
        if copy is None or copy.source > source:
            high, is_passed = middle, is_passed or copy is not None
        else:
            found, low = copy, places.number_of(copy.there) + 1
    return Found(found and found.there, is_passed or (found is not None and found.source == source))
