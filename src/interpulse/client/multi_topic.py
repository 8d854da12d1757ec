"""A consumer as applications see it: over one topic, the partitions of one, or several topics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from interpulse.client.consumer import ConsumerConfig, PartitionConsumer
from interpulse.client.inbox import Inbox
from interpulse.client.messages import Message
from interpulse.client.partition_watch import PartitionWatch
from interpulse.client.partitioned import open_all, partition_names
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, InvalidRequest, PulsarError
from interpulse.model.ids import MessageId
from interpulse.model.names import TopicName

__all__ = ["Consumer"]


class Consumer:
    """Receives from topics. Made by :meth:`Client.subscribe`; an async context manager, and iterable for ever.

    Messages of one partition come in their order. The consumer ends with the first of its topics that fails for good.
    """

    def __init__(
        self, session: Session, topics: Sequence[TopicName], subscription: str, config: ConsumerConfig
    ) -> None:
        self.subscription = subscription
        self._session = session
        self._topics = list(topics)
        self._config = config
        self._inbox = Inbox()
        self._parts: dict[str, PartitionConsumer] = {}
        self._counts: dict[TopicName, int] = {}
        self._growing = asyncio.Lock()
        self._watch: PartitionWatch | None = None
        self._closed = False

    async def open(self) -> None:
        """Find the partitions of all topics and subscribe to them. Raises what a broker refuses."""
        counts = await asyncio.gather(*map(self._count, self._topics))
        self._counts = dict(zip(self._topics, counts, strict=True))
        names = [part for topic, count in self._counts.items() for part in partition_names(topic, count)]
        await self._add(names, self._config)
        if any(counts) and self._config.auto_update_partitions:
            self._watch = PartitionWatch(
                self._session,
                self.update_partitions,
                interval_ms=self._config.auto_update_partitions_interval_ms,
                what=f"subscription={self.subscription} topics={','.join(self.topics)}",
            )

    async def _count(self, topic: TopicName) -> int:
        create = self._config.force_topic_creation
        return await self._session.lookup.partitions(topic, create=create, fallback_on_old_broker=True)

    async def _add(self, topics: list[TopicName], config: ConsumerConfig) -> None:
        """Subscribe to all these topics, or to none of them."""
        if len(topics) > 1:
            await self._session.look_ahead(topics)
        added = {str(topic): self._part_of(topic, config) for topic in topics}
        self._parts |= added  # messages may come before the last one is open
        try:
            await open_all(list(added.values()))
            if self._closed:
                await asyncio.gather(*(part.close() for part in added.values()))
                raise AlreadyClosed("the consumer is closed")
        except BaseException:
            self._parts = {name: part for name, part in self._parts.items() if name not in added}
            raise

    def _part_of(self, topic: TopicName, config: ConsumerConfig) -> PartitionConsumer:
        return PartitionConsumer(
            self._session, topic, self.subscription, config, self._inbox, on_failed=self._on_failed
        )

    def _on_failed(self, failure: PulsarError) -> None:
        if not isinstance(failure, AlreadyClosed):
            self._inbox.fail(failure)

    async def update_partitions(self) -> None:
        """Look for new partitions of all topics now; nothing is created by it. They are taken from their beginning.

        Raises the first failure after every topic was tried; TopicNotFound for a topic that is gone.
        """
        failures: list[PulsarError] = []
        async with self._growing:
            for topic in [topic for topic, known in self._counts.items() if known]:
                try:
                    await self._update(topic)
                except PulsarError as failure:
                    failures.append(failure)
        if failures:
            raise failures[0]

    async def _update(self, topic: TopicName) -> None:
        if self._closed:
            raise AlreadyClosed("the consumer is closed")
        known = self._counts[topic]
        count = await self._session.lookup.partitions(topic, create=False, fallback_on_old_broker=True)
        if count > known:
            config = replace(self._config, initial_position="earliest")  # what came before we knew of it counts too
            await self._add(partition_names(topic, count, first=known), config)
            self._counts[topic] = count

    @property
    def topics(self) -> list[str]:
        """The topics as they were asked for."""
        return [str(topic) for topic in self._topics]

    @property
    def parts(self) -> list[PartitionConsumer]:
        """The consumers behind it: one per topic or partition."""
        return list(self._parts.values())

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def is_connected(self) -> bool:
        return not self._closed and all(part.is_connected for part in self._parts.values())

    async def receive(self, timeout_ms: int | None = None) -> Message:
        """The next message. Raises OperationTimeout if none comes in time."""
        return await self._inbox.take(timeout_ms)

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        try:
            return await self.receive()
        except AlreadyClosed:
            raise StopAsyncIteration from None

    def acknowledge(self, message: Message) -> None:
        """The application is done with this message. Sent within 100 ms together with others."""
        self._part(message).acknowledge(message)

    def acknowledge_cumulative(self, message: Message) -> None:
        """Done with everything up to this message in its partition. Not for shared subscriptions."""
        if self._config.subscription_type in ("shared", "key-shared"):
            raise InvalidRequest("shared subscriptions acknowledge message by message")
        self._part(message).acknowledge_cumulative(message)

    def negative_acknowledge(self, message: Message) -> None:
        """Give the message back; it comes again after ``nack_delay_ms``."""
        self._part(message).negative_acknowledge(message)

    def redeliver_unacknowledged(self) -> None:
        """Have everything sent again that was received and not acknowledged."""
        for part in self._parts.values():
            part.redeliver_unacknowledged()

    def _part(self, message: Message) -> PartitionConsumer:
        if self._closed:
            raise AlreadyClosed("the consumer is closed")
        part = self._parts.get(message.topic)
        if part is None:
            raise AlreadyClosed(f"{message.topic} could not be subscribed to completely; its messages come again")
        return part

    async def seek(self, target: MessageId | int) -> None:
        """Move the subscription to a message (which comes next) or to a publish time in ms since the epoch.

        A message id fits one partition only; over several, give a time, EARLIEST or LATEST (as MessageId).
        """
        async with self._growing:
            parts = list(self._parts.values())
            if isinstance(target, MessageId) and target.partition >= 0 and len(parts) > 1:
                parts = [next(part for part in parts if part.topic.partition_index == target.partition)]
            await asyncio.gather(*(part.seek(target) for part in parts))

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription on all topics, and close."""
        async with self._growing:
            await asyncio.gather(*(part.unsubscribe(force=force) for part in self._parts.values()))
        await self.close()

    async def close(self) -> None:
        """Send acknowledgements and say goodbye to the brokers; the subscription stays."""
        if self._closed:
            return
        self._closed = True
        if self._watch is not None:
            await self._watch.stop()
        await asyncio.gather(*(part.close() for part in self._parts.values()))
        self._inbox.fail(AlreadyClosed("the consumer is closed"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
