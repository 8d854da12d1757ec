"""Reading from one client, and the published entries without an answer, which pause it.

`PendingPublishes` holds the sums of a connection, which stops reading at the limits. Each of its open producers counts
entries and answers in a `ProducerPublishes`. All connections of a broker share one `PublishBuffer`: a thousand of them
below their own limits could still exceed the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence, Sized
from typing import Final


class PublishBuffer:
    """The bytes of all pending entries of a broker (``maxMessagePublishBufferSizeInMB``).

    Above the limit every connection with pending entries stops reading; they resume below half of it.
    """

    __slots__ = ("_bytes_max", "_waiting", "bytes")

    def __init__(self, bytes_max: int = 0) -> None:
        """Limit the bytes; 0: no limit."""
        self.bytes = 0
        self._bytes_max = bytes_max
        self._waiting: set[Callable[[], None]] = set()

    @property
    def full(self) -> bool:
        return self.bytes >= self._bytes_max > 0

    @property
    def has_room(self) -> bool:
        """True if paused connections may resume."""
        return self.bytes <= self._bytes_max // 2 or not self._bytes_max

    def subtract(self, size: int) -> None:
        """Subtract bytes that are no longer pending."""
        self.bytes -= size
        if self._waiting and self.has_room:
            waiting, self._waiting = self._waiting, set()
            for go_on in waiting:
                go_on()

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call ``go_on`` once when there is room again."""
        self._waiting.add(go_on)

    def forget(self, go_on: Callable[[], None]) -> None:
        """Drop a callback whose connection is lost."""
        self._waiting.discard(go_on)


class PendingPublishes:
    """The pending entries of all producers of one connection."""

    __slots__ = ("_buffer", "_bytes_max", "_count_max", "_on_answered", "bytes", "count")

    def __init__(
        self, *, count_max: int, bytes_max: int, buffer: PublishBuffer, on_answered: Callable[[], None]
    ) -> None:
        """``on_answered`` is called whenever the number of pending entries falls, or the buffer has room again."""
        self.count = 0
        self.bytes = 0
        self._buffer = buffer
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._on_answered = on_answered

    @property
    def full(self) -> bool:
        """True at a limit: the connection stops reading until `PublishBuffer` or an answer makes room."""
        if self.count >= self._count_max or self.bytes >= self._bytes_max:
            return True
        if not self.count or not self._buffer.full:
            return False
        self._buffer.wait(self._on_answered)
        return True

    @property
    def has_room(self) -> bool:
        """True if a paused connection may read again: half the entries are answered, and bytes are below the limit."""
        if self.count > self._count_max // 2 or self.bytes >= self._bytes_max:
            return False
        if not self.count or self._buffer.has_room:
            return True
        self._buffer.wait(self._on_answered)
        return False

    def add(self, count: int, size: int) -> None:
        """Count received entries of ``size`` bytes in all."""
        self.count += count
        self.bytes += size
        self._buffer.bytes += size

    def of_producer(self) -> ProducerPublishes:
        """Return the counts of a new producer."""
        return ProducerPublishes(self)

    def subtract(self, count: int, size: int) -> None:
        """Subtract entries of ``size`` bytes in all that are no longer pending."""
        self.count -= count
        self.bytes -= size
        self._buffer.subtract(size)
        self._on_answered()

    def close(self) -> None:
        """Remove a lost connection; its producers abandon their pending entries."""
        self._buffer.forget(self._on_answered)


class ProducerPublishes:
    """The pending entries of one producer, answered in the order in which they came."""

    __slots__ = ("_drained", "_sizes", "_total")

    def __init__(self, total: PendingPublishes) -> None:
        self._sizes: list[int] = []
        self._total = total
        self._drained: asyncio.Future[None] | None = None

    def add(self, entries: Sequence[Sized]) -> None:
        """Count received entries."""
        count = len(entries)
        if count == 1:  # saves a third of a microsecond
            size = len(entries[0])
            self._sizes.append(size)
        else:
            sizes = list(map(len, entries))
            self._sizes += sizes
            size = sum(sizes)
        self._total.add(count, size)

    def answered(self, count: int = 1) -> None:
        """Subtract the ``count`` oldest entries, which were answered."""
        size = sum(self._sizes[:count])
        del self._sizes[:count]
        self._total.subtract(count, size)
        if self._drained is not None and not self._sizes:
            self._drained.set_result(None)
            self._drained = None

    def abandon(self) -> None:
        """Subtract all pending entries of a closed producer; they get no answers."""
        self.answered(len(self._sizes))

    async def drained(self) -> None:
        """Wait until no entry is pending."""
        if self._sizes:
            self._drained = self._drained or asyncio.get_running_loop().create_future()
            await self._drained


PUBLISHES: Final = "publishes"
"""Reason: too many entries have no answer yet."""
REQUESTS: Final = "requests"
"""Reason: too many requests are in progress."""
OUTPUT: Final = "output"
"""Reason: too much output waits for the client to read it."""
RATE: Final = "rate"
"""Reason: the client published faster than a policy allows."""


class Reading:
    """The reading side of a transport, paused by the first reason and resumed when the last one is released."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.held_by: set[str] = set()
        """The reasons for the pause; `hold` and `release` change them."""

    def hold(self, reason: str) -> None:
        """Pause reading until this reason is released."""
        if not self.held_by:
            self._transport.pause_reading()
        self.held_by.add(reason)

    def release(self, reason: str) -> None:
        """Release a reason, and resume reading after the last one."""
        if reason in self.held_by:
            self.held_by.remove(reason)
            if not self.held_by and not self._transport.is_closing():
                self._transport.resume_reading()
