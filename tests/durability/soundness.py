"""Many producers and consumers on many topics, while connections break and the broker goes down and comes back.

`Ledger` writes down what must hold and judges every delivery at once; `World` lets everything happen, from one seed.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from interpulse.client import Client, Consumer, Message, Producer
from interpulse.model.errors import PulsarError
from interpulse.model.ids import MessageId
from interpulse.model.names import TopicName
from tests.support.standalone_process import StandaloneProcess

TYPES = ("exclusive", "shared", "failover", "key-shared")
KEYS_PER_PRODUCER = 5
STORED_WITHIN_SECONDS = 15  # acknowledgements are stored every second; the rest is for a busy machine


@dataclass(eq=False)
class Peer:
    """One client. Every time its connections end it has forgotten what it held."""

    client: Client
    generation: int = 0
    ended_at: list[float] = field(default_factory=list)

    def connections_ended(self) -> None:
        self.generation += 1
        self.ended_at.append(time.monotonic())

    def forgot_since(self, moment: float) -> bool:
        """Whether an acknowledgement of that moment may have been lost on its way."""
        return any(moment <= ended <= moment + STORED_WITHIN_SECONDS for ended in self.ended_at)


@dataclass(frozen=True)
class Number:
    """One message: its producer and its number in the order of that producer."""

    producer: str
    number: int

    def __str__(self) -> str:
        return f"{self.producer} {self.number}"

    @property
    def key(self) -> str:
        return f"{self.producer}-{self.number % KEYS_PER_PRODUCER}"

    @classmethod
    def of(cls, message: Message) -> Number:
        producer, number = (message.content or b"").decode().split()
        return cls(producer, int(number))


class Ledger:
    """What was stored, delivered and acknowledged, and every law that was broken."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[Number, MessageId]] = defaultdict(dict)
        self.subscriptions: dict[str, set[str]] = defaultdict(set)
        self.broken: list[str] = []
        self.repeats = 0
        self._delivered: dict[tuple[str, str], set[Number]] = defaultdict(set)
        self._newest: dict[tuple[str, str, str], int] = {}
        self._held: dict[tuple[str, str, str], tuple[object, Peer, int]] = {}
        self._acknowledged: dict[tuple[str, str, Number], tuple[float, Peer]] = {}

    def missing(self) -> dict[tuple[str, str], int]:
        """How many stored messages each subscription has not seen."""
        counts = {
            (topic, name): len(self.stored[topic].keys() - self._delivered[topic, name])
            for topic, names in self.subscriptions.items()
            for name in names
        }
        return {where: count for where, count in counts.items() if count}

    def delivered(
        self, topic: str, subscription: str, kind: str, message: Message, consumer: object, peer: Peer
    ) -> None:
        """Judge one delivery."""
        what = Number.of(message)
        where = f"{topic} {subscription} {what}"
        delivered = self._delivered[topic, subscription]
        if what in delivered:
            self.repeats += 1
            self._judge_repeat(where, topic, subscription, what, message)
        elif kind != "shared":
            lane = (topic, subscription, what.key if kind == "key-shared" else what.producer)
            if self._newest.get(lane, -1) > what.number:
                self.broken.append(f"{where} comes first after {self._newest[lane]}")
            self._newest[lane] = what.number
        delivered.add(what)
        if kind == "key-shared":
            self._judge_holder(where, (topic, subscription, what.key), consumer, peer)

    def acknowledged(self, topic: str, subscription: str, message: Message, peer: Peer, generation: int) -> None:
        """The application is done with a message that came in this generation, and about to say so."""
        what = Number.of(message)
        if peer.generation == generation:  # else it is on its way to a consumer already
            self._acknowledged[topic, subscription, what] = (time.monotonic(), peer)
            self._held.pop((topic, subscription, what.key), None)

    def _judge_repeat(self, where: str, topic: str, subscription: str, what: Number, message: Message) -> None:
        """Only what was not acknowledged comes again; of a batch, all of it as long as one message waits."""
        moment, peer = self._acknowledged.get((topic, subscription, what), (None, None))
        if moment is not None and peer is not None and not message.batch_size and not peer.forgot_since(moment):
            self.broken.append(f"{where} comes again {time.monotonic() - moment:.1f} s after it was acknowledged")

    def _judge_holder(self, where: str, lane: tuple[str, str, str], consumer: object, peer: Peer) -> None:
        holder = self._held.get(lane)
        if holder is not None and holder[0] is not consumer and holder[1].generation == holder[2]:
            self.broken.append(f"{where}: its key is unacknowledged at two consumers")
        self._held[lane] = (consumer, peer, peer.generation)


