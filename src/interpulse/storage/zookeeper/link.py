"""One session with ZooKeeper over changing connections, and its requests.

When a connection ends,

* a request that may be sent twice, such as a read, is sent again on the next connection, whichever session that has;
* a write that was not sent yet waits for the next connection of its session, and fails with `SessionExpired` if there
  is none;
* a write that was sent and not answered fails with `OutcomeUnknown`: its caller can find out.

No request waits for a connection longer than the operation time-out, and the bytes of requests in flight are bounded.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any, Final, TypeVar

from interpulse.storage.api import CommitTooLarge
from interpulse.storage.sessions import Callbacks
from interpulse.storage.zookeeper.connection import Connection
from interpulse.storage.zookeeper.errors import (
    BrokenConnection,
    NotConnected,
    OutcomeUnknown,
    SessionExpired,
    Unusable,
    ZooKeeperError,
    refusal,
    shown_session,
)
from interpulse.storage.zookeeper.protocol import Reply, WatchEvent
from interpulse.storage.zookeeper.records import (
    ADD_WATCH,
    CLOSE_SESSION,
    NEW_SESSION,
    AddWatch,
    ConnectRequest,
    Operation,
)
from interpulse.storage.zookeeper.session import Server, Servers, Session, SessionEvent, boot_clock


class Budget:
    """A number of bytes to take and give back. Callers that exceed it wait in turn."""

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max
        self._max = bytes_max
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, count: int) -> int:
        """Wait until the bytes are free, and return the number to give back. A request above the bound takes all."""
        count = min(count, self._max)
        if self._left >= count and not self._waiting:
            self._left -= count
            return count
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(count)
            else:
                self._waiting.remove((count, turn))
                self._wake()
            raise
        return count

    def give_back(self, count: int) -> None:
        """Free bytes that were taken."""
        self._left += count
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._left:
            count, turn = self._waiting.popleft()
            self._left -= count
            turn.set_result(None)


log = logging.getLogger(__name__)

Q = TypeVar("Q")
A = TypeVar("A")

REQUEST_BYTES_MAX: Final = 900 << 10
"""Servers close the connection on more than ``jute.maxbuffer``, 1 MiB less a byte unless configured."""

_ROUND_PAUSE_S: Final = (0.1, 1.0)  # after all servers failed
_CONNECT_SECONDS_MIN: Final = 1.0  # for one server
_CONNECT_SECONDS_MAX: Final = 10.0  # a server that starts may accept a connection and never answer on it
_CLOSE_SECONDS_MAX: Final = 5.0
_SESSION_EXPIRED: Final = -112
_WRONG_SERVER: Final = (-118, -119)  # session moved, or read-only server: not applied, and another connection is needed


@dataclass(frozen=True, slots=True)
class LinkConfig:
    """Limits and time-outs of a link."""

    session_timeout_ms: int = 30_000  # requested; the server grants what its own limits allow
    operation_timeout_s: float = 30.0  # the longest wait of a request for a connection
    pending_bytes_max: int = 16 << 20  # of requests without an answer


@dataclass(slots=True, eq=False)
class _Request:
    operation: Operation[Any, Any]
    body: bytes
    what: str
    once: bool
    session: Session | None  # the session that a write belongs to
    waits_until: float
    answer: asyncio.Future[Any]


class Link:
    """A session, held as long as ZooKeeper allows and renewed after that. Create it with `open`."""

    def __init__(self, servers: Servers, config: LinkConfig, clock: Callable[[], float]) -> None:
        self.servers = servers
        self._config = config
        self._clock = clock
        self._turns = cycle(random.sample(servers.servers, len(servers.servers)))
        self._session: Session | None = None
        self._resumed_id = 0  # the session of the last `SessionEvent`
        self._connection: Connection | None = None  # only while requests may be sent
        self._last_zxid = 0
        self._waiting: deque[_Request] = deque()  # requests that wait for a connection
        self._sent: deque[_Request] = deque()
        self._watched: list[str] = []
        self._budget = Budget(config.pending_bytes_max)
        self.session_events = Callbacks[SessionEvent]()
        self.on_watch_event: Callable[[WatchEvent], None] = lambda event: None
        """Called with every change of a watched node, before any later answer. Must not raise."""
        self._began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._suspect_timer: asyncio.TimerHandle | None = None
        self._failure: ZooKeeperError | None = None  # set once the link has ended for good
        self._last_problem = ""
        self._task: asyncio.Task[None]

    @classmethod
    async def open(cls, servers: Servers, config: LinkConfig, clock: Callable[[], float] = boot_clock) -> Link:
        """Begin a session. Raise `NotConnected` if no server grants one within the operation time-out."""
        link = cls(servers, config, clock)
        link._task = asyncio.create_task(link._run(), name=f"ZooKeeper session with {servers}")
        try:
            async with asyncio.timeout(config.operation_timeout_s):
                await asyncio.shield(link._began)
        except TimeoutError:
            await link.close()
            problem = f"beginning a session ({link._last_problem})" if link._last_problem else "beginning a session"
            raise NotConnected(str(servers), config.operation_timeout_s, problem) from None
        except BaseException:
            await link.close()
            raise
        return link

    @property
    def session(self) -> Session:
        """The current session, which may be over while there is no new one."""
        assert self._session is not None
        return self._session

    @property
    def connected(self) -> bool:
        """True while requests are answered and watches reported."""
        return self._connection is not None

    async def ask(self, operation: Operation[Q, A], request: Q, what: str, *, once: bool) -> A:
        """Send a request and return the answer. ``what`` names it in errors; ``once``: it must not be sent twice."""
        body = operation.request.encode(request)
        if len(body) > REQUEST_BYTES_MAX:
            raise CommitTooLarge(
                f"{len(body)} bytes exceed the limit of one ZooKeeper request, {REQUEST_BYTES_MAX}: {what}"
            )
        taken = await self._budget.take(len(body))
        try:
            answer: A = await self._enqueue(operation, body, what, once)
            return answer
        finally:
            self._budget.give_back(taken)

    async def watch(self, path: str) -> None:
        """Watch a node and everything below it until the link is closed, across connections."""
        await self.ask(ADD_WATCH, AddWatch(path), f"watching {path}", once=False)
        self._watched.append(path)

    async def close(self) -> None:
        """End the session at the server, if one can be reached, and fail the waiting requests."""
        if self._failure is None:
            await self._close_session()
        self._task.cancel()
        await asyncio.wait([self._task])
        self._fail_all()

    async def _close_session(self) -> None:
        connection = self._connection
        answer = self._enqueue(CLOSE_SESSION, b"", "closing the session", once=False) if connection else None
        self._failure = ZooKeeperError(f"the connection to ZooKeeper {self.servers} is closed")
        if self._session is not None:
            self._session.over = True
        if connection is not None and answer is not None:
            await asyncio.wait(
                [answer, connection.lost], timeout=_CLOSE_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED
            )
            answer.cancel()

    def _enqueue(self, operation: Operation[Any, Any], body: bytes, what: str, once: bool) -> asyncio.Future[Any]:
        if self._failure is not None:
            raise self._failure
        loop = asyncio.get_running_loop()
        session = self._session if once and self._session and not self._session.over else None
        until = loop.time() + self._config.operation_timeout_s
        request = _Request(operation, body, what, once, session, until, loop.create_future())
        if self._connection is not None:
            self._send(self._connection, request)
        else:
            self._waiting.append(request)
            self._limit_waiting()
        return request.answer

    def _send(self, connection: Connection, request: _Request) -> None:
        request.session = self._session
        self._sent.append(request)
        connection.send(request.operation, request.body)

    def _take_reply(self, reply: Reply) -> None:
        request = self._sent.popleft()
        if reply.error in _WRONG_SERVER or (reply.error == _SESSION_EXPIRED and not request.once):
            self._waiting.append(request)
            self._end_connection(f"it answered {reply.error} to {request.what}")
        elif reply.error == _SESSION_EXPIRED:
            _fail(request, SessionExpired(request.session.id if request.session else 0, request.what))
            self._end_connection("the session has expired")
        elif reply.error:
            server = self._connection.server if self._connection else self.servers
            _fail(request, refusal(reply.error, f"{request.what} (server {server})"))
        elif not request.answer.done():
            request.answer.set_result(reply.answer)

    def _end_connection(self, reason: str) -> None:
        if self._connection is not None:
            self._connection.end(reason)

    async def _run(self) -> None:
        """Connect, and connect again, until the link is closed or the servers turn out unusable."""
        try:
            while True:
                connection = await self._connect()
                try:
                    self._resume(connection)
                    reason = await asyncio.shield(connection.lost)
                finally:
                    self._connection = None
                    connection.end("the link is closed")
                if self._failure is not None:
                    return
                self._last_zxid = max(self._last_zxid, connection.last_zxid)
                self._disconnected(connection, reason)
        except Unusable as error:
            log.error("ZooKeeper cannot be used servers=%s problem=%s", self.servers, error)
            self._give_up(error)
        except Exception as error:
            log.exception("ZooKeeper session failed servers=%s", self.servers)
            self._give_up(ZooKeeperError(f"the connection to ZooKeeper {self.servers} failed: {error!r}"))

    async def _connect(self) -> Connection:
        """Return a connection with a session and its watches, to any server."""
        count = len(self.servers.servers)
        failures = 0
        while True:
            server = next(self._turns)
            try:
                connection = await self._connect_to(server, count)
            except (OSError, TimeoutError, BrokenConnection) as error:
                self._last_problem = f"{server}: {error or type(error).__name__}"
                log.debug("no ZooKeeper connection server=%s problem=%s", server, error or type(error).__name__)
                failures += 1
                if failures % count == 0:
                    await asyncio.sleep(random.uniform(*_ROUND_PAUSE_S))
            else:
                if connection is not None:
                    return connection

    async def _connect_to(self, server: Server, server_count: int) -> Connection | None:
        """Connect to a server. Return None if it says that the session is over; the next attempt begins a new one."""
        share_s = self._config.session_timeout_ms / 1000 / server_count
        async with asyncio.timeout(min(max(share_s, _CONNECT_SECONDS_MIN), _CONNECT_SECONDS_MAX)):
            connection = await Connection.open(
                server, self._take_reply, lambda event: self.on_watch_event(event), self._clock
            )
            try:
                if not await self._take_session(connection):
                    connection.end("the session has expired")
                    return None
                if self._watched:
                    await connection.watch_again(self._watched)
                return connection
            except BaseException:
                connection.end("no session was established")
                raise

    async def _take_session(self, connection: Connection) -> bool:
        old = self._session if self._session and not self._session.over else None
        wanted = (old.id, old.password) if old else (0, NEW_SESSION)
        sent_at = self._clock()
        response = await connection.begin(
            ConnectRequest(0, self._last_zxid, self._config.session_timeout_ms, *wanted, read_only=False)
        )
        if response.session_id == 0:
            if old is None:
                raise BrokenConnection("it grants no session")
            self._expire(old)
            return False
        timeout_s = response.timeout_ms / 1000
        if old is None or old.id != response.session_id:
            self._session = Session(response.session_id, response.password, timeout_s, self._clock)
        session = self.session
        session.timeout_s = timeout_s
        session.touch(sent_at)
        connection.on_answered = partial(self._touch, connection, session)
        connection.keep_alive(timeout_s)
        return True

    def _touch(self, connection: Connection, session: Session, sent_at: float) -> None:
        """Note that the session lives, and report it if that was in doubt, as after a pause of this process."""
        held = session.holds()
        session.touch(sent_at)
        if not held and session.holds() and connection is self._connection:
            self.session_events.announce(SessionEvent.SUSPECT)
            self.session_events.announce(SessionEvent.RESUMED)

    def _expire(self, session: Session) -> None:
        session.over = True
        log.warning("ZooKeeper session expired servers=%s session=%s", self.servers, shown_session(session.id))
        for request in list(self._waiting):
            if request.session is session and request.once:
                self._waiting.remove(request)
                _fail(request, SessionExpired(session.id, request.what))
        self.session_events.announce(SessionEvent.EXPIRED)

    def _resume(self, connection: Connection) -> None:
        if connection.lost.done():
            return
        self._cancel_timers()
        self._connection = connection
        log.info("ZooKeeper connected server=%s session=%s", connection.server, shown_session(self.session.id))
        if not self._began.done():
            self._resumed_id = self.session.id
            self._began.set_result(None)
        else:
            same = self._resumed_id == self.session.id
            self._resumed_id = self.session.id
            self.session_events.announce(SessionEvent.RESUMED if same else SessionEvent.RENEWED)
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            if not request.answer.done():
                self._send(connection, request)

    def _disconnected(self, connection: Connection, reason: str) -> None:
        log.warning("ZooKeeper disconnected server=%s problem=%s", connection.server, reason)
        sent, self._sent = self._sent, deque()
        for request in sent:
            if request.once:
                _fail(request, OutcomeUnknown(str(connection.server), request.what))
        until = asyncio.get_running_loop().time() + self._config.operation_timeout_s
        reads = [request for request in sent if not request.once and not request.answer.done()]
        for request in reads:
            request.waits_until = until
        self._waiting.extend(reads)
        self._limit_waiting()
        session = self.session
        if not session.over:
            delay = max(session.deadline - self._clock(), 0)
            self._suspect_timer = asyncio.get_running_loop().call_later(
                delay, self.session_events.announce, SessionEvent.SUSPECT
            )
        self.session_events.announce(SessionEvent.DISCONNECTED)

    def _limit_waiting(self) -> None:
        """Fail requests that have waited too long, and look again when the next one has."""
        loop = asyncio.get_running_loop()
        due = [request for request in self._waiting if request.waits_until <= loop.time()]
        for request in due:
            self._waiting.remove(request)
            _fail(request, NotConnected(str(self.servers), self._config.operation_timeout_s, request.what))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            self._timer = loop.call_at(min(request.waits_until for request in self._waiting), self._limit_waiting)

    def _cancel_timers(self) -> None:
        for timer in (self._timer, self._suspect_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._suspect_timer = None

    def _give_up(self, failure: ZooKeeperError) -> None:
        """Fail all requests from now on with this error instead of letting them wait."""
        self._failure = failure
        if self._session is not None:
            self._session.over = True
        self._fail_all()
        if not self._began.done():
            self._began.set_exception(failure)
            return
        try:
            self.session_events.announce(SessionEvent.ENDED)
        except Exception:
            log.exception("ZooKeeper session not closed at the server servers=%s", self.servers)

    def _fail_all(self) -> None:
        self._cancel_timers()
        assert self._failure is not None
        for request in [*self._sent, *self._waiting]:
            _fail(request, self._failure)
        self._sent.clear()
        self._waiting.clear()


def _fail(request: _Request, error: ZooKeeperError) -> None:
    if not request.answer.done():
        request.answer.set_exception(error)
