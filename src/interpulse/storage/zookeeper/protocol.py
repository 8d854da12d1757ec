"""The client's end of one connection to a ZooKeeper server, without IO: requests to bytes, bytes to events.

Replies come in the order of their requests, which is checked. Notifications, and the replies to pings and to watches
that are set again, have numbers of their own and come in between.

Invariants:

* Nothing but the connect request is sent before the server has answered it.
* Every request gets one `Reply`, unless the connection ends before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from interpulse.storage.zookeeper.errors import BrokenConnection
from interpulse.storage.zookeeper.jute import INT, Malformed, Source
from interpulse.storage.zookeeper.records import (
    CONNECT_REQUEST,
    CONNECT_RESPONSE,
    NOTIFICATION,
    PING,
    REPLY_HEADER,
    REQUEST_HEADER,
    SET_WATCHES,
    ConnectRequest,
    ConnectResponse,
    Operation,
    RequestHeader,
    SetWatches,
)

_NOTIFICATION_XID: Final = -1
_PING_XID: Final = -2
_WATCHES_XID: Final = -8
_XID_MAX: Final = 0x7FFFFFFF
FRAME_BYTES_MAX: Final = 64 << 20
"""A list of a million names fits. A greater length is no frame of ZooKeeper."""


class Reply(NamedTuple):
    """The answer to the oldest open request, None if there is an error."""

    zxid: int
    error: int
    answer: Any


class Pong(NamedTuple):
    """The answer to the oldest open ping."""


class WatchesSet(NamedTuple):
    """The outcome of setting watches again."""

    error: int


class WatchEvent(NamedTuple):
    """A change of a node. ``zxid`` is its transaction, -1 from servers that do not report it."""

    zxid: int
    kind: int
    path: str


Event = ConnectResponse | Reply | Pong | WatchesSet | WatchEvent


def framed(body: bytes | bytearray) -> bytes:
    """Return the body preceded by its length."""
    return INT.encode(len(body)) + body


class Frames:
    """A stream of bytes, cut into the bodies of frames."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def cut(self, raw: bytes) -> Iterator[bytes]:
        """Yield the bodies that are complete with these bytes. Raise `BrokenConnection` for an impossible length."""
        pending = self._pending
        pending += raw
        begin = 0
        try:
            while len(pending) - begin >= 4:
                length = int.from_bytes(pending[begin : begin + 4], "big", signed=True)
                if not 0 <= length <= FRAME_BYTES_MAX:
                    raise BrokenConnection(f"a frame of {length} bytes; is this a ZooKeeper server?")
                if len(pending) - begin - 4 < length:
                    return
                begin += 4 + length
                yield bytes(pending[begin - length : begin])
        finally:
            del pending[:begin]


class ClientProtocol:
    """One connection. Call `connect` first, and send requests once its `ConnectResponse` has come."""

    def __init__(self) -> None:
        self.last_zxid = 0
        self._frames = Frames()
        self._connected = False
        self._xid = 0
        self._waiting: deque[tuple[int, Operation[Any, Any]]] = deque()

    def connect(self, request: ConnectRequest) -> bytes:
        """Return the request for a session."""
        self.last_zxid = request.last_zxid
        return framed(CONNECT_REQUEST.encode(request))

    def request(self, operation: Operation[Any, Any], body: bytes) -> bytes:
        """Return the bytes of a request. Its `Reply` follows those of all earlier requests."""
        self._xid = self._xid % _XID_MAX + 1
        self._waiting.append((self._xid, operation))
        return _request(self._xid, operation, body)

    def ping(self) -> bytes:
        """Return a ping, which keeps the session alive. A `Pong` answers it."""
        return _request(_PING_XID, PING, b"")

    def watch_again(self, paths: list[str]) -> bytes:
        """Return the request to set the recursive watches of an earlier connection. `WatchesSet` answers it."""
        watches = SetWatches(self.last_zxid, [], [], [], [], paths)
        return _request(_WATCHES_XID, SET_WATCHES, SET_WATCHES.request.encode(watches))

    def receive(self, raw: bytes) -> Iterator[Event]:
        """Yield the events in these bytes. Raise `BrokenConnection` if they are not ZooKeeper's protocol."""
        for body in self._frames.cut(raw):
            try:
                yield self._event(body)
            except Malformed as error:
                raise BrokenConnection(str(error)) from error

    def _event(self, body: bytes) -> Event:
        source = Source(body)
        if not self._connected:
            self._connected = True
            return CONNECT_RESPONSE.read(source)
        xid, zxid, error = REPLY_HEADER.read(source)
        if xid == _NOTIFICATION_XID:
            kind, _, path = NOTIFICATION.read(source)
            return WatchEvent(zxid, kind, path)
        self.last_zxid = max(self.last_zxid, zxid)
        if xid == _PING_XID:
            return Pong()
        if xid == _WATCHES_XID:
            return WatchesSet(error)
        return self._reply(xid, zxid, error, source)

    def _reply(self, xid: int, zxid: int, error: int, source: Source) -> Reply:
        if not self._waiting or self._waiting[0][0] != xid:
            raise BrokenConnection(f"a reply to request {xid}, which is not the one that comes next")
        _, operation = self._waiting.popleft()
        return Reply(zxid, error, None if error else operation.answer.read(source))


def _request(xid: int, operation: Operation[Any, Any], body: bytes) -> bytes:
    header = REQUEST_HEADER.encode(RequestHeader(xid, operation.code))
    return INT.encode(len(header) + len(body)) + header + body
