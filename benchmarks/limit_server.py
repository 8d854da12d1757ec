"""A process that does a broker's reading, writing and syncing, and nothing else: it knows no command, only byte counts.

    python -m benchmarks.limit_server DIRECTORY uvloop|asyncio

Every connection says first how long its request and its answer are, and sends the answer. From then on it sends the
request, over and over; for each part of it that came, the same part of the answer goes back, once the part is on the
disk where the connection asks for that. What comes while the disk is busy is written and synced together.
"""

import asyncio
import struct
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import uvloop

from interpulse.storage.segments.files import DiskFiles

HEAD = struct.Struct(">QQ?")
READY = b"!"

LOOPS: Mapping[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "uvloop": uvloop.new_event_loop,
    "asyncio": asyncio.SelectorEventLoop,
}


class Disk:
    """A file, and a thread that writes and syncs what has gathered meanwhile."""

    def __init__(self, path: Path) -> None:
        self._file = DiskFiles().create(path)
        self._thread = ThreadPoolExecutor(1)
        self._pieces: list[tuple[bytes, Exchange]] = []
        self._busy = False

    def write(self, piece: bytes, exchange: "Exchange") -> None:
        """Has the exchange answer this piece once it is on the disk."""
        self._pieces.append((piece, exchange))
        if not self._busy:
            # Not at once: what else this turn of the loop reads belongs to the same group.
            self._busy = True
            asyncio.get_running_loop().call_soon(self._start_group)

    def _start_group(self) -> None:
        group, self._pieces = self._pieces, []
        self._busy = bool(group)
        if group:
            content = b"".join([piece for piece, _ in group])
            written = asyncio.get_running_loop().run_in_executor(self._thread, self._file.write_durably, content)
            written.add_done_callback(lambda done: self._on_durable(done, group))

    def _on_durable(self, done: "asyncio.Future[None]", group: list[tuple[bytes, "Exchange"]]) -> None:
        done.result()
        for piece, exchange in group:
            exchange.answer(len(piece))
        self._start_group()


class Exchange(asyncio.Protocol):
    """One connection."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._head = bytearray()
        self._request_bytes = 0
        self._answer = b""
        self._durable = False
        self._received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, but does not inherit from it

    def data_received(self, data: bytes) -> None:
        if not self._request_bytes:
            self._read_head(data)
        elif self._durable:
            self._disk.write(data, self)
        else:
            self.answer(len(data))

    def answer(self, received: int) -> None:
        """Sends the part of the answer that belongs to the next so many bytes of the request."""
        while received and not self._transport.is_closing():
            step = min(received, self._request_bytes - self._received)
            start = self._received * len(self._answer) // self._request_bytes
            self._received += step
            end = self._received * len(self._answer) // self._request_bytes
            self._transport.write(self._answer[start:end])
            self._received %= self._request_bytes
            received -= step

    def _read_head(self, data: bytes) -> None:
        self._head += data
        if len(self._head) < HEAD.size:
            return
        request_bytes, answer_bytes, durable = HEAD.unpack_from(self._head)
        if len(self._head) == HEAD.size + answer_bytes:
            self._request_bytes, self._durable = request_bytes, durable
            self._answer = bytes(self._head[HEAD.size :])
            self._head.clear()
            self._transport.write(READY)


async def serve(directory: Path) -> None:
    """Serves until the standard input ends."""
    loop = asyncio.get_running_loop()
    disk = Disk(directory / "log")
    server = await loop.create_server(lambda: Exchange(disk), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


def main() -> None:
    directory, loop = sys.argv[1:]
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(serve(Path(directory)))


if __name__ == "__main__":
    main()
