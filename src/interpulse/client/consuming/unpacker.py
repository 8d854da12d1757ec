"""Conversion of entries from a broker into messages for the application."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from interpulse.client.consuming.ack_tracker import AckTracker
from interpulse.client.consuming.consumer_config import ConsumerConfig
from interpulse.client.encryption.entries import Decryptor
from interpulse.client.messages import Message, messages_of
from interpulse.model.errors import CryptoError
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.wire.entries import ParsedEntry, parse_entry
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.ids import mask_of, of_batch
from interpulse.wire.stamps import source_positions

_log = logging.getLogger(__name__)


class Assembled(NamedTuple):
    """Complete message and the entries it came in."""

    entry: ParsedEntry
    positions: list[Position]
    problem: CryptoError | None = None
    """Reason why a chunk is still encrypted."""


@dataclass(slots=True)
class _Partial:
    pieces: list[memoryview] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    problem: CryptoError | None = None


class ChunkAssembler:
    """Assembles chunks into messages.

    At most ``messages_max`` messages may be incomplete. When another one begins, the oldest is dropped and
    ``on_given_up`` receives the positions of its chunks.
    """

    def __init__(
        self, messages_max: int = 10, on_given_up: Callable[[list[Position]], None] = lambda positions: None
    ) -> None:
        self._messages_max = messages_max
        self._on_given_up = on_given_up
        self._partial: dict[str, _Partial] = {}

    def add(self, entry: ParsedEntry, position: Position, problem: CryptoError | None = None) -> Assembled | None:
        """Add a chunk. Return the whole message with its last chunk, otherwise None.

        A chunk that does not continue its message is dropped.
        """
        metadata = entry.metadata
        if metadata.chunk_id == 0:
            self._partial.pop(metadata.uuid, None)
            if len(self._partial) >= self._messages_max:
                self._on_given_up(self._partial.pop(next(iter(self._partial))).positions)
            self._partial[metadata.uuid] = _Partial()
        partial = self._partial.get(metadata.uuid)
        if partial is None or len(partial.pieces) != metadata.chunk_id:
            self._partial.pop(metadata.uuid, None)
            _log.warning("chunk dropped, earlier chunks are missing uuid=%s chunk=%d", metadata.uuid, metadata.chunk_id)
            return None
        partial.pieces.append(entry.payload)
        partial.positions.append(position)
        partial.problem = partial.problem or problem
        if metadata.chunk_id < metadata.num_chunks_from_msg - 1:
            return None
        del self._partial[metadata.uuid]
        whole = memoryview(b"".join(partial.pieces))
        joined = ParsedEntry(metadata, entry.metadata_bytes, whole, entry.broker_metadata, entry.was_encrypted)
        return Assembled(joined, partial.positions, partial.problem)

    def clear(self) -> None:
        self._partial.clear()


class Start(NamedTuple):
    """Start of reading: at a message if ``included``, otherwise after it."""

    id: MessageId
    included: bool = False

    @property
    def subscribe_from(self) -> MessageId | Position:
        """Position to subscribe from.

        For a chunked message this is its first chunk, because one chunk cannot be skipped.
        """
        return self.id.first_chunk or self.id

    @property
    def first_position(self) -> Position:
        """Entry of the start position."""
        return self.id.first_chunk or self.id.position

    def admits(self, message_id: MessageId) -> bool:
        """Return True if a message is after the start. A start without batch index means the whole entry."""
        start = self.id
        if start.position in (EARLIEST, LATEST):
            return True
        if message_id.position != start.position:
            return message_id.position > start.position
        if start.batch_index < 0 or message_id.batch_index < 0:
            return self.included
        return message_id.batch_index >= start.batch_index + (not self.included)


class Unpacked(NamedTuple):
    """Messages of an entry, decrypted where possible, and the number of permits that the broker used for it."""

    messages: list[Message]
    permits: int
    problem: CryptoError | None = None
    """Reason why the messages are still encrypted."""


class Unpacker:
    """Unpacks the entries of one topic or partition, and assembles chunks."""

    def __init__(self, topic: TopicName, acks: AckTracker, config: ConsumerConfig) -> None:
        self._topic = str(topic)
        self._partition = topic.partition_index
        self._acks = acks
        self.cluster: str | None = None
        """Service URL that message ids carry, None for none."""
        self._decryptor = Decryptor(self._topic, config.crypto_key_reader)
        on_given_up = self._acknowledge_all if config.oldest_chunks_acknowledged else lambda positions: None
        self._chunks = ChunkAssembler(config.chunked_messages_max, on_given_up)

    def _acknowledge_all(self, positions: list[Position]) -> None:
        for position in positions:
            self._acks.finish(position)

    def unpack(
        self,
        position: Position,
        entry: memoryview,
        redelivery_count: int = 0,
        ack_set: Sequence[int] = (),
        start: Start | None = None,
    ) -> Unpacked:
        """Return the wanted messages of an entry; none for a chunk that is not the last. Raise RemoteProtocolError.

        Messages that the broker reports as acknowledged used no permits. An entry without wanted messages is
        acknowledged.
        """
        parsed = parse_entry(entry)
        permits = _permits(parsed, ack_set)
        problem = self._decryptor.open(parsed) if parsed.metadata.encryption_keys else None
        first_chunk = None
        if parsed.metadata.num_chunks_from_msg > 1:
            assembled = self._chunks.add(parsed, position, problem)
            if assembled is None:
                return Unpacked([], permits)
            parsed, first_chunk, problem = assembled.entry, assembled.positions[0], assembled.problem
            self._acks.remember_chunks(position, assembled.positions)
        sent = mask_of(ack_set) if ack_set else -1
        messages = messages_of(
            parsed,
            topic=self._topic,
            ledger=position.ledger,
            entry_id=position.entry,
            partition=self._partition,
            redelivery_count=redelivery_count,
            first_chunk=first_chunk,
            is_encrypted=problem is not None,
        )
        wanted = [message for message in messages if self._is_wanted(message.id, sent, start)]
        if not wanted:
            self._acks.finish(position)
        elif wanted[0].id.batch_index >= 0 and len(wanted) < wanted[0].batch_size:
            waiting = sum(1 << message.id.batch_index for message in wanted)
            self._acks.narrow(position, waiting, sent & ((1 << wanted[0].batch_size) - 1))
        if self.cluster is not None:
            positions = source_positions(parsed.metadata) if parsed.metadata.replicated_from else ()
            source = positions[-1] if positions else None
            for message in wanted:
                message.id = message.id.of_site(self.cluster, source)
        return Unpacked(wanted, permits, problem)

    def _is_wanted(self, message_id: MessageId, sent: int, start: Start | None) -> bool:
        """Return True for a message after the start that is not acknowledged.

        Acknowledged means here, or at the broker (bit 0 in ``sent``).
        """
        if start is not None and not start.admits(message_id):
            return False
        return message_id.batch_index < 0 or bool(
            sent >> message_id.batch_index & 1 and not self._acks.is_done(message_id)
        )

    def clear(self) -> None:
        """Drop incomplete messages. The broker sends all their chunks again."""
        self._chunks.clear()


def permits_for(entry: memoryview, ack_set: Sequence[int]) -> int:
    """Return the number of permits that the broker used for an entry that cannot be unpacked."""
    try:
        return _permits(parse_entry(entry), ack_set)
    except RemoteProtocolError:
        return 1


def _permits(parsed: ParsedEntry, ack_set: Sequence[int]) -> int:
    count = parsed.message_count
    return of_batch(mask_of(ack_set), count).bit_count() if ack_set else count
