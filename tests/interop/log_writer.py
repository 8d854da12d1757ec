"""A broker's log without a broker: opens it on ZooKeeper and BookKeeper, and appends numbers until it is fenced.

``python -m tests.interop.log_writer ADDRESS NAME``: says "acknowledged COUNT" after every receipt, "fenced CAUSE" last.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from interpulse.model.ids import Position
from interpulse.storage.api import LogFenced
from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.journal import BookKeeperJournal
from interpulse.storage.bookkeeper.records import LogQuorums, Quorum
from interpulse.storage.logs.topic_log import LogConfig, TopicLog
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.managed_ledger.topic_codec import PulsarTopicRecords
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.store import ZooKeeperMetadataStore

ROLLED_OFTEN = LogConfig(ledger_entries_max=700, ledger_age_min_ms=0)
_ON_ITS_WAY_MAX = 300


class Writer:
    """Keeps some hundred entries on their way. See `interpulse.storage.api.LogListener`."""

    log: TopicLog

    def __init__(self) -> None:
        self.fenced = asyncio.Event()
        self._sent = 0
        self._acknowledged = 0
        self._sent_at: dict[Position, int] = {}

    def go_on(self) -> None:
        while self._sent - self._acknowledged < _ON_ITS_WAY_MAX:
            self._sent += 1
            self._sent_at[self.log.append(b"%d" % self._sent)] = self._sent

    def on_durable(self, last: Position) -> None:
        self._acknowledged = self._sent_at[last]
        for position in [each for each in self._sent_at if each <= last]:
            del self._sent_at[position]
        say(f"acknowledged {self._acknowledged}")
        asyncio.get_running_loop().call_soon(self._go_on_unless_fenced)

    def on_log_failed(self, error: Exception) -> None:
        assert isinstance(error, LogFenced), repr(error)
        say(f"fenced {error.cause.name}")
        self.fenced.set()

    def _go_on_unless_fenced(self) -> None:
        if not self.fenced.is_set():
            self.go_on()


@asynccontextmanager
async def open_logs(address: str, config: LogConfig | None = None) -> AsyncIterator[TopicLogStore]:
    """The logs of a cluster, with a session of their own."""
    async with AsyncExitStack() as opened:
        nodes = await ZooKeeperClient.connect(address)
        opened.push_async_callback(nodes.close)
        client = BookKeeperClient(nodes)
        opened.push_async_callback(client.close)
        metadata = await ZooKeeperMetadataStore.open(nodes)
        journal = BookKeeperJournal(client, LogQuorums(Quorum(3, 3, 2)))
        store = TopicLogStore(metadata, journal, config, codec=PulsarTopicRecords())
        opened.push_async_callback(store.close)
        yield store


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(address: str, name: str) -> None:
    """Write until another one opens the log."""
    async with open_logs(address, ROLLED_OFTEN) as store:
        writer = Writer()
        writer.log = await store.open(name, writer, create=True)
        writer.go_on()
        await writer.fenced.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
