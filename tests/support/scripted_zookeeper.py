"""A ZooKeeper in the process, for tests that need faults at will: one tree in memory, several servers that share it.

It speaks the part of the protocol that our client uses, from the same records. What it answers was compared with a real
ZooKeeper: the conformance tests of client and store run on both.

The servers may run in different event loops of one thread. A server reaches another one through the loop of that one
only. Servers exchange transactions without a network, so they are never apart from each other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

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
    MULTI,
    MULTI_READ,
    NEW_SESSION,
    NOTIFICATION,
    OPERATIONS,
    PING,
    REPLY_HEADER,
    REQUEST_HEADER,
    SET,
    SET_WATCHES,
    SYNC,
    AddWatch,
    ConnectRequest,
    ConnectResponse,
    Failed,
    Notification,
    Operation,
    ReplyHeader,
    SetWatches,
    Step,
)
from tests.support.zookeeper_tree import Event, Nodes, Refusal, Transaction, Znode, copied, read, restore

_WRITES: Final = (CREATE, DELETE, SET, CHECK, MULTI, CLOSE_SESSION)
_WITHOUT_TREE: Final = (SYNC, PING, ADD_WATCH, SET_WATCHES)
_SESSION_EXPIRED: Final = -112
_FIRST_SESSION: Final = 1 << 32
_TICK_S: Final = 0.5  # between looks for sessions that are over


@dataclass(eq=False)
class ServerSession:
    """A session, as the servers know it."""

    password: bytes
    timeout_s: float
    deadline: float  # by the clock of the loops
    connection: _ServerEnd  # the newest one; older ones are refused

    @property
    def client_host(self) -> str:
        """The address of the client."""
        return self.connection.client_host


class ScriptedZooKeeper:
    """The tree, the sessions and the servers. Faults are its attributes, and those of its servers."""

    def __init__(self, *, ends_sessions: bool = False) -> None:
        """``ends_sessions``: silent clients lose their sessions, as by a real one. Without it, only by `expire`."""
        self.nodes: Nodes = {"/": Znode(b"", 0, 0)}
        self.sessions: dict[int, ServerSession] = {}
        self.servers: list[ZooKeeperServer] = []
        self.requests: list[str] = []  # names of the operations, in the order of their arrival
        self.reads = 0  # how often bytes came: requests that a client sends without waiting come together
        self.losing: dict[str, int] = {}  # operation -> how many of its replies are lost, with the connection
        self.losing_events = 0  # how many reports to watches are lost, with the connection
        self.dropping: dict[str, int] = {}  # operation -> how many of its requests are lost, with the connection
        self.refusing: dict[str, int] = {}  # operation -> the error that each is answered with
        self.silent = False  # nothing is answered
        self.shut = False  # connections are closed as they come
        self.session_timeout_ms: int | None = None  # granted instead of what is asked for
        self.ends_sessions = ends_sessions
        self.on_write: Callable[[list[Event], int], None] = lambda events, session_id: None
        """Called with the changes of each applied write, and its session."""
        self.zxid = 0
        self._sessions_begun = 0

    async def listen(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Start one more server and return its address."""
        return (await self.start_server(host, port)).address

    async def start_server(self, host: str = "127.0.0.1", port: int = 0) -> ZooKeeperServer:
        """Start one more server in the running loop. The first one gives every session its whole time-out again."""
        if not self.servers:
            for session in self.sessions.values():
                session.deadline = asyncio.get_running_loop().time() + session.timeout_s
        server = ZooKeeperServer(self, host)
        await server.start(port)
        self.servers.append(server)
        return server

    @property
    def connection_count(self) -> int:
        """The number of open connections."""
        return sum(len(server.connections) for server in self.servers)

    def cut(self) -> None:
        """Break every connection."""
        for server in self.servers:
            server.cut()

    def forget(self, server: ZooKeeperServer) -> None:
        """Go on without a server whose process was killed. Its connections are not touched."""
        self.servers.remove(server)
        server.connections.clear()

    def expire(self, session_id: int) -> None:
        """End a session as a server does whose client fell silent."""
        self._end(session_id)
        for server in self.servers:
            server.cut(session_id)

    def end_overdue(self, now: float) -> None:
        """End the sessions whose clients were silent for too long."""
        for session_id in [each for each, session in self.sessions.items() if session.deadline < now]:
            self.expire(session_id)

    async def stop(self) -> None:
        """End all servers."""
        for server in list(self.servers):
            await server.stop()

    def open_session(self, request: ConnectRequest, connection: _ServerEnd, now: float) -> int:
        """Begin a session, or move it to this connection. Return its id, 0 if it is over."""
        timeout_s = (self.session_timeout_ms or request.timeout_ms) / 1000
        session_id = request.session_id
        if session_id == 0:
            self._sessions_begun += 1
            session_id = _FIRST_SESSION + self._sessions_begun
            password = session_id.to_bytes(16, "big")
            self.sessions[session_id] = ServerSession(password, timeout_s, now + timeout_s, connection)
            return session_id
        session = self.sessions.get(session_id)
        if session is None or session.password != request.password:
            return 0
        session.connection.server.cut(session_id, other_than=connection)
        session.timeout_s, session.deadline, session.connection = timeout_s, now + timeout_s, connection
        return session_id

    def write(self, operation: Operation[Any, Any], request: Any, session_id: int) -> Any:
        """Apply a write and return its answer, or raise `Refusal`. All servers learn of it."""
        self.zxid += 1
        if operation is CLOSE_SESSION:
            self._end(session_id)
            return None
        transaction = Transaction(self.nodes, self.zxid, session_id)
        answer = transaction.multi(request) if operation is MULTI else transaction.step(operation, request)
        self.on_write(transaction.events, session_id)
        self._announce(transaction)
        return answer

    def _end(self, session_id: int) -> None:
        self.sessions.pop(session_id, None)
        self.zxid += 1
        transaction = Transaction(self.nodes, self.zxid, session_id)
        transaction.remove_ephemerals()
        self._announce(transaction)

    def _announce(self, transaction: Transaction) -> None:
        for server in self.servers:
            server.learn(transaction)


