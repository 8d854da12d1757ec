"""Consumer of one topic, its partitions, several topics, or the topics that match a pattern."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

from interpulse.client.checks import check_type, topic_names
from interpulse.client.closing import AsyncCloses
from interpulse.client.consuming.consumer_config import ConsumerConfig
from interpulse.client.consuming.dead_letters import DeadLetterProducer
from interpulse.client.consuming.partition_consumer import PartitionConsumer
from interpulse.client.consuming.partition_consumers import PartitionConsumers, SeekTarget
from interpulse.client.consuming.topic_discovery import TopicDiscovery, TopicsPattern
from interpulse.client.consuming.unpacker import Start
from interpulse.client.messages import Message
from interpulse.client.session import Session
from interpulse.clock import now_ms
from interpulse.model.errors import AlreadyClosed, InvalidRequest, PulsarError, TopicNotFound
from interpulse.model.ids import EARLIEST, LATEST, MessageId
from interpulse.model.names import TopicName


class Consumer(AsyncCloses):
    """Consumer of one or more topics, made by :meth:`Client.subscribe`.

    It is an async context manager, and ``async for`` iterates over messages without end. Messages of one partition
    arrive in order. If one of the topics fails permanently, the consumer fails. Topics of a pattern may be deleted and
    created again.
    """

    def __init__(
        self, session: Session, topics: Sequence[TopicName] | TopicsPattern, subscription: str, config: ConsumerConfig
    ) -> None:
        self.subscription = subscription
        self._session = session
        self._config = config
        self._pattern = topics if isinstance(topics, TopicsPattern) else None
        self._topics = [] if isinstance(topics, TopicsPattern) else list(topics)
        if self._pattern is not None and config.retry_enabled:
            raise InvalidRequest(
                "retry_enabled needs topics by name: a retry letter topic serves all topics of a consumer"
            )
        self._dead_letter_producer: DeadLetterProducer | None = None
        if (policy := config.effective_dead_letter_policy) is not None:
            shared_origin = self._topics[0] if config.retry_enabled else None
            schema, key_reader = config.schema, config.crypto_key_reader
            self._dead_letter_producer = DeadLetterProducer(
                session, subscription, policy, schema=schema, shared_origin=shared_origin, key_reader=key_reader
            )
        self._consumers = PartitionConsumers(session, self._new_consumer, config, what=f"subscription={subscription}")
        self._inbox = self._consumers.inbox
        self._discovery: TopicDiscovery | None = None
        self.is_closed = False

    async def open(self) -> None:
        """Find the partitions of all topics and subscribe to them. Raise the broker's refusal."""
        try:
            if self._pattern is not None:
                self._discovery = TopicDiscovery(self._session, self._pattern, self._consumers, self._config)
                await self._discovery.open()
            else:
                retry_topics = []
                if self._dead_letter_producer is not None and self._config.retry_enabled:
                    retry_topics = [self._dead_letter_producer.retry_letter_topic(self._topics[0])]
                await self._consumers.add([*self._topics, *retry_topics])
        except BaseException:
            await self._consumers.close()
            raise

    def _new_consumer(self, topic: TopicName, late: bool) -> PartitionConsumer:
        config, telemetry = self._config, self._session.telemetry
        if late:  # messages sent before the topic was discovered count too
            config = replace(config, initial_position="earliest")
        if self._pattern is not None:
            config = replace(config, force_topic_creation=False)
        start = MessageId.of(EARLIEST if config.initial_position == "earliest" else LATEST)
        return PartitionConsumer(
            self._session,
            topic,
            self.subscription,
            config,
            self._inbox,
            start=None if config.durable else Start(start),
            dead_letter_producer=self._dead_letter_producer,
            on_failed=partial(self._on_failed, str(topic)),
            telemetry=telemetry.processing(str(topic), self.subscription) if telemetry is not None else None,
        )

    def _on_failed(self, topic: str, failure: PulsarError) -> None:
        if self._pattern is not None and isinstance(failure, TopicNotFound):
            self._consumers.drop(topic)
        else:
            self._consumers.on_failed(failure)

    async def update_partitions(self) -> None:
        """Look for new partitions of all topics now, and read them from their beginning. No topic is created.

        Raise the first failure after every topic was tried; TopicNotFound for a deleted topic.
        """
        await self._consumers.update_partitions()

    async def add_topics(self, topics: Sequence[str]) -> None:
        """Subscribe to more topics: to all of them, or to none if one fails. Raise the broker's refusal."""
        self._check_by_name()
        names = topic_names(topics)
        await self._consumers.add(names)
        self._topics += [name for name in names if name not in self._topics]

    async def remove_topics(self, topics: Sequence[str]) -> None:
        """Stop consuming these topics. Their subscriptions remain, and unacknowledged messages are redelivered."""
        self._check_by_name()
        names = topic_names(topics)
        await self._consumers.remove(names)
        self._topics = [topic for topic in self._topics if topic not in names]

    def _check_by_name(self) -> None:
        if self.is_closed:
            raise AlreadyClosed("the consumer is closed")
        if self._pattern is not None:
            raise InvalidRequest(
                f"no topic can be added or removed: the consumer has the topics that match {self._pattern.text}"
            )

    @property
    def topics(self) -> list[str]:
        """Names of the topics as they were requested; for a pattern, the matching topics and partitions."""
        return [str(topic) for topic in self._topics] if self._pattern is None else sorted(self._consumers.names)

    @property
    def parts(self) -> list[PartitionConsumer]:
        """Consumers of the single topics and partitions."""
        return list(self._consumers)

    @property
    def is_connected(self) -> bool:
        return self._consumers.is_connected

    async def receive(self, timeout_ms: int | None = None) -> Message:
        """Return the next message. Raise OperationTimeout if none arrives in time."""
        return await self._inbox.take(timeout_ms)

    async def receive_batch(
        self, *, messages_max: int | None = None, bytes_max: int = 10 * 1024 * 1024, timeout_ms: int = 100
    ) -> list[Message]:
        """Return messages up to one of the limits. The list may be empty."""
        started_ms = now_ms() if self._session.telemetry is not None else None
        taken = await self._inbox.take_batch(messages_max=messages_max, bytes_max=bytes_max, timeout_ms=timeout_ms)
        if started_ms is not None:
            self._note_batch(taken, started_ms)
        return taken

    def _note_batch(self, taken: Sequence[Message], started_ms: int) -> None:
        by_topic: dict[str, list[Message]] = {}
        for message in taken:
            by_topic.setdefault(message.topic, []).append(message)
        for topic, messages in by_topic.items():
            consumer = self._consumers.get(topic)
            if consumer is not None:
                consumer.note_batch(messages, started_ms)

    def processing(self, message: Message) -> AbstractContextManager[object]:
        """Return a context in which new spans are children of the message's span (PIP-446).

        Acknowledging the message ends its span. Has no effect without ``tracing`` or if the message is acknowledged
        already.
        """
        consumer = self._consumers.get(message.topic)
        return nullcontext() if consumer is None else consumer.processing(message)

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        try:
            return await self.receive()
        except AlreadyClosed:
            raise StopAsyncIteration from None

    def acknowledge(self, message: Message) -> None:
        """Acknowledge this message. The command is sent within 100 ms, together with others."""
        consumer = self._consumer_of(message)
        if consumer is not None:
            consumer.acks.acknowledge(message)

    def acknowledge_cumulative(self, message: Message) -> None:
        """Acknowledge everything up to this message in its partition. Not for shared subscriptions."""
        if self._config.counts_redeliveries:
            raise InvalidRequest("shared subscriptions have no cumulative acknowledgement: acknowledge each message")
        consumer = self._consumer_of(message)
        if consumer is not None:
            consumer.acks.acknowledge_cumulative(message)

    def negative_acknowledge(self, message: Message) -> None:
        """Request redelivery of the message after ``nack_delay_ms``, or after the delay of ``nack_backoff``."""
        consumer = self._consumer_of(message)
        if consumer is not None:
            consumer.acks.negative_acknowledge(message)

    async def reconsume_later(
        self, message: Message, delay_ms: int, properties: Mapping[str, str] | None = None
    ) -> None:
        """Receive the message again after a delay, as a copy on the retry letter topic, which this consumer also reads.

        After ``max_redeliver_count`` tries the copy goes to the dead-letter topic instead. ``properties`` are added to
        the copy. Raise the broker's refusal of the copy; then the message is not acknowledged.
        """
        if self._dead_letter_producer is None or not self._config.retry_enabled:
            raise InvalidRequest("reconsume_later needs a consumer with retry_enabled=True")
        consumer = self._consumer_of(message)
        if consumer is not None:
            await self._dead_letter_producer.send_retry_letter(message, delay_ms, properties or {})
            consumer.acks.acknowledge(message)

    def redeliver_unacknowledged(self) -> None:
        """Request redelivery of everything that was received but not acknowledged."""
        for consumer in self._consumers:
            consumer.redeliver_unacknowledged()

    def _consumer_of(self, message: Message) -> PartitionConsumer | None:
        """Return the partition consumer of a message; None if its topic matched a pattern and was deleted."""
        if self.is_closed:
            raise AlreadyClosed("the consumer is closed")
        check_type("message", message, Message)
        consumer = self._consumers.get(message.topic)
        if consumer is None and self._pattern is None:
            raise AlreadyClosed(f"{message.topic} is not subscribed to; its messages are redelivered")
        return consumer

    async def seek(self, target: SeekTarget, *, included: bool = True) -> None:
        """Move the subscription to a message or to a publish time in ms since the epoch.

        The message itself comes next, or with ``included=False`` the one after it. A message id fits one partition
        only. For several topics, pass a time, EARLIEST or LATEST, or a function that returns one of these for the name
        of each topic or partition.
        """
        await self._consumers.seek(target, included=included)

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription on all topics, and close the consumer."""
        await self._stop_discovery()
        await self._consumers.unsubscribe(force=force)
        await self.close()

    async def close(self) -> None:
        """Send pending acknowledgements and close the consumer. The subscription remains."""
        if self.is_closed:
            return
        self.is_closed = True
        await self._stop_discovery()
        await self._consumers.close()
        if self._dead_letter_producer is not None:
            await self._dead_letter_producer.close()
        self._inbox.fail(AlreadyClosed("the consumer is closed"))

    async def _stop_discovery(self) -> None:
        discovery, self._discovery = self._discovery, None
        if discovery is not None:
            await discovery.stop()
