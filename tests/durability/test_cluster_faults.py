"""Three brokers of one cluster under load while bundles move and sessions end at random.

A hundred faults by chance, and in `make soak` a thousand. Each may come before the one before is over. Afterwards every
topic has what was acknowledged to its producer, in order, its subscription received all of it in order, and every
broker knows the policies that were set last.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.client import AdminClient, Client
from interpulse.model.errors import PulsarError
from interpulse.model.ids import EARLIEST
from interpulse.model.names import TopicName
from tests.support.shared_brokers import SharedBroker, SharedBrokers, shared_brokers
from tests.support.soak import soak
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

log = logging.getLogger(__name__)

SEED = int(os.environ.get("CLUSTER_SEED") or time.time_ns() % 1_000_000)
FAULTS = soak(1000, otherwise=100)
BROKERS = 3
NAMESPACE = "public/default"
TOPICS = [f"persistent://{NAMESPACE}/faults-{number}" for number in range(6)]
AWAY_SECONDS_MAX = 0.3
"""For so long a broker is cut off, or is not there."""
IN_A_ROW = 0.3
"""How often a fault comes before every topic went on."""
BUNDLES_MAX = 32
OTHERS = 1_000_000
"""Messages above are of other producers, whose order among all is not known."""


@dataclass
class Game:
    """The brokers, and what happened to the messages."""

    brokers: SharedBrokers
    chance: random.Random
    played: Counter[str] = field(default_factory=Counter)
    acknowledged: dict[str, list[int]] = field(default_factory=lambda: {topic: [] for topic in TOPICS})
    others: int = OTHERS
    """The newest message of a producer that came while a broker was a zombie."""
    received: dict[str, list[int]] = field(default_factory=lambda: {topic: [] for topic in TOPICS})
    policies: dict[str, set[int | None]] = field(default_factory=lambda: {topic: {None} for topic in TOPICS})
    """The values that ``max_consumers`` of a topic may have."""
    away: set[str] = field(default_factory=set)
    """The ids of brokers that cannot be played with now."""
    returning: set[asyncio.Task[None]] = field(default_factory=set)

    def present(self) -> SharedBroker:
        """One of those that serve."""
        return self.chance.choice([each for each in self.brokers.brokers if each.id not in self.away])

    async def play(self) -> None:
        """One fault."""
        fault = self.chance.choice(
            [
                self.move,
                self.unload,
                self.cut_off,
                self.expire,
                self.expire_unseen,
                self.zombie,
                self.stop,
                self.kill,
                self.split,
                self.set_policy,
            ]
        )
        self.played[fault.__name__] += 1
        await eventually(lambda: len(self.brokers.brokers) - len(self.away) > 1)
        await fault()

    # --- faults

    async def move(self) -> None:
        """A bundle goes to a broker by name."""
        to = self.present()
        await self._administer(
            lambda admin, bundle: admin.namespaces.unload(NAMESPACE, bundle=bundle, destination_broker=to.id)
        )

    async def unload(self) -> None:
        """A bundle goes wherever it is wanted next."""
        await self._administer(lambda admin, bundle: admin.namespaces.unload(NAMESPACE, bundle=bundle))

    async def split(self) -> None:
        """A bundle becomes two."""
        async with AdminClient(self.present().web_url) as admin:
            if (await admin.namespaces.bundles(NAMESPACE))["numBundles"] >= BUNDLES_MAX:
                return
        await self._administer(lambda admin, bundle: admin.namespaces.split_bundle(NAMESPACE, bundle))

    async def cut_off(self) -> None:
        """A broker loses sight of the metadata, and finds its session again."""
        self._return_later(broker := self._leaving(), broker.store.reconnect)
        broker.store.cut_off()

    async def zombie(self) -> None:
        """A broker believes in its session after it ended, while others are asked for its topics."""

        def wake() -> None:
            broker.store.cut_off()
            broker.store.reconnect()

        broker = self._leaving()
        topics = [topic for topic in TOPICS if broker.app.registry.get(TopicName.parse(topic))]
        broker.store.stand_still()
        broker.store.expire_unseen()
        async with Client(self.present().service_url, backoff_max_ms=100) as client:
            for topic in topics:
                producer = await client.create_producer(topic)
                self.others += 1
                await producer.send(b"%d" % self.others)
                self.acknowledged[topic].append(self.others)
        self._return_later(broker, wake)

    async def expire_unseen(self) -> None:
        """A broker is cut off past its session."""
        self._return_later(broker := self._leaving(), broker.store.reconnect)
        broker.store.cut_off()
        broker.store.expire_unseen()

    async def expire(self) -> None:
        """A broker learns at once that its session is over."""
        self.present().store.expire_session()

    async def stop(self) -> None:
        """A broker gives its bundles away and ends; another one comes."""
        broker = self._leaving()
        self._remove(broker)
        await broker.app.stop()
        await self.brokers.start()

    async def kill(self) -> None:
        """A broker writes nothing more, and its session is ended by the servers; another one comes."""
        broker = self._leaving()
        self._remove(broker)
        broker.store.cut_off()
        broker.store.expire_unseen()
        await broker.app.stop()
        await self.brokers.start()

    def _leaving(self) -> SharedBroker:
        broker = self.present()
        self.away.add(broker.id)
        return broker

    def _remove(self, broker: SharedBroker) -> None:
        self.brokers.brokers.remove(broker)
        self.away.remove(broker.id)

    def _return_later(self, broker: SharedBroker, reconnect: Callable[[], None]) -> None:
        seconds = self.chance.uniform(0, AWAY_SECONDS_MAX)

        async def come_back() -> None:
            await asyncio.sleep(seconds)
            reconnect()
            self.away.discard(broker.id)

        task = asyncio.create_task(come_back())
        self.returning.add(task)
        task.add_done_callback(self.returning.discard)

    async def _administer(self, call: Callable[[AdminClient, str], Awaitable[None]]) -> None:
        """A call about the bundle of some topic; a refusal, as while that is on its way, is an answer."""
        broker = self.present()
        bundle = await broker.app.lookups.bundle(TopicName.parse(self.chance.choice(TOPICS)))
        async with AdminClient(broker.web_url) as admin:
            try:
                await call(admin, str(bundle))
            except PulsarError as refusal:
                self.played[f"refused: {type(refusal).__name__}"] += 1

    async def set_policy(self) -> None:
        """Of some topic; after a failure it may be set or not."""
        topic, value = self.chance.choice(TOPICS), self.chance.randint(100, 10_000)
        async with AdminClient(self.present().web_url) as admin:
            try:
                await admin.topic_policies.set(topic, "max_consumers", value)
                self.policies[topic] = {value}
            except PulsarError as failure:
                self.policies[topic].add(value)
                self.played[f"failed: {type(failure).__name__}"] += 1

    async def check_policies(self, broker: SharedBroker) -> None:
        """The broker knows what was set last, as soon as it was told."""
        async with AdminClient(broker.web_url) as admin, asyncio.timeout(60):
            for topic in TOPICS:
                while await admin.topic_policies.get(topic, "max_consumers") not in self.policies[topic]:
                    log.debug("not told yet topic=%s", topic)

    # --- load

    async def publish(self, client: Client, topic: str) -> None:
        producer = await client.create_producer(topic, send_timeout_ms=120_000)
        for number in range(OTHERS):
            await producer.send(b"%d" % number)
            self.acknowledged[topic].append(number)
            await asyncio.sleep(0.002)

    async def consume(self, client: Client, topic: str) -> None:
        consumer = await client.subscribe(topic, "s", initial_position="earliest")
        while True:
            message = await consumer.receive()
            self.received[topic].append(int(message.content or b""))
            consumer.acknowledge(message)

    async def goes_on(self) -> None:
        """Return when every topic took some more."""
        before = {topic: len(self.acknowledged[topic]) for topic in TOPICS}
        await eventually(lambda: all(len(self.acknowledged[topic]) > before[topic] + 3 for topic in TOPICS))

    @asynccontextmanager
    async def load(self, client: Client) -> AsyncIterator[None]:
        """Producers and consumers within the block; behind it everything was received."""
        publishing = [asyncio.create_task(self.publish(client, topic)) for topic in TOPICS]
        consuming = [asyncio.create_task(self.consume(client, topic)) for topic in TOPICS]
        try:
            await self.goes_on()
            yield
            await self.goes_on()
            for task in publishing:
                task.cancel()
            await asyncio.wait(publishing)
            await eventually(lambda: all(set(self.acknowledged[t]) <= set(self.received[t]) for t in TOPICS))
        finally:
            for task in (*publishing, *consuming):
                task.cancel()
            await asyncio.wait([*publishing, *consuming])


async def stored(client: Client, topic: str) -> list[int]:
    """All messages of a topic, which keeps them for a subscription that acknowledges nothing."""
    reader = await client.create_reader(topic, start=EARLIEST)
    found = []
    while await reader.has_message_available():
        found.append(int((await reader.read_next()).content or b""))
    return found


def in_order(numbers: list[int]) -> bool:
    """Whether the messages of the producer that stays are, leaving out those that came before."""
    first = list(dict.fromkeys(each for each in numbers if each < OTHERS))
    return first == sorted(first)


@pytest.mark.timeout(1200)
async def test_cluster_when_bundles_move_and_sessions_end_at_random_then_nothing_is_lost_and_order_holds() -> None:
    """CLUSTER_SEED plays a game again, as far as the moments of its faults allow."""
    config = BrokerConfig(broker_delete_inactive_topics_enabled=False)
    async with shared_brokers(BROKERS, config) as brokers, AdminClient(brokers[0].web_url) as admin:
        game = Game(brokers, random.Random(SEED))
        for topic in TOPICS:
            await admin.topics.create_subscription(topic, "keeps everything")
        lasting = await brokers.start()  # clients ask this one, which nothing happens to
        brokers.brokers.remove(lasting)
        try:
            async with Client(lasting.service_url, backoff_max_ms=100) as client:
                async with game.load(client):
                    for _ in range(FAULTS):
                        await game.play()
                        if game.chance.random() >= IN_A_ROW:
                            await game.goes_on()
                    await asyncio.gather(*game.returning)
                for broker in (*brokers.brokers, lasting):
                    await game.check_policies(broker)
                log.info("played seed=%d %s", SEED, dict(game.played))
                for topic in TOPICS:
                    found, acknowledged = await stored(client, topic), game.acknowledged[topic]
                    assert in_order(found), f"seed {SEED}: order of {topic}"
                    assert set(acknowledged) <= set(found), f"seed {SEED}: {topic} lost messages"
                    assert in_order(game.received[topic]), f"seed {SEED}: order at the consumer of {topic}"
        finally:
            await lasting.app.stop()