class _Learned(NamedTuple):
    """A transaction on its way to a server."""

    zxid: int
    events: list[Event]
    nodes: dict[str, Znode | None]


class ZooKeeperServer:
    """One server. Reads and reports to watches are late after `fall_behind`; writes are applied to the newest tree."""

    def __init__(self, zookeeper: ScriptedZooKeeper, host: str) -> None:
        self.zookeeper = zookeeper
        self.address = host
        self.connections: list[_ServerEnd] = []
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._learned: deque[_Learned] = deque()
        self._lag_s = 0.0
        self._replica: Nodes | None = None  # the tree as this server sees it, if it is behind
        self._replica_zxid = 0
        self._server: asyncio.AbstractServer | None = None
        self._tick: asyncio.TimerHandle | None = None

    async def start(self, port: int) -> None:
        """Listen at the port, 0 for a free one."""
        server = self._server = await self._loop.create_server(lambda: _ServerEnd(self), self._host, port)
        self.address = f"{self._host}:{port or server.sockets[0].getsockname()[1]}"
        if self.zookeeper.ends_sessions:
            self._end_sessions()

    async def stop(self) -> None:
        """Break all connections and listen no more."""
        if self._tick is not None:
            self._tick.cancel()
        for connection in list(self.connections):
            connection.break_off()
        self.zookeeper.forget(self)
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def fall_behind(self, seconds: float) -> None:
        """Apply each transaction this long after the others, 0 to catch up."""
        self.catch_up()
        self._lag_s = seconds
        self._replica = copied(self.zookeeper.nodes, self.zookeeper.nodes) if seconds else None  # type: ignore[assignment]
        self._replica_zxid = self.zookeeper.zxid

    @property
    def zxid(self) -> int:
        """The newest transaction that clients of this server may have seen."""
        return self.zookeeper.zxid if self._replica is None else self._replica_zxid

    def cut(self, session_id: int | None = None, *, other_than: _ServerEnd | None = None) -> None:
        """Break the connections, or those of one session."""
        for connection in list(self.connections):
            if session_id in (None, connection.session_id) and connection is not other_than:
                self._run(connection.break_off)

    def learn(self, transaction: Transaction) -> None:
        """Note a transaction that was applied, for the watches."""
        if self._replica is None and not self.connections:
            return
        nodes = {} if self._replica is None else copied(self.zookeeper.nodes, transaction.touched)
        self._learned.append(_Learned(transaction.zxid, transaction.events, nodes))
        self._run(self._catch_up_in_time, transaction.zxid)

    def answer(self, operation: Operation[Any, Any], request: Any, session_id: int) -> Any:
        """Return the answer to one request, or raise `Refusal`. Changes that it could show are reported before."""
        if operation in _WRITES:
            try:
                return self.zookeeper.write(operation, request, session_id)
            finally:
                self.catch_up()
        if self._replica is None or operation is SYNC:
            self.catch_up()
        if operation in _WITHOUT_TREE:
            return request
        if operation is MULTI_READ:
            return [self._read_step(step) for step in request]
        return read(self._nodes, operation, request.path)

    def catch_up(self, zxid: int | None = None) -> None:
        """Apply transactions up to this one, or all, and report them to watches."""
        while self._learned and (zxid is None or self._learned[0].zxid <= zxid):
            learned = self._learned.popleft()
            self._replica_zxid = learned.zxid
            if self._replica is not None:
                restore(self._replica, learned.nodes)
            for event in learned.events:
                for connection in list(self.connections):
                    connection.report(event, learned.zxid)

    @property
    def _nodes(self) -> Nodes:
        return self.zookeeper.nodes if self._replica is None else self._replica

    def _read_step(self, step: Step) -> Any:
        try:
            return step.operation, read(self._nodes, step.operation, step.request.path)
        except Refusal as refusal:
            return Failed(refusal.code)

    def _run(self, work: Callable[..., object], *arguments: object) -> None:
        """Run in the server's loop: now, if that is the running one, else in its next turn."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            work(*arguments)
        else:
            self._loop.call_soon_threadsafe(work, *arguments)

    def _catch_up_in_time(self, zxid: int) -> None:
        if self._lag_s:
            self._loop.call_later(self._lag_s, self.catch_up, zxid)
        else:
            self.catch_up(zxid)

    def _end_sessions(self) -> None:
        self.zookeeper.end_overdue(self._loop.time())
        self._tick = self._loop.call_later(_TICK_S, self._end_sessions)


class _ServerEnd(asyncio.Protocol):
    def __init__(self, server: ZooKeeperServer) -> None:
        self.session_id = 0
        self.server = server
        self._zookeeper = server.zookeeper
        self._now: Callable[[], float] = asyncio.get_running_loop().time
        self._frames = Frames()
        self._watched: list[str] = []
        self._transport: asyncio.Transport

    @property
    def client_host(self) -> str:
        """The address of the client."""
        host: str = self._transport.get_extra_info("peername")[0]
        return host

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.server.connections.append(self)
        if self._zookeeper.shut:
            self.break_off()

    def connection_lost(self, error: Exception | None) -> None:
        if self in self.server.connections:
            self.server.connections.remove(self)

    def break_off(self) -> None:
        self.connection_lost(None)
        self._transport.abort()

    def data_received(self, raw: bytes) -> None:
        self._zookeeper.reads += 1
        for body in self._frames.cut(raw):
            if self._transport.is_closing():
                return
            if self.session_id:
                self._request(Source(body))
            elif not self._zookeeper.silent:
                self._connect(CONNECT_REQUEST.decode(body))

    def report(self, event: Event, zxid: int) -> None:
        """Report a change to the client, if it watches the node."""
        path = event.path
        if not any(path == each or path.startswith(each.rstrip("/") + "/") for each in self._watched):
            return
        if self._zookeeper.losing_events:
            self._zookeeper.losing_events -= 1
            self.break_off()
            return
        head = REPLY_HEADER.encode(ReplyHeader(-1, zxid, 0))
        self._write(head + NOTIFICATION.encode(Notification(event.kind, 3, path)))

    def _connect(self, request: ConnectRequest) -> None:
        if request.last_zxid > self.server.zxid:
            self._transport.close()
            return
        self.session_id = self._zookeeper.open_session(request, self, self._now())
        if not self.session_id:
            self._write(CONNECT_RESPONSE.encode(ConnectResponse(0, 0, 0, NEW_SESSION, False)))
            self._transport.close()
            return
        session = self._zookeeper.sessions[self.session_id]
        granted = ConnectResponse(0, round(session.timeout_s * 1000), self.session_id, session.password, False)
        self._write(CONNECT_RESPONSE.encode(granted))

    def _request(self, source: Source) -> None:
        header = REQUEST_HEADER.read(source)
        operation = OPERATIONS[header.code]
        zookeeper = self._zookeeper
        zookeeper.requests.append(operation.name)
        if zookeeper.silent:
            return
        if _counted_down(zookeeper.dropping, operation.name) or not self._holds_session():
            self.break_off()
            return
        error, answer = self._answer(operation, operation.request.read(source))
        if _counted_down(zookeeper.losing, operation.name):
            self.break_off()
            return
        head = REPLY_HEADER.encode(ReplyHeader(header.xid, self.server.zxid, error))
        self._write(head + (b"" if error else operation.answer.encode(answer)))
        if operation is CLOSE_SESSION or error == _SESSION_EXPIRED:
            self._transport.close()

    def _holds_session(self) -> bool:
        """Return True unless another connection has the session. Note that the client lives."""
        session = self._zookeeper.sessions.get(self.session_id)
        if session is None:
            return True  # and its requests are refused
        session.deadline = self._now() + session.timeout_s
        return session.connection is self

    def _answer(self, operation: Operation[Any, Any], request: Any) -> tuple[int, Any]:
        """Return an error, 0 for none, and the answer."""
        if operation.name in self._zookeeper.refusing:
            return self._zookeeper.refusing[operation.name], None
        if self.session_id not in self._zookeeper.sessions:
            return _SESSION_EXPIRED, None
        try:
            answer = self.server.answer(operation, request, self.session_id)
        except Refusal as refusal:
            return refusal.code, None
        if isinstance(request, AddWatch):
            self._watched.append(request.path)
        if isinstance(request, SetWatches):
            self._watched += request.recursive
        return 0, answer

    def _write(self, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(framed(body))


def _counted_down(counts: dict[str, int], name: str) -> bool:
    if not counts.get(name):
        return False
    counts[name] -= 1
    return True


@asynccontextmanager
async def scripted_zookeeper(*, ends_sessions: bool = False) -> AsyncIterator[ScriptedZooKeeper]:
    """A ZooKeeper without servers yet, stopped at the end."""
    zookeeper = ScriptedZooKeeper(ends_sessions=ends_sessions)
    try:
        yield zookeeper
    finally:
        await zookeeper.stop()
