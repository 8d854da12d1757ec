"""A consumer on one topic or one partition."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from interpulse.client.acks import AckTracker
from interpulse.client.backoff import retry
from interpulse.client.chunks import ChunkAssembler
from interpulse.client.connection import Connection
from interpulse.client.inbox import Inbox
from interpulse.client.messages import Message, messages_of
from interpulse.client.partition_watch import check_interval
from interpulse.client.redelivery import RedeliveryTimer
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, NotConnected, OperationTimeout, PulsarError
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import ParsedEntry, parse_entry, verify_checksum
from interpulse.wire.ids import message_id_from_wire, message_id_to_wire, position_from_wire

__all__ = ["ConsumerConfig", "InitialPosition", "LastMessage", "PartitionConsumer", "SubscriptionType"]

_log = logging.getLogger(__name__)
SubscriptionType = Literal["exclusive", "shared", "failover", "key-shared"]
InitialPosition = Literal["latest", "earliest"]

_KINDS: Final[dict[str, pb.CommandSubscribe.SubType.ValueType]] = {
    "exclusive": pb.CommandSubscribe.Exclusive,
    "shared": pb.CommandSubscribe.Shared,
    "failover": pb.CommandSubscribe.Failover,
    "key-shared": pb.CommandSubscribe.Key_Shared,
}
_ACK_GROUP_MAX: Final = 1000
_ACK_GROUP_DELAY_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """Settings of one consumer."""

    subscription_type: SubscriptionType = "exclusive"
    initial_position: InitialPosition = "latest"
    """Where a new subscription begins; one that exists goes on where it is."""

    name: str | None = None
    schema: SchemaInfo | None = None
    receiver_queue_size: int = 1000
    """Messages that the broker may send ahead of the application, at least 1; per partition."""

    priority_level: int = 0
    read_compacted: bool = False
    force_topic_creation: bool = True
    """False: subscribing never creates the topic, whatever the broker's policy says."""

    replicate_subscription_state: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    subscription_properties: Mapping[str, str] = field(default_factory=dict)
    nack_delay_ms: int = 60_000
    """When messages that were given back come again."""

    ack_timeout_ms: int = 0
    """When messages that were taken but not acknowledged come again, 0 = never."""

    auto_update_partitions: bool = True
    """A consumer of a partitioned topic looks for new partitions, and takes them from their beginning."""

    auto_update_partitions_interval_ms: int = 60_000
    """How often it looks."""

    def __post_init__(self) -> None:
        check_interval(self.auto_update_partitions_interval_ms)


@dataclass(frozen=True, slots=True)
class LastMessage:
    """The end of a topic, and how far the subscription has acknowledged."""

    id: MessageId
    mark_delete: Position


