"""The acknowledgements of a subscription. Pure: asks the log for its entries, and writes nothing.

State: the *mark-delete position* (it and everything before it is acknowledged), the ranges acknowledged beyond it, and
the unacknowledged messages of partly acknowledged batches. Invariants:

* no range begins directly after the mark-delete position: the position moves to its end;
* ranges of one ledger are disjoint, not adjacent and sorted;
* a partly acknowledged batch is neither before the mark-delete position nor in a range.

A compacted read also yields entries that the log no longer has. Until all of them are delivered and acknowledged, the
mark-delete position does not move on into the log, which has nothing between the two.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from interpulse.broker.live.entry_numbers import EntryNumbers
from interpulse.model.ids import EARLIEST, Position
from interpulse.storage.api import Log
from interpulse.storage.cursors import CursorRecord
from interpulse.wire.ids import mask_of, words_of

RANGES_PERSISTED_MAX = 10_000
"""Ranges to store. More are forgotten by a restart and delivered again (managedLedgerMaxUnackedRangesToPersist)."""

_ledger, _entry = itemgetter(0), itemgetter(1)


class Acknowledgements(NamedTuple):
    """Acknowledgements of one subscription."""

    mark_delete: Position | None = None
    """This entry and everything before it; None = none of them."""
    ranges: Sequence[tuple[int, int, int]] = ()
    """Entries: ledger, first entry, last entry."""
    masks: Sequence[tuple[Position, int]] = ()
    """Batches; bit i is 1 while message i is not acknowledged."""

    def last_positions(self) -> Iterator[Position]:
        """Yield the last entry of each part."""
        if self.mark_delete is not None:
            yield self.mark_delete
        yield from (Position(ledger, last) for ledger, _, last in self.ranges)
        yield from (position for position, _ in self.masks)


class Cursor:
    """The acknowledgements of one subscription."""

    __slots__ = (
        "_acked_beyond",
        "_batches",
        "_compacted_read",
        "_compacted_waiting",
        "_log",
        "_parts_upto",
        "_ranges",
        "changes",
        "mark_delete",
        "resets",
    )

    def __init__(self, log: Log, mark_delete: Position) -> None:
        self._log = log
        self.mark_delete = mark_delete
        self._ranges: dict[int, EntryNumbers] = {}
        self._batches: dict[Position, int] = {}
        self._parts_upto = EARLIEST
        """A bound: no batch after this position is partly acknowledged."""
        self._acked_beyond = 0
        self._compacted_waiting: set[Position] | None = None
        """Compacted entries that were delivered and not acknowledged; None while all deliveries come from the log."""
        self._compacted_read = False
        """True after all compacted entries were delivered."""
        self.changes = 0
        """The version of the state, raised by every change. A stored record is current while its version is equal."""
        self.resets = 0
        """The number of resets since the subscription was created."""

    @classmethod
    def restore(cls, log: Log, record: CursorRecord, *, compacted_upto: Position = EARLIEST) -> Cursor:
        """Restore a stored cursor. ``compacted_upto`` is the end of the compacted entries that replace the log."""
        cursor = cls(log, record.mark_delete)
        cursor.begin(compacted=record.mark_delete < compacted_upto)
        for ledger, start, end in record.ranges:
            existing = log.next_position(Position(ledger, start - 1))
            if existing is None or existing > (ledger, end):
                continue  # trimmed; their compacted entries are delivered again, as in Pulsar
            cursor._acked_beyond += cursor._ranges.setdefault(ledger, EntryNumbers()).add_run(start, end)
        cursor._batches = {position: mask_of(words) for position, words in record.batches}
        cursor._parts_upto = max(cursor._batches, default=EARLIEST)
        cursor.resets = record.resets
        cursor._absorb()
        return cursor

    def record(self, **settings: Any) -> CursorRecord:
        """Return the record to store; ``settings`` are its fields that are no acknowledgements."""
        ranges = tuple(islice(self.ranges(), RANGES_PERSISTED_MAX))
        batches = tuple((position, words_of(mask)) for position, mask in self.batches())
        return CursorRecord(self.mark_delete, ranges, batches, resets=self.resets, **settings)

    # --- questions

    def untouched_from(self, position: Position) -> bool:
        """Return the first position after all acknowledgements, partial ones included."""
        if position <= self.mark_delete or position <= self._parts_upto:
            return False
        return all(position > (ledger, numbers.highest) for ledger, numbers in self._ranges.items())

    def is_acknowledged(self, position: Position) -> bool:
        if position <= self.mark_delete:
            return True
        numbers = self._ranges.get(position.ledger)
        return numbers is not None and position.entry in numbers

    def unacknowledged_of(self, positions: Sequence[Position]) -> Sequence[Position]:
        """Return the unacknowledged ones of these positions, which are in order."""
        if not positions or self.untouched_from(positions[0]):
            return positions
        waiting = positions[bisect_right(positions, self.mark_delete) :]
        return [position for position in waiting if not self.is_acknowledged(position)] if self._ranges else waiting

    @property
    def has_parts(self) -> bool:
        """True if some batch is partly acknowledged."""
        return bool(self._batches)

    def waiting_mask(self, position: Position) -> int:
        """Return a mask of the batch's unacknowledged messages (bit i = message i); 0 = all of them are."""
        return self._batches.get(position, 0)

    def batches(self) -> Iterator[tuple[Position, int]]:
        """Yield the partly acknowledged batches with their masks; see `waiting_mask`."""
        yield from self._batches.items()

    def ranges(self) -> Iterator[tuple[int, int, int]]:
        for ledger in sorted(self._ranges):
            for start, end in self._ranges[ledger].ranges():
                yield ledger, start, end

    def backlog(self, last: Position) -> int:
        acked = 0
        if self._ranges:  # the log does not count acknowledged compacted entries
            first, ranges = self._log.next_position(self.mark_delete), self._ranges.items()
            gone = sum(numbers.count() for ledger, numbers in ranges if first is None or ledger < first.ledger)
            acked = self._acked_beyond - gone
        return max(0, self._log.entries_between(self.mark_delete, last) - acked)

    # --- changes

    def acknowledge(self, position: Position) -> bool:
        """Acknowledge one entry; return False if it is already acknowledged."""
        mark = self.mark_delete
        if position <= mark or position.entry < 0:
            return False
        if self._batches:
            self._batches.pop(position, None)
        ended = False
        if self._compacted_waiting is not None:
            self._compacted_waiting.discard(position)
            ended = self._end_compacted()
        if position.entry == mark.entry + 1 and position.ledger == mark.ledger:
            self.mark_delete = position
            if self._ranges:
                self._absorb()
        elif not self._add(position):
            return False
        elif ended:
            self._absorb()
        self.changes += 1
        return True

    def acknowledge_all(self, positions: Collection[Position]) -> None:
        if self._batches or self._compacted_waiting is not None:
            for position in positions:
                self.acknowledge(position)
            return
        added, mark = 0, self.mark_delete
        for ledger, entries in _by_ledger(positions):
            acknowledged = mark.entry if ledger == mark.ledger else -1
            if min(entries) <= acknowledged:
                entries = {entry for entry in entries if entry > acknowledged}
            if entries and ledger >= mark.ledger:
                added += self._numbers_of(ledger).add_all(entries)
        self._acked_beyond += added
        self.changes += added
        if added:
            self._absorb()

    def acknowledge_ranges(self, ranges: Iterable[tuple[int, int, int]]) -> None:
        """Acknowledge the entries of these ranges: ledger, first entry, last entry."""
        added, ended = 0, False
        for ledger, first, last in ranges:
            if ledger == self.mark_delete.ledger:
                first = max(first, self.mark_delete.entry + 1)
            if first <= last and ledger >= self.mark_delete.ledger:
                self._forget_waiting(ledger, first, last)
                added += self._numbers_of(ledger).add_run(first, last)
                ended |= self._compacted_waiting is not None and self._end_compacted()
        self._acked_beyond += added
        self.changes += added
        if added or ended:
            self._absorb()

    def acknowledge_part(self, position: Position, mask: int) -> bool:
        """Acknowledge the messages of a batch whose bit is 0 in ``mask``; return True if none is left."""
        if self.is_acknowledged(position) or position.entry < 0:
            return False
        waiting = self._batches.get(position, -1) & mask
        if waiting == 0:
            return self.acknowledge(position)
        self._batches[position] = waiting
        self._parts_upto = max(self._parts_upto, position)
        self.changes += 1
        return False

    def acknowledge_upto(self, position: Position) -> bool:
        """Acknowledge this entry and everything before it; return False if it is already acknowledged."""
        if position <= self.mark_delete:
            return False
        if self._compacted_waiting is not None:
            self._compacted_waiting = {waiting for waiting in self._compacted_waiting if waiting > position}
            self._end_compacted()
        self._move(position)
        if self._ranges:
            self._absorb()
        self.changes += 1
        return True

    def acknowledge_also(self, other: Acknowledgements) -> list[Position]:
        """Add acknowledgements made elsewhere. Return the batches of which more messages, but not all, are now."""
        if other.mark_delete is not None:
            self.acknowledge_upto(other.mark_delete)
        self.acknowledge_ranges(other.ranges)
        return [position for position, mask in other.masks if self._acknowledge_more(position, mask)]

    def _acknowledge_more(self, position: Position, mask: int) -> bool:
        """Acknowledge messages of a batch. Return True if some of them are new, and others of the batch are left."""
        before = self.waiting_mask(position)
        if before and before & mask == before:
            return False
        self.acknowledge_part(position, mask)
        return bool(self.waiting_mask(position))

    def reset(self, mark_delete: Position) -> None:
        """Place the cursor at a position, without acknowledgements after it."""
        self.mark_delete = mark_delete
        self.resets += 1
        self._ranges.clear()
        self._batches.clear()
        self._parts_upto = EARLIEST
        self._acked_beyond = 0
        self.changes += 1

    def begin(self, *, compacted: bool) -> None:
        """Note that deliveries start after the mark-delete position. ``compacted``: some are compacted entries."""
        before, self._compacted_waiting = self._compacted_waiting, set() if compacted else None
        self._compacted_read = False
        if before is not None and not compacted:
            self._absorb()

    def hand_out_compacted(self, positions: Iterable[Position]) -> None:
        """Note that consumers get these compacted entries."""
        if self._compacted_waiting is not None:
            self._compacted_waiting.update(position for position in positions if not self.is_acknowledged(position))

    def compacted_read(self) -> None:
        """Note that all compacted entries are delivered."""
        if self._compacted_waiting is not None:
            self._compacted_read = True
            if self._end_compacted():
                self._absorb()

    # --- parts

    def _end_compacted(self) -> bool:
        """Leave the compacted entries behind if all are acknowledged, and return True."""
        if self._compacted_waiting or not self._compacted_read:
            return False
        self._compacted_waiting = None
        return True

    def _forget_waiting(self, ledger: int, first: int, last: int) -> None:
        """Forget the parts of batches, and the compacted entries that consumers have, in this range."""
        for position in _within(self._batches, ledger, first, last):
            del self._batches[position]
        if self._compacted_waiting is not None:
            self._compacted_waiting.difference_update(_within(self._compacted_waiting, ledger, first, last))

    def _numbers_of(self, ledger: int) -> EntryNumbers:
        numbers = self._ranges.get(ledger)
        if numbers is None:
            numbers = self._ranges[ledger] = EntryNumbers()
        return numbers

    def _add(self, position: Position) -> bool:
        if not self._numbers_of(position.ledger).add(position.entry):
            return False
        self._acked_beyond += 1
        if position.ledger != self.mark_delete.ledger:
            self._absorb()  # the mark may be at the end of the previous ledger
        return True

    def _absorb(self) -> None:
        while self._ranges:
            following = self._log.next_position(self.mark_delete)
            if following is None:
                return
            if self._compacted_waiting is not None and following == self._log.next_position(EARLIEST):
                return
            numbers = self._ranges.get(following.ledger)
            if numbers is None or following.entry not in numbers:
                return
            self._move(Position(following.ledger, numbers.run_end(following.entry)))

    def _move(self, position: Position) -> None:
        self.mark_delete = position
        for ledger in [acked_ledger for acked_ledger in self._ranges if acked_ledger <= position.ledger]:
            numbers = self._ranges[ledger]
            if ledger < position.ledger:
                self._acked_beyond -= numbers.count()
                del self._ranges[ledger]
                continue
            self._acked_beyond -= numbers.remove_through(position.entry)
            if not numbers:
                del self._ranges[ledger]
        if self._batches:
            self._batches = {batch: mask for batch, mask in self._batches.items() if batch > position}


def _by_ledger(positions: Collection[Position]) -> Iterable[tuple[int, set[int]]]:
    """Group entry numbers by ledger; most often there is only one."""
    ledgers = set(map(_ledger, positions))
    if len(ledgers) == 1:
        return [(ledgers.pop(), set(map(_entry, positions)))]
    return [(ledger, {position.entry for position in positions if position.ledger == ledger}) for ledger in ledgers]


def _within(positions: Collection[Position], ledger: int, first: int, last: int) -> list[Position]:
    """Return those of the positions that lie in a range of one ledger."""
    if last - first < len(positions):
        entries = [Position(ledger, entry) for entry in range(first, last + 1)]
        return [position for position in entries if position in positions]
    return [position for position in positions if position.ledger == ledger and first <= position.entry <= last]
