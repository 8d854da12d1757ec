"""The admin API of the brokers over HTTP, and the proxy's own pages: metrics and health.

Only paths of the admin API are forwarded (`is_forwarded`). Redirects between brokers are followed here, so that clients
need to reach no broker. Where the proxy authenticates its clients, a call carries the credentials of the proxy, and the
role of the client in ``X-Original-Principal``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterable
from functools import partial
from io import BytesIO
from typing import Final
from urllib.parse import unquote

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from interpulse.authentication.authentication import BadCredentials
from interpulse.authentication.certificates import peer_certificate
from interpulse.model.errors import PulsarError
from interpulse.proxy.access import ProxyAccess
from interpulse.proxy.brokers import Brokers
from interpulse.proxy.dialer import TargetRules
from interpulse.proxy.proxy_config import ProxyConfig
from interpulse.serving.address_events import FailedAuthentications
from interpulse.serving.admission import ConnectionQuota
from interpulse.serving.exposition import CONTENT_TYPE
from interpulse.serving.tls import ListeningSockets
from interpulse.serving.web_connections import WebConnections
from interpulse.serving.web_pages import KnownHosts, check_origin

_logger = logging.getLogger(__name__)

_FORWARDED: Final = ("/admin", "/lookup")
_REDIRECTS: Final = (301, 302, 307, 308)
_REDIRECTS_MAX: Final = 10
_STOP_SECONDS: Final = 1.0
_LINE_BYTES_MAX: Final = 64 * 1024
_CHUNK_BYTES: Final = 64 * 1024
_CONNECTIONS_MAX: Final = 512
"""The most connections to brokers; further calls wait for one."""
_READING: Final = ("GET", "HEAD")
_NOT_REACHED: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""Failures before anything was sent."""

