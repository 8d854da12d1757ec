"""The open producers, consumers and watchers of one connection, which encode answers as frames."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from interpulse.broker.binary.transport.flow_control import Output, PendingPublishes, ProducerPublishes
from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.producing.producer import Producer
from interpulse.broker.live.registry.topic_tasks import AnyTopic
from interpulse.broker.topics.lookup.topic_watches import TopicPattern, TopicWatch, TopicWatches
from interpulse.model.errors import PulsarError, ServiceNotReady
from interpulse.model.names import NamespaceName
from interpulse.rules.failover_role import FailoverRole
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.codec import codec
from interpulse.wire.entries import without_broker_metadata
from interpulse.wire.hashing import topics_hash
from interpulse.wire.ids import UINT64_NONE
from interpulse.wire.protocols import ServerProtocol

_CLIENT_READY_S: Final = 1.0  # a real broker waits as long, by activeConsumerFailoverDelayTimeMillis


class SinkConnection(Protocol):
    """The interface of the connection for its sinks and watchers."""

    consumers: dict[int, OpenConsumer]
    loop: asyncio.AbstractEventLoop
    lost: bool
    output: Output
    pending_publishes: PendingPublishes
    producers: dict[int, OpenProducer]
    protocol: ServerProtocol
    topic_watchers: dict[int, TopicWatcher]

    @property
    def writable(self) -> bool: ...
    def close(self) -> None: ...
    def forget_producer(self, producer_id: int) -> None: ...
    def throttle(self, wait_ms: int) -> None: ...
    async def is_alive(self) -> bool: ...


class BinaryProducerSink:
    """The encoder of one producer's answers, which come in the order of the sends."""

    __slots__ = ("_abandoned", "_connection", "_request_id", "_send", "encode_receipts", "publishes")

    def __init__(self, connection: SinkConnection, request: pb.CommandProducer, partition: int) -> None:
        self.publishes = ProducerPublishes(connection.pending_publishes)
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
        if connection.protocol.accepts_closing:
            self._send(commands.encode(pb.CommandCloseProducer(producer_id=producer_id, request_id=UINT64_NONE)))
        else:
            connection.close()

    def producer_moved(self, producer_id: int, moved: FailoverRole) -> None:
        connection = self._connection
        if not connection.protocol.accepts_redirect:
            self.producer_closed(producer_id)  # it returns, and is refused
            return
        connection.forget_producer(producer_id)
        self._send(commands.producer_moved(producer_id, moved.service_url, moved.service_url_tls))

    async def is_alive(self) -> bool:
        return await self._connection.is_alive()


