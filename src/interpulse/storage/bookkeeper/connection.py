"""One connection to one bookie, shared by all ledgers: a socket that drives a `ClientProtocol`.

The entries and bytes of unanswered additions are bounded; further ones wait here, in order. A bookie that leaves an
addition or a read unanswered for too long loses its connection.
"""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Final, NamedTuple, cast

from interpulse.storage.bookkeeper.errors import BrokenConnection, Code
from interpulse.storage.bookkeeper.protocol import Added, ClientProtocol
from interpulse.storage.bookkeeper.records import Address

OnAdded = Callable[[int, int, int], None]
"""Called with the first of some consecutive entries, their count, and a code."""

_BUSY_PAUSE_S: Final = (0.01, 0.1)
_LOOK_SHARE: Final = 0.1  # of the shorter time-out: the interval between checks for overdue requests
_BATCH_FRONT: Final = 64  # bytes of an answer to a batch read, besides its entries
_PACKET_FRONT: Final = 44  # bytes of one of its entries, besides the payload
_LARGE_BYTES: Final = 4096  # of a frame: above this, a copy costs more than a separate write


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """Limits and time-outs of a connection."""

    connect_timeout_s: float = 5.0
    add_timeout_s: float = 30.0
    read_timeout_s: float = 10.0
    window_entries: int = 5_000  # a bookie refuses more than 10,000 requests that wait in one of its threads
    window_bytes: int = 32 << 20


class Reply(NamedTuple):
    """The answer to a read."""

    code: int
    packets: Sequence[bytes | memoryview]


@dataclass(slots=True, eq=False)
class _Adds:
    """Additions that wait to be sent, from ``at`` on."""

    ledger_id: int
    entry_ids: Sequence[int]
    frames: Sequence[bytes]
    on_added: OnAdded
    at: int = 0


@dataclass(slots=True, eq=False)
class _Sent:
    """The ticket of additions: the number of unanswered ones, and their bytes."""

    entries: int
    size: int
    due: float
    on_added: OnAdded


class _Asked(NamedTuple):
    """The ticket of a read."""

    reply: asyncio.Future[Reply]
    due: float


