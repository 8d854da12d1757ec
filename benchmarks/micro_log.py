"""What the segment log costs: appends, group commits, reads, restart.

    python -m benchmarks.micro_log [--directory DIR] [--entries 1000000] [--bytes 100]

CPU is the user and system time of the whole process, so it includes the writing thread. Give a directory on the disk
you want to know about; the default is the system's temporary directory, which may be memory.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from interpulse.model.ids import EARLIEST, Position
from interpulse.storage.api import Log
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.segments.journal import open_log_store
from tests.support.memory_storage import MemoryMetadataStore

WINDOW = 5_000  # entries without receipt, as of a few pipelining producers
TURN = 64  # entries taken from sockets in one turn of the event loop


class Listener:
    """Counts durable entries and wakes the ones that wait for them."""

    def __init__(self) -> None:
        self.last = EARLIEST
        self.times: list[float] = []
        self._changed = asyncio.Event()

    def on_durable(self, last: Position) -> None:
        self.last = last
        self._changed.set()

    def on_log_failed(self, error: Exception) -> None:
        raise SystemExit(f"the log failed: {error}")

    async def changed(self) -> None:
        self._changed.clear()
        await self._changed.wait()


@dataclass
class Bench:
    directory: Path
    entries: int
    payload: bytes

    async def run(self) -> None:
        metadata = MemoryMetadataStore()
        store = await open_log_store(self.directory, metadata)
        listener = Listener()
        log = await store.open("bench/ns/persistent/one", listener, create=True)
        await self.measure("append, one log, pipelined", self.entries, lambda: self.append(log, listener))
        groups = store.journal.statistics  # type: ignore[attr-defined]
        print(f"    {groups.groups} groups, {groups.group_seconds.sum / groups.groups * 1e3:.2f} ms each")
        tail = min(self.entries, 200_000)
        begin = Position(log.last_position.ledger, log.last_position.entry - tail + 1)
        await self.measure("read, from memory", tail, lambda: self.read_cached(log, begin))
        await self.measure("read, from disk, 500 at once", self.entries, lambda: self.read(log))
        await self.measure("append, 1000 logs in turn", 100_000, lambda: self.append_many(store))
        await self.measure("append, one at a time", 1_000, lambda: self.append_slowly(log, listener))
        await store.close()
        began = time.perf_counter()
        store = await open_log_store(self.directory, metadata)
        await store.open("bench/ns/persistent/one", listener, create=False)
        print(f"restart                           {(time.perf_counter() - began) * 1e3:.1f} ms")
        await store.close()

    async def measure(self, what: str, count: int, work: Callable[[], Awaitable[None]]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        await work()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"{what:32} {count / wall:12,.0f}/s {cpu / count * 1e6:8.2f} us CPU each")

    async def append(self, log: Log, listener: Listener) -> None:
        for number in range(0, self.entries, TURN):
            while number - listener.last.entry > WINDOW:
                await listener.changed()
            for _ in range(min(TURN, self.entries - number)):
                log.append(self.payload)
            await asyncio.sleep(0)
        while listener.last != log.last_appended:
            await listener.changed()

    async def append_many(self, store: TopicLogStore) -> None:
        listener = Listener()
        logs = [await store.open(f"bench/ns/persistent/{number}", Listener(), create=True) for number in range(999)]
        logs.append(await store.open("bench/ns/persistent/999", listener, create=True))
        for _ in range(100):
            for log in logs:
                log.append(self.payload)
            await listener.changed()

    async def append_slowly(self, log: Log, listener: Listener) -> None:
        for _ in range(1_000):
            log.append(self.payload)
            await listener.changed()

    async def read_cached(self, log: Log, begin: Position) -> None:
        position: Position | None = begin
        while position is not None:
            entries = log.read_cached(position, entries_max=100, bytes_max=1 << 20)
            assert entries, "the cache holds what was just appended"
            position = log.next_position(entries[-1].position)

    async def read(self, log: Log) -> None:
        position: Position | None = EARLIEST
        while position is not None:
            entries = await log.read(position, entries_max=500, bytes_max=1 << 20)
            position = log.next_position(entries[-1].position)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the segment log.")
    parser.add_argument("--directory", type=Path, help="made if absent; a folder inside is used and removed")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--bytes", type=int, default=100)
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="micro-log-", dir=options.directory))
    try:
        asyncio.run(Bench(directory / "log", options.entries, b"x" * options.bytes).run())
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
