"""One connection to one ZooKeeper server: a socket that drives a `ClientProtocol`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

from interpulse.storage.zookeeper.errors import BrokenConnection, Unusable
from interpulse.storage.zookeeper.protocol import ClientProtocol, Event, Pong, Reply, WatchesSet, WatchEvent
from interpulse.storage.zookeeper.records import ConnectRequest, ConnectResponse, Operation
from interpulse.storage.zookeeper.session import Server

OnWatchEvent = Callable[[WatchEvent], None]

_PING_SHARE: Final = 1 / 3  # of the time-out: the longest silence of this client before a ping
_SILENCE_SHARE: Final = 2 / 3  # of the time-out: the longest silence of the server before the connection is closed


class Connection(asyncio.Protocol):
    """A connection with a session, or about to get one. Create it with `open`.

    ``on_answered(sent_at)`` is called for every answer, with the time at which the request was sent.
    """

    def __init__(
        self, server: Server, on_reply: Callable[[Reply], None], on_event: OnWatchEvent, clock: Callable[[], float]
    ) -> None:
        self.server = server
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.on_answered: Callable[[float], None] = lambda sent_at: None
        self._protocol = ClientProtocol()
        self._on_reply = on_reply
        self._on_event = on_event
        self._clock = clock
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._answers: deque[asyncio.Future[Any]] = deque()  # of the handshake
        self._sent_at: deque[float] = deque()  # of requests without a reply
        self._pings_sent_at: deque[float] = deque()
        self._last_sent = self._last_received = clock()
        self._timeout_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def open(
        cls, server: Server, on_reply: Callable[[Reply], None], on_event: OnWatchEvent, clock: Callable[[], float]
    ) -> Connection:
        """Connect to the server. Raise OSError."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: cls(server, on_reply, on_event, clock), server.host, server.port
        )
        return connection

    @property
    def last_zxid(self) -> int:
        """The newest transaction that this connection has seen."""
        return self._protocol.last_zxid

    async def begin(self, request: ConnectRequest) -> ConnectResponse:
        """Ask for a session. Raise `BrokenConnection` if the server closes the connection instead."""
        response: ConnectResponse = await self._handshake(self._protocol.connect(request))
        return response

    async def watch_again(self, paths: list[str]) -> None:
        """Set the watches of an earlier connection again. Raise `BrokenConnection`."""
        answer: WatchesSet = await self._handshake(self._protocol.watch_again(paths))
        if answer.error == -6:
            raise Unusable(f"ZooKeeper server {self.server} has no recursive watches; 3.6 or newer is needed")
        if answer.error:
            raise BrokenConnection(f"watches were refused with error {answer.error}")

    def keep_alive(self, timeout_s: float) -> None:
        """Send pings, and close the connection if the server is silent, as the session's time-out demands."""
        self._timeout_s = timeout_s
        self._watch_time()

    def send(self, operation: Operation[Any, Any], body: bytes) -> None:
        """Send a request. The reply goes to ``on_reply``, in the order of the requests."""
        self._sent_at.append(self._clock())
        self._write(self._protocol.request(operation, body))

    def end(self, reason: str) -> None:
        """Close the connection, and set `lost` to the reason immediately."""
        self._lose(reason)
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport does not inherit from it

    def connection_lost(self, error: Exception | None) -> None:
        self._lose(str(error) if error else "the server closed it")

    def data_received(self, raw: bytes) -> None:
        kinds: set[type[Event]] = set()
        try:
            for event in self._protocol.receive(raw):
                if self.lost.done():
                    return
                kinds.add(type(event))
                self._take(event)
        except BrokenConnection as error:
            self.end(str(error))
        if kinds != {WatchEvent}:  # changes may arrive although the server receives nothing from us
            self._last_received = self._clock()

    def _take(self, event: Event) -> None:
        if isinstance(event, Reply):
            self.on_answered(self._sent_at.popleft())
            self._on_reply(event)
        elif isinstance(event, WatchEvent):
            self._on_event(event)
        elif isinstance(event, Pong):
            if self._pings_sent_at:
                self.on_answered(self._pings_sent_at.popleft())
        else:
            self._finish_handshake(event)

    async def _handshake(self, raw: bytes) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers.append(answer)
        self._write(raw)
        await asyncio.wait([answer, self.lost], return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise BrokenConnection(self.lost.result())
        return answer.result()

    def _finish_handshake(self, event: ConnectResponse | WatchesSet) -> None:
        if self._answers:
            answer = self._answers.popleft()
            if not answer.done():
                answer.set_result(event)

    def _write(self, raw: bytes) -> None:
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        self._out.append(raw)
        self._last_sent = self._clock()

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(out))

    def _watch_time(self) -> None:
        now = self._clock()
        silence_ends = self._last_received + _SILENCE_SHARE * self._timeout_s
        if now >= silence_ends:
            self.end(f"it was silent for {now - self._last_received:.1f} s")
            return
        if now >= self._last_sent + _PING_SHARE * self._timeout_s:
            self._pings_sent_at.append(now)
            self._write(self._protocol.ping())
        due = min(silence_ends, self._last_sent + _PING_SHARE * self._timeout_s)
        self._timer = asyncio.get_running_loop().call_later(max(due - now, 0.001), self._watch_time)

    def _lose(self, reason: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.lost.done():
            self.lost.set_result(reason)
