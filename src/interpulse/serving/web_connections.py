"""Connections of HTTP clients: their number, and a time limit while the program waits for a client.

The program waits for a client that has not sent a whole request, or has not read its answer. The time counts from the
start or the last answer, not from the last byte, so sending single bytes gains nothing. For a continuous answer, such
as a stream of events, it counts only while nothing can be written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from interpulse.serving.admission import ConnectionQuota

_logger = logging.getLogger(__name__)

_REFUSALS_LOGGED_EVERY: Final = 1000
_HEADER_FIELDS_MAX: Final = 4096
"""Maximum number of header fields. Their total size is limited instead."""


@dataclass(slots=True)
class _Waiting:
    since: float
    answering: bool
    unread: int = 0
    """Bytes of the answer that the client has not read."""
    pauses: int = 0
    """Number of times that writing had to pause."""


class _Connection(web.RequestHandler):
    """HTTP connection that records if its answer can be written."""

    pauses = 0
    paused = False

    def pause_writing(self) -> None:
        super().pause_writing()
        self.pauses += 1
        self.paused = True

    def resume_writing(self) -> None:
        super().resume_writing()
        self.paused = False


class WebConnections(web.Server):
    """HTTP connections of a program; see the module."""

    def __init__(
        self,
        answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        *,
        quota: ConnectionQuota,
        idle_seconds: float,
        line_bytes_read: int,
        decompressed: bool = True,
    ) -> None:
        """Create the connections of a service.

        ``line_bytes_read`` is the longest request line that is read, so that a longer one is refused like other errors.
        With ``decompressed`` False bodies are passed on as they were sent.
        """
        super().__init__(
            self._served,
            access_log=None,
            max_line_size=line_bytes_read,
            max_field_size=line_bytes_read,
            max_headers=_HEADER_FIELDS_MAX,
            auto_decompress=decompressed,
        )
        self.closed = False
        """True once the service ends. Connections that were accepted just before are then closed on arrival."""
        self._answer = answer
        self._quota = quota
        self._idle_seconds = idle_seconds
        self._open: dict[_Connection, tuple[asyncio.Transport, str]] = {}
        self._waited_for: dict[_Connection, _Waiting] = {}
        self._look: asyncio.TimerHandle | None = None

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        assert isinstance(handler, _Connection), "all are made here"
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if peer else ""
        if self.closed:
            self._loop.call_soon(transport.close)  # the task of the handler starts first; it needs its connection
        elif self._quota.admit(address) is not None:
            self._log_refusal(address)
            self._loop.call_soon(transport.abort)
        else:
            self._open[handler] = (transport, address)
            self._wait_for(handler, answering=False)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        assert isinstance(handler, _Connection), "all are made here"
        self._waited_for.pop(handler, None)
        opened = self._open.pop(handler, None)
        if opened is not None:
            self._quota.release(opened[1])
        if not self._open and self._look is not None:
            self._look.cancel()
            self._look = None

    async def _served(self, request: web.BaseRequest) -> web.StreamResponse:
        handler = request.protocol
        assert isinstance(handler, _Connection), "all are made here"
        self._wait_for(handler, answering=True)
        try:
            return await self._answer(request)
        finally:
            self._wait_for(handler, answering=False)

    def _wait_for(self, handler: _Connection, *, answering: bool) -> None:
        if handler not in self._open:
            return
        self._waited_for[handler] = _Waiting(self._loop.time(), answering)
        if self._look is None:
            self._look = self._loop.call_later(self._idle_seconds / 4, self._look_around)

    def _look_around(self) -> None:
        """Close the connections that exceed their time limit. A client that still reads its answer gets more time."""
        now = self._loop.time()
        for handler, waiting in list(self._waited_for.items()):
            transport, _ = self._open[handler]
            unread, pauses = transport.get_write_buffer_size(), handler.pauses
            written = waiting.answering and (not handler.paused or pauses > waiting.pauses)
            if written or unread < waiting.unread:
                waiting.since = now
            waiting.unread, waiting.pauses = unread, pauses
            if waiting.since + self._idle_seconds <= now:
                del self._waited_for[handler]
                transport.abort()
        self._look = self._loop.call_later(self._idle_seconds / 4, self._look_around)

    def _log_refusal(self, address: str) -> None:
        if self._quota.refused % _REFUSALS_LOGGED_EVERY == 1:
            _logger.warning(
                "connections refused address=%s open=%d refused=%d remedy=%s",
                address,
                self._quota.open,
                self._quota.refused,
                "maxHttpServerConnections, and the limit of open files",
            )
