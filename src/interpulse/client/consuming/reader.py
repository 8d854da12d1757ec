"""Reader of topics from a position, without a subscription that outlives it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, fields

from interpulse.client.checks import check_interval, check_type
from interpulse.client.closing import AsyncCloses
from interpulse.client.consuming.consumer_config import ConsumerConfig, CryptoFailureAction, KeySharedPolicy
from interpulse.client.consuming.partition_consumer import PartitionConsumer
from interpulse.client.consuming.partition_consumers import PartitionConsumers, SeekTarget
from interpulse.client.consuming.read_place import check_site
from interpulse.client.consuming.unpacker import Start
from interpulse.client.encryption.key_reader import CryptoKeyReader
from interpulse.client.messages import Message
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, InvalidRequest
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo


@dataclass(frozen=True, slots=True)
class ReaderConfig:
    """Settings of one reader."""

    start: MessageId | Position = EARLIEST
    """Position to start at: EARLIEST, LATEST or a message."""

    start_included: bool = False
    """True: the message at ``start`` is read too."""

    name: str | None = None
    schema: SchemaInfo | None = None
    receiver_queue_size: int = 1000
    read_compacted: bool = False
    key_hash_ranges: tuple[tuple[int, int], ...] = ()
    """Hash slots, 0 to 65535 and both ends included, of the keys to read. Empty: all messages.

    Persistent topics only, because Apache Pulsar does not filter others.
    """

    force_topic_creation: bool = True
    subscription_prefix: str = "reader"
    chunked_messages_max: int = 10
    """Maximum number of incomplete chunked messages per partition. The oldest is dropped for another one."""

    crypto_failure_action: CryptoFailureAction = "fail"
    """Action for messages that cannot be decrypted; see :class:`ConsumerConfig`."""

    crypto_key_reader: CryptoKeyReader | None = field(default=None, repr=False)
    """Source of private keys; see :class:`ConsumerConfig`."""

    auto_update_partitions: bool = True
    """True: look for new partitions of partitioned topics, and read them from their beginning."""

    auto_update_partitions_interval_ms: int = 60_000
    """Interval between two searches for new partitions."""

    def __post_init__(self) -> None:
        check_interval("auto_update_partitions_interval_ms", self.auto_update_partitions_interval_ms)
        check_type("start", self.start, MessageId, Position)
        if self.key_hash_ranges:
            KeySharedPolicy(self.key_hash_ranges)  # raises ValueError for invalid ranges

    def of_consumer(self) -> ConsumerConfig:
        """Return the settings of the reader's partition consumers."""
        shared = {setting.name for setting in fields(ConsumerConfig)} & {setting.name for setting in fields(self)}
        return ConsumerConfig(**{name: getattr(self, name) for name in shared})


class Reader(AsyncCloses):
    """Reader of one topic with all its partitions, or of several topics. Made by :meth:`Client.create_reader`."""

    def __init__(self, session: Session, topics: Sequence[TopicName], config: ReaderConfig) -> None:
        self._session = session
        self._topics = list(topics)
        self._config = config
        self._consumers = PartitionConsumers(
            session, self._new_consumer, config.of_consumer(), what=f"reader topics={','.join(map(str, topics))}"
        )
        self._inbox = self._consumers.inbox
        self.is_closed = False

    async def open(self) -> None:
        """Find the partitions and start reading. Raise the broker's refusal."""
        for topic in self._topics if self._config.key_hash_ranges else ():
            if not topic.is_persistent:
                raise InvalidRequest(f"key_hash_ranges: a broker does not filter the non-persistent topic {topic}")
        cluster = MessageId.of(self._config.start).cluster
        if cluster is None or not self._session.has_redirected_to(cluster):
            check_site(MessageId.of(self._config.start), self._session)
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
        """Look for new partitions now, and read them from their beginning. No topic is created.

        Raise TopicNotFound if a topic was deleted.
        """
        if self.is_closed:
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
        """Name of the topic as it was requested; of the first one if there are several."""
        return str(self._topics[0])

    @property
    def topics(self) -> list[str]:
        """Names of the topics as they were requested."""
        return [str(topic) for topic in self._topics]

    @property
    def is_connected(self) -> bool:
        return self._consumers.is_connected

    async def read_next(self, timeout_ms: int | None = None) -> Message:
        """Return the next message. Raise OperationTimeout if none arrives in time."""
        message = await self._inbox.take(timeout_ms)
        consumer = self._consumers.get(message.topic)
        if consumer is not None:  # otherwise not all partitions could be opened, and the message is read again
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
        """Return True if there is a message between the reader's position and the current end of the topic.

        With ``key_hash_ranges`` its key may be in another slot, and the message is never delivered: pass ``read_next``
        a timeout.
        """
        if len(self._inbox):
            return True
        return await self._consumers.any(_has_more) or len(self._inbox) > 0

    async def seek(self, target: SeekTarget, *, included: bool = True) -> None:
        """Continue at a message or at a publish time in ms since the epoch.

        The message itself comes next, or with ``included=False`` the one after it. For several topics a function of the
        topic's name is accepted too.
        """
        await self._consumers.seek(target, included=included)

    async def close(self) -> None:
        """Stop reading. The broker keeps nothing of the reader."""
        if self.is_closed:
            return
        self.is_closed = True
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
