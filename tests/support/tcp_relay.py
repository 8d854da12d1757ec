"""A TCP relay on loopback that cuts and holds connections, in the loop of the test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

_CHUNK = 1 << 16


class TcpRelay:
    """Relays to one server. Bytes that are held when a connection is cut are lost."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._flowing = {"requests": asyncio.Event(), "answers": asyncio.Event()}
        self._connections: dict[asyncio.Task[None], asyncio.Event] = {}  # with the event that cuts
        self._server: asyncio.Server
        self.on_requests: Callable[[bytes], None] = lambda raw: None
        """Called with bytes of a client before they pass. It may hold them."""
        self.let_go()

    @property
    def address(self) -> str:
        """Host and port."""
        host, port = self._server.sockets[0].getsockname()
        return f"{host}:{port}"

    async def listen(self) -> None:
        """Accept connections from now on."""
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)

    def hold(self, *, requests: bool = True) -> None:
        """Let no answer pass, and no request either unless ``requests`` is false. Connections stay open."""
        self._flowing["answers"].clear()
        if requests:
            self._flowing["requests"].clear()

    def let_go(self) -> None:
        """Undo `hold`."""
        for flowing in self._flowing.values():
            flowing.set()

    def cut(self) -> None:
        """Break every connection."""
        for ended in self._connections.values():
            ended.set()

    async def close(self) -> None:
        """Break every connection and accept no other."""
        self._server.close()
        self.cut()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        ended = self._connections[connection] = asyncio.Event()
        writers = [writer]
        try:
            with suppress(OSError):  # the target does not listen
                far_reader, far_writer = await asyncio.open_connection(*self._target)
                writers.append(far_writer)
                pairs = (reader, far_writer, "requests"), (far_reader, writer, "answers")
                await first_of(ended.wait(), *(self._pass(*pair) for pair in pairs))
        finally:
            del self._connections[connection]
            for each in writers:
                each.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: str) -> None:
        flowing = self._flowing[kind]
        while raw := await reader.read(_CHUNK):
            if kind == "requests":
                self.on_requests(raw)
            await flowing.wait()
            writer.write(raw)
            await writer.drain()


async def first_of(*work: Coroutine[Any, Any, object]) -> None:
    """Run several until one ends, however it ends."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
