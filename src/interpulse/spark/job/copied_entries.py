"""Searches for the source entries that a topic-partition of the target holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from interpulse.client.consuming.copied_entries import TAILS, CopiedEntry, last_source
from interpulse.client.session import Session
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.spark.job.source_backlog import last_entry, ledger_counts
from interpulse.spark.writing.broker_target import last_position


async def last_copied(
    session: Session, topic: TopicName, is_wanted: Callable[[CopiedEntry], bool], *, tails: Sequence[int | None] = TAILS
) -> Position | None:
    """Return the source position of the last matching entry, or None if the end of the topic has none.

    Raises TopicNotFound.
    """
    return await last_source(session, topic, await last_position(session, topic), is_wanted, tails=tails)


Probe = Callable[[Position, Position], Awaitable[CopiedEntry | None]]
"""Function that returns the first copy in ``(after, upto]``, or None: others may have published there as well."""


class LogPlaces(NamedTuple):
    """Entries of a log by number. ``ledgers`` have the number of the first entry behind each."""

    ledgers: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, stats: Mapping[str, Any]) -> LogPlaces:
        """Build the table from internal stats."""
        last = last_entry(stats).ledger
        counts = [(number, count) for number, count in ledger_counts(stats) if number <= last]
        ends = accumulate(count for _, count in counts)
        return cls(tuple((number, end) for (number, _), end in zip(counts, ends, strict=True)))

    @property
    def total(self) -> int:
        return self.ledgers[-1][1] if self.ledgers else 0

    def before(self, number: int) -> Position:
        """Return the position before the entry of that number."""
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
    """Result of a search. ``there`` is the last copy up to a position; ``is_final`` means that no more are to come."""

    there: Position | None
    is_final: bool


async def last_copy_upto(log: LogPlaces, source: Position, probe: Probe) -> Found:
    """Find the last copy of the entries up to ``source``, whose positions ascend along the target."""
    newest: CopiedEntry | None = None
    is_passed = False
    low, high = 0, log.total
    while low < high:
        middle = (low + high) // 2
        copy = await probe(log.before(middle), log.at(high - 1))
        if copy is None or copy.source > source:
            high, is_passed = middle, is_passed or copy is not None
        else:
            newest, low = copy, log.number_of(copy.there) + 1
    return Found(newest and newest.there, is_passed or (newest is not None and newest.source == source))
