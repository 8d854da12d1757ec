"""Acknowledgements: which entries are done, grouped so that a busy consumer sends few commands."""

from __future__ import annotations

from collections.abc import Sequence

from interpulse.client.messages import Message
from interpulse.model.ids import MessageId, Position
from interpulse.wire import commands
from interpulse.wire.ids import message_id_to_wire

__all__ = ["AckTracker"]


class AckTracker:
    """Brokers count entries: the messages of a batch are collected here until all of them are acknowledged.

    What was collected survives a lost connection, so that messages which the application has finished are not handed
    to it again when the broker repeats the rest of their batch.
    """

    def __init__(self) -> None:
        self._open_batches: dict[Position, set[int]] = {}
        self._chunks: dict[Position, Sequence[Position]] = {}
        self._done: list[Position] = []
        self._cumulative: Position | None = None

    @property
    def pending_count(self) -> int:
        """Acknowledgements that wait for :meth:`take_frames`."""
        return len(self._done) + (self._cumulative is not None)

    def remember_chunks(self, last: Position, positions: Sequence[Position]) -> None:
        """A message made of several entries: acknowledging it acknowledges them all."""
        self._chunks[last] = positions

    def entries_of(self, position: Position) -> Sequence[Position]:
        """All entries of the message that ends at ``position``; that one alone for messages in one entry."""
        return self._chunks.get(position, (position,))

    def is_done(self, message_id: MessageId) -> bool:
        """Whether a message of an unfinished batch was acknowledged already."""
        missing = self._open_batches.get(message_id.position)
        return missing is not None and message_id.batch_index not in missing

    def acknowledge(self, message: Message) -> None:
        position = message.id.position
        if message.id.batch_index >= 0 and message.batch_size > 1:
            missing = self._open_batches.setdefault(position, set(range(message.batch_size)))
            missing.discard(message.id.batch_index)
            if missing:
                return
            del self._open_batches[position]
        self._done += self._chunks.pop(position, (position,))

    def acknowledge_cumulative(self, message: Message) -> None:
        """Everything up to this message; inside a batch only the entries before it, until its last message."""
        position = message.id.position
        if message.id.batch_index >= 0 and message.id.batch_index < message.batch_size - 1:
            position = Position(position.ledger, position.entry - 1)
        if self._cumulative is None or position > self._cumulative:
            self._cumulative = position
        self._open_batches = {open_: rest for open_, rest in self._open_batches.items() if open_ > position}
        self._chunks = {last: parts for last, parts in self._chunks.items() if last > position}

    def forget(self) -> None:
        """The cursor was moved: nothing that was collected means anything any more."""
        self._open_batches.clear()
        self._chunks.clear()
        self._done.clear()
        self._cumulative = None

    def take_frames(self, consumer_id: int) -> list[bytes]:
        """The commands for everything finished since the last call."""
        frames = []
        if self._cumulative is not None:
            ids = [message_id_to_wire(self._cumulative)]
            frames.append(commands.ack(consumer_id, ids, cumulative=True))
            self._cumulative = None
        if len(self._done) == 1:
            frames.append(commands.ack_one(consumer_id, *self._done[0]))
        elif self._done:
            frames.append(commands.ack(consumer_id, map(message_id_to_wire, self._done)))
        self._done.clear()
        return frames
