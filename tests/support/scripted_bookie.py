"""A bookie in the process, for tests that need faults at will. It keeps entries in memory and never forgets them.

What it answers was compared with a real bookie: the recorded exchanges are played to it, and the interop tests run the
same client on real ones.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from interpulse.storage.bookkeeper import bookkeeper_pb2 as pb
from interpulse.storage.bookkeeper.errors import Code
from interpulse.storage.bookkeeper.protocol import Frames
from interpulse.storage.bookkeeper.records import AVAILABLE, READ_ONLY
from interpulse.storage.zookeeper.client import ZooKeeperClient

ADD, READ, BATCH_READ = 1, 2, 7
KEY_SIZE = 20


@dataclass
class KeptLedger:
    """What a bookie has of one ledger."""

    key: bytes
    fenced: bool = False
    entries: dict[int, bytes] = field(default_factory=dict)


@dataclass
class Request:
    """One request, as far as faults look at it."""

    operation: int
    flags: int
    ledger_id: int
    entry_id: int


class ScriptedBookie:
    """One bookie. Faults are its attributes."""

    def __init__(self, bookie_id: str) -> None:
        self.bookie_id = bookie_id
        self.ledgers: dict[int, KeptLedger] = {}
        self.requests: list[Request] = []
        self.refuse: Callable[[Request], int] = lambda request: Code.OK  # a code answers instead of the bookie
        self.silent = False  # it keeps and answers nothing until `go_on`
        self.mute = False  # it keeps, and answers nothing until `go_on`
        self.old = False  # it knows no batch reads
        self.port = 0
        self._server: asyncio.Server | None = None
        self._connections: set[_BookieEnd] = set()
        self.held: list[Callable[[], None]] = []  # what `silent` or `mute` holds back, in the order of coming

    async def start(self) -> None:
        """Listen, at the port of the last time."""
        self.silent = self.mute = False
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _BookieEnd(self), "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def kill(self) -> None:
        """Break every connection and take no new one; what it has stays."""
        if self._server is not None:
            self._server.close()
            self.cut()
            await self._server.wait_closed()
            self._server = None
        self.held.clear()

    def cut(self) -> None:
        """Break every connection."""
        for connection in list(self._connections):
            connection.break_off()

    def go_on(self) -> None:
        """Undo `silent` and `mute`: what came meanwhile is answered."""
        self.silent = self.mute = False
        held, self.held = self.held, []
        for work in held:
            work()

    def damage(self, ledger_id: int, entry_id: int) -> None:
        """Turn the last bit of an entry."""
        entries = self.ledgers[ledger_id].entries
        entries[entry_id] = entries[entry_id][:-1] + bytes([entries[entry_id][-1] ^ 1])

    def answer(self, request: Request, body: bytes) -> Iterator[bytes]:
        """The code and what follows the numbers, or nothing if the connection is to be closed."""
        code = self.refuse(request)
        if code != Code.OK:
            yield _reply(request, code)
        elif request.operation == ADD:
            yield _reply(request, self._add(request, body))
        elif request.operation == READ:
            yield self._read(request, body[20:])
        elif request.operation == BATCH_READ and not self.old:
            yield self._read_batch(request, body)

    def _add(self, request: Request, body: bytes) -> int:
        key, packet = body[4 : 4 + KEY_SIZE], body[4 + KEY_SIZE :]
        ledger = self.ledgers.setdefault(request.ledger_id, KeptLedger(key))
        if ledger.key != key:
            return Code.UNAUTHORIZED
        if ledger.fenced and not request.flags & 2:
            return Code.FENCED
        ledger.entries[request.entry_id] = packet
        return Code.OK

    def _read(self, request: Request, key: bytes) -> bytes:
        if request.flags & 1:
            ledger = self.ledgers.setdefault(request.ledger_id, KeptLedger(key))
            if ledger.key != key:
                return _reply(request, Code.UNAUTHORIZED)
            ledger.fenced = True
        known = self.ledgers.get(request.ledger_id)
        if known is None:
            return _reply(request, Code.NO_LEDGER)
        entry_id = max(known.entries, default=-1) if request.entry_id == -1 else request.entry_id
        if entry_id not in known.entries:
            return _reply(request, Code.NO_ENTRY)
        return _reply(request, Code.OK, known.entries[entry_id])

    def _read_batch(self, request: Request, body: bytes) -> bytes:
        request_id, count_max, bytes_max = struct.unpack(">qiq", body[20:40])
        known = self.ledgers.get(request.ledger_id)
        code = Code.NO_LEDGER if known is None else Code.OK
        rest, at, count = bytearray(), request.entry_id, 0
        while known is not None and at in known.entries:
            packet = struct.pack(">I", len(known.entries[at])) + known.entries[at]
            if count and (count == count_max or len(rest) + len(packet) > bytes_max):
                break
            rest += packet
            at, count = at + 1, count + 1
        if code == Code.OK and not count:
            code = Code.NO_ENTRY
        return _reply(request, code, struct.pack(">q", request_id) + bytes(rest))

    def join(self, connection: _BookieEnd) -> None:
        self._connections.add(connection)

    def leave(self, connection: _BookieEnd) -> None:
        self._connections.discard(connection)


class _BookieEnd(asyncio.Protocol):
    def __init__(self, bookie: ScriptedBookie) -> None:
        self._bookie = bookie
        self._frames = Frames()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one without inheriting from it
        self._bookie.join(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._bookie.leave(self)

    def break_off(self) -> None:
        self._bookie.leave(self)
        self._transport.abort()

    def data_received(self, raw: bytes) -> None:
        if self._bookie.silent:
            self._bookie.held.append(partial(self._take, raw))
        else:
            self._take(raw)

    def _take(self, raw: bytes) -> None:
        if self._transport.is_closing():
            return
        answers: list[bytes] = []  # written together, as bookies answer what they synced together
        for body in map(bytes, self._frames.cut(raw)):
            answers += self._request(body)
        self._write(b"".join(answers))

    def _write(self, answers: bytes) -> None:
        if answers and not self._transport.is_closing():
            self._transport.write(answers)

    def _request(self, body: bytes) -> list[bytes]:
        (header,) = struct.unpack(">I", body[:4])
        operation, flags = header >> 16 & 0xFF, header & 0xFFFF
        at = 4 + KEY_SIZE if operation == ADD else 4
        request = Request(operation, flags, *struct.unpack(">qq", body[at : at + 16]))
        self._bookie.requests.append(request)
        answers = list(self._bookie.answer(request, body))
        if not answers:
            self.break_off()
        if not self._bookie.mute:
            return answers
        self._bookie.held += [partial(self._write, answer) for answer in answers]
        return []


def _reply(request: Request, code: int, rest: bytes = b"") -> bytes:
    header = 2 << 24 | request.operation << 16
    return struct.pack(">IIiqq", 24 + len(rest), header, code, request.ledger_id, request.entry_id) + rest


class ScriptedBookies:
    """Several bookies, and their registration in ZooKeeper."""

    def __init__(self, nodes: ZooKeeperClient) -> None:
        self._nodes = nodes
        self._bookies: list[ScriptedBookie] = []

    def __iter__(self) -> Iterator[ScriptedBookie]:
        return iter(self._bookies)

    def __getitem__(self, bookie_id: str) -> ScriptedBookie:
        return next(each for each in self._bookies if each.bookie_id == bookie_id)

    async def start(self) -> ScriptedBookie:
        """One more bookie, registered."""
        bookie = ScriptedBookie(f"bookie-{len(self._bookies)}")
        self._bookies.append(bookie)
        await bookie.start()
        await self.register(bookie)
        return bookie

    async def register(self, bookie: ScriptedBookie) -> None:
        """Let it be known as writable."""
        value = pb.BookieServiceInfoFormat()
        value.endpoints.add(id="bookie", host="127.0.0.1", port=bookie.port, protocol="bookie-rpc")
        path = f"{AVAILABLE}/{bookie.bookie_id}"
        await self._nodes.create_parents(f"{READ_ONLY}/x")
        await self._nodes.create(path, value.SerializeToString())

    async def unregister(self, bookie: ScriptedBookie) -> None:
        """Let it be away for ZooKeeper."""
        await self._nodes.delete(f"{AVAILABLE}/{bookie.bookie_id}")

    def having(self, ledger_id: int, entry_id: int) -> set[str]:
        """The bookies that have an entry."""
        return {
            each.bookie_id
            for each in self._bookies
            if ledger_id in each.ledgers and entry_id in each.ledgers[ledger_id].entries
        }


@asynccontextmanager
async def scripted_bookies(nodes: ZooKeeperClient, count: int) -> AsyncIterator[ScriptedBookies]:
    """So many of them, stopped at the end."""
    bookies = ScriptedBookies(nodes)
    async with AsyncExitStack() as stack:
        for _ in range(count):
            stack.push_async_callback((await bookies.start()).kill)
        yield bookies
        for bookie in list(bookies)[count:]:
            stack.push_async_callback(bookie.kill)
