"""The publishing side of a loaded topic: pending entries, and their answers.

The order of `append` calls fixes the positions of entries. Answers to producers follow that order, and are sent only
after the log has reported the entries as durable.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import groupby, repeat
from operator import attrgetter
from typing import Protocol

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.broker_entry_metadata import BrokerEntryInterceptor, TopicBrokerEntryMetadata
from interpulse.broker.live.entry_metadata import EntryMetadata, EntryMetadataCache
from interpulse.broker.live.metrics import TrafficMeter
from interpulse.broker.live.producing.deduplication import Deduplication, SequenceState
from interpulse.broker.live.producing.producer import PendingPublish, Producer
from interpulse.broker.live.producing.producer_set import ProducerSet
from interpulse.broker.live.producing.publish_limits import PublishLimits
from interpulse.broker.live.producing.sequence_keeper import SequenceKeeper
from interpulse.broker.live.topic.topic_clients import TopicClients
from interpulse.model.errors import PulsarError, TopicTerminated
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.storage.api import Log, LogTerminated

_new = tuple.__new__
_position_of, _producer_of = attrgetter("position"), attrgetter("producer")


class PublishedTo(Protocol):
    """The interface of the topic for its publishing side."""

    active_ms: int
    name: TopicName

    @property
    def now_ms(self) -> Callable[[], int]: ...


class Publishing:
    """The owner of a topic's producers; see `ProducerOwner`."""

    __slots__ = (
        "_broker_entry_metadata",
        "_clients",
        "_entry_metadata",
        "_log",
        "_pending",
        "_producers",
        "_sequences",
        "_topic",
        "chunk_published",
        "entries_added",
        "last_marker",
        "last_publish_ms",
        "now_ms",
        "publish_limits",
        "published",
    )

    def __init__(
        self,
        topic: PublishedTo,
        topic_log: Log,
        clients: TopicClients,
        producers: ProducerSet,
        sequences: SequenceKeeper,
        entry_metadata: EntryMetadataCache,
        broker_entry_metadata: TopicBrokerEntryMetadata,
    ) -> None:
        self.now_ms = topic.now_ms
        self.publish_limits: PublishLimits | None = None
        self.published = TrafficMeter()
        """The traffic of closed producers."""
        self.entries_added = 0
        self.last_publish_ms = 0
        self.last_marker = EARLIEST
        """The position of the newest marker appended since the topic was loaded."""
        self.chunk_published = False
        self._topic = topic
        self._log = topic_log
        self._clients = clients
        self._producers = producers
        self._sequences = sequences
        self._entry_metadata = entry_metadata
        self._broker_entry_metadata = broker_entry_metadata
        self._pending: list[PendingPublish] = []

    @property
    def pending_count(self) -> int:
        """Return the number of publishes that wait for the log."""
        return sum(len(publish.sequence_ids) for publish in self._pending)

    @property
    def deduplication(self) -> Deduplication | None:
        """The sequence ids of producers; None while de-duplication is off."""
        return self._sequences.deduplication

    @property
    def topic_epoch(self) -> int | None:
        return self._producers.epoch

    @property
    def broker_entry_interceptor(self) -> BrokerEntryInterceptor | None:
        return self._broker_entry_metadata.interceptor

    def append(
        self,
        entries: Sequence[bytes],
        producer: Producer,
        sequence_ids: Sequence[int],
        *,
        highest_sequence_id: int,
        message_count: int,
        metadata: EntryMetadata | None,
        sequence: SequenceState | None,
        sequence_last: int,
    ) -> None:
        """Append entries to the log, which fixes their order; see `ProducerOwner`."""
        if self._clients.refusal is not None:
            raise self._clients.refusal
        try:
            position = self._log.append(*entries)
        except LogTerminated as error:
            raise TopicTerminated(f"Topic {self._topic.name} was already terminated") from error
        self.entries_added += len(entries)
        if metadata is not None:
            self._entry_metadata.remember(position, metadata)
            if metadata.is_marker:
                self.last_marker = position
            self.chunk_published = self.chunk_published or bool(metadata.chunk_uuid)
        row = (
            position,
            producer,
            sequence_ids,
            entries,
            highest_sequence_id,
            message_count,
            sequence,
            sequence_last,
            None,
        )
        self._pending.append(_new(PendingPublish, row))

    def answer_in_turn(
        self, producer: Producer, sequence_id: int, highest_sequence_id: int, error: PulsarError | None
    ) -> None:
        position = self._log.last_appended
        self._pending.append(PendingPublish(position, producer, (sequence_id,), (), highest_sequence_id, error=error))

    def answer_upto(self, last: Position) -> Sequence[PendingPublish]:
        """Answer the publishes up to this position, which is durable; return them."""
        self.last_publish_ms = self.now_ms()
        pending = self._pending
        end = bisect_right(pending, last, key=_position_of)
        done, pending[:end] = pending[:end], ()
        for producer, publishes in groupby(done, _producer_of):
            producer.answered(publishes)
        return done

    def fail(self, refusal: PulsarError) -> None:
        """Refuse all pending publishes: the log has failed."""
        pending, self._pending = self._pending, []
        for publish in pending:
            publish.producer.failed(publish, refusal)

    def forget(self) -> None:
        """Drop all pending answers."""
        self._pending.clear()

    def remove_producer(self, producer: Producer) -> None:
        """Remove a closed producer."""
        now_ms = self.now_ms()
        self._producers.remove(producer)
        self.published.absorb(producer.published)
        self._topic.active_ms = now_ms
        if self.deduplication is not None:
            self.deduplication.touch(producer.name, now_ms)


def deliveries_of(publishes: Sequence[PendingPublish]) -> list[Delivery]:
    """Return the entries of these publishes, for consumers that get them for the first time."""
    fresh: list[Delivery] = []
    for position, _, _, entries, _, message_count, _, _, _ in publishes:
        if len(entries) == 1:  # a third of the time of the iterators
            fresh.append(_new(Delivery, (position, entries[0], 0, (), message_count)))
            continue
        ledger, last = position
        numbers = range(last + 1 - len(entries), last + 1)
        positions = map(_new, repeat(Position), zip(repeat(ledger), numbers, strict=False))
        rows = zip(positions, entries, repeat(0), repeat(()), repeat(message_count), strict=False)
        fresh += map(_new, repeat(Delivery), rows)
    return fresh
