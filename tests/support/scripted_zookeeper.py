"""A ZooKeeper in the process, for tests that need faults at will: one tree in memory, several servers that share it.

It speaks the part of the protocol that our client uses, from the same records. What it answers was compared with a real
ZooKeeper: the conformance tests of client and store run on both.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from interpulse.storage.zookeeper.jute import Source
from interpulse.storage.zookeeper.protocol import Frames, framed
from interpulse.storage.zookeeper.records import (
    ADD_WATCH,
    CHECK,
    CLOSE_SESSION,
    CONNECT_REQUEST,
    CONNECT_RESPONSE,
    CREATE,
    DELETE,
    EXISTS,
    GET,
    GET_CHILDREN,
    MULTI,
    MULTI_READ,
    NOTIFICATION,
    OPERATIONS,
    PING,
    REPLY_HEADER,
    REQUEST_HEADER,
    SET,
    SET_WATCHES,
    SYNC,
    AddWatch,
    ConnectResponse,
    Created,
    Failed,
    Listing,
    Node,
    Notification,
    Operation,
    ReplyHeader,
    SetWatches,
    Stat,
    Step,
)

CREATED, DELETED, CHANGED = 1, 2, 3
_WRITES = (CREATE, DELETE, SET, MULTI, CLOSE_SESSION)


class _Refusal(Exception):
    def __init__(self, code: int) -> None:
        self.code = code


@dataclass
class _Znode:
    value: bytes
    czxid: int
    mzxid: int
    version: int = 0
    owner: int = 0
    made: int = 0  # children ever created
    children: set[str] = field(default_factory=set)

    def stat(self) -> Stat:
        return Stat(
            self.czxid, self.mzxid, 0, 0, self.version, self.made, 0, self.owner, len(self.value), len(self.children), 0
        )


class ScriptedZooKeeper:
    """The tree, the sessions and the servers. Faults are its attributes."""

    def __init__(self) -> None:
        self.nodes = {"/": _Znode(b"", 0, 0)}
        self.sessions: dict[int, bytes] = {}
        self.requests: list[str] = []  # names of the operations, in the order of their arrival
        self.reads = 0  # how often bytes came: requests that a client sends without waiting come together
        self.losing: dict[str, int] = {}  # operation -> how many of its replies are lost, with the connection
        self.dropping: dict[str, int] = {}  # operation -> how many of its requests are lost, with the connection
        self.refusing: dict[str, int] = {}  # operation -> the error that each is answered with
        self.silent = False  # nothing is answered
        self.shut = False  # connections are closed as they come
        self.session_timeout_ms: int | None = None  # granted instead of what is asked for
        self.zxid = 0
        self._connections: list[_ServerEnd] = []
        self._servers: list[asyncio.Server] = []

    async def listen(self) -> str:
        """One more server; its address."""
        server = await asyncio.get_running_loop().create_server(lambda: _ServerEnd(self), "127.0.0.1", 0)
        self._servers.append(server)
        return f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

    @property
    def connection_count(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    def cut(self) -> None:
        """Break every connection."""
        for connection in list(self._connections):
            connection.break_off()

    def expire(self, session_id: int) -> None:
        """End a session as a server does whose client fell silent."""
        self.sessions.pop(session_id, None)
        self._remove_ephemerals(session_id)
        for connection in [each for each in self._connections if each.session_id == session_id]:
            connection.break_off()

    async def stop(self) -> None:
        """End all servers."""
        self.cut()
        for server in self._servers:
            server.close()
            await server.wait_closed()

    def add(self, connection: _ServerEnd) -> None:
        self._connections.append(connection)

    def remove(self, connection: _ServerEnd) -> None:
        if connection in self._connections:
            self._connections.remove(connection)

    def others_of(self, connection: _ServerEnd) -> list[_ServerEnd]:
        return [e for e in self._connections if e is not connection and e.session_id == connection.session_id]

    def answer(self, operation: Operation[Any, Any], request: Any, session_id: int) -> Any:
        """The answer to one request; raises `_Refusal`."""
        if operation in _WRITES:
            self.zxid += 1
        if operation is MULTI:
            return self._multi(request, session_id)
        if operation is MULTI_READ:
            return [self._attempt(step, session_id) for step in request]
        if operation is CLOSE_SESSION:
            self.sessions.pop(session_id, None)
            self._remove_ephemerals(session_id)
            return None
        return self._do(operation, request, session_id, self._tell)

    def _attempt(self, step: Step, session_id: int) -> Any:
        try:
            return step.operation, self._do(step.operation, step.request, session_id, self._tell)
        except _Refusal as refusal:
            return Failed(refusal.code)

    def _multi(self, steps: list[Step], session_id: int) -> list[Any]:
        concerned = {path for step in steps for path in (step.request.path, _above(step.request.path))}
        before = {path: _copy(self.nodes[path]) for path in concerned if path in self.nodes}
        told: list[tuple[int, str]] = []
        answers: list[Any] = []
        for index, (operation, request) in enumerate(steps):
            try:
                answer = self._do(operation, request, session_id, lambda kind, path: told.append((kind, path)))
            except _Refusal as refusal:
                made = {answer.path for _, answer in answers if isinstance(answer, Created)}
                for path in made | concerned:
                    self.nodes.pop(path, None)
                self.nodes |= before
                rest = len(steps) - index - 1
                return [Failed(0)] * index + [Failed(refusal.code)] + [Failed(-2)] * rest
            answers.append((operation, answer))
        for kind, path in told:
            self._tell(kind, path)
        return answers

    def _do(self, operation: Operation[Any, Any], request: Any, session_id: int, tell: Any) -> Any:
        if operation is SYNC or operation is PING or operation is ADD_WATCH or operation is SET_WATCHES:
            return request
        if operation is CREATE:
            return self._create(request, session_id, tell)
        node = self.nodes.get(request.path)
        if node is None:
            raise _Refusal(-101)
        if operation in (DELETE, SET, CHECK) and request.version not in (-1, node.version):
            raise _Refusal(-103)
        if operation is DELETE:
            self._delete(request.path, node, tell)
        if operation is SET:
            node.value, node.mzxid, node.version = request.value, self.zxid, node.version + 1
            tell(CHANGED, request.path)
        stat = node.stat()
        listing = Listing(sorted(node.children, reverse=True), stat)
        return {EXISTS: stat, SET: stat, GET: Node(node.value, stat), GET_CHILDREN: listing}.get(operation)

    def _create(self, request: Any, session_id: int, tell: Any) -> Created:
        parent = self.nodes.get(_above(request.path))
        if parent is None:
            raise _Refusal(-101)
        if parent.owner:
            raise _Refusal(-108)
        path = request.path + (f"{parent.made:010d}" if request.flags & 2 else "")
        if path in self.nodes:
            raise _Refusal(-110)
        parent.made += 1
        parent.children.add(path.rpartition("/")[2])
        owner = session_id if request.flags & 1 else 0
        self.nodes[path] = _Znode(request.value, self.zxid, self.zxid, owner=owner)
        tell(CREATED, path)
        return Created(path, self.nodes[path].stat())

    def _delete(self, path: str, node: _Znode, tell: Any) -> None:
        if node.children:
            raise _Refusal(-111)
        del self.nodes[path]
        self.nodes[_above(path)].children.remove(path.rpartition("/")[2])
        tell(DELETED, path)

    def _tell(self, kind: int, path: str) -> None:
        for connection in self._connections:
            connection.tell(kind, path)

    def _remove_ephemerals(self, session_id: int) -> None:
        for path in [path for path, node in self.nodes.items() if node.owner == session_id]:
            self._delete(path, self.nodes[path], self._tell)


def _above(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _copy(node: _Znode) -> _Znode:
    return _Znode(node.value, node.czxid, node.mzxid, node.version, node.owner, node.made, set(node.children))


class _ServerEnd(asyncio.Protocol):
    def __init__(self, zookeeper: ScriptedZooKeeper) -> None:
        self.session_id = 0
        self._zookeeper = zookeeper
        self._frames = Frames()
        self._watched: list[str] = []
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._zookeeper.add(self)
        if self._zookeeper.shut:
            self.break_off()

    def connection_lost(self, error: Exception | None) -> None:
        self._zookeeper.remove(self)

    def break_off(self) -> None:
        self._zookeeper.remove(self)
        self._transport.abort()

    def data_received(self, raw: bytes) -> None:
        self._zookeeper.reads += 1
        for body in self._frames.cut(raw):
            if self._transport.is_closing():
                return
            if self.session_id:
                self._request(Source(body))
            elif not self._zookeeper.silent:
                self._connect(body)

    def _connect(self, body: bytes) -> None:
        asked = CONNECT_REQUEST.decode(body)
        zookeeper = self._zookeeper
        if asked.last_zxid > zookeeper.zxid:
            self._transport.close()
            return
        timeout_ms = zookeeper.session_timeout_ms or asked.timeout_ms
        if asked.session_id == 0:
            self.session_id = 0x100000000 + len(zookeeper.sessions) + time.monotonic_ns()
            zookeeper.sessions[self.session_id] = self.session_id.to_bytes(16, "big")
        elif zookeeper.sessions.get(asked.session_id) != asked.password:
            self._transport.write(framed(CONNECT_RESPONSE.encode(ConnectResponse(0, 0, 0, b"\0" * 16, False))))
            self._transport.close()
            return
        else:
            self.session_id = asked.session_id
            for other in zookeeper.others_of(self):
                other.break_off()
        granted = ConnectResponse(0, timeout_ms, self.session_id, zookeeper.sessions[self.session_id], False)
        self._transport.write(framed(CONNECT_RESPONSE.encode(granted)))

    def _request(self, source: Source) -> None:
        header = REQUEST_HEADER.read(source)
        operation = OPERATIONS[header.code]
        zookeeper = self._zookeeper
        zookeeper.requests.append(operation.name)
        if zookeeper.silent:
            return
        if _counted_down(zookeeper.dropping, operation.name):
            self.break_off()
            return
        request = operation.request.read(source)
        error, answer = zookeeper.refusing.get(operation.name, 0), None
        if not error:
            try:
                answer = zookeeper.answer(operation, request, self.session_id)
            except _Refusal as refusal:
                error = refusal.code
        if _counted_down(zookeeper.losing, operation.name):
            self.break_off()
            return
        if isinstance(request, AddWatch) and not error:
            self._watched.append(request.path)
        if isinstance(request, SetWatches) and not error:
            self._watched += request.recursive
        head = REPLY_HEADER.encode(ReplyHeader(header.xid, zookeeper.zxid, error))
        self._transport.write(framed(head + (b"" if error else operation.answer.encode(answer))))  # type: ignore[arg-type]
        if operation is CLOSE_SESSION:
            self._transport.close()

    def tell(self, kind: int, path: str) -> None:
        if any(path == each or path.startswith(each.rstrip("/") + "/") for each in self._watched):
            head = REPLY_HEADER.encode(ReplyHeader(-1, self._zookeeper.zxid, 0))
            self._transport.write(framed(head + NOTIFICATION.encode(Notification(kind, 3, path))))


def _counted_down(counts: dict[str, int], name: str) -> bool:
    if not counts.get(name):
        return False
    counts[name] -= 1
    return True


@asynccontextmanager
async def scripted_zookeeper() -> AsyncIterator[ScriptedZooKeeper]:
    """A ZooKeeper without servers yet, stopped at the end."""
    zookeeper = ScriptedZooKeeper()
    try:
        yield zookeeper
    finally:
        await zookeeper.stop()
