"""A consumer as applications see it: over one topic, the partitions of one, or several topics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Self

from interpulse.client.consumer import ConsumerConfig, PartitionConsumer
from interpulse.client.inbox import Inbox
from interpulse.client.messages import Message
from interpulse.client.partitioned import partition_names
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, InvalidRequest, PulsarError
from interpulse.model.ids import MessageId
from interpulse.model.names import TopicName

__all__ = ["Consumer"]

_log = logging.getLogger(__name__)


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
        self._watcher: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self) -> None:
        """Find the partitions of all topics and subscribe to them. Raises what a broker refuses."""
        counts = await asyncio.gather(*map(self._count, self._topics))
        self._counts = dict(zip(self._topics, counts, strict=True))
        try:
            await self._add([part for topic, count in self._counts.items() for part in partition_names(topic, count)])
        except BaseException:
            await self.close()
            raise
        if any(counts) and self._config.partitions_update_interval_ms:
            self._watcher = self._session.spawn(self._watch())

    async def _count(self, topic: TopicName) -> int:
        create = self._config.force_topic_creation
        return await self._session.lookup.partitions(topic, create=create, fallback_on_old_broker=True)

    async def _add(self, topics: list[TopicName]) -> None:
        if len(topics) > 1:
            await self._session.look_ahead(topics)
        added = [
            PartitionConsumer(
                self._session, topic, self.subscription, self._config, self._inbox, on_failed=self._on_failed
            )
            for topic in topics
        ]
        outcomes = await asyncio.gather(*(part.open() for part in added), return_exceptions=True)
        self._parts |= {str(part.topic): part for part in added}
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    def _on_failed(self, failure: PulsarError) -> None:
        if not isinstance(failure, AlreadyClosed):
            self._inbox.fail(failure)

    async def _watch(self) -> None:
        """Notice when topics grow. Asks without creating: a deleted topic must not come back by this."""
        while True:
            await asyncio.sleep(self._config.partitions_update_interval_ms / 1000)
            try:
                await self.update_partitions()
            except PulsarError as error:
                _log.debug("partitions are unknown at the moment subscription=%s error=%s", self.subscription, error)

    async def update_partitions(self) -> None:
        """Look for new partitions now."""
        for topic, known in self._counts.items():
            if not known:
                continue
            count = await self._session.lookup.partitions(topic, create=False, fallback_on_old_broker=True)
            if count > known:
                await self._add(partition_names(topic, count, first=known))
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
        return self._parts[message.topic]

    async def seek(self, target: MessageId | int) -> None:
        """Move the subscription to a message (which comes next) or to a publish time in ms since the epoch.

        A message id fits one partition only; over several, give a time, EARLIEST or LATEST (as MessageId).
        """
        if isinstance(target, MessageId) and target.partition >= 0 and len(self._parts) > 1:
            await next(part for part in self._parts.values() if part.topic.partition_index == target.partition).seek(
                target
            )
            return
        await asyncio.gather(*(part.seek(target) for part in self._parts.values()))

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription on all topics, and close."""
        await asyncio.gather(*(part.unsubscribe(force=force) for part in self._parts.values()))
        await self.close()

    async def close(self) -> None:
        """Send acknowledgements and say goodbye to the brokers; the subscription stays."""
        if self._closed:
            return
        self._closed = True
        if self._watcher is not None:
            self._watcher.cancel()
        await asyncio.gather(*(part.close() for part in self._parts.values()))
        self._inbox.fail(AlreadyClosed("the consumer is closed"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