class BinaryConsumerSink:
    """The encoder of one consumer's entries, as MESSAGE frames.

    Notices wait until the client certainly has the consumer: for its first permits, or for a second. The official Go
    client drops notices that directly follow the answer to SUBSCRIBE.
    """

    __slots__ = ("_bare", "_connection", "_encode", "_waiting", "consumer", "ready")

    def __init__(
        self, connection: SinkConnection, request: pb.CommandSubscribe, partition: int, *, bare: bool = False
    ) -> None:
        """``bare``: strip broker entry metadata from entries."""
        self._bare = bare
        self.consumer: Consumer | None = None
        self._connection = connection
        self._encode = codec().message_encoder(request.consumer_id, partition)
        self.ready = False
        """True if the client certainly has the consumer."""
        self._waiting: list[bytes] = []

    def subscribed(self, consumer_id: int) -> None:
        """Note that SUCCESS was sent: notices wait for a second at most. The timer keeps no closed consumer alive."""
        connection = self._connection

        def send_notices() -> None:
            opened = connection.consumers.get(consumer_id)
            if opened is not None:
                opened.sink.send_notices()

        connection.loop.call_later(_CLIENT_READY_S, send_notices)

    def send_notices(self) -> None:
        self.ready = True
        for frame in self._waiting:
            self._connection.output.send(frame)
        self._waiting.clear()

    @property
    def writable(self) -> bool:
        return self._connection.writable

    def deliver(self, consumer_id: int, batch: Sequence[Delivery]) -> None:
        if self._bare:
            batch = [delivery._replace(entry=without_broker_metadata(delivery.entry)) for delivery in batch]
        epoch = None if self.consumer is None else self.consumer.epoch
        pieces = self._encode(batch, epoch)
        self._connection.output.send_pieces(pieces, sum(map(len, pieces)))

    def active_changed(self, consumer_id: int, active: bool) -> None:
        self._notify(commands.encode(pb.CommandActiveConsumerChange(consumer_id=consumer_id, is_active=active)))

    def end_of_topic(self, consumer_id: int) -> None:
        # C++ and Go clients drop the connection on commands that only Java knows
        if self._connection.protocol.connect.client_version.startswith("Pulsar-Java"):
            # C++ and Go clients close the connection on it.
            self._notify(commands.encode(pb.CommandReachedEndOfTopic(consumer_id=consumer_id)))

    def consumer_closed(self, consumer_id: int) -> None:
        connection = self._connection
        self._waiting.clear()
        connection.consumers.pop(consumer_id, None)
        if connection.protocol.accepts_closing:
            connection.output.send(
                commands.encode(pb.CommandCloseConsumer(consumer_id=consumer_id, request_id=UINT64_NONE))
            )
        else:
            connection.close()

    def consumer_moved(self, consumer_id: int, moved: FailoverRole) -> None:
        connection = self._connection
        if not connection.protocol.accepts_redirect:
            self.consumer_closed(consumer_id)  # it returns, and is refused
            return
        self._waiting.clear()
        connection.consumers.pop(consumer_id, None)
        connection.output.send(commands.consumer_moved(consumer_id, moved.service_url, moved.service_url_tls))

    async def is_alive(self) -> bool:
        return await self._connection.is_alive()

    def _notify(self, frame: bytes) -> None:
        if self.ready:
            self._connection.output.send(frame)
        else:
            self._waiting.append(frame)


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
        return commands.encode(
            pb.CommandProducerSuccess(
                request_id=request_id,
                producer_name=producer.name,
                last_sequence_id=producer.last_sequence_id,
                schema_version=self.schema_version,
                topic_epoch=producer.topic_epoch,
                producer_ready=producer.ready,
            )
        )


@dataclass(slots=True)
class OpenConsumer:
    """A consumer of this connection."""

    consumer: Consumer
    topic: AnyTopic
    sink: BinaryConsumerSink


class TopicWatcher:
    """One watcher of a connection. While the client does not read, changes are merged into one later update."""

    def __init__(
        self, connection: SinkConnection, watches: TopicWatches, watcher_id: int, namespace: NamespaceName
    ) -> None:
        self.namespace = namespace
        self._watches = watches
        self._connection = connection
        self._id = watcher_id
        self._watch: TopicWatch | None = None
        self._announced = False
        self._closed = False

    async def open(self, pattern: TopicPattern) -> None:
        """Find the topics that match. Raise the error of the broker if it cannot list the namespace."""
        self._watch = await self._watches.watch(self.namespace, pattern, self.send_changes)
        if self._closed:
            self._end()

    def announce(self, request_id: int, known_hash: str) -> None:
        """Send the current list, without names if the client has them already. Updates follow."""
        watch = self._watch
        if watch is None:
            raise ServiceNotReady("Topic list watcher is already being created on this connection")
        watch.take_changes()
        current = topics_hash(watch.names)
        names = [] if known_hash == current else watch.names
        answer = pb.CommandWatchTopicListSuccess(
            request_id=request_id, watcher_id=self._id, topic=names, topics_hash=current
        )
        self._connection.output.send(commands.encode(answer))
        self._announced = True

    def send_changes(self) -> None:
        watch = self._watch
        if watch is None or not self._announced or not watch.has_changes or not self._connection.writable:
            return
        new, gone = watch.take_changes()
        current = topics_hash(watch.names)
        update = pb.CommandWatchTopicUpdate(
            watcher_id=self._id, new_topics=new, deleted_topics=gone, topics_hash=current
        )
        self._connection.output.send(commands.encode(update))

    def close(self) -> None:
        """Stop sending. A watcher that is still opening ends once it is open."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        if self._watch is not None:
            self._announced = False
            self._watches.end(self.namespace, self._watch)
