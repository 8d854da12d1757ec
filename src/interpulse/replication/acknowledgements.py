"""Acknowledgements of one subscription as a set of entries, for two clusters that hold copies of them. Pure.

The sets of both clusters only grow, except by a reset. So their union is right whatever the order and however often
acknowledgements are exchanged: it needs no lock and no clock. Source: docs/reference/subscriptions.md#on-both-clusters.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from interpulse.model.ids import EARLIEST, Position

ALL_WAIT = -1
"""Mask of a batch of which no message is acknowledged."""


class Span(NamedTuple):
    """Entries from ``first`` to ``last``, which may be in different ledgers."""

    first: Position
    last: Position


@dataclass(frozen=True)
class Acknowledgements:
    """Everything up to ``mark_delete``, the ``beyond`` it, and parts of batches.

    ``masks`` have the messages of partly acknowledged batches that still wait: bit i is message i.
    """

    mark_delete: Position = EARLIEST
    beyond: tuple[Span, ...] = ()
    """Spans behind the mark-delete position, in order."""
    masks: Mapping[Position, int] = field(default_factory=dict)

    def spans(self) -> list[Span]:
        """Return all of it as spans in order."""
        through = [Span(EARLIEST, self.mark_delete)] if self.mark_delete > EARLIEST else []
        return joined([*through, *self.beyond])

    def holds(self, position: Position) -> bool:
        """Return True if the whole entry is acknowledged."""
        if position <= self.mark_delete:
            return True
        index = bisect_right(self.beyond, position, key=itemgetter(0)) - 1
        return index >= 0 and position <= self.beyond[index].last


class News(NamedTuple):
    """Acknowledgements that one cluster has and the other one lacks, as entries of the other one."""

    spans: Sequence[Span]
    masks: Mapping[Position, int]

    @property
    def entries(self) -> int:
        """The number of entries; of a span over several ledgers only those of its last one are counted."""
        return sum(last.entry - max(first.entry, -1) + 1 for first, last in self.spans) + len(self.masks)

    def __bool__(self) -> bool:
        return bool(self.spans or self.masks)


class Translation(NamedTuple):
    """One direction between the positions of two clusters. Entries without a counterpart are left out."""

    spans: Callable[[Span], Iterable[Span]]
    position: Callable[[Position], Position | None]


def news_of(here: Acknowledgements, there: Acknowledgements, translated: Translation) -> News:
    """Return what is acknowledged ``here`` and has a counterpart that is not acknowledged ``there``."""
    counterparts = joined(span for each in here.spans() for span in translated.spans(each))
    spans = list(without(counterparts, there.spans()))
    masks = {}
    for position, waiting in here.masks.items():
        counterpart = translated.position(position)
        if counterpart is None or there.holds(counterpart):
            continue
        before = there.masks.get(counterpart, ALL_WAIT)
        if before & ~waiting:
            masks[counterpart] = waiting
    return News(spans, masks)


def count_behind(acknowledged: Acknowledgements, position: Position) -> int:
    """Return how many acknowledged entries are behind a position; of several ledgers only the last one counts whole."""
    count = 0
    for first, last in acknowledged.spans():
        if last > position:
            start = max(first, after(position))
            count += last.entry + 1 - (start.entry if start.ledger == last.ledger else 0)
    return count


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return the same entries as spans in order that neither overlap nor follow each other directly."""
    result: list[Span] = []
    for first, last in sorted(spans):
        if result and first <= after(result[-1].last):
            result[-1] = Span(result[-1].first, max(result[-1].last, last))
        else:
            result.append(Span(first, last))
    return result


def without(spans: Iterable[Span], others: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts of ``spans`` outside of ``others``. Both are in order and do not overlap."""
    index = 0
    for first, last in spans:
        while index < len(others) and others[index].last < first:
            index += 1
        at = index
        while at < len(others) and others[at].first <= last:
            if first < others[at].first:
                yield Span(first, before(others[at].first))
            first = max(first, after(others[at].last))
            at += 1
        if first <= last:
            yield Span(first, last)


def after(position: Position) -> Position:
    """Return the place directly behind an entry, which need not be that of another one."""
    return Position(position.ledger, position.entry + 1)


def before(position: Position) -> Position:
    """Return the place directly in front of an entry, which need not be that of another one."""
    return Position(position.ledger, position.entry - 1)
