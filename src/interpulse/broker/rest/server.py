"""The HTTP server: finds the handler, and turns whatever it raises into a status and a reason.

With `serving/web_connections` the only file of the admin API that knows the HTTP library, and the only place where its
errors become JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from collections.abc import AsyncIterator
from typing import Final, Protocol

from aiohttp import web

from interpulse.authentication.authentication import BadCredentials
from interpulse.authentication.certificates import peer_certificate
from interpulse.broker.config.broker_config import HTTP_HEADER_BYTES_READ
from interpulse.broker.rest import (
    brokers,
    clusters,
    failover,
    isolation_policies,
    lookup,
    messages,
    namespaces,
    openapi,
    permissions,
    replication,
    schemas,
    subscriptions,
    tenants,
    topic_stats,
    topics,
    unsupported,
)
from interpulse.broker.rest.http.admin_calls import AdminCalls, SentCall
from interpulse.broker.rest.http.call import Answer, Route
from interpulse.broker.rest.http.context import RestContext
from interpulse.broker.rest.http.routing import MethodNotAllowed
from interpulse.broker.rest.metrics import metrics
from interpulse.broker.rest.policies import (
    namespace_policies,
    topic_policies,
)
from interpulse.model.errors import PulsarError
from interpulse.serving.admission import ConnectionQuota, RequestRate
from interpulse.serving.tls import ListeningSockets, ServerTls
from interpulse.serving.web_connections import WebConnections

logger = logging.getLogger(__name__)

_OFFERED: Final[tuple[Route, ...]] = (
    *clusters.ROUTES,
    *tenants.ROUTES,
    *namespaces.ROUTES,
    *namespace_policies.ROUTES,
    *permissions.ROUTES,
    *topics.ROUTES,
    *topic_stats.ROUTES,
    *topic_policies.ROUTES,
    *subscriptions.ROUTES,
    *messages.ROUTES,
    *replication.ROUTES,
    *failover.ROUTES,
    *schemas.ROUTES,
    *lookup.ROUTES,
    *brokers.ROUTES,
    *isolation_policies.ROUTES,
    *metrics.ROUTES,
)
ROUTES: Final = openapi.described(_OFFERED, not_offered=unsupported.ROUTES)

_STOP_SECONDS: Final = 1.0
_BODY_BYTES_MAX: Final = 1024 * 1024
_NOT_IN_PATH: Final = 2
"""Bytes that a path has less than the header; as much as Pulsar's web server takes."""


