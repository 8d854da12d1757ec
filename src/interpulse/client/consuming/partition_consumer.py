"""The consumer of one topic or one partition."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from interpulse.client.connection_handler import ConnectionHandler
from interpulse.client.consuming.ack_tracker import AckTracker
from interpulse.client.consuming.consumer_config import ConsumerConfig, KeySharedPolicy
from interpulse.client.consuming.dead_letters import DeadLetterCandidates, DeadLetterProducer
from interpulse.client.consuming.inbox import Inbox
from interpulse.client.consuming.redelivery_timer import RedeliveryTimer
from interpulse.client.consuming.unpacker import Start, Unpacker, permits_for
from interpulse.client.messages import Message
from interpulse.client.session import Session
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import AlreadyClosed, CryptoError, NotConnected, PulsarError
from interpulse.model.ids import LATEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import verify_checksum
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import MessageRun
from interpulse.wire.ids import message_id_from_wire, message_id_to_wire, position_from_wire

if TYPE_CHECKING:
    from interpulse.client.telemetry.processing import Processing

__all__ = ["LastMessage", "PartitionConsumer"]

_log = logging.getLogger(__name__)
_KINDS: Final[dict[str, pb.CommandSubscribe.SubType.ValueType]] = {
    "exclusive": pb.CommandSubscribe.Exclusive,
    "shared": pb.CommandSubscribe.Shared,
    "failover": pb.CommandSubscribe.Failover,
    "key-shared": pb.CommandSubscribe.Key_Shared,
}
_ACK_GROUP_MAX: Final = 1000
_ACK_GROUP_DELAY_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class LastMessage:
    """The end of a topic, and how far the subscription has acknowledged."""

    id: MessageId
    mark_delete: Position


class PartitionConsumer:
    """Receives from one topic or partition into an inbox. Made by the client.

    With ``start`` it is a reader: the subscription lasts as long as the consumer, and begins there.
    ``dead_letter_producer`` gets messages that were redelivered too often. ``on_failed`` gets the failure that ends the
    consumer; by default the inbox does. ``telemetry`` follows the messages until they are acknowledged.
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
        self._start = start
        self._id = session.next_id()
        self._handler = ConnectionHandler(session, topic, self, what="consumer")
        self._failure: PulsarError | None = None
        self._seeking: asyncio.Future[None] | None = None
        self._taken = 0
        self._acks = AckTracker(batch_indexes=config.batch_index_ack_enabled)
        self._ack_timer: asyncio.TimerHandle | None = None
        self._unpacker = Unpacker(
            str(topic),
            topic.partition_index,
            self._acks,
            key_reader=config.crypto_key_reader,
            chunked_messages_max=config.chunked_messages_max,
            oldest_chunks_acknowledged=config.oldest_chunks_acknowledged,
        )
        self._nacks = RedeliveryTimer(self._ask_again)
        self._unacked = RedeliveryTimer(self._on_ack_timeout)
        self._dead_letter_producer = dead_letter_producer
        redeliveries_max = dead_letter_producer.redeliveries_max if dead_letter_producer else math.inf
        self._candidates = DeadLetterCandidates(redeliveries_max)
        self._pending_dead_letters: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    # ---- Opening and coming back

    async def open(self) -> None:
        """Subscribe. Raises what the broker refuses it with."""
        await self._handler.open(timeout_ms=self._session.config.operation_timeout_ms)

    @property
    def is_connected(self) -> bool:
        return self._handler.connection is not None

    @property
    def start(self) -> Start | None:
        """Of a reader: where it goes on."""
        return self._start

    async def register(self, connection: Connection) -> None:
        """Called by the connection handler: subscribe, and let messages come."""
        holds = (self.topic, self.subscription) if self._config.subscription_type == "exclusive" else None
        await connection.consumers.open(self._id, self, self._subscribe_frame, holds=holds)
        self._handler.on_connected(connection)
        self._taken = 0
        connection.write(*self._acks.take_frames(self._id))
        connection.write(commands.flow(self._id, self._config.receiver_queue_size))

    def _subscribe_frame(self, request_id: int) -> bytes:
        config = self._config
        earliest = config.initial_position == "earliest"
        return commands.subscribe(
            request_id,
            self._id,
            str(self.topic),
            self.subscription,
            kind=_KINDS[config.subscription_type],
            name=config.name,
            durable=self._durable,
            start=None if self._durable or self._start is None else self._start.subscribe_from,
            initial_position=pb.CommandSubscribe.Earliest if earliest else pb.CommandSubscribe.Latest,
            force_topic_creation=config.force_topic_creation,
            read_compacted=config.read_compacted,
            priority_level=config.priority_level,
            schema=config.schema,
            properties=config.properties,
            subscription_properties=config.subscription_properties,
            key_shared=_key_shared(self._key_shared),
            replicate_state=config.replicate_subscription_state,
        )

    def on_failed(self, failure: PulsarError) -> None:
        """Nothing more will come."""
        self._failure = failure
        self._stop_timers()
        self._when_failed(failure)

    # ---- Called by the connection

    def on_messages(self, run: MessageRun) -> None:
        for frame in run.frames():
            self._take(frame.command.message, memoryview(frame.entry or b""), is_verified=True)

    def on_message(self, message: pb.CommandMessage, entry: memoryview) -> None:
        self._take(message, entry, is_verified=False)

    def _take(self, message: pb.CommandMessage, entry: memoryview, *, is_verified: bool) -> None:
        if self._failure is not None:
            return  # messages behind the failed one must not be delivered
        position = position_from_wire(message.message_id)
        start = self._start_at(position)
        try:
            if not is_verified and not verify_checksum(entry):
                self._refuse(message, pb.CommandAck.ChecksumMismatch, 1)  # its metadata cannot be trusted
                return
            messages, permits, problem = self._unpacker.unpack(message, entry, position, start)
        except RemoteProtocolError as error:
            _log.warning("message cannot be read topic=%s position=%s error=%s", self.topic, position, error)
            self._refuse(message, pb.CommandAck.DecompressionError, permits_for(message, entry))
            return
        if messages and problem is not None and self._config.crypto_failure_action != "consume":
            self._on_encrypted(message, messages[0], permits, problem)
            return
        self._keep_start(position)
        if messages and self._candidates.is_dead(messages[0]):
            self._start_dead_letters(messages)
            messages = []
        for one in messages:
            self._inbox.put(one, self)
        self._release(permits - len(messages))  # permits of what is left out go back to the broker
        self._schedule_acks()

    def _start_at(self, position: Position) -> Start | None:
        """The start that bounds the messages of an entry. A subscription's start is forgotten once it was reached or
        missed: another client moved the cursor then, and that is valid."""
        start = self._start if self._config.durable else None  # what a consumer took may be redelivered to it
        if start is None or not self._durable or self._seeking is not None:
            return start
        if not start.first_position <= position < start.id.position:
            self._start = None
        return start if start.first_position <= position else None

    def _keep_start(self, position: Position) -> None:
        """Who began at the end of the topic goes on at the first entry that came: by the next connection the end is
        further on. While a seek is under way, entries from before it may still come."""
        if self._durable or self._seeking is not None:
            return
        if self._start is None or self._start.id.position == LATEST:
            self._start = Start(MessageId.of(position), included=True)

    def _on_encrypted(self, command: pb.CommandMessage, message: Message, permits: int, problem: CryptoError) -> None:
        if self._config.crypto_failure_action == "discard":
            _log.warning("encrypted message discarded topic=%s id=%s error=%s", self.topic, message.id, problem)
            self._refuse(command, pb.CommandAck.DecryptionError, permits)
            return
        self.flush_acks()
        self.on_failed(
            CryptoError(
                f"message {message.id}: {problem}; with crypto_failure_action='consume' it is handed out as it is, "
                f"with 'discard' it is acknowledged unread"
            )
        )

    def _refuse(
        self, command: pb.CommandMessage, reason: pb.CommandAck.ValidationError.ValueType, permits: int
    ) -> None:
        """An unreadable entry is acknowledged with the reason, else it would be redelivered without end."""
        if self._handler.connection is not None:
            entries = self._acks.entries_of(position_from_wire(command.message_id))
            ids = [message_id_to_wire(entry) for entry in entries]
            self._handler.connection.write(commands.ack(self._id, ids, validation_error=reason))
        self._release(permits)

    def on_disconnected(self, assigned_url: str | None) -> None:
        """Messages that the application has not received will be sent again."""
        if not self._handler.on_lost():
            return
        self._inbox.discard(self)
        self._unpacker.clear()
        if self._failure is None:
            self._handler.reconnect(assigned_url, after=self._seeking)

    def on_active_change(self, active: bool) -> None:
        self.is_active = active

    def on_end_of_topic(self) -> None:
        self.reached_end_of_topic = True

    # ---- Called by the inbox

    def on_taken(self, message: Message) -> None:
        if not self._durable:
            self._start = Start(message.id)
        if timeout_ms := self._config.ack_timeout(message.redelivery_count):
            self._unacked.add(message.id, timeout_ms)
        self._candidates.add(message)
        if self._telemetry is not None:
            self._telemetry.begin(message)
        self._release(1)

    def _release(self, permits: int) -> None:
        """Permits are granted again when half of them are used."""
        self._taken += permits
        if self._handler.connection is not None and self._taken >= max(self._config.receiver_queue_size // 2, 1):
            self._handler.connection.write(commands.flow(self._id, self._taken))
            self._taken = 0

    # ---- Tracing

    def processing(self, message: Message) -> AbstractContextManager[object]:
        """The span of a message is the current one inside it."""
        return nullcontext() if self._telemetry is None else self._telemetry.current(message)

    def note_batch(self, messages: Sequence[Message], begun_ms: int) -> None:
        """The application got these messages of this topic by one call, which began then."""
        if self._telemetry is not None:
            self._telemetry.note_batch(messages, begun_ms)

    # ---- Acknowledging

    def acknowledge(self, message: Message) -> None:
        """The application is done with this message. Sent within 100 ms together with others."""
        self._acks.acknowledge(message)
        self._unacked.discard(message.id)
        self._nacks.discard(message.id)
        self._candidates.discard(message)
        if self._telemetry is not None:
            self._telemetry.end(message.id, "acknowledge")
        self._schedule_acks()

    def acknowledge_cumulative(self, message: Message) -> None:
        """The application is done with everything up to this message. Not for shared subscriptions."""
        self._acks.acknowledge_cumulative(message)
        self._unacked.discard_up_to(message.id)
        if self._telemetry is not None:
            self._telemetry.end_up_to(message.id)
        self._schedule_acks()

    def negative_acknowledge(self, message: Message) -> None:
        """The entry of the message is redelivered after a delay."""
        self._unacked.discard(message.id)
        self._nacks.add(message.id, self._config.nack_delay(message.redelivery_count))
        if self._telemetry is not None:
            self._telemetry.end(message.id, "negative_acknowledge")

    def _schedule_acks(self) -> None:
        if self._acks.pending_count >= _ACK_GROUP_MAX:
            self.flush_acks()
        elif self._ack_timer is None and self._acks.pending_count:
            self._ack_timer = self._loop.call_later(_ACK_GROUP_DELAY_S, self.flush_acks)

    def flush_acks(self) -> None:
        """Send acknowledgements now. While there is no connection they wait for the next one."""
        if self._ack_timer is not None:
            self._ack_timer.cancel()
            self._ack_timer = None
        if self._handler.connection is not None:
            self._handler.connection.write(*self._acks.take_frames(self._id))

    def _on_ack_timeout(self, positions: list[Position]) -> None:
        if self._telemetry is not None:
            self._telemetry.end_entries(positions)
        self._ask_again(positions)

    def _ask_again(self, positions: list[Position]) -> None:
        """Shared subscriptions redeliver single entries; the others redeliver everything unacknowledged, in order."""
        self.flush_acks()
        positions = [
            position for position in positions if not self._start_dead_letters(self._candidates.take(position))
        ]
        connection = self._handler.connection
        if connection is None or not positions:
            return  # the next connection delivers everything unacknowledged anyway
        if self._config.counts_redeliveries:
            ids = [message_id_to_wire(entry) for last in positions for entry in self._acks.entries_of(last)]
            connection.write(commands.redeliver_unacknowledged(self._id, ids))
            return
        self.redeliver_unacknowledged()

    def _start_dead_letters(self, messages: Sequence[Message]) -> bool:
        """Send messages to the dead-letter topic, in the background; whether there were any."""
        if messages:
            task = self._session.spawn(self._send_dead_letters(messages))
            self._pending_dead_letters.add(task)
            task.add_done_callback(self._pending_dead_letters.discard)
        return bool(messages)

    async def _send_dead_letters(self, messages: Sequence[Message]) -> None:
        """A message that cannot be sent is redelivered later, and sent then."""
        assert self._dead_letter_producer is not None
        for message in messages:
            try:
                await self._dead_letter_producer.send_dead_letter(message)
            except PulsarError as error:
                _log.warning("message could not be sent to its dead-letter topic id=%s error=%s", message.id, error)
                self.negative_acknowledge(message)
            else:
                self.acknowledge(message)

    def redeliver_unacknowledged(self) -> None:
        """Have everything sent again that was received and not acknowledged."""
        self._forget_deadlines()
        dropped = self._inbox.discard(self)
        if self._handler.connection is not None:
            self._handler.connection.write(commands.redeliver_unacknowledged(self._id))
            self._release(dropped)

    # ---- Positions

    async def seek(self, target: MessageId | int, *, included: bool = True) -> None:
        """Move the subscription: the next message is ``target`` itself (without ``included`` the one behind it), or the
        first published at that time (ms)."""
        await self._handler.reconnected()
        connection = self._required_connection()
        before, self._start = self._start, None if isinstance(target, int) else Start(target, included)
        self._seeking = self._loop.create_future()
        try:
            to = self._start.first_position if self._start is not None else target
            await connection.request(lambda request_id: commands.seek(request_id, self._id, to))
            self._acks.forget()
            self._forget_deadlines()
            if self._handler.connection is not None:
                self._release(self._inbox.discard(self))
        except BaseException:
            self._start = before
            raise
        finally:
            self._seeking.set_result(None)
            self._seeking = None
        await self._handler.reconnected()

    async def last_message(self) -> LastMessage:
        """The last message of the topic (-1:-1 if there is none) and the acknowledged end of the subscription."""
        await self._handler.reconnected()
        connection = self._required_connection()
        answer = (
            await connection.request(lambda request_id: commands.get_last_message_id(request_id, self._id))
        ).getLastMessageIdResponse
        last = message_id_from_wire(answer.last_message_id)
        return LastMessage(last, position_from_wire(answer.consumer_mark_delete_position))

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription with its position, and close. Raises what the broker refuses it with."""
        await self._handler.reconnected()
        connection = self._required_connection()
        await connection.request(lambda request_id: commands.unsubscribe(request_id, self._id, force=force))
        connection.consumers.forget(self._id)
        self._handler.on_lost()
        self.on_failed(AlreadyClosed(f"the subscription {self.subscription} was deleted"))

    async def close(self) -> None:
        """Send acknowledgements, and close the consumer at its broker; the subscription stays."""
        if self._pending_dead_letters:
            await asyncio.wait(self._pending_dead_letters, timeout=self._session.config.operation_timeout_ms / 1000)
        self.flush_acks()
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

    def _forget_deadlines(self) -> None:
        self._nacks.clear()
        self._unacked.clear()
        self._candidates.clear()
        if self._telemetry is not None:
            self._telemetry.end_all()

    def _stop_timers(self) -> None:
        self._forget_deadlines()
        if self._ack_timer is not None:
            self._ack_timer.cancel()
            self._ack_timer = None


def _key_shared(policy: KeySharedPolicy | None) -> pb.KeySharedMeta | None:
    if policy is None:
        return None
    return pb.KeySharedMeta(
        keySharedMode=pb.STICKY if policy.sticky_ranges else pb.AUTO_SPLIT,
        hashRanges=[pb.IntRange(start=first, end=last) for first, last in policy.sticky_ranges],
        allowOutOfOrderDelivery=policy.out_of_order_allowed,
    )
