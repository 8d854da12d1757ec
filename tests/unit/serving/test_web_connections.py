"""Connections of HTTP clients while their answers go on: who reads may take any time, who does not is ended."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
from aiohttp import web

from interpulse.serving.admission import ConnectionQuota
from interpulse.serving.web_connections import WebConnections
from tests.support.waiting import eventually

EVENT: Final = b"data: " + b"x" * 10_000 + b"\n\n"
REQUEST: Final = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
IDLE_SECONDS: Final = 400.0
LOOKS: Final = 4
"""In this time."""


class Connections(WebConnections):
    """Counts how often it looks for clients that keep it waiting."""

    looks = 0

    def _look_around(self) -> None:
        super()._look_around()
        self.looks += 1


class Streams:
    """A service that answers everything with events, as fast as they are read. Time passes when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = self.events = 0
        self.go = asyncio.Event()
        self.go.set()
        self.quota = ConnectionQuota()
        self._connections = Connections(self._answer, quota=self.quota, idle_seconds=IDLE_SECONDS, line_bytes_read=8192)
        loop = asyncio.get_running_loop()
        self._passed, now = 0.0, loop.time
        monkeypatch.setattr(loop, "time", lambda: now() + self._passed)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        self.open += 1
        try:
            while True:
                await self.go.wait()
                await answer.write(EVENT)
                self.events += 1
                await asyncio.sleep(0)
        finally:
            self.open -= 1

    async def blocked(self) -> None:
        """Wait until no more can be written."""
        await eventually(lambda: any(handler.paused for handler in self._connections._open))

    async def look(self) -> None:
        """So much time passes that the service looks once more."""
        looks = self._connections.looks
        self._passed += IDLE_SECONDS / LOOKS
        await eventually(lambda: self._connections.looks == looks + 1)

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[socket.socket]:
        """A client with small buffers, whose stream is open."""
        server = await asyncio.get_running_loop().create_server(self._connections, "127.0.0.1", 0)
        try:
            with socket.socket() as reader:
                reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                reader.connect(server.sockets[0].getsockname())
                reader.setblocking(False)
                reader.sendall(REQUEST)
                await eventually(lambda: self.open == 1)
                yield reader
        finally:
            self.go.set()
            await eventually(lambda: self.open == 0)
            server.close()
            await server.wait_closed()


@pytest.fixture
async def streams(monkeypatch: pytest.MonkeyPatch) -> Streams:
    return Streams(monkeypatch)


async def test_stream_when_its_reader_never_reads_then_is_ended_after_a_time(streams: Streams) -> None:
    async with streams.reader():
        await streams.blocked()
        looks = 0
        while streams.open and looks < 10 * LOOKS:
            await streams.look()
            looks += 1
        assert LOOKS < looks < 10 * LOOKS
        assert streams.quota.open == 0


async def test_stream_when_its_reader_reads_slowly_then_goes_on(streams: Streams) -> None:
    async with streams.reader() as reader:
        await streams.blocked()
        for _ in range(3 * LOOKS):
            written = streams.events
            while streams.events == written:
                await asyncio.get_running_loop().sock_recv(reader, 65536)
            await streams.look()
        assert streams.open == 1


async def test_stream_when_there_is_nothing_to_tell_then_stays(streams: Streams) -> None:
    streams.go.clear()
    async with streams.reader():
        for _ in range(3 * LOOKS):
            await streams.look()
        assert streams.open == 1


@pytest.mark.parametrize("refused", ["quota", "closed"])
async def test_connection_when_refused_then_is_closed_and_no_task_fails(refused: str) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        raise AssertionError("no request is read")

    loop, failures = asyncio.get_running_loop(), list[object]()
    loop.set_exception_handler(lambda loop, context: failures.append(context))
    quota = ConnectionQuota(connections_max=1)
    quota.admit("127.0.0.1")
    connections = WebConnections(answer, quota=quota, idle_seconds=IDLE_SECONDS, line_bytes_read=8192)
    connections.closed = refused == "closed"
    server = await loop.create_server(connections, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        assert await _read_until_closed(reader) == b""
        gc.collect()  # a failed task reports its error when it is collected
        assert failures == []
    finally:
        writer.close()
        server.close()


async def _read_until_closed(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
