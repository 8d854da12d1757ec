"""The de-duplication of the entries of one topic. Pure.

Two numbers are stored per producer name: the highest sequence id *pushed* (appended to the log) and the highest
*persisted* (durable). A new entry is judged by the highest sequence id that was sent with it:

* above everything pushed: it is new;
* not above what is persisted: it is a duplicate, and is answered as stored with the position -1:-1;
* between the two: the first attempt is still pending and may fail, so the producer has to try again.

A batch that overlaps stored messages only in part is new: storing some messages twice is better than losing the others.
For the same reason no id is inferred. A SEND command has the first id of a batch, the last one or both, depending on
the client, and the ids between them may belong to other batches.

The numbers survive a restart: a snapshot of the persisted ones is stored with the cursors of the topic, and the entries
after it are read again. Their metadata never names more than their SEND commands did, so no entry becomes a duplicate
by a restart; a batch of a client that has its last id in SEND alone may be stored twice then. Of a chunked message only
the last chunk counts, markers never do.

Entries of Pulsar's replicators are judged by their position on the source cluster if both brokers support it (feature
flag 6): sequence ids of several producers come in any order there. The same states are used, with a position as one
number and the name of the replicator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from enum import Enum
from operator import lt
from typing import Final

from interpulse.model.ids import EARLIEST, Position
from interpulse.storage.cursors import CursorRecord

NAMES_PERSISTED_MAX = 10_000
"""Limit for stored names; the ones inactive for longest are left out (brokerDeduplicationMaxNumberOfProducers)."""

_SEQUENCE_ID_MAX: Final = 2**63 - 1
"""The largest sequence id; higher ones of the wire are negative."""

_LEDGER_SUFFIX: Final = "_LID"
_ENTRY_SUFFIX: Final = "_EID"
"""Suffixes of the two numbers per replicator in Pulsar's snapshots."""


class Verdict(Enum):
    """The verdict on an entry."""

    NEW = "new"
    DUPLICATE = "duplicate"
    IN_FLIGHT = "in flight"


def source_number(position: Position) -> int:
    """Return a position on a source cluster as one number, which rises with the position."""
    return position.ledger << 64 | position.entry


class SequenceState:
    """The sequence ids of one producer name; -1 = none."""

    __slots__ = ("active_ms", "persisted", "pushed")

    def __init__(self, persisted: int = -1, active_ms: int = 0) -> None:
        self.pushed = persisted
        self.persisted = persisted
        self.active_ms = active_ms

    def judge(self, last: int) -> Verdict:
        """Judge an entry by the sequence id of its last message; a new one counts as pushed."""
        if last > self.pushed:
            self.pushed = last
            return Verdict.NEW
        return Verdict.DUPLICATE if last <= self.persisted else Verdict.IN_FLIGHT

    def is_new(self, sequence_ids: Sequence[int]) -> bool:
        """Return True if each of them, judged one after the other, would be new. None counts as pushed."""
        are_ascending = all(map(lt, (self.pushed, *sequence_ids), sequence_ids))
        return are_ascending and sequence_ids[-1] <= _SEQUENCE_ID_MAX

    def confirm(self, last: int) -> None:
        """Note that the entries with sequence ids up to ``last`` are durable."""
        if last > self.persisted:
            self.persisted = last

    def restore(self, last: int) -> None:
        """Count an entry that was read from the log."""
        self.confirm(last)
        self.pushed = max(self.pushed, last)


class Deduplication:
    """The sequence ids of all producer names of one topic."""

    def __init__(self, position: Position = EARLIEST) -> None:
        """Start without sequence ids: those of entries up to ``position`` are unknown."""
        self.snapshot_position = position
        """The position of the last stored snapshot; a restart needs no entries up to here."""
        self.states: defaultdict[str, SequenceState] = defaultdict(SequenceState)
        """States of producer names, which callers may hold while the name is in use."""
        self.sources: defaultdict[str, SequenceState] = defaultdict(SequenceState)
        """States of replicators, in numbers of `source_number`."""

    @classmethod
    def restored(cls, record: CursorRecord, now_ms: int, *, replicator_prefix: str) -> Deduplication:
        """Restore a snapshot. Names without a stored activity count as active now.

        ``replicator_prefix`` begins the names of replicators; one of their two numbers without the other is ignored.
        """
        deduplication = cls(record.mark_delete)
        for key, number in record.numbers.items():
            if not key.startswith(replicator_prefix) or not key.endswith((_LEDGER_SUFFIX, _ENTRY_SUFFIX)):
                deduplication.states[key] = SequenceState(number, record.active_ms.get(key, now_ms))
            elif (name := key.removesuffix(_LEDGER_SUFFIX)) != key:
                entry = record.numbers.get(name + _ENTRY_SUFFIX)
                if entry is not None:
                    deduplication.replay_source(name, Position(number, entry))
        return deduplication

    def record(self, position: Position) -> CursorRecord:
        """Return the snapshot to store as ``pulsar.dedup`` when exactly the entries up to ``position`` are durable."""
        persisted = [(name, state) for name, state in self.states.items() if state.persisted >= 0]
        if len(persisted) > NAMES_PERSISTED_MAX:
            persisted = sorted(persisted, key=lambda item: item[1].active_ms)[-NAMES_PERSISTED_MAX:]
        numbers = {name: state.persisted for name, state in persisted}
        for name, state in self.sources.items():
            if state.persisted >= 0:
                numbers[name + _LEDGER_SUFFIX], numbers[name + _ENTRY_SUFFIX] = divmod(state.persisted, 1 << 64)
        return CursorRecord(position, numbers=numbers, active_ms={name: state.active_ms for name, state in persisted})

    def __len__(self) -> int:
        return len(self.states)

    def last_sequence_id(self, producer_name: str) -> int:
        """Return the highest persisted sequence id, -1 for an unknown name."""
        state = self.states.get(producer_name)
        return state.persisted if state else -1

    def replay(self, producer_name: str, last: int, now_ms: int) -> None:
        """Count an entry that was read from the log after the snapshot."""
        state = self.states[producer_name]
        state.active_ms = now_ms
        state.restore(last)

    def replay_source(self, replicator: str, position: Position) -> None:
        """Count an entry of a replicator that was read from the log after the snapshot."""
        self.sources[replicator].restore(source_number(position))

    def touch(self, producer_name: str, now_ms: int) -> None:
        """Note that a producer of this name disconnects now."""
        state = self.states.get(producer_name)
        if state is not None:
            state.active_ms = now_ms

    def forget_inactive(self, before_ms: int, connected: Container[str]) -> int:
        """Drop names without a producer that were last active before ``before_ms``, and return their count.

        Replicators stay: their source may send very old entries again.
        """
        gone = [name for name, state in self.states.items() if name not in connected and state.active_ms < before_ms]
        for name in gone:
            del self.states[name]
        return len(gone)
