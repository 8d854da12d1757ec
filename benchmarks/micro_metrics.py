"""What a scrape of ``/metrics`` costs: processor time, size, and how long it keeps others from their turn.

    python -m benchmarks.micro_metrics [--topics 100 1000 10000]

Topics are in memory, with one subscription each and no traffic. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import asyncio
import time

from interpulse.broker.rest.http.call import Call
from interpulse.broker.rest.metrics.metrics import ROUTES
from interpulse.model.names import TopicName
from tests.support.rest_broker import RestBroker, rest_broker


class Turns:
    """Notes how long each turn of the event loop takes while it is watched."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def watch(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0)
            now = time.perf_counter()
            self.longest_s = max(self.longest_s, now - last)
            last = now


async def load(broker: RestBroker, topics: int) -> None:
    for number in range(topics):
        topic = await broker.context.registry.open(TopicName.parse(f"topic-{number}"))
        await topic.create_subscription("subscription")


async def measure(topics: int) -> None:
    async with rest_broker() as broker:
        await load(broker, topics)
        turns = Turns()
        watching = asyncio.create_task(turns.watch())
        await asyncio.sleep(0)
        begun = time.process_time()
        answer = await ROUTES[0].handler(Call(broker.context, ROUTES[0], {}, {}))
        spent = time.process_time() - begun
        watching.cancel()
    lines = answer.body.count(b"\n")
    print(
        f"{topics:>7} topics: {spent * 1000:7.1f} ms processor time, {spent / topics * 1e6:5.1f} us per topic, "
        f"{lines:>7} lines, {len(answer.body) / 2**20:5.1f} MiB, longest turn {turns.longest_s * 1000:.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, nargs="+", default=[100, 1000, 10_000])
    for topics in parser.parse_args().topics:
        asyncio.run(measure(topics))


if __name__ == "__main__":
    main()
