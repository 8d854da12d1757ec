"""Blocking client.

It has the same names as ``interpulse.client``, without ``await``. Every client runs one thread with an event loop,
started by its first call and ended by :meth:`Client.close`. Importing this module starts nothing.
"""

from __future__ import annotations

import concurrent.futures
import re
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from interpulse.client.client import Client as AsyncClient
from interpulse.client.client import asked_to_create
from interpulse.client.closing import Closes
from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.consuming.consumer import Consumer as AsyncConsumer
from interpulse.client.consuming.partition_consumers import SeekTarget
from interpulse.client.consuming.reader import Reader as AsyncReader
from interpulse.client.consuming.table_view import TableView as AsyncTableView
from interpulse.client.failover.sites import Site, SiteChange
from interpulse.client.lookup.lookup import TopicMode, VersionedSchema
from interpulse.client.messages import Message, OutgoingMessage
from interpulse.client.portal import Portal
from interpulse.client.producing.producer import Producer as AsyncProducer
from interpulse.client.sync.blocking import Blocking
from interpulse.model.errors import AlreadyClosed, PulsarError
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.schemas import SchemaInfo


class TableView(Blocking[AsyncTableView[Any]], Closes):
    """Latest value of every key of a topic. It reads like a dictionary."""

    @property
    def topic(self) -> str:
        return self._inner.topic

    def get(self, key: str, default: Any = None) -> Any:
        return self._portal.run(lambda: self._inner.get(key, default))

    def __getitem__(self, key: str) -> Any:
        return self._portal.run(lambda: self._inner[key])

    def __contains__(self, key: object) -> bool:
        return self._portal.run(lambda: key in self._inner)

    def __len__(self) -> int:
        return self._portal.run(lambda: len(self._inner))

    def __iter__(self) -> Iterator[str]:
        return iter(self.snapshot())

    def keys(self) -> KeysView[str]:
        """Return the current keys. Later messages do not change the result."""
        return self.snapshot().keys()

    def values(self) -> ValuesView[Any]:
        """Return the current values. Later messages do not change the result."""
        return self.snapshot().values()

    def items(self) -> ItemsView[str, Any]:
        """Return the current keys with their values. Later messages do not change the result."""
        return self.snapshot().items()

    def snapshot(self) -> dict[str, Any]:
        """Return a copy of the current table."""
        return self._portal.run(self._inner.snapshot)

    def listen(self, listener: Callable[[str, Any], object]) -> Callable[[], None]:
        """Call ``listener`` in the client's thread for every change from now on. Return the function that ends this.

        The listener must not call the client: the call would block forever.
        """
        end = self._portal.run(lambda: self._inner.listen(listener))
        return lambda: self._portal.run(end)

    def for_each(self, action: Callable[[str, Any], object]) -> None:
        """Call ``listener`` with every current key and its value, in the caller's thread."""
        for key, value in self.items():
            action(key, value)

    def for_each_and_listen(self, action: Callable[[str, Any], object]) -> Callable[[], None]:
        """Call ``listener`` with every current key, then for every change, without missing or repeating one.

        All calls are made in the client's thread.
        """
        end = self._portal.run(lambda: self._inner.for_each_and_listen(action))
        return lambda: self._portal.run(end)

    def refresh(self) -> None:
        """Wait until the table includes everything that the topic contains now."""
        self._portal.call(self._inner.refresh)

    def close(self) -> None:
        """Stop reading. Later calls fail."""
        self._portal.call(self._inner.close)


Result = TypeVar("Result")


class Producer(Blocking[AsyncProducer], Closes):
    """Producer for one topic. Use it as a context manager, or call :meth:`close`."""

    @property
    def topic(self) -> str:
        return self._inner.topic

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def last_sequence_id(self) -> int:
        return self._inner.last_sequence_id

    def send(
        self, content: bytes | str | OutgoingMessage | None, *, key: str | bytes | None = None, **fields: object
    ) -> MessageId:
        """Send one message and wait until the broker has stored it. Return its id."""
        return self._portal.call(lambda: self._inner.send(content, key=key, **fields))

    def send_async(
        self, content: bytes | str | OutgoingMessage | None, *, key: str | bytes | None = None, **fields: object
    ) -> concurrent.futures.Future[MessageId]:
        """Send one message without waiting for the broker. Return a future with its id or the failure."""
        return self._portal.submit(lambda: self._inner.send(content, key=key, **fields))

    def flush(self) -> None:
        """Wait for the receipts of everything sent so far. Raise the first failure."""
        self._portal.call(self._inner.flush)

    def close(self) -> None:
        """Flush and close the producer. Raise the first failure of a message."""
        self._portal.call(self._inner.close)


