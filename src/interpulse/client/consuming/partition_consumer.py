"""Consumer of one topic or one partition, and the queue of received messages."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from interpulse.client.connection_handler import ConnectionHandler
from interpulse.client.consuming.acknowledgements import Acknowledgements
from interpulse.client.consuming.consumer_config import ConsumerConfig, KeySharedPolicy
from interpulse.client.consuming.copied_entries import CopySearch
from interpulse.client.consuming.dead_letters import DeadLetterProducer
from interpulse.client.consuming.read_place import ReadPlace, check_site
from interpulse.client.consuming.unpacker import Start, Unpacker, permits_for
from interpulse.client.messages import Message
from interpulse.client.session import Session
from interpulse.client.transport.connection import Connection
from interpulse.clock import now_ms
from interpulse.model.clusters import shown_address
from interpulse.model.errors import AlreadyClosed, CryptoError, NotConnected, OperationTimeout, PulsarError
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import verify_checksum
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import MessageRun
from interpulse.wire.ids import message_id_from_wire, message_id_to_wire, position_from_wire
from interpulse.wire.schemas import schema_to_wire

if TYPE_CHECKING:
    from interpulse.client.telemetry import Processing

_log = logging.getLogger(__name__)
_KINDS: Final[dict[str, pb.CommandSubscribe.SubType.ValueType]] = {
    "exclusive": pb.CommandSubscribe.Exclusive,
    "shared": pb.CommandSubscribe.Shared,
    "failover": pb.CommandSubscribe.Failover,
    "key-shared": pb.CommandSubscribe.Key_Shared,
}


class Source(Protocol):
    """Consumer that put a message in."""

    def on_taken(self, message: Message) -> None:
        """Handle that the application has taken the message."""


class Inbox:
    """Queue of received messages, first in, first out. The permits that its sources grant bound its size."""

    def __init__(self) -> None:
        self._items: deque[tuple[Message, Source]] = deque()
        self._filled = asyncio.Event()
        self._failure: PulsarError | None = None

    def __len__(self) -> int:
        return len(self._items)

    def put(self, message: Message, source: Source) -> None:
        self._items.append((message, source))
        self._filled.set()

    def fail(self, failure: PulsarError) -> None:
        """End the inbox. Once it is empty, callers get the failure."""
        self._failure = failure
        self._filled.set()

    def discard(self, source: Source) -> int:
        """Drop the queued messages of one source. Return their number."""
        before = len(self._items)
        self._items = deque(item for item in self._items if item[1] is not source)
        return before - len(self._items)

    async def take(self, timeout_ms: int | None) -> Message:
        """Return the next message. Raise OperationTimeout, or the failure that ended the inbox."""
        while not self._items:
            if self._failure is not None:
                raise self._failure
            self._filled.clear()
            try:
                async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                    await self._filled.wait()
            except TimeoutError:
                raise OperationTimeout(f"no message within {timeout_ms} ms") from None
        message, source = self._items.popleft()
        source.on_taken(message)
        return message

    async def take_batch(self, *, messages_max: int | None, bytes_max: int, timeout_ms: int) -> list[Message]:
        """Return messages up to a limit or the timeout; possibly none. Raise the failure that ended the inbox."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        batch: list[Message] = []
        size = 0
        while size < bytes_max and (messages_max is None or len(batch) < messages_max):
            try:
                message = await self.take(max(int((deadline - loop.time()) * 1000), 0))
            except OperationTimeout:
                break
            except PulsarError:
                if not batch:
                    raise
                break
            batch.append(message)
            size += len(message.content or b"")
        return batch


@dataclass(frozen=True, slots=True)
class LastMessage:
    """End of a topic, and the acknowledged position of the subscription."""

    id: MessageId
    mark_delete: Position


