"""Programs of clients that write a topic, consume it and read it again, with a history for the judge."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from interpulse.client.client import Client
from interpulse.client.messages import OutgoingMessage
from interpulse.model.errors import PulsarError
from tests.simulation.judge import Acknowledged, Delivery, History, Sent
from tests.simulation.nodes import Node
from tests.simulation.world import World

KEEP_ALIVE_MS: Final = 5_000
CLIENT_OPTIONS: Final[Mapping[str, Any]] = {
    "keep_alive_interval_ms": KEEP_ALIVE_MS,
    "backoff_max_ms": 2_000,
    "operation_timeout_ms": 5_000,
    "connect_timeout_ms": 3_000,
}
_SEND_TIMEOUT_MS: Final = 60_000


class Workload:
    """The clients of one topic.

    ``producers`` holds for each name the options of its producer, ``subscriptions`` for each name those of its
    consumer.
    """

    def __init__(
        self,
        world: World,
        service_url: str,
        topic: str,
        producers: Mapping[str, Mapping[str, Any]],
        subscriptions: Mapping[str, Mapping[str, Any]],
        *,
        outgoing: Callable[[Sent], OutgoingMessage] = lambda sent: OutgoingMessage(sent.payload),
    ) -> None:
        """``outgoing`` makes the messages that the producers send."""
        self.history = History(
            subscriptions=tuple(subscriptions),
            ordered={name for name, options in subscriptions.items() if options["subscription_type"] != "shared"},
        )
        self.sending = True
        """False = the producers end when everything is confirmed."""
        self._world = world
        self._service_url = service_url
        self._topic = topic
        self._producers = producers
        self._subscriptions = subscriptions
        self._outgoing = outgoing
        self._chance = world.stream(f"workload/{topic}")
        self._open_producers = len(producers)
        self._delivered: dict[str, set[bytes]] = {name: set() for name in subscriptions}

    @property
    def all_sent(self) -> bool:
        """True once the producers have ended."""
        return not self._open_producers

    def all_delivered(self) -> bool:
        """Return True once the producers have ended, and every confirmed message was delivered everywhere."""
        if not self.all_sent:
            return False
        return all(payloads >= self.history.receipts.keys() for payloads in self._delivered.values())

    async def produce(self, node: Node) -> None:
        """Send with all producers until `sending` ends."""
        async with Client(self._service_url, **CLIENT_OPTIONS) as client:
            await asyncio.gather(*(self._send(client, name, options) for name, options in self._producers.items()))

    async def consume(self, node: Node) -> None:
        """Receive and acknowledge on all subscriptions, for ever."""
        async with Client(self._service_url, **CLIENT_OPTIONS) as client:
            await asyncio.gather(*(self._receive(client, name, each) for name, each in self._subscriptions.items()))

    async def read(self, node: Node) -> None:
        """Read the whole topic into the history."""
        async with Client(self._service_url, **CLIENT_OPTIONS) as client:
            reader = await until_done(lambda: client.create_reader(self._topic))
            while await reader.has_message_available():
                message = await reader.read_next()
                self.history.stored.append((message.id, message.content or b""))

    async def _send(self, client: Client, name: str, options: Mapping[str, Any]) -> None:
        producer = await until_done(
            lambda: client.create_producer(self._topic, name=name, send_timeout_ms=_SEND_TIMEOUT_MS, **options)
        )
        number = 0
        while self.sending:
            await asyncio.sleep(self._chance.uniform(0.001, 0.06))
            for _ in range(self._chance.choice([1, 1, 1, 5])):
                number += 1
                sent = Sent(name, number, self._world.seconds)
                self.history.sent.append(sent)
                receipt = await producer.enqueue(self._outgoing(sent))
                receipt.add_done_callback(lambda receipt, payload=sent.payload: self._confirmed(payload, receipt))
        await asyncio.gather(producer.close(), return_exceptions=True)
        self._open_producers -= 1

    def _confirmed(self, payload: bytes, receipt: asyncio.Future[Any]) -> None:
        if not receipt.cancelled() and receipt.exception() is None:
            self.history.receipts[payload] = receipt.result()

    async def _receive(self, client: Client, name: str, options: Mapping[str, Any]) -> None:
        consumer = await until_done(
            lambda: client.subscribe(self._topic, name, initial_position="earliest", receiver_queue_size=20, **options)
        )
        while True:
            message = await consumer.receive()
            payload = message.content or b""
            self.history.deliveries.append(Delivery(self._world.seconds, name, message.id, payload))
            self._delivered[name].add(payload)
            consumer.acknowledge(message)
            self.history.acknowledged.append(Acknowledged(self._world.seconds, name, payload))


async def until_done(attempt: Callable[[], Awaitable[Any]]) -> Any:
    """Try until it succeeds, as an application does at its start."""
    while True:
        try:
            return await attempt()
        except PulsarError:
            await asyncio.sleep(0.5)
