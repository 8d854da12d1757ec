"""Brokers stop in order, and bundles are unloaded and split, under load: nobody waits long, nothing is read twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from interpulse.client import AdminClient, Client
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from tests.support.shared_brokers import SharedBrokers, shared_brokers
from tests.support.waiting import eventually

NAMESPACE = "public/default"
TOPICS = [f"persistent://{NAMESPACE}/load-{number}" for number in range(8)]
SUBSCRIPTION = "s"
TICK_SECONDS = 0.01
TICKS_MAX = 500
"""So many of them are the five seconds that no publish may take. A machine that is busy with other things has fewer of
them in five seconds, never more."""


@dataclass
class Load:
    """Producers and consumers, and what happened to their messages."""

    brokers: SharedBrokers
    ticks: int = 0
    slowest: int = 0
    """The ticks that a publish took."""
    acknowledged: dict[str, list[int]] = field(default_factory=lambda: {topic: [] for topic in TOPICS})
    """What producers got receipts for."""
    received: dict[str, dict[int, Position]] = field(default_factory=lambda: {topic: {} for topic in TOPICS})
    settled: dict[str, set[int]] = field(default_factory=lambda: {topic: set() for topic in TOPICS})
    """What a broker knew to be acknowledged by the consumer before it gave anything away."""
    again: list[str] = field(default_factory=list)
    """What came again of that."""

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.ticks += 1

    async def publish(self, client: Client, topic: str) -> None:
        producer = await client.create_producer(topic, send_timeout_ms=60_000, batching_enabled=False)
        for number in range(1_000_000):
            begun = self.ticks
            await producer.send(b"%d" % number)
            self.slowest = max(self.slowest, self.ticks - begun)
            self.acknowledged[topic].append(number)
            await asyncio.sleep(0.005)

    async def consume(self, client: Client, topic: str) -> None:
        consumer = await client.subscribe(topic, SUBSCRIPTION, initial_position="earliest")
        while True:
            message = await consumer.receive()
            number = int(message.content or b"")
            if number in self.settled[topic]:
                self.again.append(f"{topic} {number}")
            self.received[topic][number] = message.id.position
            consumer.acknowledge(message)

    def settle(self) -> None:
        """Note what is acknowledged by now."""
        for topic, received in self.received.items():
            for broker in self.brokers.brokers:
                loaded = broker.app.registry.get(TopicName.parse(topic))
                if (
                    loaded is not None
                    and SUBSCRIPTION in loaded.subscription_names()
                    and broker.ownership.holds(loaded.name)
                ):
                    mark = loaded.mark_delete_position(SUBSCRIPTION)
                    self.settled[topic] = {number for number, position in received.items() if position <= mark}

    async def goes_on(self) -> None:
        """Return when every topic took more, and its consumer got more acknowledged."""
        before = {topic: (len(self.acknowledged[topic]), len(self.settled[topic])) for topic in TOPICS}

        def is_more() -> bool:
            self.settle()
            return all(
                len(self.acknowledged[topic]) > sent + 3 and len(self.settled[topic]) > settled
                for topic, (sent, settled) in before.items()
            )

        await eventually(is_more)

    async def check(self, client: Client) -> None:
        """Each topic has what was acknowledged to its producer, in order, and its consumer got all of it so."""
        assert self.again == []
        assert self.slowest < TICKS_MAX
        for topic, acknowledged in self.acknowledged.items():
            reader = await client.create_reader(topic, start=EARLIEST)
            found = []
            while await reader.has_message_available():
                found.append(int((await reader.read_next()).content or b""))
            assert list(dict.fromkeys(found)) == list(range(found[-1] + 1))
            assert set(acknowledged) <= set(found)
            assert list(self.received[topic]) == list(range(len(self.received[topic])))
            assert set(acknowledged) <= set(self.received[topic])


@pytest.fixture
async def brokers() -> AsyncIterator[SharedBrokers]:
    """Three of them, and a fourth that clients ask first, which nothing happens to."""
    async with shared_brokers(4) as started:
        yield started


@asynccontextmanager
async def load(brokers: SharedBrokers) -> AsyncIterator[Load]:
    """Within the block there is some, on topics of all brokers; behind it everything is checked."""
    running = Load(brokers)
    async with AdminClient(brokers[0].web_url) as admin, Client(brokers[0].service_url) as client:
        for topic in TOPICS:
            await admin.topics.create_subscription(topic, "keeps everything")
        await brokers.spread(TOPICS)
        tasks = [asyncio.create_task(running.tick())]
        tasks += [asyncio.create_task(running.consume(client, topic)) for topic in TOPICS]
        publishing = [asyncio.create_task(running.publish(client, topic)) for topic in TOPICS]
        try:
            await running.goes_on()
            yield running
            await running.goes_on()
            for task in publishing:
                task.cancel()
            await asyncio.wait(publishing)
            await eventually(lambda: all(set(running.acknowledged[t]) <= set(running.received[t]) for t in TOPICS))
            await running.check(client)
        finally:
            for task in (*publishing, *tasks):
                task.cancel()
            await asyncio.wait([*publishing, *tasks])


async def test_brokers_when_restarted_one_after_the_other_then_no_publish_waits_long_and_nothing_comes_again(
    brokers: SharedBrokers,
) -> None:
    """Cluster 17, row 23."""
    async with load(brokers) as running:
        for broker in brokers.brokers[1:]:
            await broker.app.stop()
            brokers.brokers.remove(broker)
            await brokers.start()
            await running.goes_on()


Act = Callable[[AdminClient, str], Awaitable[None]]


@pytest.mark.parametrize(
    "act",
    [
        lambda admin, bundle: admin.namespaces.unload(NAMESPACE, bundle=bundle),
        lambda admin, bundle: admin.namespaces.split_bundle(NAMESPACE, bundle),
        lambda admin, bundle: admin.namespaces.split_bundle(NAMESPACE, bundle, unload=True),
    ],
    ids=["unload", "split", "split with unload"],
)
async def test_bundles_when_unloaded_or_split_then_no_publish_waits_long_and_nothing_comes_again(
    brokers: SharedBrokers, act: Act
) -> None:
    """Cluster 17, row 24."""
    async with load(brokers) as running, AdminClient(brokers[0].web_url) as admin:
        for bundle in dict.fromkeys([str(await brokers[0].app.lookups.bundle(TopicName.parse(t))) for t in TOPICS]):
            await act(admin, bundle)
            await running.goes_on()
