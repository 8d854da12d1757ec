"""HTTP requests from plain sockets: written out beforehand, one at a time on each of several keep-alive connections."""

import select
import socket
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import NamedTuple
from urllib.parse import urlsplit

from benchmarks.raw_load import RECEIVE_BYTES, SILENCE_SECONDS_MAX, Refused


class Request(NamedTuple):
    """What to ask: `path` with its query, `body` as JSON or empty."""

    method: str
    path: str
    body: bytes = b""


class _Exchange:
    """One connection: sends the next waiting request whenever the answer to the last one is complete."""

    def __init__(self, connection: socket.socket, waiting: Iterator[bytes]) -> None:
        self.connection = connection
        self.done = False
        self._waiting = waiting
        self._received = b""
        self._send_next()

    def on_readable(self) -> None:
        received = self.connection.recv(RECEIVE_BYTES)
        if not received:
            raise Refused("connection closed before the answer")
        self._received += received
        if _is_complete(self._received):
            self._received = b""
            self._send_next()

    def _send_next(self) -> None:
        request = next(self._waiting, None)
        if request is None:
            self.done = True
        else:
            self.connection.sendall(request)


def run_requests(web_url: str, requests: Iterable[Request], *, connections: int) -> float:
    """Returns the seconds until every request was answered with 2xx; any other answer raises Refused."""
    target = urlsplit(web_url)
    waiting = iter([_encode(target.netloc, request) for request in requests])
    with ExitStack() as stack:
        poller = select.epoll()
        stack.callback(poller.close)
        exchanges: dict[int, _Exchange] = {}
        started = time.perf_counter()
        for _ in range(connections):
            connection = stack.enter_context(socket.create_connection((target.hostname, target.port)))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            exchanges[connection.fileno()] = _Exchange(connection, waiting)
            poller.register(connection.fileno(), select.EPOLLIN)
        while not all(exchange.done for exchange in exchanges.values()):
            events = poller.poll(SILENCE_SECONDS_MAX)
            if not events:
                raise Refused("no HTTP answer for a minute")
            for descriptor, _ in events:
                exchanges[descriptor].on_readable()
        return time.perf_counter() - started


def fetch(web_url: str, request: Request) -> bytes:
    """The body of one answer."""
    asked = urllib.request.Request(f"{web_url}{request.path}", data=request.body or None, method=request.method)
    with urllib.request.urlopen(asked, timeout=SILENCE_SECONDS_MAX) as answer:
        body: bytes = answer.read()
        return body


def _encode(host: str, request: Request) -> bytes:
    lines = [
        f"{request.method} {request.path} HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        f"Content-Length: {len(request.body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + request.body


def _is_complete(answer: bytes) -> bool:
    head, separator, body = answer.partition(b"\r\n\r\n")
    if not separator:
        return False
    status = int(head.split(b" ", 2)[1])
    if status // 100 != 2:
        raise Refused(answer.decode(errors="replace")[:500])
    headers = head.lower()
    if b"transfer-encoding: chunked" in headers:
        return body.endswith(b"0\r\n\r\n")
    length = headers.partition(b"content-length:")[2].split(b"\r\n", 1)[0]
    return status == 204 or len(body) >= int(length or 0)
