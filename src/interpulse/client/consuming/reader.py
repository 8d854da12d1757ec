"""Reading a topic from a position on, without a subscription that outlives the reader."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from interpulse.client.checks import check_type
from interpulse.client.closing import AsyncCloses
from interpulse.client.consuming.consumer_config import ConsumerConfig, CryptoFailureAction
from interpulse.client.consuming.inbox import Inbox
from interpulse.client.consuming.partition_consumer import PartitionConsumer
from interpulse.client.consuming.partition_consumers import Parts, SeekTarget
from interpulse.client.consuming.unpacking import Start
from interpulse.client.messages import Message
from interpulse.client.partition_watch import check_interval
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, InvalidRequest, PulsarError
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
    crypto_failure_action: CryptoFailureAction = "fail"
    """What becomes of encrypted messages, as for consumers."""

    auto_update_partitions: bool = True
    """A reader of a partitioned topic looks for new partitions, and reads them from their beginning."""

    auto_update_partitions_interval_ms: int = 60_000
    """How often it looks."""

    def __post_init__(self) -> None:
        check_interval("auto_update_partitions_interval_ms", self.auto_update_partitions_interval_ms)
        check_type("start", self.start, MessageId, Position)


class Reader(AsyncCloses):
    """Reads a topic, all partitions of one, or several topics. Made by :meth:`Client.create_reader`."""

    def __init__(self, session: Session, topics: Sequence[TopicName], config: ReaderConfig) -> None:
        self._session = session
        self._topics = list(topics)
        self._config = config
        self._inbox = Inbox()
        interval_ms = config.auto_update_partitions_interval_ms if config.auto_update_partitions else None
        self._parts = Parts(
            session,
            self._part_of,
            create=config.force_topic_creation,
            watch_interval_ms=interval_ms,
            what=f"reader topics={','.join(map(str, topics))}",
        )
        self._closed = False

    async def open(self) -> None:
        """Find the partitions and begin reading. Raises what a broker refuses."""
        try:
            await self._parts.add(self._topics)
            start = MessageId.of(self._config.start)
            if len(self._parts) > 1 and start.position not in (EARLIEST, LATEST):
                raise InvalidRequest(
                    f"message id {start} fits one topic or partition only, and there are {len(self._parts)}: "
                    f"begin at EARLIEST or LATEST, then seek"
                )
        except BaseException:
            await self._parts.close()
            raise

    async def update_partitions(self) -> None:
        """Look for new partitions now; nothing is created by it. They are read from their beginning.

        Raises TopicNotFound if a topic is gone.
        """
        if self._closed:
            raise AlreadyClosed("the reader is closed")
        await self._parts.update_partitions()

    def _part_of(self, topic: TopicName, late: bool) -> PartitionConsumer:
        config = self._config
        settings = ConsumerConfig(
            name=config.name,
            schema=config.schema,
            receiver_queue_size=config.receiver_queue_size,
            read_compacted=config.read_compacted,
            force_topic_creation=config.force_topic_creation,
            crypto_failure_action=config.crypto_failure_action,
        )
        start = EARLIEST if late else config.start
        return PartitionConsumer(
            self._session,
            topic,
            f"{config.subscription_prefix}-{secrets.token_hex(5)}",
            settings,
            self._inbox,
            start=Start(MessageId.of(start), config.start_included),
            on_failed=self._on_failed,
        )

    def _on_failed(self, failure: PulsarError) -> None:
        if not isinstance(failure, AlreadyClosed):
            self._inbox.fail(failure)

    @property
    def topic(self) -> str:
        """The topic as it was asked for, the first of several."""
        return str(self._topics[0])

    @property
    def topics(self) -> list[str]:
        """The topics as they were asked for."""
        return [str(topic) for topic in self._topics]

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def is_connected(self) -> bool:
        return not self._closed and all(part.is_connected for part in self._parts)

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
        return await self._parts.any(_has_more) or len(self._inbox) > 0

    async def seek(self, target: SeekTarget, *, included: bool = True) -> None:
        """Go on at a message (which comes next, or with ``included=False`` the one behind it) or at a publish time in
        ms since the epoch; over several topics, also by a function of the topic's name."""
        await self._parts.seek(target, included=included)

    async def close(self) -> None:
        """Stop reading; nothing of the reader stays at the broker."""
        if self._closed:
            return
        self._closed = True
        await self._parts.close()
        self._inbox.fail(AlreadyClosed("the reader is closed"))


async def _has_more(part: PartitionConsumer) -> bool:
    last_message = await part.last_message()
    last, mark_delete = last_message.id, last_message.mark_delete
    if last.entry < 0:
        return False
    start = part.start
    if start is None or start.id.position == LATEST:
        return last.position > mark_delete
    return start.admits(last)
