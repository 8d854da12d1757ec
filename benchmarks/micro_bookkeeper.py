"""What the client of BookKeeper costs: entries appended in runs, and read back.

    python -m benchmarks.micro_bookkeeper [--entries 20000] [--bytes 100 1000] [--rounds 3] [--profile]

CPU is the user and system time of the client's process alone, from a run that a log gives to the journal to the news
that it is durable. Bookies and ZooKeeper are stand-ins in another process, which keep everything in memory and answer
what came with one read at once, as bookies answer what they synced together. So only the CPU counts, not the rate.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import multiprocessing
import pstats
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

import uvloop

from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.journal import BookKeeperJournal
from interpulse.storage.bookkeeper.records import LogQuorums, Quorum
from interpulse.storage.logs.journal import TOPIC_LEDGER, Run
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.support.scripted_bookie import scripted_bookies
from tests.support.scripted_zookeeper import scripted_zookeeper

LOG = "bench/ns/persistent/one"
WINDOW = 5_000  # entries without receipt, as of a few pipelining producers
QUORUMS = (Quorum(1, 1, 1), Quorum(2, 2, 2), Quorum(3, 3, 2), Quorum(3, 2, 2))
RUNS = (1, 10, 100)


class Load:
    """A log that gives a run of so many entries in each turn of the event loop. See `JournalClient`."""

    def __init__(self, journal: BookKeeperJournal, ledger_id: int, entry: bytes) -> None:
        self._journal = journal
        self._ledger_id = ledger_id
        self._entry = entry
        self._pending: list[bytes] = []
        self._appended = 0
        self._durable = 0
        self._changed = asyncio.Event()

    async def append(self, count: int, run: int) -> None:
        """Append so many entries; all durable on return."""
        last = self._appended + count
        while self._appended < last:
            while self._appended - self._durable >= WINDOW:
                await self._wait()
            if not self._pending:
                self._journal.enqueue(self)
            self._pending += [self._entry] * run
            self._appended += run
            await asyncio.sleep(0)
        while self._durable < last:
            await self._wait()

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def take_pending(self) -> list[Run]:
        pending, self._pending = self._pending, []
        return [Run(self._ledger_id, self._appended - len(pending), pending)] if pending else []

    def committed(self, runs: list[Run]) -> None:
        self._durable += sum(len(run.entries) for run in runs)
        self._changed.set()

    def failed(self, error: Exception) -> None:
        raise SystemExit(f"the log failed: {error}")


@dataclass
class Bench:
    client: BookKeeperClient
    entries: int
    rounds: int
    profile: bool

    async def run(self, quorum: Quorum, payload: bytes) -> None:
        print(
            "ensemble {}, write quorum {}, ack quorum {}".format(*quorum), f"entries of {len(payload)} bytes", sep=", "
        )
        journal = BookKeeperJournal(self.client, LogQuorums(quorum))
        for run in RUNS:
            ledger_id = await journal.create(LOG, TOPIC_LEDGER)
            load = Load(journal, ledger_id, payload)
            await load.append(WINDOW, run)  # connections are there, and code is warm
            await self.measure(f"    append, {run} in a run", self.entries, partial(load.append, self.entries, run))
        count = self.entries if quorum.ensemble == quorum.write else self.entries // 10
        await self.measure("    read, 500 at once", count, partial(self.read, journal, ledger_id, count))
        await journal.close()

    async def measure(self, what: str, count: int, work: Callable[[], Awaitable[None]]) -> None:
        profile = cProfile.Profile()
        if self.profile:
            profile.enable()
        rounds = [await self.time(work) for _ in range(self.rounds)]
        profile.disable()
        print(f"{what:26} {min(rounds) / count * 1e6:8.2f} us CPU each", flush=True)
        if self.profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(20)

    async def time(self, work: Callable[[], Awaitable[None]]) -> float:
        before = time.process_time()
        await work()
        return time.process_time() - before

    async def read(self, journal: BookKeeperJournal, ledger_id: int, count: int) -> None:
        first = 0
        while first < count:
            first += len(await journal.read(LOG, ledger_id, first, min(500, count - first), 1 << 20))


async def serve(port: Connection) -> None:
    """ZooKeeper and bookies, until the other end closes."""
    async with scripted_zookeeper() as zookeeper:
        servers = await zookeeper.listen()
        nodes = await ZooKeeperClient.connect(servers)
        async with scripted_bookies(nodes, 3):
            port.send(servers)
            asked_to_end = asyncio.Event()
            asyncio.get_running_loop().add_reader(port.fileno(), asked_to_end.set)
            await asked_to_end.wait()
        await nodes.close()


def serve_in_process(port: Connection) -> None:
    asyncio.run(serve(port))


async def bench(options: argparse.Namespace, quorum: Quorum, size: int) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve_in_process, args=(theirs,))
    server.start()
    with closing(ours):
        nodes = await ZooKeeperClient.connect(ours.recv())
        client = BookKeeperClient(nodes)
        await Bench(client, options.entries, options.rounds, options.profile).run(quorum, b"x" * size)
        await client.close()
        await nodes.close()
        ours.send("end")
        server.join()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.micro_bookkeeper", description="Measure the client of BookKeeper."
    )
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("--bytes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--rounds", type=int, default=3, help="the one with the least CPU counts")
    parser.add_argument("--quorum", type=int, default=None, help="only the one at this place of the list, from 0 on")
    parser.add_argument("--profile", action="store_true", help="what is called; profiling makes calls dear")
    options = parser.parse_args()
    chosen = QUORUMS if options.quorum is None else QUORUMS[options.quorum : options.quorum + 1]
    for size in options.bytes:
        for quorum in chosen:
            uvloop.run(bench(options, quorum, size))


if __name__ == "__main__":
    main()
