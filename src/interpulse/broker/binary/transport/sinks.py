"""The open producers and consumers of one connection, and their sinks, which encode answers as frames."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from interpulse.broker.binary.transport.output import Output
from interpulse.broker.binary.transport.reading import PendingPublishes, ProducerPublishes
from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.producing.producer import Producer
from interpulse.broker.live.registry.topic_tasks import AnyTopic
from interpulse.model.errors import PulsarError
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.codec import codec
from interpulse.wire.entries import without_broker_metadata

_CLIENT_READY_S: Final = 1.0  # a real broker waits as long, by activeConsumerFailoverDelayTimeMillis


class SinkConnection(Protocol):
    """The interface of the connection for its sinks."""

    consumers: dict[int, OpenConsumer]
    loop: asyncio.AbstractEventLoop
    output: Output
    pending_publishes: PendingPublishes
    producers: dict[int, OpenProducer]

    @property
    def accepts_closing(self) -> bool:
        """True if the client understands that the broker closes one producer or consumer."""

    @property
    def is_java(self) -> bool: ...

    @property
    def writable(self) -> bool:
        """False while too much output waits to read more entries for this client."""

    def close(self) -> None: ...

    def forget_producer(self, producer_id: int) -> None:
        """Forget a closed producer."""

    def throttle(self, wait_ms: int) -> None:
        """Stop reading from this client for ``wait_ms``."""

    async def is_alive(self) -> bool:
        """Return True if the client answers a liveness check."""


class BinaryProducerSink:
    """The encoder of one producer's answers, which come in the order of the sends."""

    __slots__ = ("_abandoned", "_connection", "_request_id", "_send", "encode_receipts", "publishes")

    def __init__(self, connection: SinkConnection, request: pb.CommandProducer, partition: int) -> None:
        self.publishes = connection.pending_publishes.of_producer()
        """The pending entries of the producer."""
        self._connection = connection
        self._request_id = request.request_id
        self._send = connection.output.send
        self.encode_receipts: Callable[[Sequence[tuple[int, int, int, int]]], bytes]
        """The encoder of receipts; see `Codec`. Tests replace it to lose some."""
        self.encode_receipts = codec().receipt_encoder(request.producer_id, partition)
        self._abandoned = False

    def abandon(self) -> None:
        """Drop the pending answers of a closed producer."""
        self._abandoned = True
        self.publishes.abandon()

    def receipts(self, producer_id: int, receipts: Sequence[tuple[int, int, int, int]]) -> None:
        if self._abandoned:
            return
        frames = self.encode_receipts(receipts)
        self._connection.output.send_pieces((frames,), len(frames))
        self.publishes.answered(len(receipts))

    def send_failed(self, producer_id: int, sequence_id: int, error: PulsarError) -> None:
        if self._abandoned:
            return
        self._send(commands.send_error(producer_id, sequence_id, error.wire_code, str(error)))
        self.publishes.answered()

    def throttle(self, wait_ms: int) -> None:
        self._connection.throttle(wait_ms)

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


class BinaryConsumerSink:
    """The encoder of one consumer's entries, as MESSAGE frames.

    Notices wait until the client certainly has the consumer: for its first permits, or for a second. The official Go
    client drops notices that directly follow the answer to SUBSCRIBE.
    """

    __slots__ = ("_bare", "_connection", "_encode", "_epoch_wanted", "_waiting", "consumer", "known")

    def __init__(
        self, connection: SinkConnection, request: pb.CommandSubscribe, partition: int, *, bare: bool = False
    ) -> None:
        """``bare``: strip broker entry metadata from entries."""
        self._bare = bare
        self.consumer: Consumer | None = None
        self._connection = connection
        # Only a client that sent a consumer epoch expects it in its messages.
        self._epoch_wanted = request.HasField("consumer_epoch")
        self._encode = codec().message_encoder(request.consumer_id, partition)
        self.known = False
        """True if the client certainly has the consumer."""
        self._waiting: list[bytes] = []

    def subscribed(self, consumer_id: int) -> None:
        """Note that SUCCESS was sent: notices wait for a second at most.

        The timer finds the sink by its id, so that it does not keep a closed consumer and its topic alive.
        """
        self._connection.loop.call_later(_CLIENT_READY_S, _send_notices_of, self._connection, consumer_id)

    def send_notices(self) -> None:
        """Send the waiting notices; later ones are sent immediately."""
        self.known = True
        for frame in self._waiting:
            self._connection.output.send(frame)
        self._waiting.clear()

    @property
    def writable(self) -> bool:
        return self._connection.writable

    def deliver(self, consumer_id: int, batch: Sequence[Delivery]) -> None:
        if self._bare:
            batch = [delivery._replace(entry=without_broker_metadata(delivery.entry)) for delivery in batch]
        epoch = self.consumer.epoch if self._epoch_wanted and self.consumer is not None else None
        pieces = self._encode(batch, epoch)
        self._connection.output.send_pieces(pieces, sum(map(len, pieces)))

    def active_changed(self, consumer_id: int, active: bool) -> None:
        self._notify(commands.active_consumer_change(consumer_id, active=active))

    def end_of_topic(self, consumer_id: int) -> None:
        if self._connection.is_java:
            self._notify(commands.reached_end_of_topic(consumer_id))

    def consumer_closed(self, consumer_id: int) -> None:
        connection = self._connection
        self._waiting.clear()
        connection.consumers.pop(consumer_id, None)
        if connection.accepts_closing:
            connection.output.send(commands.close_consumer(consumer_id))
        else:
            connection.close()

    async def is_alive(self) -> bool:
        return await self._connection.is_alive()

    def _notify(self, frame: bytes) -> None:
        if self.known:
            self._connection.output.send(frame)
        else:
            self._waiting.append(frame)


def _send_notices_of(connection: SinkConnection, consumer_id: int) -> None:
    opened = connection.consumers.get(consumer_id)
    if opened is not None:
        opened.sink.send_notices()


@dataclass(slots=True)
class OpenProducer:
    """A producer of this connection."""

    producer: Producer
    topic: AnyTopic
    sink: BinaryProducerSink
    publishes: ProducerPublishes
    schema_version: bytes

    def success(self, request_id: int) -> bytes:
        """Return PRODUCER_SUCCESS with the current state of the producer."""
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

    consumer: Consumer
    topic: AnyTopic
    sink: BinaryConsumerSink
