"""How long an acknowledgement takes from one cluster to the other, with the replication job between two of ours.

    python -m benchmarks.subscription_sync [--messages 200] [--per-second 20]

A consumer on the source acknowledges messages one by one, every second one first, while others are published and
copied. The delay runs from an acknowledgement to the moment at which the target reports it. The first two messages
only show that the job is at work. Keeps nothing.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.replicated_pairs import NAMESPACE, PACED_TOPIC, OurPair
from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.model.ids import EARLIEST, MessageId, Position

TOPIC = f"{PACED_TOPIC}-partition-0"
NAME = "billing"
WAIT_S = 5.0
SECONDS_MAX = 120


def main(arguments: Sequence[str]) -> int:
    """Run everything and print a table; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.subscription_sync", description="See the module.")
    parser.add_argument("--messages", type=int, default=200, help="an even number")
    parser.add_argument("--per-second", type=float, default=20)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="interpulse-bench-") as scratch, OurPair(Path(scratch)) as pair:
        before, started = pair.cost(), time.monotonic()
        run = _Run(pair.east.service_url, pair.east.web_url, pair.west.web_url)
        delays = sorted(asyncio.run(run.play(options.messages, options.per_second)))
        cost = pair.cost().since(before).per(time.monotonic() - started)
    print("| figure | value |")
    print("| --- | --- |")
    shown = ", ".join(f"{delays[min(int(len(delays) * share), len(delays) - 1)]:.2f}" for share in (0.5, 0.99, 1))
    print(f"| acknowledgement to the other cluster: p50, p99, maximum, s | {shown} |")
    print(f"| CPU, cores | {cost} |")
    return 0


class _Run:
    """One run. Numbers of messages are those of their entries in the order of publishing."""

    def __init__(self, service_url: str, source_url: str, target_url: str) -> None:
        self._service_url = service_url
        self._source_url = source_url
        self._target_url = target_url
        self._acknowledged: dict[int, float] = {}
        """Times of acknowledgements."""
        self._carried: dict[int, float] = {}
        """Times at which the target reported them."""
        self._both_carried = asyncio.Event()

    async def play(self, count: int, per_second: float) -> list[float]:
        """Publish and acknowledge so many messages. Return the delay of each acknowledgement in seconds."""
        async with Client(self._service_url) as client, AdminClient(self._source_url) as source:
            await source.topics.create_subscription(TOPIC, NAME, MessageId(*EARLIEST), replicated=True)
            watching = asyncio.create_task(self._watch(count))
            producer = await client.create_producer(TOPIC, batching_enabled=False)
            consumer = await client.subscribe(TOPIC, NAME, subscription_type="shared")
            for number in range(count):
                await producer.send(b"%d" % number)
                if number % 2:
                    second, first = [await consumer.receive() for _ in range(2)][::-1]
                    for message in (second, first):
                        self._acknowledged[int(message.content or b"")] = time.monotonic()
                        consumer.acknowledge(message)
                if number == 1:  # the job is at work when these two are there
                    await self._both_carried.wait()
                await asyncio.sleep(1 / per_second)
            await watching
        return [at - self._acknowledged[number] for number, at in self._carried.items() if number > 1]

    async def _watch(self, count: int) -> None:
        """Note the first report of each entry. The topic is written by the job alone, from its first entry on."""
        order: list[Position] = []
        async with AdminClient(self._target_url) as target, asyncio.timeout(SECONDS_MAX):
            token = None
            while len(self._carried) < count:
                page = await target.namespaces.acknowledgements(NAMESPACE, since=token, wait_s=WAIT_S)
                token, now = page["token"], time.monotonic()
                stats = await target.topics.internal_stats(TOPIC)
                order = [
                    Position(ledger["ledgerId"], entry)
                    for ledger in stats["ledgers"]
                    for entry in range(ledger["entries"] or stats["currentLedgerEntries"])
                ]
                for item in page["subscriptions"]:
                    if item["topic"] == TOPIC:
                        self._note(item, order, now)

    def _note(self, item: Mapping[str, Any], order: list[Position], now: float) -> None:
        upto = Position.parse(item["markDelete"])
        for number, position in enumerate(order):
            ranges = ((Position(ledger, first), Position(ledger, last)) for ledger, first, last in item["ranges"])
            if position <= upto or any(first <= position <= last for first, last in ranges):
                self._carried.setdefault(number, now)
        if len(self._carried) > 1:
            self._both_carried.set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
