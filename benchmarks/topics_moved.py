"""How long many topics wait when they are unloaded, and when their broker is killed.

    python -m benchmarks.topics_moved [--topics 500] [--session-timeout 6]

One ZooKeeper, three bookies and brokers of ours; our client has a producer on every topic, and sends one message
to each when the topics have gone. Its receipt tells that the topic is back. Aims: unloaded within 2 s; after a kill
the first topic is back within the session's time-out and 1 s, and each further one takes at most 20 ms. Prints a
table, keeps nothing; takes two minutes.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from benchmarks.contenders import Serving, cpu_seconds
from benchmarks.one_cluster import Cluster, call, cluster, create_namespace
from interpulse.client import Client, Producer

NAMESPACE = "bench/moved"
SECONDS_MAX = 90
FURTHER_MS_MAX = 20
UNLOAD_S_MAX = 2


class Producers:
    """A producer of our client on every topic."""

    def __init__(self, client: Client, producers: Sequence[Producer]) -> None:
        self._client = client
        self._producers = producers

    @classmethod
    async def open(cls, brokers: Sequence[Serving], topics: int) -> "Producers":
        """All of them; they try again every second at the latest."""
        url = "pulsar://" + ",".join(broker.service_url.removeprefix("pulsar://") for broker in brokers)
        client = Client(url, backoff_max_ms=1000, operation_timeout_ms=SECONDS_MAX * 1000)
        names = [f"persistent://{NAMESPACE}/topic-{number}" for number in range(topics)]
        opened = [
            await client.create_producer(name, send_timeout_ms=SECONDS_MAX * 1000, batching_enabled=False)
            for name in names
        ]
        return cls(client, opened)

    async def away(self, move: Callable[[], Awaitable[None]]) -> list[float]:
        """How long after the beginning of a move each topic gave the receipt of a message, in order."""
        started = time.monotonic()
        await move()

        async def send(producer: Producer) -> float:
            await producer.send(b"x" * 100)
            return time.monotonic() - started

        return sorted(await asyncio.gather(*map(send, self._producers)))

    async def close(self) -> None:
        """Ends the client."""
        await self._client.close()


async def compare(running: Cluster, topics: int, session_timeout_s: int, say: Callable[[str], None]) -> str:
    """Moves the topics in both ways; returns the table."""
    first = running.start_ours(session_timeout_s)
    call(first, "PUT", "tenants/bench", {"allowedClusters": ["lab"]})
    create_namespace(first, NAMESPACE, bundles=4)
    producers = await Producers.open([first], topics)
    say(f"{topics} topics are open")
    rows = ["| what happens to the topics | s | CPU s | aim |", "| --- | --- | --- | --- |"]

    async def unload() -> None:
        started, used = time.monotonic(), cpu_seconds(first)
        await asyncio.to_thread(call, first, "PUT", f"namespaces/{NAMESPACE}/unload")
        seconds = time.monotonic() - started
        rows.append(_row("unload of the namespace, the whole call", seconds, cpu_seconds(first) - used, UNLOAD_S_MAX))

    async def kill() -> None:
        first.kill()

    for _ in range(3):
        await producers.away(_nothing)
        back = await producers.away(unload)
        say(f"unloaded, and back after {back[0]:.2f} to {back[-1]:.2f} s")
        rows.append(_row("to the last receipt", back[-1]))
    await producers.close()

    second = running.start_ours(session_timeout_s)
    producers = await Producers.open([first, second], topics)
    await producers.away(_nothing)
    say("two brokers, and all topics at the first")
    used = cpu_seconds(second)
    back = await producers.away(kill)
    say(f"killed, and back after {back[0]:.2f} to {back[-1]:.2f} s")
    rows.append(_row("kill -9, to the first receipt", back[0], aim=session_timeout_s + 1))
    rows.append(_row("to the last receipt", back[-1], cpu_seconds(second) - used))
    further = (back[-1] - back[0]) / max(topics - 1, 1)
    rows.append(_row("each further topic", further, aim=FURTHER_MS_MAX / 1000))
    await producers.close()
    return "\n".join(rows)


async def _nothing() -> None:
    pass


def _row(title: str, seconds: float, cpu: float | None = None, aim: float | None = None) -> str:
    told = "" if aim is None else f"{aim:g}{'' if seconds <= aim else ' MISSED'}"
    return f"| {title} | {seconds:.3f} | {'' if cpu is None else f'{cpu:.2f}'} | {told} |"


def main(arguments: Sequence[str]) -> None:
    """Runs what the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.topics_moved", description="Topics that are moved.")
    parser.add_argument("--topics", type=int, default=500)
    parser.add_argument("--session-timeout", type=int, default=6, help="seconds, of the brokers with ZooKeeper")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="interpulse-moved-") as scratch, cluster(Path(scratch)) as running:

        def say(text: str) -> None:
            print(f"{time.monotonic() - started:6.1f} s  {text}", file=sys.stderr, flush=True)

        say("ZooKeeper and bookies serve")
        print(asyncio.run(compare(running, options.topics, options.session_timeout, say)))


if __name__ == "__main__":
    main(sys.argv[1:])
