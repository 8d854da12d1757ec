"""The client for programs without an event loop.

The same names as in ``interpulse.client``, without ``await``. Every client runs one thread with an event loop, started
by its first call and ended by :meth:`Client.close`; nothing is started by importing this module.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from interpulse.client import client as asynchronous
from interpulse.client import multi_topic, partitioned, reader
from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.lookup import TopicMode, VersionedSchema
from interpulse.client.messages import Message, OutgoingMessage
from interpulse.model.errors import AlreadyClosed, PulsarError
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.schemas import SchemaInfo

__all__ = ["Client", "Consumer", "Portal", "Producer", "Reader"]

Result = TypeVar("Result")


class Portal:
    """One event loop in one thread, for callers that block. :meth:`close` ends both."""

    def __init__(self, name: str = "interpulse") -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False

    def call(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Run what ``work`` makes in the loop and wait for its result."""
        return self.submit(work).result()

    def submit(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> concurrent.futures.Future[Result]:
        """Run what ``work`` makes in the loop; the future may be waited for in any other thread."""
        loop = self._running_loop()
        return asyncio.run_coroutine_threadsafe(work(), loop)

    def run(self, work: Callable[[], Result]) -> Result:
        """Run a plain function in the loop and wait for its result."""

        async def in_loop() -> Result:
            return work()

        return self.call(in_loop)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._closed:
                raise AlreadyClosed("the client is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """Stop the loop and wait for the thread."""
        with self._starting:
            self._closed = True
            loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()


class Producer:
    """Sends to a topic."""

    def __init__(self, portal: Portal, producer: partitioned.Producer) -> None:
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
        """Flush, then say goodbye to the brokers."""
        self._portal.call(self._producer.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Consumer:
    """Receives from topics; iterable for ever."""

    def __init__(self, portal: Portal, consumer: multi_topic.Consumer) -> None:
        self._portal = portal
        self._consumer = consumer

    @property
    def topics(self) -> list[str]:
        return self._consumer.topics

    def receive(self, timeout_ms: int | None = None) -> Message:
        """The next message. Raises OperationTimeout if none comes in time."""
        return self._portal.call(lambda: self._consumer.receive(timeout_ms))

    def __iter__(self) -> Iterator[Message]:
        while True:
            try:
                yield self.receive()
            except AlreadyClosed:
                return

    def acknowledge(self, message: Message) -> None:
        """The application is done with this message."""
        self._portal.run(lambda: self._consumer.acknowledge(message))

    def acknowledge_cumulative(self, message: Message) -> None:
        """Done with everything up to this message in its partition."""
        self._portal.run(lambda: self._consumer.acknowledge_cumulative(message))

    def negative_acknowledge(self, message: Message) -> None:
        """Give the message back; it comes again later."""
        self._portal.run(lambda: self._consumer.negative_acknowledge(message))

    def redeliver_unacknowledged(self) -> None:
        """Have everything sent again that was received and not acknowledged."""
        self._portal.run(self._consumer.redeliver_unacknowledged)

    def seek(self, target: MessageId | int) -> None:
        """Move the subscription to a message or to a publish time in ms since the epoch."""
        self._portal.call(lambda: self._consumer.seek(target))

    def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, and close."""
        self._portal.call(lambda: self._consumer.unsubscribe(force=force))

    def close(self) -> None:
        """Send acknowledgements and say goodbye; the subscription stays."""
        self._portal.call(self._consumer.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Reader:
    """Reads a topic from a position on; iterable for ever."""

    def __init__(self, portal: Portal, reader_: reader.Reader) -> None:
        self._portal = portal
        self._reader = reader_

    @property
    def topic(self) -> str:
        return self._reader.topic

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
        """Whether a message lies between the place reached and the end that the topic has now."""
        return self._portal.call(self._reader.has_message_available)

    def seek(self, target: MessageId | int) -> None:
        """Go on at a message or at a publish time in ms since the epoch."""
        self._portal.call(lambda: self._reader.seek(target))

    def close(self) -> None:
        """Stop reading; nothing of the reader stays at the broker."""
        self._portal.call(self._reader.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Client:
    """A connection to one cluster, for programs without an event loop. ``options`` are those of ClientConfig."""

    def __init__(self, service_url: str, **options: Any) -> None:
        self._client = asynchronous.Client(service_url, **options)
        self._portal = Portal()
        self._closed = False

    @property
    def config(self) -> ClientConfig:
        return self._client.config

    def create_producer(self, topic: str, **options: Any) -> Producer:
        """A producer. ``options``: those of ProducerConfig."""
        return Producer(self._portal, self._portal.call(lambda: self._client.create_producer(topic, **options)))

    def subscribe(self, topics: str | Sequence[str], subscription: str, **options: Any) -> Consumer:
        """A consumer of one or several topics. ``options``: those of ConsumerConfig."""
        made = self._portal.call(lambda: self._client.subscribe(topics, subscription, **options))
        return Consumer(self._portal, made)

    def create_reader(self, topic: str, start: MessageId | Position = EARLIEST, **options: Any) -> Reader:
        """A reader from ``start`` on. ``options``: those of ReaderConfig."""
        return Reader(self._portal, self._portal.call(lambda: self._client.create_reader(topic, start, **options)))

    def get_partitions_for_topic(
        self, topic: str, create: bool | None = None, *, fallback_on_old_broker: bool = False
    ) -> list[str]:
        """Complete names of all partitions, or of the topic itself; ``create=False`` never creates it (PIP-344)."""
        asked = asynchronous.asked_to_create(create)
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
