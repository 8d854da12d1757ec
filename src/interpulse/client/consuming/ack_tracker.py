"""Acknowledgements, grouped so that a busy consumer sends few commands."""

from __future__ import annotations

from collections.abc import Sequence

from interpulse.client.messages import Message
from interpulse.model.ids import MessageId, Position
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.ids import message_id_to_wire, words_of


class AckTracker:
    """Pending acknowledgements of one consumer.

    Brokers count entries, so acknowledgements of a batch are collected until all of its messages are acknowledged. With
    ``batch_indexes`` the broker also learns which messages of an incomplete batch are still pending. Collected
    acknowledgements survive a lost connection: when the broker repeats a batch, its acknowledged messages are not
    delivered to the application again. The broker does not say why it repeats a batch, so this also holds after another
    client has moved the cursor back.
    """

    def __init__(self, *, batch_indexes: bool = False) -> None:
        self._batch_indexes = batch_indexes
        self._waiting: dict[Position, int] = {}
        """Pending messages of each incomplete batch: bit i is 1 while message i is pending. Never 0."""

        self._partly_done: dict[Position, None] = {}
        """Batches whose latest state has not been sent to the broker, in order."""

        self._chunks: dict[Position, Sequence[Position]] = {}
        self._done: list[Position] = []
        self._cumulative: MessageId | None = None

    @property
    def pending_count(self) -> int:
        """Number of acknowledgements that wait for :meth:`take_frames`."""
        return len(self._done) + len(self._partly_done) + (self._cumulative is not None)

    def remember_chunks(self, last: Position, positions: Sequence[Position]) -> None:
        """Record that a message consists of several entries. Acknowledging it acknowledges them all."""
        self._chunks[last] = positions

    def entries_of(self, position: Position) -> Sequence[Position]:
        """Return all entries of the message that ends at ``position``; only that entry for other messages."""
        return self._chunks.get(position, (position,))

    def is_done(self, message_id: MessageId) -> bool:
        """Return True if this message of an incomplete batch is already acknowledged."""
        waiting = self._waiting.get(message_id.position)
        return waiting is not None and not waiting >> message_id.batch_index & 1

    def narrow(self, position: Position, waiting: int, pending: int) -> None:
        """Limit a batch to the messages whose bit is 1. The others need no acknowledgement.

        ``pending`` holds the messages that are pending according to the broker.
        """
        self._waiting[position] = waiting
        if self._batch_indexes and waiting != pending:
            self._partly_done[position] = None

    def finish(self, position: Position) -> None:
        """Mark the whole entry as acknowledged."""
        self._waiting.pop(position, None)
        self._partly_done.pop(position, None)
        self._done += self._chunks.pop(position, (position,))

    def acknowledge(self, message: Message) -> None:
        position = message.id.position
        waiting = self._waiting_of(message) & ~(1 << message.id.batch_index) if _has_neighbours(message) else 0
        if not waiting:
            self.finish(position)
            return
        self._waiting[position] = waiting
        if self._batch_indexes:
            self._partly_done[position] = None

    def acknowledge_cumulative(self, message: Message) -> None:
        """Acknowledge everything up to this message, unless this is pending for a later one."""
        if self._cumulative is not None and message.id < self._cumulative:
            return
        position = message.id.position
        waiting = self._waiting_of(message) & -(2 << message.id.batch_index) if _has_neighbours(message) else 0
        self._cumulative = message.id
        self._waiting = {open_: rest for open_, rest in self._waiting.items() if open_ > position}
        if waiting:
            self._waiting[position] = waiting
        self._partly_done = {open_: None for open_ in self._partly_done if open_ > position}
        self._chunks = {last: parts for last, parts in self._chunks.items() if last > position}

    def _waiting_of(self, message: Message) -> int:
        return self._waiting.get(message.id.position, (1 << message.batch_size) - 1)

    def forget(self) -> None:
        """Drop all collected acknowledgements, because the cursor was moved."""
        self._waiting.clear()
        self._partly_done.clear()
        self._chunks.clear()
        self._done.clear()
        self._cumulative = None

    def take_frames(self, consumer_id: int) -> list[bytes]:
        """Return the commands for everything acknowledged since the last call."""
        frames = []
        if self._cumulative is not None:
            frames.append(commands.ack(consumer_id, [self._up_to(self._cumulative.position)], cumulative=True))
            self._cumulative = None
        if len(self._done) == 1 and not self._partly_done:
            frames.append(commands.ack_one(consumer_id, *self._done[0]))
        elif self._done or self._partly_done:
            parts = (message_id_to_wire(position, words_of(self._waiting[position])) for position in self._partly_done)
            frames.append(commands.ack(consumer_id, [*map(message_id_to_wire, self._done), *parts]))
        self._done.clear()
        self._partly_done.clear()
        return frames

    def _up_to(self, position: Position) -> pb.MessageIdData:
        """Return the end of a cumulative acknowledgement.

        For an incomplete batch this is the entry before it, unless batch indexes are sent to the broker.
        """
        waiting = self._waiting.get(position)
        if waiting is None:
            return message_id_to_wire(position)
        if self._batch_indexes:
            return message_id_to_wire(position, words_of(waiting))
        return message_id_to_wire(Position(position.ledger, position.entry - 1))


def _has_neighbours(message: Message) -> bool:
    return message.id.batch_index >= 0 and message.batch_size > 1
