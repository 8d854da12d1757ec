"""Acknowledgements of one consumer, and redelivery of messages that are not acknowledged."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from interpulse.client.consuming.ack_tracker import AckTracker
from interpulse.client.consuming.consumer_config import ConsumerConfig
from interpulse.client.consuming.dead_letters import DeadLetterCandidates, DeadLetterProducer
from interpulse.client.messages import Message
from interpulse.client.session import Session
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import PulsarError
from interpulse.model.ids import MessageId, Position
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.ids import message_id_to_wire

if TYPE_CHECKING:
    from interpulse.client.telemetry import Processing

_log = logging.getLogger(__name__)
_ACK_GROUP_MAX: Final = 1000
_ACK_GROUP_DELAY_S: Final = 0.1


class RedeliveryTimer:
    """Holds messages for their delay, then returns all entries that are due together.

    Brokers redeliver whole entries. Therefore the messages of a batch share one delay, and each of them restarts it.
    Entries with the same delay become due in the order they were added, so each of the few delays has a queue.
    """

    def __init__(self, redeliver: Callable[[list[Position]], None]) -> None:
        self._redeliver = redeliver
        self._queues: dict[int, dict[Position, float]] = {}
        self._in_batches: dict[Position, set[int]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def add(self, message_id: MessageId, delay_ms: int) -> None:
        """Start or restart the delay of a message."""
        position = message_id.position
        if message_id.batch_index >= 0:
            self._in_batches.setdefault(position, set()).add(message_id.batch_index)
        self._forget(position)
        queue = self._queues.setdefault(delay_ms, {})
        queue[position] = due = self._loop.time() + delay_ms / 1000
        if self._timer is None or due < self._timer.when():
            self._arm()

    def discard(self, message_id: MessageId) -> None:
        """Remove a message. Its entry remains if other messages need it."""
        position = message_id.position
        others = self._in_batches.get(position)
        if others is not None:
            others.discard(message_id.batch_index)
            if others:
                return
            del self._in_batches[position]
        self._forget(position)

    def _forget(self, position: Position) -> None:
        for queue in self._queues.values():
            queue.pop(position, None)

    def discard_up_to(self, message_id: MessageId) -> None:
        """Remove this message and all before it."""
        if not self._queues:
            return
        position = message_id.position
        self._queues = {
            delay: {key: due for key, due in queue.items() if key >= position} for delay, queue in self._queues.items()
        }
        self._in_batches = {key: indexes for key, indexes in self._in_batches.items() if key >= position}
        for index in range(min(message_id.batch_index, 0), message_id.batch_index + 1):
            self.discard(message_id._replace(batch_index=index))

    def clear(self) -> None:
        self._queues.clear()
        self._in_batches.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        first_due = [next(iter(queue.values())) for queue in self._queues.values() if queue]
        if first_due:
            self._timer = self._loop.call_at(min(first_due), self._on_due)

    def _on_due(self) -> None:
        self._timer = None
        now = self._loop.time()
        due: list[tuple[float, Position]] = []
        for queue in self._queues.values():
            while queue and (first := next(iter(queue.items())))[1] <= now:
                del queue[first[0]]
                self._in_batches.pop(first[0], None)
                due.append((first[1], first[0]))
        self._queues = {delay: queue for delay, queue in self._queues.items() if queue}
        if due:
            self._redeliver([position for _, position in sorted(due)])
        self._arm()


class Acknowledgements:
    """Groups acknowledgements and requests redelivery of messages that are not acknowledged in time.

    ``connection`` returns the current one, ``in_use`` the session of the cluster that serves the consumer.
    ``redeliver_all`` requests redelivery of everything unacknowledged.
    """

    def __init__(
        self,
        session: Session,
        config: ConsumerConfig,
        consumer_id: int,
        connection: Callable[[], Connection | None],
        in_use: Callable[[], Session],
        redeliver_all: Callable[[], None],
        *,
        dead_letter_producer: DeadLetterProducer | None,
        telemetry: Processing | None,
    ) -> None:
        self.tracker = AckTracker(batch_indexes=config.batch_index_ack_enabled)
        self.has_several_clusters = session.site is not None
        """True if messages may belong to another cluster than the present one."""
        self._session = session
        self._config = config
        self._consumer_id = consumer_id
        self._connection = connection
        self._in_use = in_use
        self._redeliver_all = redeliver_all
        self._telemetry = telemetry
        self._timer: asyncio.TimerHandle | None = None
        self._nacks = RedeliveryTimer(self._ask_again)
        self._unacked = RedeliveryTimer(self._on_timeout)
        self._dead_letter_producer = dead_letter_producer
        redeliveries_max = dead_letter_producer.redeliveries_max if dead_letter_producer else math.inf
        self._candidates = DeadLetterCandidates(redeliveries_max)
        self._pending_letters: set[asyncio.Task[None]] = set()
        self._late_logged_for: tuple[Session, int] | None = None
        self._loop = asyncio.get_running_loop()

    def begin(self, message: Message) -> None:
        """Record that the application has received this message."""
        if timeout_ms := self._config.ack_timeout(message.redelivery_count):
            self._unacked.add(message.id, timeout_ms)
        self._candidates.add(message)
        if self._telemetry is not None:
            self._telemetry.begin(message)

    def acknowledge(self, message: Message) -> None:
        """Acknowledge this message. The command is sent within 100 ms, together with others."""
        if self.has_several_clusters and self._is_late(message):
            return
        self.tracker.acknowledge(message)
        self._unacked.discard(message.id)
        self._nacks.discard(message.id)
        self._candidates.discard(message)
        if self._telemetry is not None:
            self._telemetry.end(message.id, "acknowledge")
        self.schedule()

    def acknowledge_cumulative(self, message: Message) -> None:
        """Acknowledge everything up to this message. Not for shared subscriptions."""
        if self.has_several_clusters and self._is_late(message):
            return
        self.tracker.acknowledge_cumulative(message)
        self._unacked.discard_up_to(message.id)
        if self._telemetry is not None:
            self._telemetry.end_up_to(message.id)
        self.schedule()

    def negative_acknowledge(self, message: Message) -> None:
        """Request redelivery of the message's entry after a delay."""
        if self.has_several_clusters and self._is_late(message):
            return
        self._unacked.discard(message.id)
        self._nacks.add(message.id, self._config.nack_delay(message.redelivery_count))
        if self._telemetry is not None:
            self._telemetry.end(message.id, "negative_acknowledge")

    def _is_late(self, message: Message) -> bool:
        """Return True for a message of a cluster that the consumer has left: its id names another message now.

        It is counted, and logged once per change. The new cluster delivers the message again, unless it knows that it
        is acknowledged.
        """
        session, in_use = self._session, self._in_use()
        if message.id.cluster == in_use.cluster or (message.id.cluster is None and session.site is not None):
            return False
        session.late_acknowledgements += 1
        if session.telemetry is not None:
            session.telemetry.count_late_acknowledgement()
        if self._late_logged_for != (in_use, session.generation):
            self._late_logged_for = in_use, session.generation
            _log.warning(
                "acknowledgements of messages of an earlier site are not sent topic=%s id=%s earlier=%s site=%s",
                *(message.topic, message.id, message.id.cluster or session.config.url.text, in_use.cluster),
            )
        return True

    def refuse(self, position: Position, reason: pb.CommandAck.ValidationError.ValueType) -> None:
        """Acknowledge an unreadable entry and give the broker the reason."""
        connection = self._connection()
        if connection is not None:
            ids = [message_id_to_wire(entry) for entry in self.tracker.entries_of(position)]
            connection.write(commands.ack(self._consumer_id, ids, validation_error=reason))

    def schedule(self) -> None:
        """Send pending acknowledgements now if there are many, otherwise soon."""
        if self.tracker.pending_count >= _ACK_GROUP_MAX:
            self.flush()
        elif self._timer is None and self.tracker.pending_count:
            self._timer = self._loop.call_later(_ACK_GROUP_DELAY_S, self.flush)

    def flush(self) -> None:
        """Send pending acknowledgements now. Without a connection they wait for the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        connection = self._connection()
        if connection is not None:
            connection.write(*self.tracker.take_frames(self._consumer_id))

    def divert(self, messages: Sequence[Message]) -> bool:
        """Send messages that were redelivered too often to the dead-letter topic. Return True if these were."""
        return bool(messages) and self._candidates.is_dead(messages[0]) and self._start_letters(messages)

    async def letters_sent(self) -> None:
        """Wait for dead letters in flight, at most for the operation timeout."""
        if self._pending_letters:
            await asyncio.wait(self._pending_letters, timeout=self._session.config.operation_timeout_ms / 1000)

    def forget(self) -> None:
        """Drop pending acknowledgements and all deadlines, because the subscription was moved."""
        self.tracker.forget()
        self.forget_deadlines()

    def forget_deadlines(self) -> None:
        """Cancel the deadlines of everything received so far."""
        self._nacks.clear()
        self._unacked.clear()
        self._candidates.clear()
        if self._telemetry is not None:
            self._telemetry.end_all()

    def stop(self) -> None:
        """Stop the timers. Nothing more is sent automatically."""
        self.forget_deadlines()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timeout(self, positions: list[Position]) -> None:
        if self._telemetry is not None:
            self._telemetry.end_entries(positions)
        self._ask_again(positions)

    def _ask_again(self, positions: list[Position]) -> None:
        """Request redelivery: of single entries for shared subscriptions, of everything unacknowledged for others."""
        self.flush()
        positions = [position for position in positions if not self._start_letters(self._candidates.take(position))]
        connection = self._connection()
        if connection is None or not positions:
            return  # the next connection delivers everything unacknowledged anyway
        if self._config.counts_redeliveries:
            ids = [message_id_to_wire(entry) for last in positions for entry in self.tracker.entries_of(last)]
            command = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=self._consumer_id, message_ids=ids)
            connection.write(commands.encode(command))
            return
        self._redeliver_all()

    def _start_letters(self, messages: Sequence[Message]) -> bool:
        """Send messages to the dead-letter topic in the background. Return True if there are any."""
        if messages:
            task = self._session.spawn(self._send_letters(messages))
            self._pending_letters.add(task)
            task.add_done_callback(self._pending_letters.discard)
        return bool(messages)

    async def _send_letters(self, messages: Sequence[Message]) -> None:
        """Send dead letters. A message that cannot be sent is redelivered later and retried then."""
        assert self._dead_letter_producer is not None
        for message in messages:
            try:
                await self._dead_letter_producer.send_dead_letter(message)
            except PulsarError as error:
                _log.warning("message could not be sent to its dead-letter topic id=%s error=%s", message.id, error)
                self.negative_acknowledge(message)
            else:
                self.acknowledge(message)