class Consumer(Blocking[AsyncConsumer], Closes):
    """Consumer of one or more topics. Iterating over it returns messages without end."""

    @property
    def topics(self) -> list[str]:
        return self._inner.topics

    def receive(self, timeout_ms: int | None = None) -> Message:
        """Return the next message. Raise OperationTimeout if none arrives in time."""
        return self._portal.call(lambda: self._inner.receive(timeout_ms))

    def receive_batch(
        self, *, messages_max: int | None = None, bytes_max: int = 10 * 1024 * 1024, timeout_ms: int = 100
    ) -> list[Message]:
        """Return messages up to one of the limits. The list may be empty."""
        return self._portal.call(
            lambda: self._inner.receive_batch(messages_max=messages_max, bytes_max=bytes_max, timeout_ms=timeout_ms)
        )

    def __iter__(self) -> Iterator[Message]:
        while True:
            try:
                yield self.receive()
            except AlreadyClosed:
                return

    def processing(self, message: Message) -> AbstractContextManager[object]:
        """Return a context in which new spans are children of the message's span. Has no effect without ``tracing``."""
        return self._inner.processing(message)

    def acknowledge(self, message: Message) -> None:
        """Acknowledge this message. The command is sent within 100 ms, together with others."""
        self._portal.run(lambda: self._inner.acknowledge(message))

    def acknowledge_cumulative(self, message: Message) -> None:
        """Acknowledge everything up to this message in its partition. Not for shared subscriptions."""
        self._portal.run(lambda: self._inner.acknowledge_cumulative(message))

    def negative_acknowledge(self, message: Message) -> None:
        """Request redelivery of the message after a delay."""
        self._portal.run(lambda: self._inner.negative_acknowledge(message))

    def reconsume_later(self, message: Message, delay_ms: int, properties: Mapping[str, str] | None = None) -> None:
        """Receive the message again after a delay, as a copy on the retry letter topic."""
        self._portal.call(lambda: self._inner.reconsume_later(message, delay_ms, properties))

    def redeliver_unacknowledged(self) -> None:
        """Request redelivery of everything that was received but not acknowledged."""
        self._portal.run(self._inner.redeliver_unacknowledged)

    def seek(self, target: SeekTarget, *, included: bool = True) -> None:
        """Move the subscription to a message or a publish time in ms, or by a function of the topic's name."""
        self._portal.call(lambda: self._inner.seek(target, included=included))

    def update_partitions(self) -> None:
        """Look for new partitions of all topics now. No topic is created."""
        self._portal.call(self._inner.update_partitions)

    def add_topics(self, topics: Sequence[str]) -> None:
        """Subscribe to more topics: to all of them, or to none if one fails."""
        self._portal.call(lambda: self._inner.add_topics(topics))

    def remove_topics(self, topics: Sequence[str]) -> None:
        """Stop consuming these topics. Their subscriptions remain."""
        self._portal.call(lambda: self._inner.remove_topics(topics))

    def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, and close the consumer."""
        self._portal.call(lambda: self._inner.unsubscribe(force=force))

    def close(self) -> None:
        """Send pending acknowledgements and close the consumer. The subscription remains."""
        self._portal.call(self._inner.close)


class Reader(Blocking[AsyncReader], Closes):
    """Reader of topics from a position. Iterating over it returns messages without end."""

    @property
    def topic(self) -> str:
        return self._inner.topic

    @property
    def topics(self) -> list[str]:
        return self._inner.topics

    def read_next(self, timeout_ms: int | None = None) -> Message:
        """Return the next message. Raise OperationTimeout if none arrives in time."""
        return self._portal.call(lambda: self._inner.read_next(timeout_ms))

    def __iter__(self) -> Iterator[Message]:
        while True:
            try:
                yield self.read_next()
            except AlreadyClosed:
                return

    def has_message_available(self) -> bool:
        """Return True if there is a message between the reader's position and the current end of the topic.

        With ``key_hash_ranges`` its key may be in another slot, and the message is never delivered: pass ``read_next``
        a timeout.
        """
        return self._portal.call(self._inner.has_message_available)

    def seek(self, target: SeekTarget, *, included: bool = True) -> None:
        """Continue at a message or a publish time in ms, or by a function of the topic's name."""
        self._portal.call(lambda: self._inner.seek(target, included=included))

    def close(self) -> None:
        """Stop reading. The broker keeps nothing of the reader."""
        self._portal.call(self._inner.close)