class PartitionConsumer:
    """Consumer of one topic or partition, which fills an inbox. Made by the client.

    With ``start`` it is a reader: the subscription begins there and ends with the consumer. ``dead_letter_producer``
    receives messages that were redelivered too often. ``on_failed`` receives the failure that ends the consumer; by
    default the inbox does. ``telemetry`` follows messages until they are acknowledged.
    """

    def __init__(
        self,
        session: Session,
        topic: TopicName,
        subscription: str,
        config: ConsumerConfig,
        inbox: Inbox,
        *,
        start: Start | None = None,
        key_hash_ranges: tuple[tuple[int, int], ...] = (),
        dead_letter_producer: DeadLetterProducer | None = None,
        on_failed: Callable[[PulsarError], None] | None = None,
        telemetry: Processing | None = None,
    ) -> None:
        self.topic = topic
        self.subscription = subscription
        self.is_active = True
        self.reached_end_of_topic = False
        self._session = session
        self._config = config
        self._inbox = inbox
        self._when_failed = on_failed or inbox.fail
        self._telemetry = telemetry
        self._durable = start is None
        self._key_shared = KeySharedPolicy(key_hash_ranges) if key_hash_ranges else config.key_shared
        self.start = start
        """Position from which a reader continues."""
        self._id = session.next_id()
        self._handler = ConnectionHandler(session, topic, self, what="consumer")
        if start is not None and start.id.cluster is not None and session.has_redirected_to(start.id.cluster):
            self._handler.redirect(start.id.cluster)
        self._failure: PulsarError | None = None
        self._seeking: asyncio.Future[None] | None = None
        self._taken = 0
        self._epoch = 0
        """The number of full redeliveries asked for. Messages with a lower one were sent before (PIP-84)."""
        self._newest = EARLIEST
        """The entry that came last."""
        self.acks = Acknowledgements(
            session,
            config,
            self._id,
            lambda: self._handler.connection,
            lambda: self._handler.session,
            self.redeliver_unacknowledged,
            dead_letter_producer=dead_letter_producer,
            telemetry=telemetry,
        )
        self._unpacker = Unpacker(topic, self.acks.tracker, config)
        self._unpacker.cluster = self._handler.session.cluster
        self._generation = self._handler.generation
        self._has_opened = self._has_moved = False
        self._place: ReadPlace | None = None
        if self._unpacker.cluster is not None and start is not None:
            self._place = ReadPlace(start, self._unpacker.cluster, now_ms())
        self._last_taken: Message | None = None
        """Message that a reader has given out last."""
        self._loop = asyncio.get_running_loop()

    # ---- Opening and reconnecting

    async def open(self) -> None:
        """Subscribe. Raise the broker's refusal."""
        await self._handler.open(timeout_ms=self._session.config.operation_timeout_ms)

    @property
    def is_connected(self) -> bool:
        return self._handler.connection is not None

    async def register(self, connection: Connection) -> None:
        """Subscribe and grant permits; called by the connection handler."""
        if self._handler.generation != self._generation:
            await self._change_site()
        holds = (self.topic, self.subscription) if self._config.subscription_type == "exclusive" else None
        await connection.consumers.open(self._id, self, self._subscribe_command(), holds=holds)
        self._handler.on_connected(connection)
        self._has_opened = True
        self._taken = 0
        self.acks.flush()
        connection.write(commands.flow(self._id, self._config.receiver_queue_size))

    async def _change_site(self) -> None:
        """Drop what belongs to the former cluster, and find the place of a reader at the present one."""
        generation, session = self._handler.generation, self._handler.session
        cluster = session.cluster
        self.acks.forget()
        self._inbox.discard(self)
        self._unpacker.clear()
        self._epoch, self._newest = 0, EARLIEST
        self.reached_end_of_topic = False
        has_moved = cluster != self._unpacker.cluster  # otherwise only the credentials are others
        self._has_moved = self._has_moved or (has_moved and self._has_opened)
        if self._place is not None and cluster is not None and has_moved and self.topic.is_persistent:
            search, overlap_s = CopySearch(session, self.topic), session.config.reader_overlap_s
            self.start = await self._place.at_site(cluster, search, overlap_s=overlap_s, topic=str(self.topic))
        elif self._durable:
            self.start = None
        self._unpacker.cluster = cluster
        self._generation = generation

    def _subscribe_command(self) -> pb.CommandSubscribe:
        config = self._config
        # At another site nothing says that messages before a new subscription were acknowledged.
        earliest = config.initial_position == "earliest" or self._has_moved
        start = None if self._durable or self.start is None else self.start.subscribe_from
        return pb.CommandSubscribe(
            topic=str(self.topic),
            subscription=self.subscription,
            subType=_KINDS[config.subscription_type],
            consumer_id=self._id,
            consumer_name=config.name,
            durable=self._durable,
            start_message_id=None if start is None else message_id_to_wire(start),
            initialPosition=pb.CommandSubscribe.Earliest if earliest else pb.CommandSubscribe.Latest,
            force_topic_creation=config.force_topic_creation,
            read_compacted=config.read_compacted or None,
            priority_level=config.priority_level or None,
            schema=None if config.schema is None else schema_to_wire(config.schema),
            keySharedMeta=_key_shared(self._key_shared),
            metadata=commands.pairs(config.properties),
            subscription_properties=commands.pairs(config.subscription_properties),
            replicate_subscription_state=config.replicate_subscription_state or None,
            consumer_epoch=self._epoch or None,
        )

    def on_failed(self, failure: PulsarError) -> None:
        """Stop receiving."""
        self._failure = failure
        self.acks.stop()
        self._when_failed(failure)

    # ---- Called by the connection

    def on_messages(self, run: MessageRun) -> None:
        if self._is_stale(run.positions[0], None):
            self._release(sum(run.counts))
            return
        for position, entry in zip(run.positions, run.entries, strict=True):
            self._take(position, memoryview(entry))

    def on_message(self, message: pb.CommandMessage, entry: memoryview) -> None:
        position = position_from_wire(message.message_id)
        if self._is_stale(position, message.consumer_epoch if message.HasField("consumer_epoch") else None):
            self._release(permits_for(entry, message.ack_set))
        elif self._failure is None and not verify_checksum(entry):
            self._refuse(position, pb.CommandAck.ChecksumMismatch, 1)  # its metadata cannot be trusted
        else:
            self._take(position, entry, message.redelivery_count, message.ack_set)

    def _is_stale(self, position: Position, epoch: int | None) -> bool:
        """Return True for a message that was sent before the last full redelivery.

        One without an epoch then continues what came before. If it goes back instead, it was redelivered by a broker
        that repeats no epochs, such as Interpulse 0.2: with that one, stale messages cannot be recognised.
        """
        if epoch is None and position <= self._newest:
            self._epoch = 0
        return (epoch or 0) < self._epoch

    def _take(
        self, position: Position, entry: memoryview, redelivery_count: int = 0, ack_set: Sequence[int] = ()
    ) -> None:
        if self._failure is not None:
            return  # messages behind the failed one must not be delivered
        self._newest = position
        start = self._start_at(position)
        try:
            messages, permits, problem = self._unpacker.unpack(position, entry, redelivery_count, ack_set, start)
        except RemoteProtocolError as error:
            _log.warning("message cannot be read topic=%s position=%s error=%s", self.topic, position, error)
            self._refuse(position, pb.CommandAck.DecompressionError, permits_for(entry, ack_set))
            return
        if messages and problem is not None and self._config.crypto_failure_action != "consume":
            self._on_encrypted(messages[0], permits, problem)
            return
        self._keep_start(position)
        if self._place is not None and messages:
            messages = self._place.unread(messages)
        if self.acks.divert(messages):
            messages = []
        for one in messages:
            self._inbox.put(one, self)
        self._release(permits - len(messages))  # return the permits of omitted messages to the broker
        self.acks.schedule()

    def _start_at(self, position: Position) -> Start | None:
        """Return the start that bounds the messages of an entry.

        Once the start of a subscription was reached or missed it is dropped: another client has moved the cursor.
        """
        start = self.start if self._config.durable else None  # delivered messages may be redelivered
        if start is None or not self._durable or self._seeking is not None:
            return start
        if not start.first_position <= position < start.id.position:
            self.start = None
        return start if start.first_position <= position else None

    def _keep_start(self, position: Position) -> None:
        """Remember the first entry as the start of a reader that began at the end of the topic.

        The end moves on. During a seek, entries from before it may still arrive.
        """
        if self._durable or self._seeking is not None:
            return
        if self.start is None or self.start.id.position == LATEST:
            self.start = Start(MessageId.of(position), included=True)
            if self._place is not None:
                self._place.begin_at(position)

    def _on_encrypted(self, message: Message, permits: int, problem: CryptoError) -> None:
        if self._config.crypto_failure_action == "discard":
            _log.warning("encrypted message discarded topic=%s id=%s error=%s", self.topic, message.id, problem)
            self._refuse(message.id.position, pb.CommandAck.DecryptionError, permits)
            return
        self.acks.flush()
        self.on_failed(
            CryptoError(
                f"message {message.id}: {problem}; with crypto_failure_action='consume' it is handed out as it is, "
                f"with 'discard' it is acknowledged unread"
            )
        )

    def _refuse(self, position: Position, reason: pb.CommandAck.ValidationError.ValueType, permits: int) -> None:
        """Acknowledge an unreadable entry with the reason, because it would be redelivered forever."""
        self.acks.refuse(position, reason)
        self._release(permits)

    def on_disconnected(self, assigned_url: str | None) -> None:
        """Drop messages that the application has not received. The broker sends them again."""
        if not self._handler.on_lost(assigned_url):
            return
        self._inbox.discard(self)
        self._unpacker.clear()
        if self._failure is None:
            self._handler.reconnect(assigned_url, after=self._seeking)

    def on_redirected(self, service_url: str) -> None:
        """Send the acknowledgements that were collected: at the other cluster they would name other messages."""
        self.acks.flush()
        self.acks.has_several_clusters = True
        if self._place is None and not self._durable:
            start, config = self.start or Start(MessageId.of(EARLIEST)), self._session.config
            cluster, overlap_s = shown_address(config.service_url), config.reader_overlap_s
            self._place = ReadPlace.behind(self._last_taken, start, cluster, now_ms=now_ms(), overlap_s=overlap_s)
        self._handler.redirect(service_url)

    def on_active_change(self, active: bool) -> None:
        self.is_active = active

    def on_end_of_topic(self) -> None:
        self.reached_end_of_topic = True

    def on_leaving(self) -> None:
        """Send the acknowledgements that were collected: they name messages of this site."""
        self.acks.flush()

    # ---- Called by the inbox

    def on_taken(self, message: Message) -> None:
        if not self._durable:
            self.start = Start(message.id)
            self._last_taken = message
            if self._place is not None:
                self._place.note(message)
        self.acks.begin(message)
        self._release(1)

    def _release(self, permits: int) -> None:
        """Return permits to the broker when half of them are used."""
        self._taken += permits
        if self._handler.connection is not None and self._taken >= max(self._config.receiver_queue_size // 2, 1):
            self._handler.connection.write(commands.flow(self._id, self._taken))
            self._taken = 0

    # ---- Tracing

    def processing(self, message: Message) -> AbstractContextManager[object]:
        """Return a context in which the span of the message is the current one."""
        return nullcontext() if self._telemetry is None else self._telemetry.current(message)

    def note_batch(self, messages: Sequence[Message], started_ms: int) -> None:
        """Record that one call, started at ``started_ms``, delivered these messages to the application."""
        if self._telemetry is not None:
            self._telemetry.note_batch(messages, started_ms)

    def redeliver_unacknowledged(self) -> None:
        """Request redelivery of everything that was received but not acknowledged.

        Unless messages are redelivered one by one, those on their way are redelivered too, in their order: they are
        dropped when they arrive.
        """
        self.acks.forget_deadlines()
        dropped = self._inbox.discard(self)
        if self._handler.connection is not None:
            if self.topic.is_persistent and not self._config.counts_redeliveries:
                self._epoch += 1
            command = pb.CommandRedeliverUnacknowledgedMessages(
                consumer_id=self._id, consumer_epoch=self._epoch or None
            )
            self._handler.connection.write(commands.encode(command))
            self._release(dropped)

    # ---- Positions

    async def seek(self, target: MessageId | int, *, included: bool = True) -> None:
        """Move the subscription to a message, or to the first one published at a time (ms).

        The next message is ``target`` itself, or without ``included`` the one after it.
        """
        await self._handler.reconnected()
        if isinstance(target, MessageId):
            check_site(target, self._handler.session)
        connection = self._required_connection()
        before, self.start = self.start, None if isinstance(target, int) else Start(target, included)
        self._seeking = self._loop.create_future()
        try:
            command = pb.CommandSeek(consumer_id=self._id)
            if self.start is not None:
                command.message_id.CopyFrom(message_id_to_wire(self.start.first_position))
            else:
                assert isinstance(target, int)
                command.message_publish_time = target
            await connection.request(command)
            self.acks.forget()
            self._last_taken = None
            if self._place is not None:
                self._place.restart(self.start, target if isinstance(target, int) else now_ms())
            if self._handler.connection is not None:
                self._release(self._inbox.discard(self))
        except BaseException:
            self.start = before
            raise
        finally:
            self._seeking.set_result(None)
            self._seeking = None
        await self._handler.reconnected()

    async def last_message(self) -> LastMessage:
        """Return the last message of the topic (-1:-1 if it is empty) and the acknowledged end of the subscription."""
        await self._handler.reconnected()
        connection = self._required_connection()
        answer = (await connection.request(pb.CommandGetLastMessageId(consumer_id=self._id))).getLastMessageIdResponse
        last = message_id_from_wire(answer.last_message_id)
        return LastMessage(last, position_from_wire(answer.consumer_mark_delete_position))

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription with its position, and close. Raise the broker's refusal."""
        await self._handler.reconnected()
        connection = self._required_connection()
        await connection.request(pb.CommandUnsubscribe(consumer_id=self._id, force=force))
        connection.consumers.forget(self._id)
        self._handler.on_lost()
        self.on_failed(AlreadyClosed(f"the subscription {self.subscription} was deleted"))

    async def close(self) -> None:
        """Send pending acknowledgements and close the consumer. The subscription remains."""
        await self.acks.letters_sent()
        self.acks.flush()
        self._inbox.discard(self)
        self.on_failed(AlreadyClosed(f"the consumer on {self.topic} is closed"))
        connection = await self._handler.stop()
        if connection is not None:
            await connection.consumers.close(self._id)

    def _required_connection(self) -> Connection:
        if self._failure is not None:
            raise self._failure
        if self._handler.connection is None:
            raise NotConnected(f"the consumer on {self.topic} has no connection at the moment")
        return self._handler.connection


def _key_shared(policy: KeySharedPolicy | None) -> pb.KeySharedMeta | None:
    if policy is None:
        return None
    return pb.KeySharedMeta(
        keySharedMode=pb.STICKY if policy.sticky_ranges else pb.AUTO_SPLIT,
        hashRanges=[pb.IntRange(start=first, end=last) for first, last in policy.sticky_ranges],
        allowOutOfOrderDelivery=policy.out_of_order_allowed,
    )