_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers of one connection, and those that the library writes itself."""
_NOT_FORWARDED: Final = frozenset({"x-original-principal", "x-forwarded-for", "forwarded"})
"""Headers about the original client, which clients may not set."""
_METHOD: Final = "X-Pulsar-Auth-Method-Name"
"""Java's clients name the method of their credentials here, and Pulsar's brokers ask only its provider."""
_CREDENTIALS: Final = frozenset({"authorization", "cookie", _METHOD.lower()})
_DOTS: Final = re.compile(r"(?:^|/|\\)\.\.?(?:/|\\|;|$)")


def is_forwarded(raw_path: str) -> bool:
    """Return True for paths of the admin API: ``/admin``, ``/lookup`` and everything below, as in Pulsar's proxy.

    Paths that leave it by dots, encoded or not, are refused.
    """
    path = raw_path
    for _ in range(3):  # brokers decode once; names of topics are never encoded twice
        if _DOTS.search(path):
            return False
        path = unquote(path)
    return any(raw_path == prefix or raw_path.startswith(f"{prefix}/") for prefix in _FORWARDED)


class WebServer:
    """A server for HTTP, with and without TLS."""

    def __init__(
        self,
        config: ProxyConfig,
        brokers: Brokers,
        rules: TargetRules,
        access: ProxyAccess | None,
        metrics: Callable[[], bytes],
    ) -> None:
        """``rules`` limit the hosts that brokers may redirect a call to."""
        self._brokers = brokers
        self._config = config
        self._rules = rules
        self._access = access
        self._hosts = KnownHosts.of(config, "proxy")
        self._timeout_seconds = config.http_proxy_timeout / 1000
        self._metrics = metrics
        self._calls = 0
        self._failed_authentications = FailedAuthentications()
        self._server = WebConnections(
            self._serve,
            quota=ConnectionQuota(config.max_http_server_connections),
            idle_seconds=config.http_server_idle_timeout / 1000,
            line_bytes_read=_LINE_BYTES_MAX,
            decompressed=False,
        )
        self.sockets = ListeningSockets(self._server)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=_STOP_SECONDS)
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Prepare to call brokers. Then `sockets` may listen."""
        timeout = aiohttp.ClientTimeout(
            total=self._timeout_seconds, sock_connect=self._config.broker_proxy_connect_timeout_ms / 1000
        )
        self._session = aiohttp.ClientSession(
            connector=self.new_connector(),
            timeout=timeout,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )
        self._session._retry_connection = False  # it would send PUT and DELETE twice, see `_send`
        await self._runner.setup()

    def new_connector(self) -> aiohttp.BaseConnector:
        """Return the way to open connections to brokers. Override it to use another network."""
        context = self._config.broker_tls.context() if self._config.tls_enabled_with_broker else None
        return aiohttp.TCPConnector(limit=_CONNECTIONS_MAX, ssl=True if context is None else context)

    async def stop(self) -> None:
        """Accept no new calls, and end those in progress."""
        self._server.closed = True
        self.sockets.close()
        await self._runner.cleanup()
        self._failed_authentications.close()
        if self._session is not None:
            await self._session.close()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        path, _, _ = request.raw_path.partition("?")
        if request.method in _READING:
            own = await self._own_page(request, path)
            if own is not None:
                return own
        if not is_forwarded(path):
            return _refusal(404, f"{path[:200]} is no path of the admin API; the proxy forwards /admin and /lookup")
        limit = self._config.max_concurrent_http_requests
        if limit and self._calls >= limit:
            return _refusal(
                503, f"maxConcurrentHttpRequests={limit} calls are in progress in the proxy; call again later"
            )
        self._calls += 1
        try:
            return await self._admin_call(request, path)
        finally:
            self._calls -= 1

    async def _admin_call(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        """Answer a call of the admin API; every failure is an answer."""
        try:
            # no calls from web pages: their scripts can set Authorization too, and brokers may not check for it
            check_origin(request.headers)
            self._hosts.check(request.headers)
            role = await self._role(request)
            if (
                request.content_length is not None
                and request.content_length > self._config.http_input_max_replay_buffer_size
            ):
                return self._too_large()
            headers = await self._forwarded_headers(request, role)
            return await self._forward(request, headers, await self._body(request))
        except BadCredentials as error:
            return self._unknown_caller(request, error)
        except PulsarError as error:
            return _refusal(error.http_status, str(error))
        except _TooLarge:
            return self._too_large()
        except _BodyStalled:
            limit = f"httpProxyTimeout={self._config.http_proxy_timeout}"
            return _refusal(408, f"The body did not come within {limit} ms of the proxy")
        except aiohttp.ConnectionTimeoutError:
            millis = self._config.broker_proxy_connect_timeout_ms
            return _refusal(504, f"No broker took the connection within brokerProxyConnectTimeoutMs={millis} ms")
        except TimeoutError:
            return _refusal(504, f"No broker answered within {self._timeout_seconds:g} s")
        except (aiohttp.ClientError, OSError) as error:
            _logger.warning("admin call failed method=%s path=%s reason=%s", request.method, path, error)
            return _refusal(502, f"The broker cannot be called: {error or type(error).__name__}")
        except Exception as error:
            _logger.exception("admin call failed method=%s path=%s", request.method, path)
            return _refusal(500, f"The proxy failed: {type(error).__name__}")

    async def _role(self, request: web.BaseRequest) -> str | None:
        access = self._access
        if access is None:
            return None
        shown = peer_certificate(request)
        return (await access.authentication.authenticate_http(request.headers, certificate=shown)).role

    def _unknown_caller(self, request: web.BaseRequest, error: BadCredentials) -> web.Response:
        self._failed_authentications.note(request.remote, error.detail)
        refusal = _refusal(error.http_status, str(error))
        refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal

    async def _own_page(self, request: web.BaseRequest, path: str) -> web.Response | None:
        if path in ("/metrics", "/metrics/"):
            access = self._access
            if access is not None and access.metrics_authenticated:
                try:
                    await self._role(request)
                except BadCredentials as error:
                    return self._unknown_caller(request, error)
            return web.Response(body=self._metrics(), headers={"Content-Type": CONTENT_TYPE})
        if path == "/livez":
            return web.Response(text="ok")
        if path == "/readyz":
            ready = self._brokers.count > 0
            return web.Response(text="ok" if ready else "the proxy has no broker", status=200 if ready else 503)
        return None

    async def _body(self, request: web.BaseRequest) -> bytes:
        collected = bytearray()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                async for chunk in request.content.iter_chunked(_CHUNK_BYTES):
                    collected += chunk
                    if len(collected) > self._config.http_input_max_replay_buffer_size:
                        raise _TooLarge
        except TimeoutError as error:
            raise _BodyStalled from error
        return bytes(collected)

    def _too_large(self) -> web.Response:
        limit = self._config.http_input_max_replay_buffer_size
        return _refusal(413, f"The body is larger than httpInputMaxReplayBufferSize={limit} bytes of the proxy")

    async def _forward(self, request: web.BaseRequest, headers: CIMultiDict[str], body: bytes) -> web.StreamResponse:
        """Call the next reachable broker, and follow its redirects."""
        *others, last = self._brokers.web_urls()
        for base in others:
            try:
                return await self._call_one(request, headers, base, body)
            except _NOT_REACHED as error:
                _logger.warning("broker not reached address=%s reason=%s", base, error)
        return await self._call_one(request, headers, last, body)

    async def _call_one(
        self, request: web.BaseRequest, headers: CIMultiDict[str], base: str, body: bytes
    ) -> web.StreamResponse:
        url = URL(base + request.raw_path, encoded=True)
        async with await self._call(request, headers, url, body) as answer:
            return await self._stream(request, answer)

    async def _call(
        self, request: web.BaseRequest, headers: CIMultiDict[str], url: URL, body: bytes
    ) -> aiohttp.ClientResponse:
        for _ in range(_REDIRECTS_MAX + 1):
            answer = await self._send(request.method, headers, url, body)
            location = answer.headers.get("Location")
            if answer.status not in _REDIRECTS or location is None:
                return answer
            answer.release()
            called, url = url, url.join(URL(location, encoded=True))
            self._check_redirect(called, url)
        raise aiohttp.ClientError(f"the brokers send the call on more than {_REDIRECTS_MAX} times, last to {url}")

    async def _send(self, method: str, headers: CIMultiDict[str], url: URL, body: bytes) -> aiohttp.ClientResponse:
        """Send a call. If its connection is lost, send it a second time if it only reads.

        A broker may have carried out others already: the second answer would be that of a call that comes too late.
        """
        assert self._session is not None, "started before it listens"
        send = partial(self._session.request, method, url, headers=headers, allow_redirects=False)
        try:
            return await send(data=BytesIO(body) if body else None)
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            if method not in _READING or isinstance(error, aiohttp.ClientConnectorError):
                raise
        return await send(data=BytesIO(body) if body else None)

    def _check_redirect(self, called: URL, url: URL) -> None:
        if url.scheme != called.scheme:  # credentials that were encrypted stay encrypted
            raise aiohttp.ClientError(
                f"a broker sends the call on to {url}, which does not begin with {called.scheme}://"
            )
        refusal = self._rules.refusal_of_host(url.host or "") if url.authority != called.authority else None
        if refusal is not None:
            raise aiohttp.ClientError(f"a broker sends the call on to {url}: {refusal}")

    async def _forwarded_headers(self, request: web.BaseRequest, role: str | None) -> CIMultiDict[str]:
        """Return the headers for the broker. ``role`` is that of the authenticated caller.

        Raise ServiceNotReady if the proxy's own credentials are not available.
        """
        access = self._access
        left_out = _HOP_BY_HOP | _NOT_FORWARDED | _connection_names(request.headers.getall("Connection", ()))
        if access is not None or not self._config.forward_authorization_credentials:
            left_out |= _CREDENTIALS
        headers = CIMultiDict((name, value) for name, value in request.headers.items() if name.lower() not in left_out)
        headers["X-Forwarded-For"] = request.remote or "unknown"
        if access is not None and role is not None:
            headers["X-Original-Principal"] = role
            own = await access.own.http_header()
            if own is not None:
                headers["Authorization"] = own
            headers[_METHOD] = access.own.method
        return headers

    async def _stream(self, request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        """Stream the answer: the proxy holds one piece of it at a time."""
        left_out = _HOP_BY_HOP | _connection_names(answer.headers.getall("Connection", ()))
        headers = CIMultiDict((name, value) for name, value in answer.headers.items() if name.lower() not in left_out)
        response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
        length = answer.headers.get("Content-Length")
        if length is not None and length.isdigit():
            response.content_length = int(length)
        await response.prepare(request)
        try:
            async with asyncio.timeout(self._timeout_seconds):  # the client may not read
                if request.method != "HEAD":
                    async for chunk in answer.content.iter_chunked(_CHUNK_BYTES):
                        await response.write(chunk)
                await response.write_eof()
        except (aiohttp.ClientError, OSError) as error:  # too late for another answer, so this one is cut off
            _logger.warning("admin call cut off path=%s reason=%s", request.path, error or type(error).__name__)
            if request.transport is not None:
                request.transport.abort()
        return response


class _TooLarge(Exception):
    """The body of a call is above the limit."""


class _BodyStalled(Exception):
    """The body of a call does not arrive."""


def _connection_names(values: Iterable[str]) -> frozenset[str]:
    return frozenset(name.strip().lower() for value in values for name in value.split(","))


def _refusal(status: int, reason: str) -> web.Response:
    return web.Response(status=status, body=json.dumps({"reason": reason}).encode(), content_type="application/json")
