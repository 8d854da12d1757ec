"""Entries of one subscription that must not be delivered before their time (``deliver_at_time`` of a message).

Only their positions are stored, 60 bytes each: after a restart they are collected again when the backlog is read. An
entry is never due early. It may be late by a tick (``delayedDeliveryTickTimeMillis``): consumers are woken no more
often than that, so that thousands of close times do not become as many turns of the event loop.
"""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Callable
from heapq import heapify, heappop, heappush

from interpulse.broker.live.entry_metadata import message_metadata_of
from interpulse.model.errors import NotAllowed, PersistenceError
from interpulse.model.ids import Position

DELAYED_MAX = 500_000
"""Delayed entries of a subscription above which it reads no new entries."""

_TAG = b"\x98\x01"  # tag of the field deliver_at_time
_SLEEP_MAX_MS = 60_000
"""The longest sleep: the wall clock may be set meanwhile."""

_NUMBER_BITS = 64
_NUMBER = (1 << _NUMBER_BITS) - 1
_BYTES_PER_ENTRY = 60


CallLater = Callable[[float, Callable[[], None]], TimerHandle]


def deliver_at_of(entry: bytes) -> int:
    """Return the ms before which an entry must not be delivered; 0 = immediately, as nearly all, without a parse."""
    if entry[1] == 1 and entry.find(_TAG, 10, 10 + int.from_bytes(entry[6:10], "big")) < 0:
        return 0
    try:
        return message_metadata_of(entry).deliver_at_time
    except PersistenceError:
        return 0


def check_delay(entry: bytes, max_delay_millis: int) -> None:
    """Raise NotAllowed if an entry asks for a longer delay after its publication than the policies allow."""
    deliver_at = deliver_at_of(entry)
    if deliver_at and deliver_at - message_metadata_of(entry).publish_time > max_delay_millis:
        raise NotAllowed(f"Exceeds max allowed delivery delay of {max_delay_millis} milliseconds")


class DelayedEntries:
    """The delayed entries. The owner calls `due` whenever it sends, and is called back when it should call again."""

    def __init__(
        self, tick_ms: int, now_ms: Callable[[], int], call_later: CallLater, on_due: Callable[[], None]
    ) -> None:
        self._tick_ms = tick_ms
        self._now_ms = now_ms
        self._call_later = call_later
        self._on_due = on_due
        self._heap: list[int] = []
        """Time, ledger and entry in one number each, which takes a third of the memory of a tuple."""
        self._handle: TimerHandle | None = None
        self._wake_ms = 0
        self._woken_ms = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def memory_bytes(self) -> int:
        return len(self._heap) * _BYTES_PER_ENTRY

    @property
    def full(self) -> bool:
        return len(self._heap) >= DELAYED_MAX

    def add(self, position: Position, deliver_at_ms: int) -> None:
        """Store an entry until its time."""
        packed = ((deliver_at_ms << _NUMBER_BITS) | position.ledger) << _NUMBER_BITS | position.entry
        heappush(self._heap, packed)
        if self._handle is None or self._heap[0] == packed:
            self._arm()

    def due(self, count_max: int) -> list[Position]:
        """Remove and return entries whose time has come, those of the earliest time first."""
        heap = self._heap
        if not heap:
            return []
        due: list[Position] = []
        limit = (self._now_ms() + 1) << 2 * _NUMBER_BITS
        while heap and heap[0] < limit and len(due) < count_max:
            due.append(_position(heappop(heap)))
        self._arm()
        return due

    def forget_upto(self, position: Position) -> None:
        self._heap = [packed for packed in self._heap if _position(packed) > position]
        heapify(self._heap)

    def take_all(self) -> list[tuple[Position, int]]:
        """Remove and return all entries, with their times."""
        taken = [(_position(packed), packed >> 2 * _NUMBER_BITS) for packed in sorted(self._heap)]
        self.clear()
        return taken

    def clear(self) -> None:
        """Forget everything, and cancel the callback."""
        self._heap.clear()
        self.sleep()

    def sleep(self) -> None:
        """Cancel the callback until an entry is added or `due` is called."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _arm(self) -> None:
        """Schedule the callback for the next due entry, but not twice in one tick."""
        if not self._heap:
            return self.sleep()
        now = self._now_ms()
        wake = max(self._heap[0] >> 2 * _NUMBER_BITS, self._woken_ms + self._tick_ms)
        if self._handle is not None:
            if self._wake_ms <= wake:
                return None
            self._handle.cancel()
        self._wake_ms = wake
        self._handle = self._call_later(min(max(wake - now, 0), _SLEEP_MAX_MS) / 1000, self._wake)
        return None

    def _wake(self) -> None:
        self._handle = None
        now = self._now_ms()
        if self._heap and self._heap[0] >> 2 * _NUMBER_BITS <= now:
            self._woken_ms = now
            self._on_due()
        else:  # the clock was set back, or the time is too far away for one sleep
            self._arm()


def _position(packed: int) -> Position:
    return Position(packed >> _NUMBER_BITS & _NUMBER, packed & _NUMBER)