class PartitionConsumer:
    """Receives from one topic or partition into an inbox. Made by the client.

    With ``start`` it is a reader: the subscription lives as long as the consumer, and begins at that message - included
    if ``start_included``, else behind it. ``on_failed`` hears why the consumer ended; by default the inbox does.
    """

    def __init__(
        self,
        session: Session,
        topic: TopicName,
        subscription: str,
        config: ConsumerConfig,
        inbox: Inbox,
        *,
        start: MessageId | None = None,
        start_included: bool = False,
        on_failed: Callable[[PulsarError], None] | None = None,
    ) -> None:
        self.topic = topic
        self.subscription = subscription
        self.is_active = True
        self.reached_end_of_topic = False
        self._session = session
        self._config = config
        self._inbox = inbox
        self._on_failed = on_failed or inbox.fail
        self._durable = start is None
        self._start = start
        self._start_included = start_included
        self._id = session.next_id()
        self._partition = topic.partition_index
        self._connection: Connection | None = None
        self._failure: PulsarError | None = None
        self._returning: asyncio.Task[None] | None = None
        self._seeking: asyncio.Future[None] | None = None
        self._taken = 0
        self._acks = AckTracker()
        self._ack_timer: asyncio.TimerHandle | None = None
        self._chunks = ChunkAssembler()
        self._nacks = RedeliveryTimer(config.nack_delay_ms, self._ask_again)
        self._unacked = RedeliveryTimer(config.ack_timeout_ms, self._ask_again) if config.ack_timeout_ms else None
        self._loop = asyncio.get_running_loop()
        self._backoff = session.backoff()
        self._attached_at = 0.0

    # ---- Opening and coming back

    async def open(self) -> None:
        """Subscribe. Raises what the broker refuses it with."""
        timeout_ms = self._session.config.operation_timeout_ms
        await retry(self._attach, timeout_ms=timeout_ms, backoff=self._session.backoff())

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def start(self) -> MessageId | None:
        """Of a reader: the message behind which it goes on; the first one, until something was taken."""
        return self._start

    @property
    def start_included(self) -> bool:
        return self._start_included

    async def _attach(self, assigned_url: str | None = None) -> None:
        connection = await self._session.connect(self.topic, assigned_url=assigned_url)
        connection.add_consumer(self._id, self)
        try:
            await connection.request(self._subscribe_frame)
        except BaseException as error:
            connection.remove_consumer(self._id)
            if isinstance(error, OperationTimeout | asyncio.CancelledError):  # the broker may let it in all the same
                connection.tell(lambda request_id: commands.close_consumer(self._id, request_id))
            raise
        if not connection.hosts_consumer(self._id):
            raise NotConnected("the consumer was closed right after it was opened")
        self._connection = connection
        self._attached_at = self._loop.time()
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
            start=None if self._durable else self._start,
            initial_position=pb.CommandSubscribe.Earliest if earliest else pb.CommandSubscribe.Latest,
            force_topic_creation=config.force_topic_creation,
            read_compacted=config.read_compacted,
            priority_level=config.priority_level,
            schema=config.schema,
            properties=config.properties,
            subscription_properties=config.subscription_properties,
            replicate_state=config.replicate_subscription_state,
        )

    async def _return(self, assigned_url: str | None) -> None:
        held_s = self._loop.time() - self._attached_at
        if self._seeking is not None:
            await asyncio.wait([self._seeking])
            held_s = math.inf  # a seek sends its consumer away on purpose
        try:
            await self._session.return_to_broker(
                self._attach,
                what=f"consumer on {self.topic}",
                backoff=self._backoff,
                held_s=held_s,
                assigned_url=assigned_url,
            )
        except PulsarError as failure:
            self._fail(failure)
        finally:
            self._returning = None

    def _fail(self, failure: PulsarError) -> None:
        self._failure = failure
        self._stop_timers()
        self._on_failed(failure)

    # ---- Called by the connection

    def on_message(self, message: pb.CommandMessage, entry: memoryview) -> None:
        position = position_from_wire(message.message_id)
        try:
            if not verify_checksum(entry):
                self._refuse(message, pb.CommandAck.ChecksumMismatch)
                return
            parsed = parse_entry(entry)
            self._accept(parsed, message, position)
        except RemoteProtocolError as error:
            _log.warning("message cannot be read topic=%s position=%s error=%s", self.topic, position, error)
            self._refuse(message, pb.CommandAck.DecompressionError)

    def _accept(self, entry: ParsedEntry, command: pb.CommandMessage, position: Position) -> None:
        """Put the messages of an entry into the inbox; permits of what is left out go back to the broker."""
        permits = entry.message_count
        if entry.metadata.num_chunks_from_msg > 1:
            assembled = self._chunks.add(entry, position)
            if assembled is None:
                self._release(permits)
                return
            entry = assembled.entry
            self._acks.remember_chunks(position, assembled.positions)
        kept = 0
        for message in messages_of(
            entry,
            topic=str(self.topic),
            ledger=position.ledger,
            entry_id=position.entry,
            partition=self._partition,
            redelivery_count=command.redelivery_count,
        ):
            if self._is_wanted(message, command.ack_set):
                self._inbox.put(message, self)
                kept += 1
        self._release(permits - kept)

    def _is_wanted(self, message: Message, ack_set: Sequence[int]) -> bool:
        """Not before the start, and not acknowledged before: neither here nor (``ack_set``) as the broker says."""
        if self._start is not None and not _is_after(message.id, self._start, included=self._start_included):
            return False
        index = message.id.batch_index
        if index < 0:
            return True
        if ack_set and (index // 64 >= len(ack_set) or not ack_set[index // 64] >> index % 64 & 1):
            return False
        return not self._acks.is_done(message.id)

    def _refuse(self, command: pb.CommandMessage, reason: pb.CommandAck.ValidationError.ValueType) -> None:
        """An entry that nobody can read is acknowledged with the reason, else it would come for ever."""
        if self._connection is not None:
            ids = [pb.MessageIdData(ledgerId=command.message_id.ledgerId, entryId=command.message_id.entryId)]
            self._connection.write(commands.ack(self._id, ids, validation_error=reason))
        self._release(1)

    def on_detached(self, assigned_url: str | None) -> None:
        """What the application has not taken will be sent again."""
        if self._connection is None:
            return  # still opening: the request under way fails, and whoever opens tries again
        self._connection = None
        self._inbox.discard(self)
        self._chunks.clear()
        if self._failure is None and self._returning is None and not self._session.is_closed:
            self._returning = self._session.spawn(self._return(assigned_url))

    def on_active_change(self, active: bool) -> None:
        self.is_active = active

    def on_end_of_topic(self) -> None:
        self.reached_end_of_topic = True

    # ---- Called by the inbox

    def on_taken(self, message: Message) -> None:
        if not self._durable:
            self._start, self._start_included = message.id, False
        if self._unacked is not None:
            self._unacked.add(message.id.position)
        self._release(1)

    def _release(self, permits: int) -> None:
        """Permits are granted again when half of them are used."""
        self._taken += permits
        if self._connection is not None and self._taken >= max(self._config.receiver_queue_size // 2, 1):
            self._connection.write(commands.flow(self._id, self._taken))
            self._taken = 0

    # ---- Acknowledging

    def acknowledge(self, message: Message) -> None:
        """The application is done with this message. Sent within 100 ms together with others."""
        self._acks.acknowledge(message)
        if self._unacked is not None:
            self._unacked.discard(message.id.position)
        self._nacks.discard(message.id.position)
        self._schedule_acks()

    def acknowledge_cumulative(self, message: Message) -> None:
        """The application is done with everything up to this message. Not for shared subscriptions."""
        self._acks.acknowledge_cumulative(message)
        if self._unacked is not None:
            self._unacked.discard_up_to(message.id.position)
        self._schedule_acks()

    def negative_acknowledge(self, message: Message) -> None:
        """The application gives the message back; its entry comes again after ``nack_delay_ms``."""
        if self._unacked is not None:
            self._unacked.discard(message.id.position)
        self._nacks.add(message.id.position)

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
        if self._connection is not None:
            self._connection.write(*self._acks.take_frames(self._id))

    def _ask_again(self, positions: list[Position]) -> None:
        """Shared subscriptions repeat single entries; the others repeat everything unacknowledged, in order."""
        self.flush_acks()
        if self._connection is None:
            return  # the next connection brings everything unacknowledged anyway
        if self._config.subscription_type in ("shared", "key-shared"):
            ids = [message_id_to_wire(entry) for last in positions for entry in self._acks.entries_of(last)]
            self._connection.write(commands.redeliver_unacknowledged(self._id, ids))
            return
        self.redeliver_unacknowledged()

    def redeliver_unacknowledged(self) -> None:
        """Have everything sent again that was received and not acknowledged."""
        self._nacks.clear()
        if self._unacked is not None:
            self._unacked.clear()
        dropped = self._inbox.discard(self)
        if self._connection is not None:
            self._connection.write(commands.redeliver_unacknowledged(self._id))
            self._release(dropped)

    # ---- Positions

    async def seek(self, target: MessageId | int) -> None:
        """Move the subscription: the next message is ``target`` itself, or the first published at that time (ms)."""
        await self._connected()
        connection = self._required_connection()
        before = self._start, self._start_included
        self._start, self._start_included = None if isinstance(target, int) else target, True
        self._seeking = self._loop.create_future()
        try:
            await connection.request(lambda request_id: commands.seek(request_id, self._id, _seek_target(target)))
            self._acks.forget()
            self._nacks.clear()
            if self._connection is not None:
                self._release(self._inbox.discard(self))
        except BaseException:
            self._start, self._start_included = before
            raise
        finally:
            self._seeking.set_result(None)
            self._seeking = None
        if self._returning is not None:
            await asyncio.wait([self._returning], timeout=self._session.config.operation_timeout_ms / 1000)

    async def last_message(self) -> LastMessage:
        """The last message of the topic (-1:-1 if there is none) and the acknowledged end of the subscription."""
        await self._connected()
        connection = self._required_connection()
        answer = (
            await connection.request(lambda request_id: commands.get_last_message_id(request_id, self._id))
        ).getLastMessageIdResponse
        last = message_id_from_wire(answer.last_message_id)
        return LastMessage(last, position_from_wire(answer.consumer_mark_delete_position))

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription with its position, and close. Raises what the broker refuses it with."""
        await self._connected()
        connection = self._required_connection()
        await connection.request(lambda request_id: commands.unsubscribe(request_id, self._id, force=force))
        connection.remove_consumer(self._id)
        self._connection = None
        self._fail(AlreadyClosed(f"the subscription {self.subscription} was deleted"))

    async def close(self) -> None:
        """Send acknowledgements and say goodbye to the broker; the subscription stays."""
        self.flush_acks()
        connection, self._connection = self._connection, None
        self._inbox.discard(self)
        self._fail(AlreadyClosed(f"the consumer on {self.topic} is closed"))
        if self._returning is not None:
            self._returning.cancel()
            await asyncio.gather(self._returning, return_exceptions=True)
        if connection is not None and connection.is_open:
            connection.remove_consumer(self._id)
            try:
                await connection.request(lambda request_id: commands.close_consumer(self._id, request_id))
            except PulsarError as error:
                _log.debug("consumer was not closed properly topic=%s error=%s", self.topic, error)

    async def _connected(self) -> None:
        """Wait for a consumer that is on its way back."""
        if self._returning is not None:
            await asyncio.wait([self._returning], timeout=self._session.config.operation_timeout_ms / 1000)

    def _required_connection(self) -> Connection:
        if self._failure is not None:
            raise self._failure
        if self._connection is None:
            raise NotConnected(f"the consumer on {self.topic} has no connection at the moment")
        return self._connection

    def _stop_timers(self) -> None:
        self._nacks.clear()
        if self._unacked is not None:
            self._unacked.clear()
        if self._ack_timer is not None:
            self._ack_timer.cancel()
            self._ack_timer = None


def _seek_target(target: MessageId | int) -> Position | int:
    return target if isinstance(target, int) else target.position


def _is_after(message_id: MessageId, start: MessageId, *, included: bool) -> bool:
    """Whether a message lies behind the start of a reader. A start without batch index means the whole entry."""
    if start.position in (EARLIEST, LATEST):
        return True
    if message_id.position != start.position:
        return message_id.position > start.position
    if start.batch_index < 0 or message_id.batch_index < 0:
        return included
    return message_id.batch_index >= start.batch_index + (not included)
