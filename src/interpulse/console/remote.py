"""A console for a cluster that is asked over its admin API, ours or an Apache Pulsar; it listens on loopback."""

from __future__ import annotations

import socket
from typing import Final

from aiohttp import web

from interpulse.client.transport.http_errors import HttpAnswer, error_for_response
from interpulse.client.transport.http_session import HttpSession
from interpulse.console.front_end import ConsoleFrontEnd
from interpulse.console.host import Availability, Host, VisitorCall
from interpulse.serving.web_pages import KnownHosts

_REFUSED: Final = 400
_STOP_SECONDS: Final = 1.0


class _RemoteCalls:
    """Calls over HTTP, with the credentials of the session."""

    def __init__(self, session: HttpSession) -> None:
        self._session = session

    async def answer(self, call: VisitorCall) -> HttpAnswer:
        answer = await self._session.exchange(call.method, call.target, call.body or None, call.content_type)
        if answer.status >= _REFUSED:
            raise error_for_response(answer, f"{call.method} {call.path}", "topic")
        return answer

    async def check(self, call: VisitorCall) -> None:
        """Allow everything: only the cluster can refuse, when the call is made."""


class RemoteConsole:
    """The console of a remote broker. The caller closes ``session``."""

    def __init__(self, session: HttpSession, cluster: str, *, read_only: bool) -> None:
        host = Host(
            _RemoteCalls(session),
            cluster,
            KnownHosts(frozenset({"localhost"}), program="console"),
            lambda: read_only,
            lambda: True,
        )
        self._front_end = ConsoleFrontEnd(host, Availability(True))
        self._runner = web.ServerRunner(
            web.Server(self._serve, access_log=None), handle_signals=False, shutdown_timeout=_STOP_SECONDS
        )

    async def start(self, bound: socket.socket) -> None:
        """Listen on a bound socket, which the console owns from now on."""
        await self._runner.setup()
        await web.SockSite(self._runner, bound).start()

    async def stop(self) -> None:
        """End the streams and all connections."""
        self._front_end.close()
        await self._runner.cleanup()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.raw_path.partition("?")[0]
        if path == self._front_end.path or path.startswith(f"{self._front_end.path}/"):
            return await self._front_end.serve(request)
        raise web.HTTPFound(self._front_end.path) if path == "/" else web.HTTPNotFound()
