"""The reader of applications: reads topics from a position on, without a subscription that outlives it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from interpulse.client.checks import check_interval, check_type
from interpulse.client.closing import AsyncCloses
from interpulse.client.consuming.consumer_config import ConsumerConfig, CryptoFailureAction, KeySharedPolicy
from interpulse.client.consuming.partition_consumer import PartitionConsumer
from interpulse.client.consuming.partition_consumers import PartitionConsumers, SeekTarget
from interpulse.client.consuming.unpacker import Start
from interpulse.client.encryption.key_reader import CryptoKeyReader
from interpulse.client.messages import Message
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, InvalidRequest
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
    key_hash_ranges: tuple[tuple[int, int], ...] = ()
    """Only messages whose keys have these hash slots, 0 to 65535, both ends included; persistent topics only, as a
    real Pulsar filters no others. Empty: all."""

    force_topic_creation: bool = True
    subscription_prefix: str = "reader"
    chunked_messages_max: int = 10
    """Messages in chunks that may be incomplete at a time, per partition; the oldest gives way."""

    crypto_failure_action: CryptoFailureAction = "fail"
    """The handling of messages that cannot be decrypted, as for consumers."""

    crypto_key_reader: CryptoKeyReader | None = field(default=None, repr=False)
    """Gives the private keys of encrypted messages, as for consumers."""

    auto_update_partitions: bool = True
    """A reader of a partitioned topic looks for new partitions, and reads them from their beginning."""

    auto_update_partitions_interval_ms: int = 60_000
    """How often it looks."""

    def __post_init__(self) -> None:
        check_interval("auto_update_partitions_interval_ms", self.auto_update_partitions_interval_ms)
        check_type("start", self.start, MessageId, Position)
        if self.key_hash_ranges:
            KeySharedPolicy(self.key_hash_ranges)  # raises ValueError for ranges that are none

    def of_consumer(self) -> ConsumerConfig:
        """The settings of its partition consumers."""
        return ConsumerConfig(
            name=self.name,
            schema=self.schema,
            receiver_queue_size=self.receiver_queue_size,
            read_compacted=self.read_compacted,
            force_topic_creation=self.force_topic_creation,
            chunked_messages_max=self.chunked_messages_max,
            crypto_failure_action=self.crypto_failure_action,
            crypto_key_reader=self.crypto_key_reader,
            auto_update_partitions=self.auto_update_partitions,
            auto_update_partitions_interval_ms=self.auto_update_partitions_interval_ms,
        )


class Reader(AsyncCloses):
    """Reads a topic, all partitions of one, or several topics. Made by :meth:`Client.create_reader`."""

    def __init__(self, session: Session, topics: Sequence[TopicName], config: ReaderConfig) -> None:
        self._session = session
        self._topics = list(topics)
        self._config = config
        self._consumers = PartitionConsumers(
            session, self._new_consumer, config.of_consumer(), what=f"reader topics={','.join(map(str, topics))}"
        )
        self._inbox = self._consumers.inbox
        self._closed = False

    async def open(self) -> None:
        """Find the partitions and start reading. Raises what a broker refuses."""
        for topic in self._topics if self._config.key_hash_ranges else ():
            if not topic.is_persistent:
                raise InvalidRequest(f"key_hash_ranges: a broker does not filter the non-persistent topic {topic}")
        try:
            await self._consumers.add(self._topics)
            start = MessageId.of(self._config.start)
            if len(self._consumers) > 1 and start.position not in (EARLIEST, LATEST):
                raise InvalidRequest(
                    f"message id {start} fits one topic or partition only, and there are {len(self._consumers)}: "
                    f"start at EARLIEST or LATEST, then seek"
                )
        except BaseException:
            await self._consumers.close()
            raise

    async def update_partitions(self) -> None:
        """Look for new partitions now; nothing is created by it. They are read from their beginning.

        Raises TopicNotFound if a topic is gone.
        """
        if self._closed:
            raise AlreadyClosed("the reader is closed")
        await self._consumers.update_partitions()

    def _new_consumer(self, topic: TopicName, late: bool) -> PartitionConsumer:
        config = self._config
        return PartitionConsumer(
            self._session,
            topic,
            f"{config.subscription_prefix}-{secrets.token_hex(5)}",
            config.of_consumer(),
            self._inbox,
            key_hash_ranges=config.key_hash_ranges,
            start=Start(MessageId.of(EARLIEST if late else config.start), config.start_included),
            on_failed=self._consumers.on_failed,
        )

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
        return self._consumers.is_connected

    async def read_next(self, timeout_ms: int | None = None) -> Message:
        """The next message. Raises OperationTimeout if none comes in time."""
        message = await self._inbox.take(timeout_ms)
        consumer = self._consumers.get(message.topic)
        if consumer is not None:  # else not all partitions could be opened, and it is read again
            consumer.acks.acknowledge_cumulative(message)
        return message

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        try:
            return await self.read_next()
        except AlreadyClosed:
            raise StopAsyncIteration from None

    async def has_message_available(self) -> bool:
        """Whether a message lies between the position reached and the end that the topic has now.

        With ``key_hash_ranges`` it may be one of another slot, which is not read: give ``read_next`` a time-out there.
        """
        if len(self._inbox):
            return True
        return await self._consumers.any(_has_more) or len(self._inbox) > 0

    async def seek(self, target: SeekTarget, *, included: bool = True) -> None:
        """Go on at a message (which comes next, or with ``included=False`` the one behind it) or at a publish time in
        ms since the epoch; over several topics, also by a function of the topic's name."""
        await self._consumers.seek(target, included=included)

    async def close(self) -> None:
        """Stop reading; nothing of the reader stays at the broker."""
        if self._closed:
            return
        self._closed = True
        await self._consumers.close()
        self._inbox.fail(AlreadyClosed("the reader is closed"))


async def _has_more(consumer: PartitionConsumer) -> bool:
    last_message = await consumer.last_message()
    last, mark_delete = last_message.id, last_message.mark_delete
    if last.entry < 0:
        return False
    start = consumer.start
    if start is None or start.id.position == LATEST:
        return last.position > mark_delete
    return start.admits(last)
