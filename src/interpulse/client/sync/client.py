"""The client for programs without an event loop.

The same names as in ``interpulse.client``, without ``await``. Every client runs one thread with an event loop, started
by its first call and ended by :meth:`Client.close`; nothing is started by importing this module.
"""

from __future__ import annotations

import concurrent.futures
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from interpulse.client.client import Client as AsyncClient
from interpulse.client.client import asked_to_create
from interpulse.client.closing import Closes
from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.consuming.consumer import Consumer as AsyncConsumer
from interpulse.client.consuming.partition_consumers import SeekTarget
from interpulse.client.consuming.reader import Reader as AsyncReader
from interpulse.client.lookup.lookup import TopicMode
from interpulse.client.lookup.topic_schemas import VersionedSchema
from interpulse.client.messages import Message, OutgoingMessage
from interpulse.client.portal import Portal
from interpulse.client.producing.producer import Producer as AsyncProducer
from interpulse.client.sync.table_view import TableView
from interpulse.model.errors import AlreadyClosed, PulsarError
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.schemas import SchemaInfo

__all__ = ["Client", "Consumer", "Producer", "Reader", "TableView"]

Result = TypeVar("Result")


class Producer(Closes):
    """Sends to a topic."""

    def __init__(self, portal: Portal, producer: AsyncProducer) -> None:
        self._portal = portal
        self._producer = producer

    @property
    def topic(self) -> str:
        return self._producer.topic

    @property
    def name(self) -> str:
        return self._producer.name

    @property
    def last_sequence_id(self) -> int:
        return self._producer.last_sequence_id

    def send(
        self, content: bytes | str | OutgoingMessage | None, *, key: str | bytes | None = None, **fields: object
    ) -> MessageId:
        """Send one message and wait until the broker has stored it."""
        return self._portal.call(lambda: self._producer.send(content, key=key, **fields))

    def send_async(
        self, content: bytes | str | OutgoingMessage | None, *, key: str | bytes | None = None, **fields: object
    ) -> concurrent.futures.Future[MessageId]:
        """As :meth:`send` without waiting; the future has the id, or the failure."""
        return self._portal.submit(lambda: self._producer.send(content, key=key, **fields))

    def flush(self) -> None:
        """Wait for the receipts of everything sent so far. Raises the first failure."""
        self._portal.call(self._producer.flush)

    def close(self) -> None:
        """Flush, then close the producer at its brokers."""
        self._portal.call(self._producer.close)


class Consumer(Closes):
    """Receives from topics; iterable for ever."""

    def __init__(self, portal: Portal, consumer: AsyncConsumer) -> None:
        self._portal = portal
        self._consumer = consumer

    @property
    def topics(self) -> list[str]:
        return self._consumer.topics

    def receive(self, timeout_ms: int | None = None) -> Message:
        """The next message. Raises OperationTimeout if none comes in time."""
        return self._portal.call(lambda: self._consumer.receive(timeout_ms))

    def receive_batch(
        self, *, messages_max: int | None = None, bytes_max: int = 10 * 1024 * 1024, timeout_ms: int = 100
    ) -> list[Message]:
        """The messages up to one of the limits; perhaps none."""
        return self._portal.call(
            lambda: self._consumer.receive_batch(messages_max=messages_max, bytes_max=bytes_max, timeout_ms=timeout_ms)
        )

    def __iter__(self) -> Iterator[Message]:
        while True:
            try:
                yield self.receive()
            except AlreadyClosed:
                return

    def processing(self, message: Message) -> AbstractContextManager[object]:
        """Inside it, spans that begin are children of the message's own; with ``tracing`` on."""
        return self._consumer.processing(message)

    def acknowledge(self, message: Message) -> None:
        """The application is done with this message."""
        self._portal.run(lambda: self._consumer.acknowledge(message))

    def acknowledge_cumulative(self, message: Message) -> None:
        """Done with everything up to this message in its partition."""
        self._portal.run(lambda: self._consumer.acknowledge_cumulative(message))

    def negative_acknowledge(self, message: Message) -> None:
        """Have the message redelivered later."""
        self._portal.run(lambda: self._consumer.negative_acknowledge(message))

    def reconsume_later(self, message: Message, delay_ms: int, properties: Mapping[str, str] | None = None) -> None:
        """Have the message again after a delay, through the retry letter topic."""
        self._portal.call(lambda: self._consumer.reconsume_later(message, delay_ms, properties))

    def redeliver_unacknowledged(self) -> None:
        """Have everything sent again that was received and not acknowledged."""
        self._portal.run(self._consumer.redeliver_unacknowledged)

    def seek(self, target: SeekTarget, *, included: bool = True) -> None:
        """Move the subscription to a message, to a publish time in ms, or by a function of the topic's name."""
        self._portal.call(lambda: self._consumer.seek(target, included=included))

    def update_partitions(self) -> None:
        """Look for new partitions of all topics now."""
        self._portal.call(self._consumer.update_partitions)

    def add_topics(self, topics: Sequence[str]) -> None:
        """Subscribe to more topics, to all of them or to none."""
        self._portal.call(lambda: self._consumer.add_topics(topics))

    def remove_topics(self, topics: Sequence[str]) -> None:
        """Consume these topics no more; their subscriptions stay."""
        self._portal.call(lambda: self._consumer.remove_topics(topics))

    def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, and close."""
        self._portal.call(lambda: self._consumer.unsubscribe(force=force))

    def close(self) -> None:
        """Send acknowledgements, and close the consumer at its brokers; the subscription stays."""
        self._portal.call(self._consumer.close)


class Reader(Closes):
    """Reads a topic from a position on; iterable for ever."""

    def __init__(self, portal: Portal, reader: AsyncReader) -> None:
        self._portal = portal
        self._reader = reader

    @property
    def topic(self) -> str:
        return self._reader.topic

    @property
    def topics(self) -> list[str]:
        return self._reader.topics

    def read_next(self, timeout_ms: int | None = None) -> Message:
        """The next message. Raises OperationTimeout if none comes in time."""
        return self._portal.call(lambda: self._reader.read_next(timeout_ms))

    def __iter__(self) -> Iterator[Message]:
        while True:
            try:
                yield self.read_next()
            except AlreadyClosed:
                return

    def has_message_available(self) -> bool:
        """Whether a message lies between the position reached and the end that the topic has now.

        With ``key_hash_ranges`` it may be one of another slot, which is not read: give ``read_next`` a time-out there.
        """
        return self._portal.call(self._reader.has_message_available)

    def seek(self, target: SeekTarget, *, included: bool = True) -> None:
        """Go on at a message, at a publish time in ms, or by a function of the topic's name."""
        self._portal.call(lambda: self._reader.seek(target, included=included))

    def close(self) -> None:
        """Stop reading; nothing of the reader stays at the broker."""
        self._portal.call(self._reader.close)


