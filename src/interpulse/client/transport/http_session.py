"""REST calls: one keep-alive session, credentials, JSON, redirects, and errors of ``interpulse.model.errors``.

Only this module and ``json_documents`` use an HTTP library in the client.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit
from weakref import WeakSet

import aiohttp
from yarl import URL

from interpulse.client.closing import AsyncCloses
from interpulse.client.credentials import Credentials
from interpulse.client.json_readers import Read, UnexpectedJson
from interpulse.client.tls import KeptContext, TlsOptions
from interpulse.client.transport.http_errors import HttpAnswer, error_for_response
from interpulse.client.transport.issued_tokens import IssuedTokens, http_header_now
from interpulse.client.transport.web_urls import parse_web_urls
from interpulse.client.transport.wrong_addresses import no_handshake, no_http
from interpulse.in_turns import parsed_in_turns
from interpulse.model.clusters import shown_address
from interpulse.model.errors import AlreadyClosed, NotConnected, OperationTimeout, UnknownError
from interpulse.model.operations import Subject

T = TypeVar("T")

JSON: Final = "application/json"
_REDIRECTS_MAX = 10
_CONNECT_TIMEOUT_MS = 10_000
_LONG: Final = 500_000
"""Length in characters above which an answer is decoded in turns. Decoding it in one go takes milliseconds."""
_DISCONNECT_S: Final = 1.0
_REDIRECT_STATUSES = frozenset({301, 302, 307, 308})
_RESET: Final = (errno.EPIPE, errno.ECONNRESET)


class _Unreachable(Exception):
    """Failed connection. Nothing was sent, so another address may be tried."""


class HttpSession(AsyncCloses):
    """HTTP session with one cluster. Use it as an async context manager, or call :meth:`close`.

    With several hosts in the URL, the last one that answered is tried first. Another host is tried only if no
    connection could be made, so no request is sent twice.
    """

    def __init__(
        self,
        web_url: str,
        *,
        credentials: Credentials | None = None,
        timeout_ms: int = 30_000,
        tls: TlsOptions | None = None,
        trusted: Callable[[str], Awaitable[bool]] | None = None,
    ) -> None:
        """Create a session; the first request connects.

        ``trusted`` returns True if a redirect to this root, ``http://host:port``, may be followed; None: all may.
        """
        self._roots = parse_web_urls(web_url)
        self._preferred = 0
        self._credentials = credentials
        self._trusted = trusted
        self.timeout_ms = timeout_ms
        """The longest time for one request and its answer."""
        self._tls = (tls or TlsOptions()).showing(credentials, self._roots[0])
        self._issued = IssuedTokens.of(credentials, tls)
        self._kept_context = KeptContext(self._tls)
        self._session: aiohttp.ClientSession | None = None
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._answered: set[str] = set()
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()
            await self._disconnect()

    async def get(self, path: str, *, kind: Subject, read: Read[T], query: Mapping[str, object] | None = None) -> T:
        return await self.request("GET", path, kind=kind, read=read, query=query)

    async def request(
        self,
        method: str,
        path: str,
        *,
        kind: Subject,
        read: Read[T],
        query: Mapping[str, object] | None = None,
        body: object = None,
        content_type: str = JSON,
    ) -> T:
        """Send one request. Return the result of ``read`` for the decoded answer, which is None if it is empty.

        ``path`` is already encoded. ``query`` values that are None are omitted. ``body`` is sent as JSON unless None.
        ``kind`` is the subject of the request, see :func:`error_for_response`. Raise NotConnected naming the address,
        OperationTimeout, the broker's error, or UnknownError for an answer that ``read`` refuses.
        """
        payload = None if body is None else json.dumps(body).encode()
        answer = await self._ask(method, path, kind, query, payload, content_type)
        if "html" in answer.content_type and answer.text:
            raise UnknownError(
                f"{method} {path} was answered with a web page: {_root(self._roots[self._preferred])} is no broker"
            )
        try:
            return read(await _decoded(answer.text))
        except UnexpectedJson as unexpected:
            root = _root(self._roots[self._preferred])
            raise UnknownError(
                f"{root} answered {method} {path} with something other than {unexpected}"
            ) from unexpected

    async def fetch(
        self, path: str, *, kind: Subject, query: Mapping[str, object] | None = None
    ) -> tuple[Mapping[str, str], bytes]:
        """Get an answer that is not JSON. Return its headers, whose names ignore case, and its bytes."""
        answer = await self._ask("GET", path, kind, query, None, JSON)
        return answer.headers, answer.content

    async def _ask(
        self,
        method: str,
        path: str,
        kind: Subject,
        query: Mapping[str, object] | None,
        payload: bytes | None,
        content_type: str,
    ) -> HttpAnswer:
        answer = await self.exchange(method, path + _query_string(query), payload, content_type)
        if answer.status >= 400:
            raise error_for_response(answer, f"{method} {path}", kind)
        return answer

    async def ask_for_document(
        self,
        method: str,
        path: str,
        *,
        kind: Subject,
        marker: str,
        query: Mapping[str, object],
        body: object,
        levels: int = 1,
    ) -> dict[str, Any]:
        """Send a request that is answered with a document, even if it is refused.

        The document has the field ``marker``. Values ``levels`` deep in it are short. Parameters and errors are those
        of :meth:`request`.
        """
        payload = json.dumps(body).encode()
        answer = await self.exchange(method, path + _query_string(query), payload, JSON)
        document = await _decoded(answer.text, levels)
        if isinstance(document, dict) and marker in document:
            return document
        if answer.status >= 400:
            raise error_for_response(answer, f"{method} {path}", kind)
        raise UnknownError(f"{method} {path} answered something other than a document with {marker}")

    async def exchange(self, method: str, target: str, payload: bytes | None, content_type: str) -> HttpAnswer:
        """Send one request and return its answer, whatever its status.

        All other methods use this one: override it to send requests differently.
        """
        failures = []
        for step in range(len(self._roots)):
            index = (self._preferred + step) % len(self._roots)
            try:
                answer = await self._follow(method, self._roots[index] + target, payload, content_type)
            except _Unreachable as failure:
                failures.append(str(failure))
                continue
            self._preferred = index
            return answer
        raise NotConnected("; ".join(failures))

    def new_connector(self) -> aiohttp.BaseConnector:
        """Return the way to open connections. Override it to use another network."""
        return aiohttp.TCPConnector(socket_factory=self._new_socket)

    async def _follow(self, method: str, url: str, payload: bytes | None, content_type: str) -> HttpAnswer:
        """Follow a redirect to the broker that owns the topic, with the same body and credentials."""
        first = url
        for _ in range(_REDIRECTS_MAX):
            answer = await self._send(method, url, payload, content_type)
            if answer.status not in _REDIRECT_STATUSES:
                return answer
            target = _redirect_target(url, answer.location)
            parts = urlsplit(target)
            if self._trusted is not None and not await self._trusted(f"{parts.scheme}://{parts.netloc}"):
                raise UnknownError(
                    f"{_root(url)} redirects to {_root(target)}, which is not trusted with the credentials"
                )
            url = target
        raise UnknownError(f"{shown_address(first)} redirects more than {_REDIRECTS_MAX} times")

    async def _send(self, method: str, url: str, payload: bytes | None, content_type: str) -> HttpAnswer:
        headers = {"Accept": JSON}
        if payload is not None or method in ("PUT", "POST"):
            headers["Content-Type"] = content_type
        authorization = await http_header_now(self._credentials, self._issued)
        if authorization is not None:
            headers["Authorization"] = authorization
        session, context = self._open(), self._kept_context.current() if url.startswith("https:") else True
        request = partial(
            session.request,
            method,
            URL(url, encoded=True),
            data=payload,
            headers=headers,
            allow_redirects=False,
            ssl=context,
        )
        try:
            response, content = await _answered(request, repeatable=method == "GET")
        except aiohttp.ConnectionTimeoutError as error:
            raise _Unreachable(f"Cannot reach {_root(url)}: no connection within {_CONNECT_TIMEOUT_MS} ms") from error
        except TimeoutError as error:
            raise OperationTimeout(f"{_root(url)} did not answer within {self.timeout_ms} ms") from error
        except aiohttp.ClientConnectorError as error:
            await self._raise_refusal(url, error)
            reason = no_handshake(urlsplit(url).scheme, error.os_error) or _cause(error)
            raise _Unreachable(f"Cannot reach {_root(url)}: {reason}") from error
        except aiohttp.ClientError as error:
            await self._raise_refusal(url, error)
            doubt = f"; {no_http(urlsplit(url).scheme)}" if self._is_unlike_http(url, error) else ""
            raise NotConnected(f"The connection to {_root(url)} failed: {error}{doubt}") from error
        except ValueError as error:  # a host name or header that is not valid
            raise NotConnected(f"Cannot connect to {_root(url)}: {error}") from error
        self._answered.add(_root(url))
        return HttpAnswer(
            response.status,
            response.reason or "",
            response.content_type,
            response.headers.get("Location"),
            content.decode(response.get_encoding(), errors="replace"),
            content,
            response.headers,
        )

    async def _raise_refusal(self, url: str, error: aiohttp.ClientError) -> None:
        refusal = self._tls.refusal(_root(url), error.__cause__)
        if refusal is None and url.startswith("https:"):
            parts = urlsplit(url)
            refusal = await self._tls.unheard_refusal(_root(url), parts.hostname or "", parts.port or 443, error)
        if refusal is not None:
            raise refusal from error

    def _is_unlike_http(self, url: str, error: aiohttp.ClientError) -> bool:
        """Return True if the server closed the connection and has never answered."""
        hung_up = isinstance(error, aiohttp.ServerDisconnectedError) or getattr(error, "errno", None) in _RESET
        return hung_up and _root(url) not in self._answered

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise AlreadyClosed("the admin client is closed")
        if self._session is None:
            timeout = aiohttp.ClientTimeout(
                total=self.timeout_ms / 1000, sock_connect=min(self.timeout_ms, _CONNECT_TIMEOUT_MS) / 1000
            )
            self._session = aiohttp.ClientSession(
                connector=self.new_connector(), timeout=timeout, skip_auto_headers=("Content-Type",)
            )
            self._session._retry_connection = False  # it would send PUT and DELETE twice, see `_answered`
        return self._session

    def _new_socket(self, address_info: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address_info
        opened = socket.socket(family, kind, protocol)
        self._sockets.add(opened)
        return opened

    async def _disconnect(self) -> None:
        """Close the connections of cancelled requests immediately. Over TLS they would wait for the server to close."""
        left = [socket for socket in self._sockets if socket.fileno() >= 0]
        for socket_ in left:
            with suppress(OSError):  # it was never connected
                socket_.shutdown(socket.SHUT_RDWR)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _DISCONNECT_S
        while any(socket_.fileno() >= 0 for socket_ in left) and loop.time() < deadline:  # noqa: ASYNC110  # transports announce no end
            await asyncio.sleep(0)


async def _answered(
    request: Callable[[], AbstractAsyncContextManager[aiohttp.ClientResponse]], *, repeatable: bool
) -> tuple[aiohttp.ClientResponse, bytes]:
    """Send a request and read its answer. If its connection is lost, send a ``repeatable`` one a second time.

    Others may have been carried out already: the second answer would then be that of a request that comes too late.
    """
    try:
        async with request() as response:
            return response, await response.read()
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        if not repeatable or isinstance(error, aiohttp.ClientConnectorError):
            raise
    async with request() as response:
        return response, await response.read()


def _query_string(query: Mapping[str, object] | None) -> str:
    fields = {key: value for key, value in (query or {}).items() if value is not None}
    pairs = [(key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in fields.items()]
    return "?" + urlencode(pairs) if pairs else ""


async def _decoded(text: str, levels: int = 1) -> Any:
    """Decode JSON, otherwise return text. Brokers send bare words such as ``ok`` with the content type of JSON."""
    if not text:
        return None
    try:
        return json.loads(text) if len(text) < _LONG else await parsed_in_turns(text, levels=levels)
    except ValueError:
        return text


def _redirect_target(url: str, location: str | None) -> str:
    if not location:
        raise UnknownError(f"{shown_address(url)} redirects without a target")
    target = str(URL(url, encoded=True).join(URL(location, encoded=True)))
    if url.startswith("https:") and not target.startswith("https:"):
        raise UnknownError(f"{shown_address(url)} redirects to {shown_address(target)}, which is not encrypted")
    return target


def _root(url: str) -> str:
    parts = urlsplit(url)
    return shown_address(f"{parts.scheme}://{parts.netloc}")


def _cause(error: aiohttp.ClientConnectorError) -> str:
    cause = error.os_error
    if isinstance(cause, ConnectionError) and cause.errno:
        return os.strerror(cause.errno)
    return cause.strerror or str(cause) or type(cause).__name__
