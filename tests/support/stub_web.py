"""A web service whose answers a test chooses and which remembers what it was asked."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import sys
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit


class Asked(NamedTuple):
    """One request, its target exactly as it came: path and query, still encoded."""

    method: str
    target: str
    body: Any
    headers: Mapping[str, str]


class Answer(NamedTuple):
    """What comes back."""

    status: int
    body: bytes
    headers: Mapping[str, str]


DISCONNECT: Final = Answer(0, b"", {})
"""The connection is closed instead."""
_SILENCE: Final = Answer(-1, b"", {})
"""Nothing comes, until the service ends."""


class _Server(ThreadingHTTPServer):
    """A client that gives up before its answer has come is no failure of the service."""

    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """On all clients that are still there, so that their threads end."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class StubWeb:
    """Serves on a free port of 127.0.0.1 in a thread of its own, so that blocking callers can be tested too.

    A request without a prepared answer gets 204, or what ``otherwise`` says, which is called in a thread.
    """

    def __init__(
        self, tls: ssl.SSLContext | None = None, *, otherwise: Callable[[Asked], Answer] | None = None
    ) -> None:
        self._otherwise = otherwise or (lambda asked: Answer(204, b"", {}))
        self.asked: list[Asked] = []
        self._answers: dict[tuple[str, str], list[Answer]] = {}
        self._ending = Event()
        self._server = _Server(self._request_class())
        self._server.daemon_threads = False
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()

    @property
    def last(self) -> Asked:
        return self.asked[-1]

    def answer(self, method: str, path: str, body: Any = None, *, status: int = 200) -> None:
        """Answer ``method path`` (without query) in JSON. Answers given twice are used in turn, the last one stays."""
        raw = b"" if body is None else json.dumps(body).encode()
        self.answer_raw(method, path, raw, status=status, content_type="application/json")

    def answer_raw(
        self,
        method: str,
        path: str,
        body: bytes,
        *,
        status: int = 200,
        content_type: str = "text/plain",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        given = Answer(status, body, {"Content-Type": content_type, **(headers or {})})
        self._answers.setdefault((method, path), []).append(given)

    def disconnect(self, method: str, path: str) -> None:
        """Close the connection instead of answering."""
        self._answers.setdefault((method, path), []).append(DISCONNECT)

    def say_nothing(self, method: str, path: str) -> None:
        """Keep the connection open and never answer."""
        self._answers.setdefault((method, path), []).append(_SILENCE)

    def _next_answer(self, asked: Asked) -> Answer:
        queue = self._answers.get((asked.method, asked.target.partition("?")[0]))
        if not queue:
            return self._otherwise(asked)
        return queue.pop(0) if len(queue) > 1 else queue[0]

    def _request_class(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Request(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or the body waits 40 ms for the client's word that it has the headers
            timeout = 60

            def serve(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                form = "form-urlencoded" in self.headers.get("Content-Type", "")
                body = raw.decode() if form else json.loads(raw) if raw else None
                asked = Asked(self.command, self.path, body, dict(self.headers))
                stub.asked.append(asked)
                answer = stub._next_answer(asked)
                if answer is _SILENCE:
                    stub._ending.wait()
                if answer in (DISCONNECT, _SILENCE):
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if answer.status != 204:
                    self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_PUT = do_POST = do_DELETE = serve

            def handle(self) -> None:
                with contextlib.suppress(ConnectionResetError):  # a client that does not trust us hangs up
                    super().handle()

            def log_message(self, format: str, *args: object) -> None:
                """Tests look at `asked` instead."""

        return Request


def passed_on(asked: Asked, web_url: str) -> Answer:
    """What another web service answers to the same request."""
    address = urlsplit(web_url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)
    try:
        body = None if asked.body is None else json.dumps(asked.body)
        connection.request(asked.method, asked.target, body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return Answer(reply.status, reply.read(), {"Content-Type": reply.headers.get("Content-Type", "")})
    finally:
        connection.close()
