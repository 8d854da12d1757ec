"""One connection to one bookie, shared by all ledgers: a socket that drives a `ClientProtocol`.

Only so many entries and bytes of additions are unanswered at a time; what is beyond waits here, in the order of asking.
A bookie that leaves an addition or a read unanswered for too long loses its connection.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, cast

from interpulse.storage.bookkeeper.bookie_addresses import Address
from interpulse.storage.bookkeeper.errors import BrokenConnection, Code
from interpulse.storage.bookkeeper.protocol import Answer, ClientProtocol

__all__ = ["BookieConnection", "ConnectionConfig", "Reply"]

OnAdded = Callable[[int, int], None]
"""Called with an entry's number and a code."""

_BUSY_PAUSE_S: Final = (0.01, 0.1)
_LOOK_SHARE: Final = 0.1  # of the shorter time-out: how often overdue requests are looked for
_BATCH_FRONT: Final = 64  # bytes of an answer to a batch read beside its entries
_PACKET_FRONT: Final = 44  # bytes of one entry in it beside its payload


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """How a connection behaves."""

    connect_timeout_s: float = 5.0
    add_timeout_s: float = 30.0
    read_timeout_s: float = 10.0
    window_entries: int = 5_000  # a bookie refuses more than 10,000 that wait in one of its threads
    window_bytes: int = 32 << 20


class Reply(NamedTuple):
    """What a read was answered with."""

    code: int
    packets: Sequence[bytes]


class _Addition(NamedTuple):
    ledger_id: int
    entry_id: int
    frame: bytes
    on_added: OnAdded


class _Sent(NamedTuple):
    """A ticket of an addition."""

    entry_id: int
    size: int
    due: float
    on_added: OnAdded


class _Asked(NamedTuple):
    """A ticket of a read."""

    reply: asyncio.Future[Reply]
    due: float


