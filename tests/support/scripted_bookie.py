"""A bookie in the process, for tests that need faults at will.

Its entries are in memory. Without a journal it never forgets them. With one it answers a change once the journal has
it on disk, and begins with what the journal has. As in a real bookie, an entry is readable before that.

What it answers was compared with a real bookie: the recorded exchanges are played to it, and the interop tests run the
same client on real ones.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from interpulse.storage.bookkeeper import bookkeeper_pb2 as pb
from interpulse.storage.bookkeeper.errors import Code
from interpulse.storage.bookkeeper.protocol import Frames
from interpulse.storage.bookkeeper.records import AVAILABLE, READ_ONLY
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.support.bookie_journal import KEY_SIZE, BookieJournal, Kind, Record

ADD, READ, BATCH_READ = 1, 2, 7
_FENCING, _RECOVERY_ADD = 1, 2

OpenJournal = Callable[[], tuple[BookieJournal, list[Record]]]


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

    @property
    def fences(self) -> bool:
        return self.operation == READ and bool(self.flags & _FENCING)

    @property
    def changes(self) -> bool:
        """True if it is answered once the journal is on disk."""
        return self.operation == ADD or self.fences


class ScriptedBookie:
    """One bookie. Faults are its attributes."""

    def __init__(
        self, bookie_id: str, *, host: str = "127.0.0.1", port: int = 0, open_journal: OpenJournal | None = None
    ) -> None:
        """Port 0: a free one. ``open_journal`` is called at each start; None: the bookie keeps what it has."""
        self.bookie_id = bookie_id
        self.host = host
        self.ledgers: dict[int, KeptLedger] = {}
        self.requests: list[Request] = []
        self.refuse: Callable[[Request], int] = lambda request: Code.OK  # a code answers instead of the bookie
        self.silent = False  # it keeps and answers nothing until `go_on`
        self.mute = False  # it keeps, and answers nothing until `go_on`
        self.slow_s = 0.0  # each answer comes so much later
        self.old = False  # it knows no batch reads
        self.port = port
        self.on_failed: Callable[[], None] = lambda: None  # called when its journal fails, after which it stops
        self._open_journal = open_journal
        self._journal: BookieJournal | None = None
        self._server: asyncio.AbstractServer | None = None
        self._connections: set[_BookieEnd] = set()
        self.held: list[Callable[[], None]] = []  # what `silent` or `mute` holds back, in the order of coming

    async def start(self) -> None:
        """Read the journal back, and listen, at the port of the last time. Raise OSError."""
        self.silent = self.mute = False
        if self._open_journal is not None:
            self._journal, records = self._open_journal()
            self._journal.on_failed = self._stop_for
            self.ledgers = _replayed(records)
        server = await asyncio.get_running_loop().create_server(lambda: _BookieEnd(self), self.host, self.port)
        self._server = server
        self.port = self.port or server.sockets[0].getsockname()[1]

    async def kill(self) -> None:
        """Break every connection and take no new one; what it has on disk, or without a journal in memory, stays."""
        if self._server is not None:
            self._server.close()
            self.cut()
            await self._server.wait_closed()
            self._server = None
        if self._journal is not None:
            self._journal.close()
            self._journal = None
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

    def lose(self, ledger_id: int, entry_id: int) -> None:
        """Forget an entry, until the journal is read again."""
        del self.ledgers[ledger_id].entries[entry_id]

    def fence(self, ledger_id: int) -> None:
        """Fence a ledger that it has, as another client would."""
        self._fence(ledger_id, self.ledgers[ledger_id])

    def when_synced(self, callback: Callable[[], None]) -> None:
        """Call back when all changes so far are on disk, never if that fails."""
        if self._journal is None:
            callback()
        else:
            self._journal.when_synced(callback)

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
        if ledger.fenced and not request.flags & _RECOVERY_ADD:
            return Code.FENCED
        ledger.entries[request.entry_id] = packet
        self._note(Record(Kind.ADD, request.ledger_id, request.entry_id, key, packet))
        return Code.OK

    def _read(self, request: Request, key: bytes) -> bytes:
        if request.fences:
            ledger = self.ledgers.setdefault(request.ledger_id, KeptLedger(key))
            if ledger.key != key:
                return _reply(request, Code.UNAUTHORIZED)
            self._fence(request.ledger_id, ledger)
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

    def _fence(self, ledger_id: int, ledger: KeptLedger) -> None:
        if not ledger.fenced:
            ledger.fenced = True
            self._note(Record(Kind.FENCE, ledger_id, 0, ledger.key))

    def _note(self, record: Record) -> None:
        if self._journal is not None:
            self._journal.append(record)

    def _stop_for(self, error: OSError) -> None:
        """Serve no more, as a bookie whose journal failed."""
        if self._server is not None:
            self._server.close()
        self.cut()
        self.on_failed()

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
        synced: list[bytes] = []
        for body in map(bytes, self._frames.cut(raw)):
            request = _request_of(body)
            (synced if request.changes else answers).extend(self._answers(request, body))
        self._respond(answers)
        if synced:
            self._bookie.when_synced(partial(self._respond, synced))

    def _respond(self, answers: list[bytes]) -> None:
        if self._bookie.mute:
            self._bookie.held += [partial(self._write, answer) for answer in answers]
        else:
            self._write(b"".join(answers))

    def _write(self, answers: bytes) -> None:
        if self._bookie.slow_s:
            asyncio.get_running_loop().call_later(self._bookie.slow_s, self._send, answers)
        else:
            self._send(answers)

    def _send(self, answers: bytes) -> None:
        if answers and not self._transport.is_closing():
            self._transport.write(answers)

    def _answers(self, request: Request, body: bytes) -> list[bytes]:
        self._bookie.requests.append(request)
        answers = list(self._bookie.answer(request, body))
        if not answers:
            self.break_off()
        return answers


def _request_of(body: bytes) -> Request:
    (header,) = struct.unpack(">I", body[:4])
    operation, flags = header >> 16 & 0xFF, header & 0xFFFF
    at = 4 + KEY_SIZE if operation == ADD else 4
    return Request(operation, flags, *struct.unpack(">qq", body[at : at + 16]))


def _replayed(records: Iterable[Record]) -> dict[int, KeptLedger]:
    ledgers: dict[int, KeptLedger] = {}
    for record in records:
        ledger = ledgers.setdefault(record.ledger_id, KeptLedger(record.key))
        if record.kind is Kind.FENCE:
            ledger.fenced = True
        else:
            ledger.entries[record.entry_id] = record.packet
    return ledgers


def _reply(request: Request, code: int, rest: bytes = b"") -> bytes:
    header = 2 << 24 | request.operation << 16
    return struct.pack(">IIiqq", 24 + len(rest), header, code, request.ledger_id, request.entry_id) + rest


def registered_path(bookie: ScriptedBookie) -> str:
    """The node by which clients find the bookie."""
    return f"{AVAILABLE}/{bookie.bookie_id}"


def registration(bookie: ScriptedBookie) -> bytes:
    """The value of that node: the address."""
    value = pb.BookieServiceInfoFormat()
    value.endpoints.add(id="bookie", host=bookie.host, port=bookie.port, protocol="bookie-rpc")
    return value.SerializeToString()


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
        await self._nodes.create_parents(f"{READ_ONLY}/x")
        await self._nodes.create(registered_path(bookie), registration(bookie))

    async def unregister(self, bookie: ScriptedBookie) -> None:
        """Let it be away for ZooKeeper."""
        await self._nodes.delete(registered_path(bookie))

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