class MountedFrontEnd(Protocol):
    """A front end for all paths below one, on the ports of the admin API."""

    path: str

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; raises nothing."""
        ...

    def close(self) -> None:
        """End the answers that go on and on."""
        ...


class RestServer:
    """Front end of the admin API. Start it last, so that a client that gets an answer finds a broker that works."""

    def __init__(self, context: RestContext, quota: ConnectionQuota | None = None) -> None:
        """Create the server; ``quota`` limits the clients, None allows any number."""
        self._context = context
        config = context.dynamic.config
        self.calls = AdminCalls(context, ROUTES)
        self._mounted: MountedFrontEnd | None = None
        self._idle_seconds = config.http_server_idle_timeout / 1000
        self._header_bytes_max = config.http_max_request_header_size
        self._body_bytes_max = config.http_max_request_size if config.http_max_request_size > 0 else _BODY_BYTES_MAX
        limited = config.http_requests_limit_enabled
        self._rate = RequestRate(config.http_requests_max_per_second, time.monotonic) if limited else None
        self._calls_max = config.max_concurrent_http_requests
        self._turns = asyncio.Semaphore(self._calls_max) if self._calls_max else None
        self._connections = WebConnections(
            self._serve,
            quota=quota or ConnectionQuota(),
            idle_seconds=self._idle_seconds,
            line_bytes_read=HTTP_HEADER_BYTES_READ,
        )
        self.sockets = ListeningSockets(self._connections)
        self._runner = web.ServerRunner(self._connections, shutdown_timeout=_STOP_SECONDS)

    def mount(self, front_end: MountedFrontEnd) -> None:
        """Let this one answer its paths; the server closes it."""
        self._mounted = front_end

    async def start(self, bound: socket.socket, tls: ServerTls | None = None) -> None:
        """Listen on a bound socket, which the server owns from now on. Raise UnusableTls."""
        if self._runner.server is None:
            await self._runner.setup()
        await self.sockets.listen(bound, tls)

    async def stop(self) -> None:
        """Accept no new connections, and end the open ones."""
        self._connections.closed = True
        self._context.registry.cursor_changes.stop_waiting()
        self._context.metadata_changes.stop_waiting()
        if self._mounted is not None:
            self._mounted.close()
        self.sockets.close()
        await self._runner.cleanup()
        self._context.failed_authentications.close()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        mounted = self._mounted
        path = request.raw_path.partition("?")[0]
        if mounted is not None and (path == mounted.path or path.startswith(f"{mounted.path}/")):
            return await mounted.serve(request)
        if self._turns is None:
            return await _sent(request, await self._answer(request))
        if not await self._take_turn(self._turns):
            reason = f"maxConcurrentHttpRequests={self._calls_max} calls are under way, and none has ended in time"
            return await _sent(request, _refusal(503, f"{reason}; call again later"))
        try:
            return await _sent(request, await self._answer(request))
        finally:
            self._turns.release()

    async def _take_turn(self, turns: asyncio.Semaphore) -> bool:
        """Return False if no turn becomes free in time. A free turn needs no timer, which costs more than the turn."""
        if not turns.locked():
            return await turns.acquire()
        try:
            async with asyncio.timeout(self._idle_seconds):
                return await turns.acquire()
        except TimeoutError:
            return False

    def _refused_unread(self, request: web.BaseRequest) -> Answer | None:
        """Return the refusal of a request that is rejected before its body is read."""
        most = self._header_bytes_max
        if len(request.raw_path) > most - _NOT_IN_PATH:
            size = len(request.raw_path)
            return _refusal(414, f"The path and query may have {most - _NOT_IN_PATH} bytes, not {size}")
        if (size := sum(len(name) + len(value) for name, value in request.raw_headers)) > most:
            return _refusal(431, f"The header may have {most} bytes (httpMaxRequestHeaderSize), not {size}")
        if self._rate is not None and not self._rate.take():
            return _refusal(429, "Too Many Requests")
        return None

    async def _body(self, request: web.BaseRequest) -> bytes:
        size = request.content_length
        if size is not None and size > self._body_bytes_max:
            raise web.HTTPRequestEntityTooLarge(max_size=self._body_bytes_max, actual_size=size)
        body = bytearray()
        try:
            async with asyncio.timeout(self._idle_seconds):
                async for part in request.content.iter_any():
                    body += part
                    if len(body) > self._body_bytes_max:
                        raise web.HTTPRequestEntityTooLarge(max_size=self._body_bytes_max, actual_size=len(body))
        except TimeoutError as error:
            reason = f"The body did not arrive within {self._idle_seconds:g} s (httpServerIdleTimeout)"
            raise _BodyIncomplete(408, reason) from error
        except ConnectionError as error:
            raise _BodyIncomplete(400, "The connection was lost before the body was complete") from error
        return bytes(body)

    async def _answer(self, request: web.BaseRequest) -> Answer:
        refused = self._refused_unread(request)
        if refused is not None:
            return refused
        path = request.raw_path.partition("?")[0]

        async def read_body() -> bytes:
            return await self._body(request) if request.can_read_body else b""

        try:
            return await self.calls.answer(
                SentCall(
                    request.method,
                    request.raw_path,
                    request.headers,
                    peer_certificate(request),
                    request.secure,
                    read_body,
                    request.remote or "",
                )
            )
        except BadCredentials as error:
            self._context.failed_authentications.note(request.remote, error.detail)
            return _refusal(error.http_status, str(error), {"WWW-Authenticate": "Bearer"})
        except PulsarError as error:
            self._context.instruments.inconsistencies.note(
                error, lambda: f"admin with {request.method} from {request.remote}"
            )
            return _refusal(error.http_status, str(error))
        except MethodNotAllowed as error:
            return _refusal(405, str(error), {"Allow": ", ".join(error.allowed)})
        except web.HTTPRequestEntityTooLarge as error:
            return _refusal(413, f"The body is too large: {error.text}")
        except _BodyIncomplete as error:
            return _refusal(error.http_status, str(error))
        except Exception as error:
            logger.exception("request failed method=%s path=%s", request.method, path)
            return _refusal(500, f"{type(error).__name__}: {error}")


class _BodyIncomplete(Exception):
    """The client has not sent all of the body. The audit log has the status too."""

    def __init__(self, http_status: int, reason: str) -> None:
        super().__init__(reason)
        self.http_status = http_status


async def _sent(request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    headers = [(name, value) for name, values in answer.headers.items() for value in _each(values)]
    headers.append(("X-Content-Type-Options", "nosniff"))
    if answer.body or answer.parts is not None:
        headers.append(("Content-Type", answer.content_type))
    if answer.parts is not None:
        return await _sent_in_parts(request, answer.parts, web.StreamResponse(status=answer.status, headers=headers))
    return web.Response(status=answer.status, body=answer.body, headers=headers)


async def _sent_in_parts(
    request: web.BaseRequest, parts: AsyncIterator[bytes], response: web.StreamResponse
) -> web.StreamResponse:
    """Send the parts of an answer. A client that does not read delays only its own answer."""
    await response.prepare(request)
    if request.method != "HEAD":
        async for part in parts:
            await response.write(part)
    await response.write_eof()
    return response


def _each(values: str | tuple[str, ...]) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else values


def _refusal(status: int, reason: str, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, json.dumps({"reason": reason}).encode(), headers=headers or {})
