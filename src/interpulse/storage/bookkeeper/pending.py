"""The entries of a ledger that still wait for bookies, without IO.

An entry is acknowledged when as many bookies of its write set have it as the ack quorum demands, and all entries before
it are acknowledged. It stays here until its whole write set has answered or is given up: only then is it never needed
again.

Entries arrive and are answered in runs, so their state is stored as sets. A set is a number whose bit n is the n-th
entry from the first needed one on: a run takes a few operations on such numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Final

from interpulse.storage.bookkeeper.records import NO_ENTRY_YET, Quorum

_NONE: Final[frozenset[int]] = frozenset()


class PendingEntries:
    """The entries of one ledger that are still needed. A slot is a position in the ensemble."""

    __slots__ = (
        "_first", "_frames", "_given_up", "_kept", "_lengths", "_quorum", "_stored", "_striped", "_waiting",
        "_write_sets", "confirmed", "confirmed_length", "last",
    )  # fmt: skip

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        self._striped = quorum.ensemble != quorum.write
        self._write_sets = _write_sets(quorum)
        self._given_up = _NONE  # slots whose bookies are no longer awaited
        self._frames: dict[int, bytes] = {}
        self._first = 0  # the entry of bit 0
        self._lengths = [0]  # bytes of all payloads before the entry of each bit, and of all entries
        self._kept = 0
        self._waiting = [0] * quorum.ensemble  # by slot: the entries whose answer is due
        self._stored = [0] * quorum.ensemble  # by slot: the entries that its bookie has and that are not acknowledged
        self.last = NO_ENTRY_YET
        self.confirmed = NO_ENTRY_YET
        """The last acknowledged entry."""
        self.confirmed_length = 0
        """The bytes of all payloads up to the last acknowledged entry."""

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def length(self) -> int:
        """The bytes of all payloads."""
        return self._lengths[-1]

    @property
    def held_bytes(self) -> int:
        """The bytes of payloads from the first needed entry on."""
        return self._lengths[-1] - self._lengths[0]

    @property
    def possible(self) -> bool:
        """True if bookies that are not given up can acknowledge every entry."""
        return all(len(write_set - self._given_up) >= self._quorum.ack for write_set in self._write_sets)

    def append(self, frames: Sequence[bytes], lengths: Sequence[int]) -> range:
        """Add entries and return their ids, to be sent to their write sets.

        ``lengths`` are the bytes of all payloads up to each entry.
        """
        entry_ids = range(self.last + 1, self.last + 1 + len(frames))
        self._frames.update(zip(entry_ids, frames, strict=True))
        self._lengths += lengths
        self.last += len(frames)
        appended = self._set(entry_ids)
        self._kept |= appended
        for slot in range(self._quorum.ensemble):
            if slot not in self._given_up:
                self._waiting[slot] |= self._set(self.share(slot, entry_ids)) if self._striped else appended
        return entry_ids

    def share(self, slot: int, entry_ids: range) -> Sequence[int]:
        """Return the entries whose write set contains the slot."""
        if not self._striped:
            return entry_ids
        return [entry_id for entry_id in entry_ids if slot in self._write_sets[entry_id % self._quorum.ensemble]]

    def frames(self, entry_ids: Sequence[int]) -> list[bytes]:
        """Return the frames of these entries, which must still be needed."""
        return list(map(self._frames.__getitem__, entry_ids))

    def waiting(self, slot: int) -> list[int]:
        """Return the entries that the bookie in this slot has not answered, in order."""
        return [self._first + offset for begin, end in _runs(self._waiting[slot]) for offset in range(begin, end)]

    def lag(self, slot: int) -> tuple[int, int]:
        """Return the number of acknowledged entries that this slot's bookie has not answered, and their bytes."""
        lag = self._waiting[slot] & self._acknowledged()
        if not lag:
            return 0, 0
        lengths = self._lengths
        return lag.bit_count(), sum(lengths[end] - lengths[begin] for begin, end in _runs(lag))

    def stored(self, slot: int, first: int, count: int) -> None:
        """Note that the bookie in this slot has ``count`` entries from ``first`` on."""
        begin, end = max(first, self._first), first + count
        if begin >= end:
            return
        stored = (((1 << (end - begin)) - 1) << (begin - self._first)) & self._waiting[slot]
        self._waiting[slot] ^= stored
        self._stored[slot] |= stored

    def confirm(self) -> bool:
        """Acknowledge and drop all entries that qualify. Return True if any was acknowledged."""
        count = 0
        if self.confirmed < self.last:
            start = self.confirmed + 1 - self._first
            count = _count_of_ones(self._with_ack_quorum() >> start)
            self.confirmed += count
            self.confirmed_length = self._lengths[start + count]
        self._forget()
        return count > 0

    def give_up(self, slot: int) -> None:
        """Stop waiting for the bookie in this slot. Entries that it has stored still count."""
        self._given_up |= {slot}
        self._waiting[slot] = 0
        self._forget()

    def replace(self, slot: int) -> None:
        """Put another bookie into this slot.

        It must get all entries that are not acknowledged, and its predecessor's copies of them no longer count.
        """
        self._stored[slot] = 0
        self.revive(slot)

    def revive(self, slot: int) -> None:
        """Wait again for the bookie in this slot. It must get the unacknowledged entries that it may lack."""
        self._given_up -= {slot}
        unconfirmed = self._set(self.share(slot, range(self.confirmed + 1, self.last + 1)))
        self._waiting[slot] |= unconfirmed & ~self._stored[slot]

    def _set(self, entry_ids: Sequence[int]) -> int:
        if isinstance(entry_ids, range):
            return ((1 << len(entry_ids)) - 1) << (entry_ids.start - self._first)
        return sum(1 << (entry_id - self._first) for entry_id in entry_ids)

    def _acknowledged(self) -> int:
        return (1 << (self.confirmed + 1 - self._first)) - 1

    def _with_ack_quorum(self) -> int:
        """Return the entries that an ack quorum of bookies has."""
        ack = self._quorum.ack
        at_least = [-1] + [0] * ack  # at_least[n]: entries that n of the bookies seen so far have; -1 is all
        for stored in self._stored:
            for number in range(ack, 0, -1):
                at_least[number] |= at_least[number - 1] & stored
        return at_least[ack]

    def _forget(self) -> None:
        gone = self._kept & self._acknowledged() & ~reduce(or_, self._waiting)
        if not gone:
            return
        if gone == self._kept:
            self._frames.clear()
            self._kept = 0
            self._move(self.last + 1 - self._first)
            return
        for begin, end in _runs(gone):
            for entry_id in range(self._first + begin, self._first + end):
                del self._frames[entry_id]
        self._kept ^= gone
        self._move(_count_of_zeros(self._kept))

    def _move(self, count: int) -> None:
        """Drop ``count`` bits at the low end of all sets."""
        if not count:
            return
        self._first += count
        del self._lengths[:count]
        self._kept >>= count
        for slot in range(self._quorum.ensemble):
            self._waiting[slot] >>= count
            self._stored[slot] >>= count


@lru_cache(maxsize=100)
def _write_sets(quorum: Quorum) -> tuple[frozenset[int], ...]:
    """Return the write sets of the first entries; they repeat after as many as the ensemble has slots."""
    return tuple(frozenset(quorum.positions(start)) for start in range(quorum.ensemble))


def _count_of_zeros(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _count_of_ones(bits: int) -> int:
    return _count_of_zeros(~bits)


def _runs(bits: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each run of ones, the lowest first."""
    at = 0
    while bits:
        begin = at + _count_of_zeros(bits)
        bits >>= begin - at
        at = begin + _count_of_ones(bits)
        bits >>= at - begin
        yield begin, at