class BookieConnection(asyncio.Protocol):
    """A connection. Create it with `open`. Once it has ended, ``lost`` is the reason."""

    def __init__(self, address: Address, config: ConnectionConfig) -> None:
        self.address = address
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[str] = self._loop.create_future()
        self.batches_answered = False
        self.ended_at_a_batch = False
        """True if it ended while a batch read waited, and none was ever answered: older bookies do that."""
        self._config = config
        self._protocol = ClientProtocol()
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._queue: deque[_Adds] = deque()
        self._sent_entries = 0
        self._sent_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, address: Address, config: ConnectionConfig) -> BookieConnection:
        """Connect to a bookie. Raise OSError, or its subclass TimeoutError."""
        async with asyncio.timeout(config.connect_timeout_s):
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(lambda: cls(address, config), address.host, address.port)
        return connection

    def add(self, ledger_id: int, entry_ids: Sequence[int], frames: Sequence[bytes], on_added: OnAdded) -> None:
        """Send an `add_frame` for each entry. ``on_added`` gets the answers, and must not raise."""
        size = sum(map(len, frames))
        if self.lost.done():
            self._loop.call_soon(_report_lost, _Adds(ledger_id, entry_ids, frames, on_added))
        elif self._queue or not self._have_room(len(frames), size):
            self._queue.append(_Adds(ledger_id, entry_ids, frames, on_added))
            self._send_queued()
        else:
            self._send(ledger_id, entry_ids, frames, size, on_added)

    async def add_until_taken(self, ledger_id: int, entry_id: int, frame: bytes) -> int:
        """Send an `add_frame`, again while the bookie is too busy, and return the final code."""
        until = self._loop.time() + self._config.add_timeout_s
        while True:
            added: asyncio.Future[int] = self._loop.create_future()
            self.add(ledger_id, (entry_id,), (frame,), partial(_answer_with, added))
            code = await added
            if code != Code.TOO_MANY_REQUESTS or self._loop.time() > until:
                return code
            await asyncio.sleep(random.uniform(*_BUSY_PAUSE_S))

    async def read(self, ledger_id: int, entry_id: int, *, fence_key: bytes = b"", recovery: bool = False) -> Reply:
        """Read an entry, or the last one; see `ClientProtocol.read`."""
        ticket = self._ticket()
        if not self.lost.done():
            raw = self._protocol.read(ledger_id, entry_id, ticket, fence_key=fence_key, recovery=recovery)
            self._write((raw,))
        return await ticket.reply

    async def read_batch(self, ledger_id: int, first: int, *, count_max: int, bytes_max: int) -> Reply:
        """Read an entry and the following ones, up to these bytes of payload."""
        ticket = self._ticket()
        if not self.lost.done():
            asked = bytes_max + _BATCH_FRONT + count_max * _PACKET_FRONT
            self._write((self._protocol.read_batch(ledger_id, first, ticket, count_max=count_max, bytes_max=asked),))
        reply = await ticket.reply
        self.batches_answered = self.batches_answered or reply.code >= Code.OK
        return reply

    def end(self, reason: str) -> None:
        """Close the connection. Open requests are answered `Code.CONNECTION_LOST`, or `Code.OVERDUE` if they are."""
        if self.lost.done():
            return
        self.lost.set_result(reason)
        self.ended_at_a_batch = not self.batches_answered and self._protocol.batches_waiting > 0
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        queue, self._queue = self._queue, deque()
        adds, reads = self._protocol.unanswered_adds(), self._protocol.unanswered_reads()
        self._protocol.forget()
        now = self._loop.time()
        for entry_id, sent in adds:
            sent.on_added(entry_id, 1, _code_at_the_end(sent.due, now))
        for asked in reads:
            _reply(asked, Reply(_code_at_the_end(asked.due, now), ()))
        for waiting in queue:
            _report_lost(waiting)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport does not inherit from it
        self._look_for_overdue()

    def connection_lost(self, error: Exception | None) -> None:
        self.end(str(error) if error else "the bookie closed it")

    def data_received(self, raw: bytes) -> None:
        try:
            for answer in self._protocol.receive(raw):
                if isinstance(answer, Added):
                    self._added(*answer)
                else:
                    _reply(answer.ticket, Reply(answer.code, answer.packets))
        except BrokenConnection as error:
            self.end(str(error))
            return
        if self._queue:
            self._send_queued()

    def _added(self, sent: _Sent, code: int, first: int, count: int) -> None:
        size = sent.size * count // sent.entries  # as if all were of one size: the total is right
        sent.entries -= count
        sent.size -= size
        self._sent_entries -= count
        self._sent_bytes -= size
        sent.on_added(first, count, code)

    def _ticket(self) -> _Asked:
        ticket = _Asked(self._loop.create_future(), self._loop.time() + self._config.read_timeout_s)
        if self.lost.done():
            ticket.reply.set_result(Reply(Code.CONNECTION_LOST, ()))
        return ticket

    def _have_room(self, entries: int, size: int) -> bool:
        config = self._config
        return self._sent_entries + entries <= config.window_entries and self._sent_bytes + size <= config.window_bytes

    def _send_queued(self) -> None:
        """Send as many as are allowed now, but at least the first if nothing is in flight."""
        while self._queue:
            adds = self._queue[0]
            begin, room = adds.at, self._config.window_entries - self._sent_entries
            sizes = list(accumulate(map(len, adds.frames[begin : begin + room])))
            count = bisect_right(sizes, self._config.window_bytes - self._sent_bytes)
            if not count and self._sent_entries:
                return
            adds.at = end = begin + max(count, 1)
            size = sizes[end - begin - 1]
            self._send(adds.ledger_id, adds.entry_ids[begin:end], adds.frames[begin:end], size, adds.on_added)
            if end == len(adds.frames):
                self._queue.popleft()

    def _send(
        self, ledger_id: int, entry_ids: Sequence[int], frames: Sequence[bytes], size: int, on_added: OnAdded
    ) -> None:
        self._sent_entries += len(frames)
        self._sent_bytes += size
        ticket = _Sent(len(frames), size, self._loop.time() + self._config.add_timeout_s, on_added)
        self._protocol.add(ledger_id, entry_ids, ticket)
        self._write(frames)

    def _write(self, raws: Sequence[bytes]) -> None:
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out += raws

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._transport is None or self._transport.is_closing():
            return
        if sum(map(len, out)) < _LARGE_BYTES * len(out):
            self._transport.write(b"".join(out))
        else:
            self._transport.writelines(out)

    def _look_for_overdue(self) -> None:
        now = self._loop.time()
        sent = [ticket for _, ticket in self._protocol.unanswered_adds()]
        if any(request.due < now for request in sent + self._protocol.unanswered_reads()):
            self.end("it did not answer in time")
            return
        pause_s = _LOOK_SHARE * min(self._config.add_timeout_s, self._config.read_timeout_s)
        self._timer = self._loop.call_later(pause_s, self._look_for_overdue)


def _answer_with(added: asyncio.Future[int], entry_id: int, count: int, code: int) -> None:
    if not added.done():
        added.set_result(code)


def _reply(asked: _Asked, reply: Reply) -> None:
    if not asked.reply.done():
        asked.reply.set_result(reply)


def _report_lost(adds: _Adds) -> None:
    for entry_id in adds.entry_ids[adds.at :]:
        adds.on_added(entry_id, 1, Code.CONNECTION_LOST)


def _code_at_the_end(due: float, now: float) -> int:
    return Code.OVERDUE if due < now else Code.CONNECTION_LOST
