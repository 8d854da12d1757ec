"""The console on the ports of the admin API: loads itself when it is first visited, and turns responses into HTTP.

The only file of the console that knows the HTTP library.
"""

from __future__ import annotations

import asyncio
import logging
from importlib import import_module
from typing import TYPE_CHECKING, Final

from aiohttp import web

from interpulse.authentication.certificates import peer_certificate
from interpulse.console.host import ROOT, Availability, Host, Request

if TYPE_CHECKING:
    from interpulse.console.site import Site
    from interpulse.console.web.response import EventStream, Response

_logger = logging.getLogger(__name__)

_PLAIN: Final = {"X-Content-Type-Options": "nosniff"}
_BODY_BYTES_MAX: Final = 64 * 1024
"""The largest form: a token and a few short fields."""


class ConsoleFrontEnd:
    """The handler of requests to ``/console``."""

    path = ROOT

    def __init__(self, host: Host, available: Availability) -> None:
        self._host = host
        self._available = available
        self._site: Site | None = None
        self._loading: asyncio.Task[Site] | None = None
        self._streams: set[asyncio.Task[None]] = set()

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request. Failures are pages, too."""
        if not self._available.on:
            return web.Response(status=404, text=f"{self._available.reason}\n", headers=_PLAIN)
        try:
            site = self._site or await self._load()
            response = await self._ask(site, request)
        except web.HTTPRequestEntityTooLarge:
            return web.Response(status=413, text=f"A form may have {_BODY_BYTES_MAX} bytes\n", headers=_PLAIN)
        except Exception:
            _logger.exception("console failed method=%s path=%s", request.method, request.raw_path.partition("?")[0])
            return web.Response(status=500, text="The console failed; the log says why\n", headers=_PLAIN)
        if response.stream is not None:
            return await self._stream(request, response, response.stream)
        answer = web.Response(status=response.status, body=response.body, headers=response.headers)
        if response.cookie is not None:
            answer.set_cookie(
                response.cookie.name,
                response.cookie.value,
                path=self.path,
                httponly=True,
                samesite="Lax",
                secure=request.secure,
                max_age=response.cookie.max_age,
            )
        return answer

    def close(self) -> None:
        """End the event streams. Stopping does not wait for visitors with open streams."""
        for task in self._streams:
            task.cancel()
        if self._site is not None:
            self._site.close()

    async def _load(self) -> Site:
        if self._loading is None:
            self._loading = asyncio.create_task(self._loaded(), name="console")
        self._site = await asyncio.shield(self._loading)
        return self._site

    async def _loaded(self) -> Site:
        """Load modules and templates in a thread: they take longer than the event loop may be held."""
        module = await asyncio.to_thread(import_module, "interpulse.console.site")
        site: Site = await asyncio.to_thread(module.Site, self._host)
        return site

    async def _ask(self, site: Site, request: web.BaseRequest) -> Response:
        body = b""
        if request.can_read_body:
            if (request.content_length or 0) > _BODY_BYTES_MAX:
                raise web.HTTPRequestEntityTooLarge(_BODY_BYTES_MAX, request.content_length or 0)
            body = await request.read()
        certificate, address = peer_certificate(request), request.remote or ""
        headers, cookies = request.headers, request.cookies
        return await site.answer(
            Request(request.method, request.raw_path, headers, body, cookies, certificate, request.secure, address)
        )

    async def _stream(self, request: web.BaseRequest, response: Response, stream: EventStream) -> web.StreamResponse:
        """Write events until the visitor leaves or the broker stops. A slow reader delays no other visitor."""
        answer = web.StreamResponse(status=response.status, headers=response.headers)
        await answer.prepare(request)

        async def write() -> None:
            async for event in stream:
                await answer.write(event)

        task = asyncio.create_task(write(), name="console stream")
        self._streams.add(task)
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            self._streams.discard(task)
            await asyncio.gather(task, return_exceptions=True)
            await stream.aclose()
        return answer
