"""Which entries of a ledger are acknowledged, from what the bookies of its ensemble answer; without IO.

An entry is acknowledged when so many bookies of its write set have it as the ack quorum says, and all before it are
acknowledged. It is kept until the whole write set has answered, or those that have not are given up: only then can it
never be needed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from interpulse.storage.bookkeeper.ledger_metadata import NO_ENTRY_YET, Quorum

__all__ = ["PendingEntries", "PendingEntry"]


class PendingEntry:
    """One entry. Sets of places in the ensemble are bits of a number."""

    __slots__ = ("entry_id", "frame", "length", "size", "stored", "waiting")

    def __init__(self, entry_id: int, frame: bytes, size: int, length: int, waiting: int) -> None:
        self.entry_id: Final = entry_id
        self.frame: Final = frame
        self.size: Final = size
        self.length: Final = length  # of all payloads up to this one
        self.stored = 0
        self.waiting = waiting


class PendingEntries:
    """The entries of one ledger that are still needed."""

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        self._entries: dict[int, PendingEntry] = {}
        self._given_up = 0  # places whose bookies nobody waits for
        self._places = [quorum.positions(start) for start in range(quorum.ensemble)]
        self._write_sets = [sum(1 << position for position in places) for places in self._places]
        self.last = NO_ENTRY_YET
        self.confirmed = NO_ENTRY_YET
        """The last acknowledged entry."""
        self.confirmed_length = 0
        """Bytes of all payloads up to it."""
        self.length = 0
        self.behind_entries = [0] * quorum.ensemble
        """By place: acknowledged entries that its bookie has not answered."""
        self.behind_bytes = [0] * quorum.ensemble

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def possible(self) -> bool:
        """Whether every entry can be acknowledged by bookies that are not given up."""
        return all((each & ~self._given_up).bit_count() >= self._quorum.ack for each in self._write_sets)

    def append(self, frame: bytes, size: int) -> PendingEntry:
        """The next entry, to be sent to `positions` of it."""
        self.last += 1
        self.length += size
        waiting = self._write_sets[self.last % self._quorum.ensemble] & ~self._given_up
        entry = self._entries[self.last] = PendingEntry(self.last, frame, size, self.length, waiting)
        return entry

    def positions(self, entry: PendingEntry) -> Sequence[int]:
        """The places that are to answer for an entry."""
        start = entry.entry_id % self._quorum.ensemble
        if entry.waiting == self._write_sets[start]:
            return self._places[start]
        return [each for each in self._places[start] if entry.waiting >> each & 1]

    def stored(self, entry: PendingEntry, position: int) -> None:
        """The bookie at this place has the entry."""
        bit = 1 << position
        if not entry.waiting & bit:
            return
        entry.stored |= bit
        entry.waiting &= ~bit
        if entry.entry_id <= self.confirmed:
            self._caught_up(entry, position)
            if not entry.waiting:
                del self._entries[entry.entry_id]

    def confirm(self) -> bool:
        """Acknowledge what can be; whether that is anything."""
        entries, ack = self._entries, self._quorum.ack
        before = self.confirmed
        while (entry := entries.get(self.confirmed + 1)) is not None and entry.stored.bit_count() >= ack:
            self.confirmed += 1
            self.confirmed_length = entry.length
            if entry.waiting:
                self._left_behind(entry)
            else:
                del entries[self.confirmed]
        return self.confirmed > before

    def give_up(self, position: int) -> None:
        """Wait for the bookie at this place no longer. What it has stored counts."""
        bit = 1 << position
        self._given_up |= bit
        for entry in [each for each in self._entries.values() if each.waiting & bit]:
            entry.waiting &= ~bit
            if entry.entry_id <= self.confirmed and not entry.waiting:
                del self._entries[entry.entry_id]
        self.behind_entries[position] = self.behind_bytes[position] = 0

    def replace(self, position: int) -> Iterator[PendingEntry]:
        """Another bookie is at this place for what is not acknowledged: those entries, to be sent to it.

        What the former one has stored of them counts no longer.
        """
        bit = 1 << position
        self._given_up &= ~bit
        for entry in self._unconfirmed(bit):
            entry.stored &= ~bit
            entry.waiting |= bit
            yield entry

    def revive(self, position: int) -> Iterator[PendingEntry]:
        """The bookie at this place is there again: entries that are not acknowledged, and that it may not have."""
        bit = 1 << position
        self._given_up &= ~bit
        for entry in self._unconfirmed(bit):
            if not entry.stored & bit:
                entry.waiting |= bit
                yield entry

    def _unconfirmed(self, bit: int) -> list[PendingEntry]:
        write_sets, size = self._write_sets, self._quorum.ensemble
        begin = self.confirmed + 1
        return [self._entries[each] for each in range(begin, self.last + 1) if write_sets[each % size] & bit]

    def _left_behind(self, entry: PendingEntry) -> None:
        for position in self.positions(entry):
            self.behind_entries[position] += 1
            self.behind_bytes[position] += entry.size

    def _caught_up(self, entry: PendingEntry, position: int) -> None:
        self.behind_entries[position] -= 1
        self.behind_bytes[position] -= entry.size
