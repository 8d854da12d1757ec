"""Producers and consumers of the asynchronous client that write their history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.client.closing import AsyncCloses
from interpulse.client.consuming.consumer import Consumer
from interpulse.client.messages import Message, OutgoingMessage
from interpulse.client.producing.producer import Producer
from interpulse.failover.history.events import Acknowledge, MessageName, Outcome
from interpulse.failover.history.reading import read_cursor
from interpulse.failover.history.record import CursorState, LoggedMessage
from interpulse.failover.history.recorder import HistoryRecorder, name_property, named_message
from interpulse.model.errors import InvalidRequest, PulsarError
from interpulse.model.ids import MessageId, Position


class RecordedProducer(AsyncCloses):
    """Producer of one topic or partition. Its messages have a name that both sites keep."""

    def __init__(self, recorder: HistoryRecorder, client: Client, producer: Producer) -> None:
        """Record a producer. Raise InvalidRequest if its topic has several partitions: name one of them."""
        if len(producer.partitions) != 1:
            raise InvalidRequest(
                f"{producer.topic} has {len(producer.partitions)} partitions: record a producer of each partition"
            )
        self._recorder = recorder
        self._producer = producer
        self._topic = str(producer.partitions[0].topic)
        self._site = _present_site(recorder, client)

    @classmethod
    async def create(cls, recorder: HistoryRecorder, client: Client, topic: str, **options: Any) -> RecordedProducer:
        """Return a recorded producer, registered with the broker. ``options`` are fields of `ProducerConfig`."""
        return cls(recorder, client, await client.create_producer(topic, **options))

    async def send(self, content: bytes | str | None, *, key: str | None = None) -> MessageName:
        """Send a message, and return its name once it is stored. Raise the failure, after which it may be stored.

        A message that the client sends again at the other site counts as two attempts.
        """
        recorder, site = self._recorder, self._site
        name = recorder.next_name(self._topic, self._producer.name)
        recorder.publish(site, name, Outcome.INVOKED, key=key)
        body = content.encode() if isinstance(content, str) else content
        try:
            receipt = await self._producer.enqueue(OutgoingMessage(body, key, name_property(name)))
        except PulsarError:
            recorder.publish(site, name, Outcome.REFUSED)
            raise
        try:
            position = await receipt
        except BaseException:
            recorder.publish(site, name, Outcome.UNKNOWN)
            raise
        self._confirm(site, name, position)
        return name

    def _confirm(self, site: str, name: MessageName, position: MessageId) -> None:
        if position.cluster is not None:
            self._site = self._recorder.site_of(position.cluster)
        if self._site != site and position.cluster is not None:
            self._recorder.publish(site, name, Outcome.UNKNOWN)
            site = self._site
            self._recorder.publish(site, name, Outcome.INVOKED)
        self._recorder.publish(site, name, Outcome.OK, position=position)

    async def close(self) -> None:
        """Close the producer after everything is sent. Raise the first failure."""
        await self._producer.close()


class RecordedConsumer(AsyncCloses):
    """Consumer of one topic or partition. It gives out recorded messages only."""

    def __init__(self, recorder: HistoryRecorder, client: Client, consumer: Consumer, name: str) -> None:
        """Record a consumer under a name of its own. Raise InvalidRequest if its topic has several partitions."""
        if len(consumer.parts) != 1:
            raise InvalidRequest(
                f"{', '.join(consumer.topics)} has {len(consumer.parts)} partitions: record a consumer of each one"
            )
        self._recorder = recorder
        self._consumer = consumer
        self._name = name
        self._site = _present_site(recorder, client)
        self._asked: dict[MessageName, tuple[Acknowledge, Message]] = {}

    @classmethod
    async def subscribe(
        cls, recorder: HistoryRecorder, client: Client, topic: str, subscription: str, *, name: str, **options: Any
    ) -> RecordedConsumer:
        """Return a recorded consumer, and record where a new subscription starts.

        ``options`` are fields of `ConsumerConfig`.
        """
        consumer = await client.subscribe(topic, subscription, name=name, **options)
        recorded = cls(recorder, client, consumer, name)
        (part,) = consumer.parts
        if options.get("initial_position") != "earliest":
            start = (await part.last_message()).mark_delete
            recorder.subscribe(recorded._site, str(part.topic), subscription, start)
        return recorded

    async def receive(self, timeout_ms: int | None = None) -> Message:
        """Return the next message. Raise OperationTimeout, and InvalidRequest for one that was not recorded."""
        message = await self._consumer.receive(timeout_ms)
        self._recorder.deliver(self._site_of(message), self._name_of(message), self._consumer.subscription, self._name)
        return message

    def acknowledge(self, message: Message, *, cumulative: bool = False) -> None:
        """Acknowledge a message, or everything up to it. :meth:`confirm` finds out if a broker has taken it."""
        name = self._name_of(message)
        up_to = message.id if cumulative else None
        subscription, site = self._consumer.subscription, self._site_of(message)
        asked = Acknowledge(0, site, name, subscription, self._name, Outcome.INVOKED, up_to)
        self._recorder.acknowledge(asked)
        self._asked[name] = asked, message
        if cumulative:
            self._consumer.acknowledge_cumulative(message)
        else:
            self._consumer.acknowledge(message)

    async def confirm(self, site: str, admin: AdminClient) -> int:
        """Record as taken what the cursor of a site holds. Return the number of those there that it lacks.

        Call it before the cursor is moved back.
        """
        (part,) = self._consumer.parts
        held = await read_cursor(admin, site, str(part.topic), self._consumer.subscription)
        for name, (asked, message) in list(self._asked.items()):
            if asked.site == site and _holds(held, message):
                del self._asked[name]
                self._recorder.acknowledge(replace(asked, outcome=Outcome.OK))
        return sum(asked.site == site for asked, _ in self._asked.values())

    def _name_of(self, message: Message) -> MessageName:
        name = named_message(message.topic, message.properties)
        if name is None:
            raise InvalidRequest(f"{message.topic}: {message.id} was not sent by a recorded producer")
        return name

    def _site_of(self, message: Message) -> str:
        cluster = message.id.cluster
        return self._site if cluster is None else self._recorder.site_of(cluster)

    async def close(self) -> None:
        """Send pending acknowledgements and close the consumer."""
        await self._consumer.close()


def _present_site(recorder: HistoryRecorder, client: Client) -> str:
    """Return the site that a client uses now."""
    return recorder.site_of(client.config.url.text if client.site is None else client.site.service_url)


def _holds(cursor: CursorState, message: Message) -> bool:
    """Return True if the cursor of a site holds a message."""
    position = Position(message.id.ledger, message.id.entry)
    name = MessageName(cursor.topic, "", 0)
    return cursor.holds(LoggedMessage(position, max(message.id.batch_index, 0), name))
