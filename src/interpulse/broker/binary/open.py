"""What one connection has open, and where the answers to it go: the sinks behind the live producers and consumers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interpulse.broker.live.api import Delivery, LiveConsumer, LiveProducer, LiveTopic
from interpulse.model.errors import PulsarError
from interpulse.wire import commands

if TYPE_CHECKING:
    from interpulse.broker.binary.connection import ClientConnection

__all__ = ["ConsumerOutlet", "OpenConsumer", "OpenProducer", "ProducerOutlet"]


class ProducerOutlet:
    """Turns the answers to one producer into frames. The answers come in the order of the sends."""

    __slots__ = ("_connection", "_drained", "_partition", "_request_id", "_send", "_sizes")

    def __init__(self, connection: ClientConnection, request_id: int, partition: int) -> None:
        self._connection = connection
        self._request_id = request_id
        self._partition = partition
        self._send = connection.output.send
        self._sizes: deque[int] = deque()
        self._drained: asyncio.Future[None] | None = None

    def expect(self, size: int) -> None:
        """One entry of this size is about to be published."""
        self._sizes.append(size)
        self._connection.publish_begun(size)

    async def drained(self) -> None:
        """Wait until every entry has its answer."""
        if self._sizes:
            self._drained = self._drained or self._connection.loop.create_future()
            await self._drained

    def receipt(self, producer_id: int, sequence_id: int, highest_sequence_id: int, ledger: int, entry: int) -> None:
        highest = highest_sequence_id if highest_sequence_id > 0 else 0
        self._send(commands.send_receipt(producer_id, sequence_id, highest, ledger, entry, self._partition))
        self._answered()

    def send_failed(self, producer_id: int, sequence_id: int, error: PulsarError) -> None:
        self._send(commands.send_error(producer_id, sequence_id, error.wire_code, str(error)))
        self._answered()

    def producer_ready(self, producer_id: int, topic_epoch: int) -> None:
        opened = self._connection.producers.get(producer_id)
        if opened is not None:
            self._send(opened.success(self._request_id))

    def producer_refused(self, producer_id: int, error: PulsarError) -> None:
        self._connection.forget_producer(producer_id)
        self._send(commands.error_of(self._request_id, error))

    def producer_closed(self, producer_id: int) -> None:
        connection = self._connection
        connection.forget_producer(producer_id)
        if connection.accepts_closing:
            self._send(commands.close_producer(producer_id))
        else:
            connection.close()

    async def is_alive(self) -> bool:
        return await self._connection.is_alive()

    def _answered(self) -> None:
        sizes = self._sizes
        self._connection.publish_answered(sizes.popleft())
        if self._drained is not None and not sizes:
            self._drained.set_result(None)
            self._drained = None


class ConsumerOutlet:
    """Turns entries for one consumer into MESSAGE frames."""

    __slots__ = ("_connection", "_early", "_partition", "_subscribed", "consumer", "epoch_wanted")

    def __init__(self, connection: ClientConnection, partition: int, *, epoch_wanted: bool) -> None:
        """``epoch_wanted``: the client gave a consumer epoch and wants to see it in its messages."""
        self.consumer: LiveConsumer | None = None
        self.epoch_wanted = epoch_wanted
        self._connection = connection
        self._partition = partition
        self._subscribed = False
        self._early: list[bytes] = []

    def subscribed(self) -> None:
        """SUCCESS was sent: what had to wait for it may follow."""
        self._subscribed = True
        for frame in self._early:
            self._connection.output.send(frame)
        self._early.clear()

    @property
    def writable(self) -> bool:
        return self._connection.writable

    def deliver(self, consumer_id: int, batch: Sequence[Delivery]) -> None:
        head, partition = commands.message_head, self._partition
        epoch = self.consumer.epoch if self.epoch_wanted and self.consumer is not None else None
        pieces: list[bytes] = []
        size = 0
        for (ledger, entry_id), entry, redelivery_count, ack_set, _ in batch:
            entry_size = len(entry)
            frame_head = head(
                consumer_id,
                ledger,
                entry_id,
                entry_size,
                partition=partition,
                redelivery_count=redelivery_count,
                ack_set=ack_set,
                consumer_epoch=epoch,
            )
            pieces.append(frame_head)
            pieces.append(entry)
            size += entry_size + len(frame_head)
        self._connection.output.send_pieces(pieces, size)

    def active_changed(self, consumer_id: int, active: bool) -> None:
        self._send_subscribed(commands.active_consumer_change(consumer_id, active=active))

    def end_of_topic(self, consumer_id: int) -> None:
        if self._connection.is_java:
            self._send_subscribed(commands.reached_end_of_topic(consumer_id))

    def consumer_closed(self, consumer_id: int) -> None:
        connection = self._connection
        connection.consumers.pop(consumer_id, None)
        if connection.accepts_closing:
            connection.output.send(commands.close_consumer(consumer_id))
        else:
            connection.close()

    async def is_alive(self) -> bool:
        return await self._connection.is_alive()

    def _send_subscribed(self, frame: bytes) -> None:
        if self._subscribed:
            self._connection.output.send(frame)
        else:
            self._early.append(frame)


@dataclass(slots=True)
class OpenProducer:
    """A producer of this connection."""

    producer: LiveProducer
    topic: LiveTopic
    outlet: ProducerOutlet
    schema_version: bytes

    def success(self, request_id: int) -> bytes:
        """PRODUCER_SUCCESS as it stands now."""
        producer = self.producer
        return commands.producer_success(
            request_id,
            name=producer.name,
            last_sequence_id=producer.last_sequence_id,
            schema_version=self.schema_version,
            topic_epoch=producer.topic_epoch,
            ready=producer.ready,
        )


@dataclass(slots=True)
class OpenConsumer:
    """A consumer of this connection."""

    consumer: LiveConsumer
    topic: LiveTopic