class World:
    """Topics, clients and a broker; `run` lets all of them live for some time."""

    def __init__(self, directory: Path, port: str, seed: int, *, topics: int, per_topic: int, peers: int) -> None:
        self.ledger = Ledger()
        self.random = random.Random(seed)
        self.restarts = self.disconnections = self.seeks = 0
        self._directory = directory
        self._arguments = ("--port", port, "--set", "brokerDeduplicationEnabled=true")
        self._topics = [f"persistent://public/default/t{number}" for number in range(topics)]
        self._per_topic = per_topic
        self._peer_count = peers
        self._working: list[asyncio.Task[None]] = []
        self._sending = True

    async def __aenter__(self) -> World:
        self.broker = await asyncio.to_thread(StandaloneProcess, self._directory, *self._arguments)
        url = self.broker.service_url
        self.peers = [Peer(Client(url, operation_timeout_ms=60_000)) for _ in range(self._peer_count)]
        for number, topic in enumerate(self._topics):
            await self._populate(topic, TYPES[number % len(TYPES)], seekable=number % 5 == 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)
        await asyncio.gather(*(peer.client.close() for peer in self.peers), return_exceptions=True)
        await asyncio.to_thread(self.broker.stop)

    async def _populate(self, topic: str, kind: str, *, seekable: bool) -> None:
        for number in range(self._per_topic):
            name = f"s{number}" if kind == "exclusive" else "s"
            self.ledger.subscriptions[topic].add(name)
            peer = self._some_peer()
            self._work(self._consume(peer, await self._subscribe(peer, topic, name, kind), topic, name, kind))
        for number in range(self._per_topic):
            producer = await self._some_peer().client.create_producer(
                topic,
                name=f"p{number}",
                batching_enabled=kind != "key-shared" and number % 2 == 0,
                send_timeout_ms=0,
            )
            self._work(self._produce(topic, producer))
        if seekable:
            peer = self._some_peer()
            self._work(self._seek(peer, topic, await self._subscribe(peer, topic, "seeking", "exclusive")))

    async def _subscribe(self, peer: Peer, topic: str, name: str, kind: str) -> Consumer:
        return await peer.client.subscribe(topic, name, subscription_type=kind, receiver_queue_size=20)

    def _some_peer(self) -> Peer:
        return self.random.choice(self.peers)

    def _work(self, work: Awaitable[None]) -> None:
        self._working.append(asyncio.ensure_future(work))

    # --- what clients do

    async def _produce(self, topic: str, producer: Producer) -> None:
        number = 0
        while self._sending:
            what = Number(producer.name, number)
            self.ledger.stored[topic][what] = await producer.send(str(what), key=what.key)
            number += 1
            await asyncio.sleep(self.random.uniform(0, 0.4))

    async def _consume(self, peer: Peer, consumer: Consumer, topic: str, name: str, kind: str) -> None:
        async for message in consumer:
            generation = peer.generation
            self.ledger.delivered(topic, name, kind, message, consumer, peer)
            await asyncio.sleep(self.random.uniform(0, 0.005))  # the work that messages are there for
            self.ledger.acknowledged(topic, name, message, peer, generation)
            consumer.acknowledge(message)

    async def _seek(self, peer: Peer, topic: str, consumer: Consumer) -> None:
        """The next message after a seek is the one it named, unless a connection ended in between."""
        while self._sending:
            await asyncio.sleep(self.random.uniform(0, 1))
            # A receipt for what was stored before, and is dropped as a repeat, has no position.
            stored = [each for each in self.ledger.stored[topic].values() if each.ledger >= 0]
            if stored and consumer.is_connected:
                await self._seek_to(self.random.choice(stored), peer, topic, consumer)

    async def _seek_to(self, target: MessageId, peer: Peer, topic: str, consumer: Consumer) -> None:
        generation = peer.generation
        try:
            await consumer.seek(target)
        except PulsarError:
            return  # the connection or the topic went away: it may have been done or not
        message = await consumer.receive()
        consumer.acknowledge(message)
        self.seeks += 1
        if peer.generation == generation and message.id != target:
            self.ledger.broken.append(f"{topic}: seek to {target} is followed by {message.id}")

    # --- what happens to them

    async def disconnect_one(self) -> None:
        """Break a connection in the middle of whatever it does."""
        peer = self._some_peer()
        connection = await peer.client.session.connect(TopicName.parse(self._topics[0]))
        connection.close()
        peer.connections_ended()
        self.disconnections += 1
        await connection.closed()

    async def restart_broker(self, end: Callable[[StandaloneProcess], object]) -> None:
        """Let the broker go by ``end``, and come back with the same data."""
        name = TopicName.parse(self._topics[0])
        connections = [await peer.client.session.connect(name) for peer in self.peers]
        await asyncio.to_thread(end, self.broker)
        await asyncio.gather(*(connection.closed() for connection in connections))
        for peer in self.peers:
            peer.connections_ended()
        self.broker = await asyncio.to_thread(StandaloneProcess, self._directory, *self._arguments)
        self.restarts += 1

    async def disturb(self, seconds: float) -> None:
        """Break connections at random for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                await self.disconnect_one()
            except PulsarError:
                continue  # it has no connection now
            await asyncio.sleep(self.random.uniform(0, 1))
            self._check_workers()

    async def settle(self, seconds_max: float) -> None:
        """Let producers end, and consumers take what is left."""
        self._sending = False
        until = time.monotonic() + seconds_max
        while self.ledger.missing() and time.monotonic() < until:
            await asyncio.sleep(0.2)
            self._check_workers()

    def _check_workers(self) -> None:
        """Raise what ended one of them too early."""
        for task in self._working:
            if task.done() and not task.cancelled():
                task.result()

    def broker_memory_mb(self) -> float:
        """Resident memory of the broker."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.broker.pid}/status").read_text())
        assert found is not None
        return int(found[1]) / 1024
