"""Child process of `test_kill`: appends without end and reports on stdout what was acknowledged."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from pathlib import Path

from interpulse.model.ids import Position
from interpulse.storage.directory_lock import DirectoryLock
from interpulse.storage.logs.topic_log import LogConfig, TopicLog
from interpulse.storage.metadata.sqlite import SqliteMetadataStore
from interpulse.storage.segments.journal import open_log_store

LOGS = 5
PENDING_MAX = 100
"""Entries of one log under way; without a bound a fast machine writes more than can be read back in time."""


class Reporter:
    def __init__(self, name: str, moved: asyncio.Event) -> None:
        self.name = name
        self.moved = moved
        self.log: TopicLog
        self.pending: deque[Position] = deque()

    def append(self, payload: bytes) -> None:
        self.pending.append(self.log.append(payload))

    def on_durable(self, last: Position) -> None:
        while self.pending and self.pending[0] <= last:
            self.pending.popleft()
        self.moved.set()
        sys.stdout.write(f"{self.name} {last.ledger} {last.entry}\n")

    def on_log_failed(self, error: Exception) -> None:
        raise AssertionError(error)


async def main(directory: Path, life: int) -> None:
    with DirectoryLock.acquire(directory):
        metadata = await SqliteMetadataStore.open(directory / "metadata.sqlite")
        config = LogConfig(ledger_entries_max=2000, ledger_age_min_ms=0)
        store = await open_log_store(directory / "log", metadata, config=config, segment_bytes_max=500_000)
        moved = asyncio.Event()
        reporters = [Reporter(f"t/n/persistent/{number}", moved) for number in range(LOGS)]
        for each in reporters:
            each.log = await store.open(each.name, each, create=True)
        sys.stdout.write("ready\n")
        written = 0
        while True:
            for number, each in enumerate(reporters):
                for _ in range(number + 1):
                    each.append(f"{life:02d} {written:08d}".encode().ljust(80 * (number + 1)))
                    written += 1
            sys.stdout.flush()
            await asyncio.sleep(0)
            while any(len(each.pending) > PENDING_MAX for each in reporters):
                moved.clear()
                await moved.wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