class Client(Closes):
    """A connection to one cluster, for programs without an event loop. ``options`` are those of ClientConfig."""

    def __init__(self, service_url: str, **options: Any) -> None:
        self._client = AsyncClient(service_url, **options)
        self._portal = Portal()
        self._closed = False

    @property
    def config(self) -> ClientConfig:
        return self._client.config

    def create_producer(self, topic: str, **options: Any) -> Producer:
        """A producer. ``options``: those of ProducerConfig."""
        return Producer(self._portal, self._portal.call(lambda: self._client.create_producer(topic, **options)))

    def subscribe(self, topics: str | Sequence[str] | re.Pattern[str], subscription: str, **options: Any) -> Consumer:
        """A consumer of one or several topics, or of those that match an expression. ``options``: those of
        ConsumerConfig."""
        made = self._portal.call(lambda: self._client.subscribe(topics, subscription, **options))
        return Consumer(self._portal, made)

    def create_reader(
        self, topics: str | Sequence[str], start: MessageId | Position = EARLIEST, **options: Any
    ) -> Reader:
        """A reader of one or several topics from ``start`` on. ``options``: those of ReaderConfig."""
        return Reader(self._portal, self._portal.call(lambda: self._client.create_reader(topics, start, **options)))

    def create_table_view(self, topic: str, **options: Any) -> TableView:
        """The newest value of every key of a topic. ``options``: those of TableViewConfig."""
        return TableView(self._portal, self._portal.call(lambda: self._client.create_table_view(topic, **options)))

    def get_partitions_for_topic(
        self, topic: str, create: bool | None = None, *, fallback_on_old_broker: bool = False
    ) -> list[str]:
        """Complete names of all partitions, or of the topic itself; ``create=False`` never creates it (PIP-344)."""
        asked = asked_to_create(create)
        return self._portal.call(
            lambda: self._client.get_partitions_for_topic(topic, asked, fallback_on_old_broker=fallback_on_old_broker)
        )

    def lookup_batch(self, topics: Iterable[str]) -> dict[str, BrokerAddress | PulsarError]:
        """The broker that serves each topic, or why there is none, by the names as they are given (PIP-35)."""
        return self._portal.call(lambda: self._client.lookup_batch(topics))

    def get_topics_of_namespace(self, namespace: str, mode: TopicMode = "PERSISTENT") -> list[str]:
        """Complete names; partitioned topics appear as their partitions."""
        return self._portal.call(lambda: self._client.get_topics_of_namespace(namespace, mode))

    def get_schema(self, topic: str, version: bytes | None = None) -> VersionedSchema | None:
        """The latest schema of a topic, or a version of it; None if there is none."""
        return self._portal.call(lambda: self._client.get_schema(topic, version))

    def register_schema(self, topic: str, schema: SchemaInfo) -> bytes:
        """The version of a schema, which the broker adds if its policies allow."""
        return self._portal.call(lambda: self._client.register_schema(topic, schema))

    def close(self) -> None:
        """Close everything this client made, its connections and its thread."""
        if self._closed:
            return
        self._closed = True
        try:
            self._portal.call(self._client.close)
        finally:
            self._portal.close()