class BookieConnection(asyncio.Protocol):
    """Create it with `open`. ``lost`` is set, to the reason, when it has ended."""

    def __init__(self, address: Address, config: ConnectionConfig) -> None:
        self.address = address
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[str] = self._loop.create_future()
        self.batches_answered = False
        self.ended_at_a_batch = False
        """Whether it ended while a batch read waited, and none had ever been answered: older bookies do so."""
        self._config = config
        self._protocol = ClientProtocol()
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._queue: deque[_Addition] = deque()
        self._sent_entries = 0
        self._sent_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, address: Address, config: ConnectionConfig) -> BookieConnection:
        """Connect; raises OSError, or TimeoutError, which is one."""
        async with asyncio.timeout(config.connect_timeout_s):
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(lambda: cls(address, config), address.host, address.port)
        return connection

    def add(self, ledger_id: int, entry_id: int, frame: bytes, on_added: OnAdded) -> None:
        """Send an `add_frame`; the code it is answered with goes to ``on_added``, which must not raise."""
        if self.lost.done():
            self._loop.call_soon(on_added, entry_id, Code.CONNECTION_LOST)
        elif self._queue or not self._has_room(len(frame)):
            self._queue.append(_Addition(ledger_id, entry_id, frame, on_added))
        else:
            self._send(ledger_id, entry_id, frame, on_added)

    async def add_until_taken(self, ledger_id: int, entry_id: int, frame: bytes) -> int:
        """Send an `add_frame`, again while the bookie is too busy for it; the code it is answered with at last."""
        until = self._loop.time() + self._config.add_timeout_s
        while True:
            added: asyncio.Future[int] = self._loop.create_future()
            self.add(ledger_id, entry_id, frame, partial(_answer_with, added))
            code = await added
            if code != Code.TOO_MANY_REQUESTS or self._loop.time() > until:
                return code
            await asyncio.sleep(random.uniform(*_BUSY_PAUSE_S))

    async def read(self, ledger_id: int, entry_id: int, *, fence_key: bytes = b"", recovery: bool = False) -> Reply:
        """Ask for an entry, or the last one, as `ClientProtocol.read` says."""
        ticket = self._ticket()
        if not self.lost.done():
            raw = self._protocol.read(ledger_id, entry_id, ticket, fence_key=fence_key, recovery=recovery)
            self._write(raw)
        return await ticket.reply

    async def read_batch(self, ledger_id: int, first: int, *, count_max: int, bytes_max: int) -> Reply:
        """Ask for an entry and those behind it, as far as their payloads have so many bytes."""
        ticket = self._ticket()
        if not self.lost.done():
            asked = bytes_max + _BATCH_FRONT + count_max * _PACKET_FRONT
            self._write(self._protocol.read_batch(ledger_id, first, ticket, count_max=count_max, bytes_max=asked))
        reply = await ticket.reply
        self.batches_answered = self.batches_answered or reply.code >= Code.OK
        return reply

    def end(self, reason: str) -> None:
        """Close the connection; what is unanswered is answered `Code.CONNECTION_LOST`, or `Code.OVERDUE` if it is."""
        if self.lost.done():
            return
        self.lost.set_result(reason)
        self.ended_at_a_batch = not self.batches_answered and self._protocol.batches_waiting > 0
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        queue, self._queue = self._queue, deque()
        now = self._loop.time()
        for ticket in self._protocol.unanswered():
            self._tell(Answer(ticket, Code.OVERDUE if ticket.due < now else Code.CONNECTION_LOST, ()))
        for addition in queue:
            addition.on_added(addition.entry_id, Code.CONNECTION_LOST)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one without inheriting from it
        self._look_for_overdue()

    def connection_lost(self, error: Exception | None) -> None:
        self.end(str(error) if error else "the bookie closed it")

    def data_received(self, raw: bytes) -> None:
        try:
            for answer in self._protocol.receive(raw):
                if self.lost.done():
                    return
                self._tell(answer)
        except BrokenConnection as error:
            self.end(str(error))
            return
        while self._queue and self._has_room(len(self._queue[0].frame)):
            self._send(*self._queue.popleft())

    def _tell(self, answer: Answer) -> None:
        ticket: Any = answer.ticket
        if ticket.__class__ is _Sent:
            self._sent_entries -= 1
            self._sent_bytes -= ticket.size
            ticket.on_added(ticket.entry_id, answer.code)
        elif not ticket.reply.done():
            ticket.reply.set_result(Reply(answer.code, answer.packets))

    def _ticket(self) -> _Asked:
        ticket = _Asked(self._loop.create_future(), self._loop.time() + self._config.read_timeout_s)
        if self.lost.done():
            ticket.reply.set_result(Reply(Code.CONNECTION_LOST, ()))
        return ticket

    def _has_room(self, size: int) -> bool:
        """Whether one more may be sent; the first one always may."""
        if not self._sent_entries:
            return True
        config = self._config
        return self._sent_entries < config.window_entries and self._sent_bytes + size <= config.window_bytes

    def _send(self, ledger_id: int, entry_id: int, frame: bytes, on_added: OnAdded) -> None:
        size = len(frame)
        self._sent_entries += 1
        self._sent_bytes += size
        ticket = _Sent(entry_id, size, self._loop.time() + self._config.add_timeout_s, on_added)
        self._protocol.add(ledger_id, entry_id, ticket)
        self._write(frame)

    def _write(self, raw: bytes) -> None:
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(raw)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(out)

    def _look_for_overdue(self) -> None:
        now = self._loop.time()
        if any(ticket.due < now for ticket in self._protocol.unanswered()):
            self.end("it did not answer in time")
            return
        pause_s = _LOOK_SHARE * min(self._config.add_timeout_s, self._config.read_timeout_s)
        self._timer = self._loop.call_later(pause_s, self._look_for_overdue)


def _answer_with(added: asyncio.Future[int], entry_id: int, code: int) -> None:
    if not added.done():
        added.set_result(code)
