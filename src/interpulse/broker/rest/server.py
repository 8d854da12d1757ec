"""The HTTP server: finds the handler, and turns whatever it raises into a status and a reason.

The only file of the broker that knows the HTTP library, and the only place where errors become JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from aiohttp import web

from interpulse.broker.access.authentication import BadCredentials, PeerCertificate
from interpulse.broker.access.certificates import peer_certificate
from interpulse.broker.access.change_log import note_change
from interpulse.broker.rest import (
    brokers,
    clusters,
    compaction,
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
from interpulse.broker.rest.http.authorization_filter import AuthorizationFilter
from interpulse.broker.rest.http.call import Answer, Call, Route
from interpulse.broker.rest.http.context import RestContext
from interpulse.broker.rest.http.routing import MethodNotAllowed, Router
from interpulse.broker.rest.metrics import metrics
from interpulse.broker.rest.policies import (
    namespace_policies,
    namespace_properties,
    namespace_rates,
    topic_clusters,
    topic_policies,
)
from interpulse.model.errors import PulsarError
from interpulse.model.permissions import Principal
from interpulse.rules.listeners import plan_listeners
from interpulse.serving.tls import ServerTls, TlsListener
from interpulse.serving.web_pages import KnownHosts

__all__ = ["ROUTES", "RestServer"]

logger = logging.getLogger(__name__)

_OFFERED: Final[tuple[Route, ...]] = (
    *clusters.ROUTES,
    *tenants.ROUTES,
    *namespaces.ROUTES,
    *namespace_policies.ROUTES,
    *namespace_properties.ROUTES,
    *permissions.ROUTES,
    *namespace_rates.ROUTES,
    *topics.ROUTES,
    *compaction.ROUTES,
    *topic_stats.ROUTES,
    *topic_policies.ROUTES,
    *topic_clusters.ROUTES,
    *subscriptions.ROUTES,
    *messages.ROUTES,
    *replication.ROUTES,
    *schemas.ROUTES,
    *lookup.ROUTES,
    *brokers.ROUTES,
    *isolation_policies.ROUTES,
    *metrics.ROUTES,
)
ROUTES: Final = openapi.described(_OFFERED, not_offered=unsupported.ROUTES)

_READING: Final = ("GET", "HEAD", "OPTIONS")
_STOP_SECONDS: Final = 1.0
_BACKLOG: Final = 1024
_PATH_BYTES_MAX: Final = 8_190
"""As much as Pulsar's web server takes."""
_LINE_BYTES_READ: Final = 256 * 1024
"""A path that is too long is still read, so that the answer has the form of all others."""


class _Connections(web.Server):
    """Hangs up on those that were accepted just before the end and come in after it."""

    closed = False

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if self.closed:
            transport.close()


class RestServer:
    """Front end of the admin API. Start it last, so that a client that gets an answer finds a broker that works."""

    def __init__(self, context: RestContext) -> None:
        self._context = context
        self._encrypted: TlsListener | None = None
        self._router = Router(ROUTES)
        config = context.dynamic.config
        anybody_let_in = context.access is None or bool(config.anonymous_user_role)
        listeners = plan_listeners(config.advertised_listeners, config.internal_listener_name)
        hosts = KnownHosts.of(config, also=listeners.hosts) if anybody_let_in else None
        self._filter = AuthorizationFilter(context.access, hosts)
        self._connections = _Connections(self._serve, access_log=None, max_line_size=_LINE_BYTES_READ)
        self._runner = web.ServerRunner(self._connections, shutdown_timeout=_STOP_SECONDS)

    async def start(self, bound: socket.socket) -> None:
        """Listen on a bound socket, which the server owns from now on."""
        await self._set_up()
        await web.SockSite(self._runner, bound, backlog=_BACKLOG).start()

    async def start_encrypted(self, bound: socket.socket, tls: ServerTls) -> None:
        """Listen inside TLS on another one, in the same way. Raises UnusableTls."""
        await self._set_up()
        self._encrypted = TlsListener(tls, bound, self._connections, backlog=_BACKLOG)
        await self._encrypted.start()

    async def refresh_certificates(self) -> None:
        """New connections get the certificates that the files hold now; see `TlsListener.refresh`."""
        if self._encrypted is not None:
            await self._encrypted.refresh()

    async def _set_up(self) -> None:
        if self._runner.server is None:
            await self._runner.setup()

    async def stop(self) -> None:
        """Take no new connections, and end those that are open."""
        self._connections.closed = True
        if self._encrypted is not None:
            self._encrypted.close()
        await self._runner.cleanup()

    async def _serve(self, request: web.BaseRequest) -> web.Response:
        caller = _Caller()
        answer = await self._answer(request, caller)
        if request.method not in _READING:
            subject = request.raw_path.partition("?")[0]
            reason = answer.body.decode() if answer.status >= 400 else ""
            note_change(caller.principal, str(request.remote), request.method, subject, answer.status, reason)
        headers = [(name, value) for name, values in answer.headers.items() for value in _each(values)]
        headers.append(("X-Content-Type-Options", "nosniff"))
        if answer.body:
            headers.append(("Content-Type", answer.content_type))
        return web.Response(status=answer.status, body=answer.body, headers=headers)

    def _call(
        self, request: web.BaseRequest, route: Route, params: dict[str, str], certificate: PeerCertificate | None
    ) -> Call:
        """The call without its body."""
        path, _, query = request.raw_path.partition("?")
        return Call(
            self._context,
            route,
            params,
            dict(parse_qsl(query, keep_blank_values=True)) if query else {},
            content_type=request.content_type,
            request_headers=request.headers,
            path=path,
            tls=request.secure,
            certificate=certificate,
        )

    async def _answer(self, request: web.BaseRequest, caller: _Caller) -> Answer:
        if len(request.raw_path) > _PATH_BYTES_MAX:
            return _refusal(414, f"The path and query may have {_PATH_BYTES_MAX} bytes, not {len(request.raw_path)}")
        path = request.raw_path.partition("?")[0]
        try:
            shown = peer_certificate(request.get_extra_info("peercert"))
            route, params = await self._filter.find(self._router, request.method, path, request.headers, shown)
            call = self._call(request, route, params, shown)
            try:
                await self._filter.check(call)
            finally:
                caller.principal = call.principal
            if request.can_read_body:
                call.body = await request.read()
            return await route.handler(call)
        except BadCredentials as error:
            logger.warning("authentication failed address=%s reason=%s", request.remote, error.detail)
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
        except Exception as error:
            logger.exception("request failed method=%s path=%s", request.method, path)
            return _refusal(500, f"{type(error).__name__}: {error}")


@dataclass(slots=True)
class _Caller:
    """Who makes a call, once that is known."""

    principal: Principal | None = None


def _each(values: str | tuple[str, ...]) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else values


def _refusal(status: int, reason: str, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, json.dumps({"reason": reason}).encode(), headers=headers or {})
