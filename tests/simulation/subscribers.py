"""Programs of consumers that come and go, and treat their messages as each subscription wants it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from interpulse.client.client import Client
from interpulse.client.consuming.consumer import Consumer
from interpulse.client.consuming.consumer_config import DeadLetterPolicy
from interpulse.client.messages import Message
from interpulse.model.errors import OperationTimeout, PulsarError
from interpulse.model.ids import MessageId
from tests.simulation.judge import Acknowledged, Delivery, Finding
from tests.simulation.nodes import Node
from tests.simulation.subscription_judge import Consumption, Holdings, Received, is_poison, key_of
from tests.simulation.workload import CLIENT_OPTIONS, until_done
from tests.simulation.world import World

NACK_DELAY_MS: Final = 300
_DELIVERIES_MAX: Final = 4
"""Deliveries of a message after which an application acknowledges it."""
_LIFE_SECONDS: Final = 2.0
"""The mean time between the coming and the going of a consumer."""
LATE_SECONDS: Final = 25.0
"""The time after which a client knows that its consumer was lost, pauses of its machine included."""


@dataclass(frozen=True, slots=True)
class Habits:
    """The application of one subscription: the share of messages that it treats in each way."""

    kind: str
    """The type of the subscription."""
    nacked: float = 0.0
    held: float = 0.0
    """Messages that are neither acknowledged nor returned until their consumer closes."""
    cumulative: float = 0.0
    batch_indexes: bool = False
    redeliveries_max: int = 0
    """Redeliveries before a message is a dead letter; 0 = without end."""

    def options(self) -> dict[str, Any]:
        """Return the options of its consumers."""
        policy = None
        if self.redeliveries_max:
            policy = DeadLetterPolicy(self.redeliveries_max, initial_subscription_name="kept")
        return {
            "subscription_type": self.kind,
            "initial_position": "earliest",
            "receiver_queue_size": 20,
            "nack_delay_ms": NACK_DELAY_MS,
            "batch_index_ack_enabled": self.batch_indexes,
            "dead_letter_policy": policy,
        }


class Subscribers:
    """The consumers of one topic, on all nodes."""

    def __init__(
        self,
        world: World,
        service_url: str,
        topic: str,
        habits: Mapping[str, Habits],
        consumption: Consumption,
        *,
        holding: bool,
    ) -> None:
        """``habits`` are those of each subscription, by name."""
        self.coming_and_going = True
        """False = all consumers stay."""
        self.holding = holding
        """False = consumers that stay finish what they hold. Those of keys always do, because others wait for them."""
        self.held: Counter[tuple[str, bytes]] = Counter()
        """Messages that applications hold, by subscription."""
        self.world = world
        self.topic = topic
        self.consumption = consumption
        self.holdings = Holdings()
        self.chance = world.stream(f"subscribers/{topic}")
        self._service_url = service_url
        self._habits = habits
        self._attendance: Counter[str] = Counter()

    async def consume(self, node: Node) -> None:
        """Consume all subscriptions, for ever."""
        async with Client(self._service_url, **CLIENT_OPTIONS) as client:
            await asyncio.gather(
                *(self._come_and_go(node, client, name, habits) for name, habits in self._habits.items())
            )

    async def seek(self, node: Node) -> None:
        """Seek to stored messages, one after the other, and note what comes next."""
        async with Client(self._service_url, **CLIENT_OPTIONS) as client:
            consumer = await until_done(lambda: client.subscribe(self.topic, "seeking", initial_position="earliest"))
            while self.coming_and_going:
                await asyncio.sleep(self.chance.uniform(0, 1))
                stored = [each for each in self.consumption.history.receipts.values() if each.ledger >= 0]
                if stored:
                    await self._seek_to(consumer, self.chance.choice(stored))

    async def _seek_to(self, consumer: Consumer, target: MessageId) -> None:
        try:
            await consumer.seek(target)
        except PulsarError:
            return  # it may be done or not
        seek = [target]
        self.consumption.seeks.append(seek)
        registered = _registration(consumer)
        for _ in range(self.chance.choice([1, 5])):
            try:
                message = await consumer.receive(timeout_ms=5_000)
            except OperationTimeout:
                return
            if len(seek) > 1 and _registration(consumer) != registered:
                return
            registered = _registration(consumer)
            seek.append(message.id)
            consumer.acknowledge(message)

    def _attend(self, name: str, change: int) -> None:
        before, now = self._attendance[name], self._attendance[name] + change
        self._attendance[name] = now
        if not before or not now:
            self.consumption.absences[name].append(self.world.seconds)

    async def _come_and_go(self, node: Node, client: Client, name: str, habits: Habits) -> None:
        while True:
            consumer = await until_done(lambda: client.subscribe(self.topic, name, **habits.options()))
            self._attend(name, 1)
            life = self.world.seconds + self.chance.expovariate(1 / _LIFE_SECONDS)
            await _Application(self, node, consumer, name, habits, node.life).work(life)
            self._attend(name, -1)
            self.consumption.closings[name].append(self.world.seconds)
            await consumer.close()
            self.consumption.closings[name].append(self.world.seconds)
            await asyncio.sleep(self.chance.uniform(0, 0.5))


@dataclass(eq=False)
class _Application:
    """The work with one consumer."""

    owner: Subscribers
    node: Node
    consumer: Consumer
    name: str
    habits: Habits
    life: int
    """The life of the node in which it began."""
    lease: float | None = None
    """The registration of the consumer that the last message came by."""
    held: list[Message] = field(default_factory=list)
    waiting: dict[MessageId, Message] = field(default_factory=dict)
    """Received and not acknowledged."""
    indexes: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    """Acknowledged messages of each batch."""

    async def work(self, until: float) -> None:
        """Receive and treat messages until this time; for ever once consumers no longer go."""
        owner = self.owner
        while self.owner.world.seconds < until or not owner.coming_and_going:
            try:
                message = await self.consumer.receive(timeout_ms=500)
            except OperationTimeout:
                pass
            except PulsarError:
                break
            else:
                self._receive(message)
                await asyncio.sleep(owner.chance.uniform(0, 0.004))
                self._treat(message)
            if not self._may_hold:
                for message in self._put_down():
                    self._acknowledge(message)
        self._put_down()
        owner.holdings.forget(self)

    @property
    def _may_hold(self) -> bool:
        return self.owner.coming_and_going or (self.owner.holding and self.habits.kind == "shared")

    def _put_down(self) -> list[Message]:
        held, self.held = self.held, []
        self.owner.held.subtract((self.name, message.content or b"") for message in held)
        return held

    def _receive(self, message: Message) -> None:
        consumption, at = self.owner.consumption, self.owner.world.seconds
        received = Received.of(at, self.name, message)
        consumption.received.append(received)
        consumption.history.deliveries.append(Delivery(at, self.name, message.id, received.payload))
        consumption.counts[self.name, received.payload] += 1
        self.waiting[message.id] = message
        if self.habits.kind == "key-shared" and not received.batch_size:
            self._take_key(received)

    def _take_key(self, received: Received) -> None:
        key, owner, lease = key_of(received.payload), self.owner, _registration(self.consumer)
        if lease != self.lease:
            self.lease = lease
            owner.holdings.forget(self)  # the broker has taken back what came by an earlier registration
        for other in owner.holdings.take(self, self.name, key, received.id.position):
            assert isinstance(other, _Application)

            def check(other: _Application = other, lease: float | None = other.lease) -> None:
                if lease is not None and other.registered == lease:
                    text = f"{received.payload!r} came to {self.name} at {received.at:.3f}"
                    text += f" while another consumer held messages of the key {key}"
                    owner.consumption.findings.append(Finding("S4", text, received.payload))

            owner.world.after(LATE_SECONDS, check)

    @property
    def registered(self) -> float | None:
        """The registration of the consumer; None if there is none, as far as its client knows."""
        return _registration(self.consumer) if self.node.alive and self.node.life == self.life else None

    def _treat(self, message: Message) -> None:
        chance, habits, consumption = self.owner.chance.random(), self.habits, self.owner.consumption
        payload = message.content or b""
        if habits.redeliveries_max and is_poison(payload):
            if message.redelivery_count >= habits.redeliveries_max:
                consumption.finished[self.name].add(payload)
            self._return(message)
        elif chance < habits.held:
            if self._may_hold:
                self.held.append(message)
                self.owner.held[self.name, payload] += 1
            else:
                self._acknowledge(message)
        elif chance < habits.held + habits.nacked and consumption.counts[self.name, payload] < _DELIVERIES_MAX:
            self._return(message)
        elif chance > 1 - habits.cumulative:
            self._acknowledge_cumulative(message)
        else:
            self._acknowledge(message)

    def _return(self, message: Message) -> None:
        self.consumer.negative_acknowledge(message)
        self._release(message)

    def _acknowledge(self, message: Message) -> None:
        self.consumer.acknowledge(message)
        self._release(message)
        self._finish([message])

    def _acknowledge_cumulative(self, message: Message) -> None:
        self.consumer.acknowledge_cumulative(message)
        upto = self.owner.consumption.upto
        upto[self.name] = max(upto.get(self.name, message.id), message.id)
        covered = [waiting for id_, waiting in self.waiting.items() if id_ <= message.id]
        for each in covered:
            self._release(each)
        self._finish(covered)

    def _release(self, message: Message) -> None:
        self.waiting.pop(message.id, None)
        if self.habits.kind == "key-shared":
            self.owner.holdings.release(self, self.name, key_of(message.content or b""), message.id.position)

    def _finish(self, messages: Sequence[Message]) -> None:
        """Note acknowledgements. Without batch indexes, those of a batch count once it is complete."""
        consumption, at = self.owner.consumption, self.owner.world.seconds
        for message in messages:
            acknowledged = Acknowledged(at, self.name, message.content or b"")
            consumption.finished[self.name].add(acknowledged.payload)
            if message.batch_size <= 1:
                consumption.history.acknowledged.append(acknowledged)
            elif self.habits.batch_indexes:
                consumption.indexes.append(acknowledged)
            else:
                self._finish_in_batch(message, acknowledged)

    def _finish_in_batch(self, message: Message, acknowledged: Acknowledged) -> None:
        indexes = self.indexes.setdefault(message.id.position, set())
        indexes.add(message.id.batch_index)
        if len(indexes) == message.batch_size:
            stored = self.owner.consumption.received
            of_batch = {each.payload for each in stored if each.id.position == message.id.position}
            history = self.owner.consumption.history
            history.acknowledged += [acknowledged._replace(payload=payload) for payload in sorted(of_batch)]


def _registration(consumer: Consumer) -> float | None:
    """Return the moment at which the consumer was registered at its broker; None if the client knows that it is not."""
    (part,) = consumer.parts
    return None if part._handler.connection is None else part._handler._connected_at


async def read_all(service_url: str, topic: str, read: list[Message], **options: Any) -> None:
    """Read a topic from its beginning to its end."""
    async with Client(service_url, **CLIENT_OPTIONS) as client:
        reader = await until_done(lambda: client.create_reader(topic, **options))
        while await reader.has_message_available():
            read.append(await reader.read_next())
