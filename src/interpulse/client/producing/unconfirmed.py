"""Queue of the entries of one producer that wait for a receipt, in sending order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from interpulse.model.errors import PulsarError
from interpulse.model.ids import Position

_NO_POSITION: Final = Position(-1, -1)


class Outgoing(NamedTuple):
    """Entries that are sent together, at least one: bytes, sequence id and message count of each.

    The bytes begin with their checksum, as ``entries.build_entry`` builds them.
    """

    entries: Sequence[bytes]
    sequence_ids: Sequence[int]
    counts: Sequence[int]
    highest_sequence_id: int | None = None
    """Highest sequence id in the SEND of a single entry, 0 = none.

    None: the SEND of every entry with several messages has its sequence id as the highest one too.
    """
    is_chunk: bool = False
    """True if this is a single entry that is a chunk of a message."""

    is_marker: bool = False
    """True if this is a single marker, which brokers do not de-duplicate. It is sent once."""


class Receipt(NamedTuple):
    """Confirmation that entries sent together are stored, or were recognized as stored before."""

    sequence_ids: Sequence[int]
    positions: Sequence[Position]

    @property
    def sequence_id(self) -> int:
        """Sequence id of the last entry, usually the only one."""
        return self.sequence_ids[-1]

    @property
    def position(self) -> Position:
        """Position of the last entry, usually the only one."""
        return self.positions[-1]

    @property
    def is_duplicate(self) -> bool:
        """True if the last entry was dropped as a duplicate.

        Its sequence id is not above the highest one that the broker has for this name.
        """
        return self.position == _NO_POSITION

    @property
    def duplicates(self) -> list[int]:
        """Sequence ids of dropped entries."""
        if _NO_POSITION not in self.positions:
            return []
        pairs = zip(self.sequence_ids, self.positions, strict=True)
        return [sequence_id for sequence_id, position in pairs if position == _NO_POSITION]

    @property
    def last_position(self) -> Position | None:
        """Position of the last entry that was not dropped. Positions rise."""
        last = max(self.positions, default=_NO_POSITION)
        return None if last == _NO_POSITION else last


class _Waiting:
    """Entries sent together, and the positions of those with a receipt."""

    __slots__ = ("deadline", "future", "outgoing", "positions")

    def __init__(self, outgoing: Outgoing, future: asyncio.Future[Receipt], deadline: float) -> None:
        self.outgoing = outgoing
        self.positions: list[Position] = []
        self.future = future
        self.deadline = deadline

    @property
    def rest(self) -> Outgoing:
        """Entries without a receipt."""
        start = len(self.positions)
        if not start:
            return self.outgoing
        entries, sequence_ids, counts, *_ = self.outgoing
        return Outgoing(entries[start:], sequence_ids[start:], counts[start:])


class UnconfirmedEntries:
    """Queue of entries without a receipt, with their number and size."""

    __slots__ = ("_waiting", "bytes", "count")

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0
        self._waiting: deque[_Waiting] = deque()

    def __iter__(self) -> Iterator[Outgoing]:
        return (waiting.rest for waiting in self._waiting)

    @property
    def next_id(self) -> int | None:
        """Sequence id of the next receipt."""
        return self._waiting[0].rest.sequence_ids[0] if self._waiting else None

    @property
    def next_deadline(self) -> float | None:
        return self._waiting[0].deadline if self._waiting else None

    @property
    def futures(self) -> list[asyncio.Future[Receipt]]:
        return [waiting.future for waiting in self._waiting]

    def add(self, outgoing: Outgoing, future: asyncio.Future[Receipt], deadline: float) -> None:
        """Append entries. ``future`` gets their receipt, or the failure of the first entry without one."""
        self._waiting.append(_Waiting(outgoing, future, deadline))
        self.count += len(outgoing.entries)
        self.bytes += _size_of(outgoing.entries)

    def rewrite(self, changed: Callable[[bytes], bytes]) -> None:
        """Replace the bytes of all entries."""
        for waiting in self._waiting:
            entries = waiting.outgoing.entries
            rewritten = [changed(entry) for entry in entries]
            waiting.outgoing = waiting.outgoing._replace(entries=rewritten)
            open_from = len(waiting.positions)
            self.bytes += _size_of(rewritten[open_from:]) - _size_of(entries[open_from:])

    def confirm(self, sequence_ids: Sequence[int], positions: Sequence[Position], start: int) -> int:
        """Accept receipts from index ``start`` on, as long as they match the front. Return their number."""
        if not self._waiting:
            return 0
        front = self._waiting[0]
        entries, awaited, *_ = front.outgoing
        confirmed = front.positions
        first = len(confirmed)
        if awaited[first] != sequence_ids[start]:
            return 0
        count = min(len(awaited) - first, len(positions) - start)
        if count > 1 and list(awaited[first : first + count]) != list(sequence_ids[start : start + count]):
            count = 1
        confirmed += positions[start : start + count]
        self.count -= count
        self.bytes -= _size_of(entries[first : first + count])
        if len(confirmed) == len(awaited):
            self._waiting.popleft()
            if not front.future.done():
                front.future.set_result(Receipt(awaited, confirmed))
        return count

    def drop_markers(self) -> None:
        """Drop the markers without a receipt, and answer each with an empty one.

        Sent again before repeated entries, a marker would be stored again but confirmed after them: brokers answer
        repeated entries at once. A lost marker does no harm.
        """
        dropped = [waiting for waiting in self._waiting if waiting.outgoing.is_marker]
        for waiting in dropped:
            self._waiting.remove(waiting)
            self.count -= 1
            self.bytes -= _size_of(waiting.outgoing.entries)
            if not waiting.future.done():
                waiting.future.set_result(Receipt((), ()))

    def fail_front(self, failure: PulsarError) -> None:
        """Drop the entries at the front, which were sent together, and fail them with ``failure``."""
        front = self._waiting.popleft()
        entries = front.rest.entries
        self.count -= len(entries)
        self.bytes -= _size_of(entries)
        if not front.future.done():
            front.future.set_exception(failure)
            front.future.exception()  # an ignored future is not worth a warning of the event loop

    def fail_all(self, failure: PulsarError) -> None:
        while self._waiting:
            self.fail_front(failure)


def _size_of(entries: Sequence[bytes]) -> int:
    return len(entries[0]) if len(entries) == 1 else sum(map(len, entries))