class Client(Closes):
    """Connection to one cluster, for programs without an event loop.

    Use it as a context manager, or call :meth:`close`. ``options`` are fields of ClientConfig.
    """

    def __init__(self, service_url: str, **options: Any) -> None:
        self._client = AsyncClient(service_url, **options)
        self._portal = Portal()
        self._closed = False

    @property
    def config(self) -> ClientConfig:
        return self._client.config

    @property
    def site(self) -> Site | None:
        """Present site of a client with ``failover``; None without it."""
        return self._client.site

    def on_site_change(self, callback: Callable[[SiteChange], object]) -> Callable[[], None]:
        """Call ``callback`` in the client's thread after every change to another site.

        Return the function that ends this. The callback must not call the client: the call would block forever.
        """
        end = self._portal.run(lambda: self._client.on_site_change(callback))
        return lambda: self._portal.run(end)

    def create_producer(self, topic: str, **options: Any) -> Producer:
        """Return a producer. ``options`` are fields of ProducerConfig."""
        return Producer(self._portal, self._portal.call(lambda: self._client.create_producer(topic, **options)))

    def subscribe(self, topics: str | Sequence[str] | re.Pattern[str], subscription: str, **options: Any) -> Consumer:
        """Return a consumer of one or several topics, or of those that match a pattern.

        ``options`` are fields of ConsumerConfig.
        """
        made = self._portal.call(lambda: self._client.subscribe(topics, subscription, **options))
        return Consumer(self._portal, made)

    def create_reader(
        self, topics: str | Sequence[str], start: MessageId | Position = EARLIEST, **options: Any
    ) -> Reader:
        """Return a reader of one or several topics, starting at ``start``. ``options`` are fields of ReaderConfig."""
        return Reader(self._portal, self._portal.call(lambda: self._client.create_reader(topics, start, **options)))

    def create_table_view(self, topic: str, **options: Any) -> TableView:
        """Return a table view of a topic. ``options`` are fields of TableViewConfig."""
        return TableView(self._portal, self._portal.call(lambda: self._client.create_table_view(topic, **options)))

    def get_partitions_for_topic(
        self, topic: str, create: bool | None = None, *, fallback_on_old_broker: bool = False
    ) -> list[str]:
        """Return the full names of all partitions, or of the topic itself.

        ``create=False`` never creates it (PIP-344).
        """
        asked = asked_to_create(create)
        return self._portal.call(
            lambda: self._client.get_partitions_for_topic(topic, asked, fallback_on_old_broker=fallback_on_old_broker)
        )

    def lookup_batch(self, topics: Iterable[str]) -> dict[str, BrokerAddress | PulsarError]:
        """Return the broker that serves each topic, or the failure of its lookup, by the names as given (PIP-35)."""
        return self._portal.call(lambda: self._client.lookup_batch(topics))

    def get_topics_of_namespace(self, namespace: str, mode: TopicMode = "PERSISTENT") -> list[str]:
        """Return the full names of the topics of a namespace. Partitioned topics appear as their partitions."""
        return self._portal.call(lambda: self._client.get_topics_of_namespace(namespace, mode))

    def get_schema(self, topic: str, version: bytes | None = None) -> VersionedSchema | None:
        """Return the latest schema of a topic, or one version of it; None if there is none."""
        return self._portal.call(lambda: self._client.get_schema(topic, version))

    def register_schema(self, topic: str, schema: SchemaInfo) -> bytes:
        """Register a schema and return its version. The broker adds a new one only if its policies allow it."""
        return self._portal.call(lambda: self._client.register_schema(topic, schema))

    def close(self) -> None:
        """Close all producers, consumers, readers and table views, the connections and the thread."""
        if self._closed:
            return
        self._closed = True
        try:
            self._portal.call(self._client.close)
        finally:
            self._portal.close()
