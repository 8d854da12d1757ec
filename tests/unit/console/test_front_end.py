"""Responses of the console as HTTP."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

from aiohttp import web

from interpulse.console.front_end import ConsoleFrontEnd
from interpulse.console.host import Availability, Host
from interpulse.console.web.response import EventStream, Response
from tests.support.waiting import eventually

EVENT = b"data: " + b"x" * 10_000 + b"\n\n"
PAUSED_ABOVE = 64 * 1024
HELD_MAX = 256 * 1024


class EndlessSite:
    """Answers whatever it is asked with a stream that never ends."""

    open = 0

    async def answer(self, *request: Any, **more: Any) -> Response:
        return Response(200, headers={"Content-Type": "text/event-stream"}, stream=self._events())

    async def _events(self) -> EventStream:
        self.open += 1
        try:
            while True:
                yield EVENT
                await asyncio.sleep(0)
        finally:
            self.open -= 1

    def close(self) -> None:
        pass


async def test_stream_when_its_reader_never_reads_then_has_bounded_bytes() -> None:
    transports: list[asyncio.Transport] = []
    front_end = ConsoleFrontEnd(cast(Host, None), Availability(True))
    site = EndlessSite()
    front_end._site = cast(Any, site)

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        transports.append(cast(asyncio.Transport, request.transport))
        return await front_end.serve(request)

    server = await asyncio.get_running_loop().create_server(web.Server(serve), "127.0.0.1", 0)
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(server.sockets[0].getsockname())
        reader.sendall(b"GET /console/topic-rates HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await eventually(lambda: transports and transports[0].get_write_buffer_size() > PAUSED_ABOVE)
        for _ in range(1000):  # in which a stream that does not wait would write 10 MB
            await asyncio.sleep(0)
        assert 0 < transports[0].get_write_buffer_size() <= HELD_MAX
        assert site.open == 1
        transports[0].abort()
        await eventually(lambda: site.open == 0)
    server.close()
    await server.wait_closed()
