"""A pair of clusters that copies by itself, and loses its sites."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from interpulse.client import Client
from interpulse.testing import ClusterPair
from tests.support.waiting import SECONDS_MAX

TOPIC = "persistent://public/default/orders"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[ClusterPair]:
    with ClusterPair(tmp_path, {"brokerDeduplicationEnabled": True}, replicates=True) as pair:
        pair.east.admin.topics.create(TOPIC)
        for broker in pair.brokers.values():
            broker.admin.namespaces.set_replication_clusters("public/default", ["east", "west"])
        yield pair


async def publish(pair: ClusterPair, site: str, *values: str) -> None:
    async with Client(pair.brokers[site].service_url) as client, await client.create_producer(TOPIC) as producer:
        for value in values:
            await producer.send(value)


async def read(pair: ClusterPair, site: str, count: int) -> list[str]:
    async with asyncio.timeout(SECONDS_MAX), Client(pair.brokers[site].service_url) as client:
        reader = await client.create_reader(TOPIC)
        return [((await reader.read_next()).content or b"").decode() for _ in range(count)]


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not await condition():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.02)


async def in_thread(work: Callable[[str], None], site: str) -> None:
    await asyncio.to_thread(work, site)


async def test_messages_when_published_on_either_site_then_on_both(pair: ClusterPair) -> None:
    await publish(pair, "east", "1", "2")
    assert await read(pair, "west", 2) == ["1", "2"]
    await publish(pair, "west", "3")
    assert await read(pair, "east", 3) == ["1", "2", "3"]


async def test_acknowledgements_when_given_on_one_site_then_on_both(pair: ClusterPair) -> None:
    async with Client(pair.east.service_url) as client:
        consumer = await client.subscribe(TOPIC, "billing", replicate_subscription_state=True)
        await publish(pair, "east", "1", "2", "3")
        for _ in range(2):
            consumer.acknowledge(await consumer.receive())
        await consumer.close()
    async with pair.address("west").admin() as admin:

        async def waits() -> bool:
            shown = (await admin.topics.stats(TOPIC))["subscriptions"]
            return "billing" in shown and shown["billing"]["msgBacklog"] == 1

        await until(waits)


async def test_status_when_copied_then_replicating_without_lag(pair: ClusterPair) -> None:
    await publish(pair, "east", "1")
    async with pair.address("east").admin() as admin:

        async def is_copied() -> bool:
            records = await admin.namespaces.replication_status("public/default")
            return [(record["state"], record["lagEntries"]) for record in records] == [("REPLICATING", 0)]

        await until(is_copied)


async def test_site_when_lost_and_returned_then_copies_go_on_in_order(pair: ClusterPair) -> None:
    await publish(pair, "east", "1")
    assert await read(pair, "west", 1) == ["1"]
    await in_thread(pair.lose, "west")
    await publish(pair, "east", "2", "3")
    await in_thread(pair.return_, "west")
    assert await read(pair, "west", 3) == ["1", "2", "3"]
    await in_thread(pair.lose, "east")
    await publish(pair, "west", "4")
    await in_thread(pair.return_, "east")
    await publish(pair, "east", "5")
    assert await read(pair, "west", 5) == ["1", "2", "3", "4", "5"]
    assert set(await read(pair, "east", 5)) == {"1", "2", "3", "4", "5"}


async def test_site_when_suspended_then_silent_until_it_goes_on(pair: ClusterPair) -> None:
    async with Client(pair.east.service_url) as client, await client.create_producer(TOPIC) as producer:
        await producer.send("1")
        pair.suspend("east")
        sending = asyncio.create_task(producer.send("2"))
        async with Client(pair.east.service_url) as other:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await other.create_producer(TOPIC)
        assert not sending.done()
        pair.resume("east")
        await sending
    assert await read(pair, "west", 2) == ["1", "2"]


async def test_copying_when_stopped_then_nothing_arrives_until_it_starts_again(pair: ClusterPair) -> None:
    await publish(pair, "east", "1")
    assert await read(pair, "west", 1) == ["1"]
    await in_thread(pair.stop_copying, "east")
    await publish(pair, "east", "2")
    await publish(pair, "west", "3")
    assert await read(pair, "west", 2) == ["1", "3"]
    await in_thread(pair.start_copying, "east")
    assert await read(pair, "west", 3) == ["1", "3", "2"]


def test_pair_when_a_site_is_unknown_or_nothing_is_copied_then_refused(tmp_path: Path) -> None:
    with ClusterPair(tmp_path) as pair:
        with pytest.raises(ValueError, match="'north' is no cluster of the pair: use east or west"):
            pair.lose("north")
        with pytest.raises(ValueError, match="create it with replicates=True"):
            pair.stop_copying("east")
