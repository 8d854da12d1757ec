"""Messages per second at which the tail of a lost site is listed, between two brokers in this process.

    python -m benchmarks.failover_tail [--messages 200000] [--batch 100] [--bytes 200] [--keys 1000]

All messages are in one topic of the lost site and have no copy. ``--batch 1`` publishes without batches, and
``--keys`` is the number of their keys, which the other site has all taken as well.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from interpulse.client import Client
from interpulse.failover.pair_config import parse_pair_config
from interpulse.failover.site import SiteAccess
from interpulse.failover.tail.incident import Incident, LastCopy
from interpulse.failover.tail.listing import list_tail
from interpulse.model.names import TopicName
from interpulse.testing import ClusterPair

TOPIC = TopicName.parse("persistent://public/default/orders")
PENDING = 5000


async def publish(url: str, count: int, batch: int, payload: bytes, keys: int) -> None:
    """Publish messages with keys in turn."""
    options = {"batching_enabled": batch > 1, "batch_messages_max": max(batch, 2)}
    async with Client(url) as client, await client.create_producer(str(TOPIC), **options) as producer:
        for start in range(0, count, PENDING):
            numbers = range(start, min(count, start + PENDING))
            await asyncio.gather(*(producer.send(payload, key=f"k{number % keys}") for number in numbers))


async def measure(pair: ClusterPair, directory: Path, arguments: argparse.Namespace) -> None:
    """Publish a tail and what conflicts with it, and list it."""
    addresses = {site: pair.address(site) for site in ("east", "west")}
    sites = {
        site: {"cluster": site, "service_url": each.service_url, "admin_url": each.admin_url}
        for site, each in addresses.items()
    }
    table = {"name": "orders", "sites": [*sites], "namespaces": ["public/default"], "state": str(directory)}
    config = parse_pair_config({"pair": table, **sites})
    payload = b"x" * arguments.bytes
    await publish(addresses["east"].service_url, arguments.messages, arguments.batch, payload, arguments.keys)
    await publish(addresses["west"].service_url, arguments.keys, arguments.batch, payload, arguments.keys)
    east, west = (SiteAccess.of(config, site) for site in sites)
    begun, cpu = time.perf_counter(), time.thread_time()
    summary = await list_tail(east, west, Incident(2, "east", "west", (LastCopy(TOPIC),)), directory)
    seconds, cpu = time.perf_counter() - begun, time.thread_time() - cpu
    await east.close()
    await west.close()
    assert (summary["messages"], summary["conflicts"]) == (arguments.messages, arguments.keys), summary
    print(f"{arguments.messages} messages, {arguments.batch} per batch: {arguments.messages / seconds:,.0f} messages/s")
    limit = arguments.messages / cpu
    print(f"{seconds:.2f} s, of which the command computes {cpu:.2f} s: at most {limit:,.0f} messages/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--keys", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, ClusterPair(Path(directory)) as pair:
        (state := Path(directory) / "state").mkdir()
        asyncio.run(measure(pair, state, arguments))


if __name__ == "__main__":
    main()
