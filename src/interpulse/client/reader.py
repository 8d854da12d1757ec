"""Reading a topic from a position on, without a subscription that outlives the reader."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from interpulse.client.consumer import ConsumerConfig, PartitionConsumer
from interpulse.client.inbox import Inbox
from interpulse.client.messages import Message
from interpulse.client.partition_watch import PartitionWatch, check_interval
from interpulse.client.partitioned import open_all, partition_names
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, PulsarError
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo

__all__ = ["Reader", "ReaderConfig"]


@dataclass(frozen=True, slots=True)
class ReaderConfig:
    """Settings of one reader."""

    start: MessageId | Position = EARLIEST
    """EARLIEST, LATEST, or a message."""

    start_included: bool = False
    """Whether the message named by ``start`` is read itself."""

    name: str | None = None
    schema: SchemaInfo | None = None
    receiver_queue_size: int = 1000
    read_compacted: bool = False
    force_topic_creation: bool = True
    subscription_prefix: str = "reader"
    auto_update_partitions: bool = True
    """A reader of a partitioned topic looks for new partitions, and reads them from their beginning."""

    auto_update_partitions_interval_ms: int = 60_000
    """How often it looks."""

    def __post_init__(self) -> None:
        check_interval(self.auto_update_partitions_interval_ms)


class Reader:
    """Reads a topic, or all partitions of one. Made by :meth:`Client.create_reader`."""

    def __init__(self, session: Session, topic: TopicName, config: ReaderConfig) -> None:
        self._session = session
        self._topic = topic
        self._config = config
        self._inbox = Inbox()
        self._parts: dict[str, PartitionConsumer] = {}
        self._is_partitioned = False
        self._growing = asyncio.Lock()
        self._watch: PartitionWatch | None = None
        self._closed = False

    async def open(self) -> None:
        """Find the partitions and begin reading. Raises what a broker refuses."""
        config = self._config
        count = await self._session.lookup.partitions(
            self._topic, create=config.force_topic_creation, fallback_on_old_broker=True
        )
        self._is_partitioned = count > 0
        await self._add(partition_names(self._topic, count), MessageId(*config.start))
        if count and config.auto_update_partitions:
            interval_ms = config.auto_update_partitions_interval_ms
            self._watch = PartitionWatch(
                self._session, self.update_partitions, interval_ms=interval_ms, what=f"topic={self._topic}"
            )

    async def _add(self, topics: list[TopicName], start: MessageId) -> None:
        """Read all these topics, or none of them."""
        if len(topics) > 1:
            await self._session.look_ahead(topics)
        added = {str(topic): self._part(topic, start) for topic in topics}
        self._parts |= added  # messages may come before the last one is open
        try:
            await open_all(list(added.values()))
            if self._closed:
                await asyncio.gather(*(part.close() for part in added.values()))
                raise AlreadyClosed("the reader is closed")
        except BaseException:
            self._parts = {name: part for name, part in self._parts.items() if name not in added}
            raise

    async def update_partitions(self) -> None:
        """Look for new partitions now; nothing is created by it. They are read from their beginning.

        Raises TopicNotFound if the topic is gone.
        """
        if self._closed:
            raise AlreadyClosed("the reader is closed")
        async with self._growing:
            if not self._is_partitioned:
                return
            count = await self._session.lookup.partitions(self._topic, create=False, fallback_on_old_broker=True)
            if count > len(self._parts):
                await self._add(partition_names(self._topic, count, first=len(self._parts)), MessageId(*EARLIEST))

    def _part(self, topic: TopicName, start: MessageId) -> PartitionConsumer:
        config = self._config
        settings = ConsumerConfig(
            name=config.name,
            schema=config.schema,
            receiver_queue_size=config.receiver_queue_size,
            read_compacted=config.read_compacted,
            force_topic_creation=config.force_topic_creation,
        )
        return PartitionConsumer(
            self._session,
            topic,
            f"{config.subscription_prefix}-{secrets.token_hex(5)}",
            settings,
            self._inbox,
            start=start,
            start_included=config.start_included,
            on_failed=self._on_failed,
        )

    def _on_failed(self, failure: PulsarError) -> None:
        if not isinstance(failure, AlreadyClosed):
            self._inbox.fail(failure)

    @property
    def topic(self) -> str:
        return str(self._topic)

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def is_connected(self) -> bool:
        return not self._closed and all(part.is_connected for part in self._parts.values())

    async def read_next(self, timeout_ms: int | None = None) -> Message:
        """The next message. Raises OperationTimeout if none comes in time."""
        message = await self._inbox.take(timeout_ms)
        part = self._parts.get(message.topic)
        if part is not None:  # else it belongs to partitions that could not all be opened, and will be read again
            part.acknowledge_cumulative(message)
        return message

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        try:
            return await self.read_next()
        except AlreadyClosed:
            raise StopAsyncIteration from None

    async def has_message_available(self) -> bool:
        """Whether a message lies between the place reached and the end that the topic has now."""
        if len(self._inbox):
            return True
        async with self._growing:
            for part in self._parts.values():
                if await _has_more(part):
                    return True
        return len(self._inbox) > 0

    async def seek(self, target: MessageId | int) -> None:
        """Go on at a message (which comes next) or at a publish time in ms since the epoch."""
        async with self._growing:
            await asyncio.gather(*(part.seek(target) for part in self._parts.values()))

    async def close(self) -> None:
        """Stop reading; nothing of the reader stays at the broker."""
        if self._closed:
            return
        self._closed = True
        if self._watch is not None:
            await self._watch.stop()
        await asyncio.gather(*(part.close() for part in self._parts.values()))
        self._inbox.fail(AlreadyClosed("the reader is closed"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def _has_more(part: PartitionConsumer) -> bool:
    last_message = await part.last_message()
    last, mark_delete = last_message.id, last_message.mark_delete
    if last.entry < 0:
        return False
    start = part.start
    if start is None or start.position == LATEST:
        return last.position > mark_delete
    if last.position != start.position:
        return last.position > start.position
    if start.batch_index < 0 or last.batch_index < 0:
        return part.start_included
    return last.batch_index >= start.batch_index + (not part.start_included)
