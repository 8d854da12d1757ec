"""Producer of a topic: one partition producer per partition, or a single one for a topic without partitions."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from typing import Final

from interpulse.client.closing import AsyncCloses
from interpulse.client.messages import OutgoingMessage
from interpulse.client.partitions import PartitionWatch, open_all, partition_names
from interpulse.client.producing.batcher import key_text
from interpulse.client.producing.partition_producer import HashingScheme, PartitionProducer, ProducerConfig, RoutingMode
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed
from interpulse.model.ids import MessageId
from interpulse.model.names import TopicName
from interpulse.wire.hashing import java_string_hash, murmur3_hash

_HASHES: Final[dict[HashingScheme, Callable[[str], int]]] = {
    "java-string": java_string_hash,
    "murmur3": lambda key: murmur3_hash(key.encode()),
}


class Router:
    """Routes messages with a key by its hash, as Pulsar's Java client does, and others round-robin or to one partition.

    The single partition is chosen at random. Round-robin changes the partition every ``stride`` messages, so that
    consecutive messages can share a batch.
    """

    def __init__(
        self, *, mode: RoutingMode = "round-robin", hashing: HashingScheme = "java-string", stride: int = 1
    ) -> None:
        self._hash = _HASHES[hashing]
        self._mode = mode
        self._stride = stride
        self._start = random.randrange(2**31)
        self._counter = itertools.count()

    def choose(self, key: str | None, partitions: int) -> int:
        """Return the partition index for a message with this key (base64 text for binary keys)."""
        if key is not None:
            return self._hash(key) % partitions
        if self._mode == "single":
            return self._start % partitions
        return (self._start + next(self._counter) // self._stride) % partitions


class Producer(AsyncCloses):
    """Producer for one topic, made by :meth:`Client.create_producer`.

    As an async context manager it flushes and closes at the end of the block.
    """

    def __init__(self, session: Session, topic: TopicName, config: ProducerConfig) -> None:
        self._session = session
        self._topic = topic
        self._config = config
        self._router = Router(
            mode=config.routing,
            hashing=config.hashing,
            stride=config.batch_messages_max if config.batching_enabled else 1,
        )
        self._partitions: list[PartitionProducer] = []
        self._is_partitioned = False
        self._updating = asyncio.Lock()
        self._watch: PartitionWatch | None = None
        self.is_closed = False
        self._telemetry = session.telemetry.sending() if session.telemetry is not None else None

    async def open(self) -> None:
        """Find the partitions and register with all of them. Raise the broker's refusal."""
        count = await self._session.lookup.partitions(self._topic, create=True)
        self._is_partitioned = count > 0
        await self._add(partition_names(self._topic, count))
        if count and self._config.auto_update_partitions:
            interval_ms = self._config.auto_update_partitions_interval_ms
            self._watch = PartitionWatch(
                self._session, self.update_partitions, interval_ms=interval_ms, what=f"topic={self._topic}"
            )

    async def _add(self, topics: list[TopicName]) -> None:
        """Open producers for all these topics, or for none of them."""
        if len(topics) > 1:
            await self._session.look_ahead(topics)
        added = [PartitionProducer(self._session, topic, self._config) for topic in topics]
        await open_all(added)
        if self.is_closed:
            await asyncio.gather(*(producer.close() for producer in added), return_exceptions=True)
            raise self._already_closed()
        self._partitions += added

    async def update_partitions(self) -> None:
        """Look for new partitions now. No topic is created. Raise TopicNotFound if the topic was deleted."""
        if self.is_closed:
            raise self._already_closed()
        async with self._updating:
            if not self._is_partitioned:
                return
            count = await self._session.lookup.partitions(self._topic, create=False, fallback_on_old_broker=True)
            if count > len(self._partitions):
                await self._add(partition_names(self._topic, count, first=len(self._partitions)))

    def _already_closed(self) -> AlreadyClosed:
        return AlreadyClosed(f"the producer on {self._topic} is closed")

    @property
    def topic(self) -> str:
        return str(self._topic)

    @property
    def name(self) -> str:
        """Name of the producer. If the broker assigned it on a partitioned topic, the name on the first partition."""
        return self._partitions[0].name

    @property
    def partitions(self) -> list[PartitionProducer]:
        """Producers of the partitions, in order."""
        return list(self._partitions)

    @property
    def last_sequence_id(self) -> int:
        return max(partition.last_sequence_id for partition in self._partitions)

    @property
    def is_connected(self) -> bool:
        return not self.is_closed and all(partition.is_connected for partition in self._partitions)

    async def send(
        self, content: bytes | str | OutgoingMessage | None, *, key: str | bytes | None = None, **fields: object
    ) -> MessageId:
        """Send one message and wait until the broker has stored it. Return its id.

        ``content`` None is a tombstone. ``fields`` are those of :class:`OutgoingMessage`: properties, event_time_ms,
        ordering_key, deliver_at_ms, deliver_after_ms, sequence_id, replication_clusters.
        """
        message = _outgoing(content, key, fields)
        if self._telemetry is not None:
            return await self._telemetry.send(self._choose(message), message)
        return await self._choose(message).send(message)

    async def enqueue(
        self, content: bytes | str | OutgoingMessage | None, *, key: str | bytes | None = None, **fields: object
    ) -> asyncio.Future[MessageId]:
        """Send one message, waiting only for room. Return a future with its id or the failure.

        Parameters are those of :meth:`send`.
        """
        message = _outgoing(content, key, fields)
        if self._telemetry is not None:
            return await self._telemetry.enqueue(self._choose(message), message)
        return await self._choose(message).enqueue(message)

    def _choose(self, message: OutgoingMessage) -> PartitionProducer:
        if self.is_closed:
            raise self._already_closed()
        if len(self._partitions) == 1:
            return self._partitions[0]
        return self._partitions[self._router.choose(key_text(message.key), len(self._partitions))]

    async def flush(self) -> None:
        """Wait for the receipts of everything sent so far. Raise the first failure."""
        await asyncio.gather(*(partition.flush() for partition in self._partitions))

    async def close(self) -> None:
        """Flush and close the producer. Raise the first failure of a message."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._watch is not None:
            await self._watch.stop()
        closings = (partition.close() for partition in self._partitions)
        for outcome in await asyncio.gather(*closings, return_exceptions=True):
            if outcome is not None:
                raise outcome


def _outgoing(
    content: bytes | str | OutgoingMessage | None, key: str | bytes | None, fields: dict[str, object]
) -> OutgoingMessage:
    if isinstance(content, OutgoingMessage):
        return content
    if not isinstance(content, (bytes, str, bytearray, memoryview, type(None))):
        raise TypeError(f"content is of type {type(content).__name__}, expected bytes, str, None or OutgoingMessage")
    body = content.encode() if isinstance(content, str) else content
    return OutgoingMessage(body, key, **fields)  # type: ignore[arg-type]  # checked by the class itself
