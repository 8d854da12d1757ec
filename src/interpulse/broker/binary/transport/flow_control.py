"""Reading from one client and output to it: both pause, and their buffers are bounded.

`PendingPublishes` holds the sums of a connection, which stops reading at the limits. Each of its open producers counts
entries and answers in a `ProducerPublishes`. All connections of a broker share one `PublishBuffer`: a thousand of them
below their own limits could still exceed the memory.

`Output` is collected during a turn of the event loop and written in one call. One write per frame costs four times the
throughput of joined ones, but joining large entries would copy them. So small pieces are joined and large ones are
written as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Final

PUBLISHES: Final = "publishes"
"""Reason: too many entries have no answer yet."""

REQUESTS: Final = "requests"
"""Reason: too many requests are in progress."""

OUTPUT: Final = "output"
"""Reason: too much output waits for the client to read it."""

RATE: Final = "rate"
"""Reason: the client published faster than a policy allows."""

# From this size on, copying a piece costs more than a write of its own.
_PIECE_BYTES_LARGE: Final = 32 * 1024

_JOINED_BYTES_MAX: Final = 256 * 1024


class PublishBuffer:
    """The bytes of all pending entries of a broker (``maxMessagePublishBufferSizeInMB``).

    Above the limit every connection with pending entries stops reading; they resume below half of it.
    """

    __slots__ = ("_bytes_max", "bytes", "waiting")

    def __init__(self, bytes_max: int = 0) -> None:
        """Limit the bytes; 0: no limit."""
        self.bytes = 0
        self._bytes_max = bytes_max
        self.waiting: dict[Callable[[], None], None] = {}
        """Callbacks to call once when there is room again, in this order."""

    @property
    def full(self) -> bool:
        return self.bytes >= self._bytes_max > 0

    @property
    def has_room(self) -> bool:
        return self.bytes <= self._bytes_max // 2 or not self._bytes_max

    def subtract(self, size: int) -> None:
        """Subtract bytes that are no longer pending."""
        self.bytes -= size
        if self.waiting and self.has_room:
            waiting, self.waiting = self.waiting, {}
            for go_on in waiting:
                go_on()


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
        self._buffer.waiting[self._on_answered] = None
        return True

    @property
    def has_room(self) -> bool:
        if self.count > self._count_max // 2 or self.bytes >= self._bytes_max:
            return False
        if not self.count or self._buffer.has_room:
            return True
        self._buffer.waiting[self._on_answered] = None
        return False

    def add(self, count: int, size: int) -> None:
        self.count += count
        self.bytes += size
        self._buffer.bytes += size

    def subtract(self, count: int, size: int) -> None:
        """Subtract entries of ``size`` bytes in all that are no longer pending."""
        self.count -= count
        self.bytes -= size
        self._buffer.subtract(size)
        self._on_answered()

    def close(self) -> None:
        """Remove a lost connection; its producers abandon their pending entries."""
        self._buffer.waiting.pop(self._on_answered, None)


class ProducerPublishes:
    """The pending entries of one producer, answered in the order in which they came."""

    __slots__ = ("_drained", "_sizes", "_total")

    def __init__(self, total: PendingPublishes) -> None:
        self._sizes: list[int] = []
        self._total = total
        self._drained: asyncio.Future[None] | None = None

    def add(self, entries: Sequence[Sized]) -> None:
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
        if self._sizes:
            self._drained = self._drained or asyncio.get_running_loop().create_future()
            await self._drained


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


class Output:
    """Collects frames for one transport and writes them once per turn of the loop.

    ``bytes_waiting`` counts the frames of this turn and those that the transport has not sent yet.
    """

    __slots__ = ("_loop", "_pieces", "_transport", "bytes_collected")

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.WriteTransport) -> None:
        self._loop = loop
        self._transport = transport
        self._pieces: list[bytes] = []
        self.bytes_collected = 0
        """Bytes that wait for the end of this turn."""

    @property
    def bytes_waiting(self) -> int:
        return self.bytes_collected + self._transport.get_write_buffer_size()

    def send(self, frame: bytes) -> None:
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.append(frame)
        self.bytes_collected += len(frame)

    def send_pieces(self, pieces: Iterable[bytes], size: int) -> None:
        """Write these pieces, ``size`` bytes in all, without joining large ones."""
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.extend(pieces)
        self.bytes_collected += size

    def flush(self) -> None:
        """Hand the collected frames to the transport now."""
        pieces = self._pieces
        if not pieces:
            return
        size, self.bytes_collected = self.bytes_collected, 0
        self._pieces = []
        if self._transport.is_closing():
            return
        if size <= _JOINED_BYTES_MAX:
            self._transport.write(b"".join(pieces))
        else:
            self._transport.writelines(_join_small(pieces))


def _join_small(pieces: list[bytes]) -> list[bytes]:
    joined: list[bytes] = []
    run: list[bytes] = []
    for piece in pieces:
        if len(piece) < _PIECE_BYTES_LARGE:
            run.append(piece)
            continue
        if run:
            joined.append(b"".join(run))
            run = []
        joined.append(piece)
    if run:
        joined.append(b"".join(run))
    return joined
