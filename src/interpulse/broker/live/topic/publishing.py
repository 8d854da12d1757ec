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
from interpulse.broker.live.entry_metadata import MARKER, EntryMetadata, EntryMetadataCache
from interpulse.broker.live.producing.deduplication import Deduplication
from interpulse.broker.live.producing.producer import PendingPublish, Producer, PublishLimits
from interpulse.broker.live.producing.producer_set import ProducerSet
from interpulse.broker.live.producing.sequence_keeper import SequenceKeeper
from interpulse.broker.live.topic.topic_clients import TopicClients
from interpulse.broker.live.topic_state import BrokerEntryInterceptor
from interpulse.model.errors import PulsarError, TopicTerminated
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.storage.api import Log, LogEntry, LogTerminated

_new = tuple.__new__
_position_of, _producer_of = attrgetter("position"), attrgetter("producer")


class PublishedTo(Protocol):
    """The interface of the topic for its publishing side."""

    active_ms: int
    clients: TopicClients
    entry_metadata: EntryMetadataCache
    log: Log
    name: TopicName
    now_ms: Callable[[], int]
    producers: ProducerSet
    sequences: SequenceKeeper


class Publishing:
    """The owner of a topic's producers; see `ProducerOwner`."""

    __slots__ = (
        "_clients",
        "_entry_metadata",
        "_log",
        "_markers",
        "_pending",
        "_sequences",
        "_topic",
        "broker_entry_interceptor",
        "chunk_published",
        "entries_added",
        "last_marker",
        "last_publish_ms",
        "now_ms",
        "publish_limits",
    )

    def __init__(self, topic: PublishedTo) -> None:
        self.now_ms = topic.now_ms
        self.publish_limits: PublishLimits | None = None
        self.broker_entry_interceptor: BrokerEntryInterceptor | None = None
        self.entries_added = 0
        self.last_publish_ms = 0
        self.last_marker = EARLIEST
        """The position of the newest marker appended since the topic was loaded."""
        self.chunk_published = False
        self._topic = topic
        self._log = topic.log
        self._clients = topic.clients
        self._sequences = topic.sequences
        self._entry_metadata = topic.entry_metadata
        self._pending: list[PendingPublish] = []
        self._markers: list[LogEntry] = []

    @property
    def pending_count(self) -> int:
        return sum(len(publish.sequence_ids) for publish in self._pending)

    @property
    def deduplication(self) -> Deduplication | None:
        """The sequence ids of producers; None while de-duplication is off."""
        return self._sequences.deduplication

    @property
    def topic_epoch(self) -> int | None:
        return self._topic.producers.epoch

    @property
    def last_appended(self) -> Position:
        return self._log.last_appended

    def append(self, entries: Sequence[bytes], metadata: EntryMetadata | None) -> Position:
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
                self._markers.append(LogEntry(position, entries[-1]))
            self.chunk_published = self.chunk_published or bool(metadata.chunk_uuid)
        return position

    def append_marker(self, entry: bytes) -> None:
        """Append a marker that this broker writes; see `append`."""
        interceptor = self.broker_entry_interceptor
        self.append([entry if interceptor is None else interceptor.intercept(entry, MARKER)], MARKER)

    def answer(self, publish: PendingPublish) -> None:
        self._pending.append(publish)

    def answer_upto(self, last: Position) -> Sequence[PendingPublish]:
        """Answer the publishes up to this position, which is durable; return them."""
        self.last_publish_ms = self.now_ms()
        pending = self._pending
        end = bisect_right(pending, last, key=_position_of)
        done, pending[:end] = pending[:end], ()
        for producer, publishes in groupby(done, _producer_of):
            producer.answered(publishes)
        return done

    def take_markers(self, last: Position) -> list[LogEntry]:
        """Return the markers up to this position that became durable since the last call."""
        end = bisect_right(self._markers, last, key=_position_of)
        taken, self._markers = self._markers[:end], self._markers[end:]
        return taken

    def fail(self, refusal: PulsarError) -> None:
        """Refuse all pending publishes: the log has failed."""
        pending, self._pending = self._pending, []
        for publish in pending:
            publish.producer.failed(publish, refusal)

    def forget(self) -> None:
        self._pending.clear()

    def remove_producer(self, producer: Producer) -> None:
        now_ms = self._topic.active_ms = self.now_ms()
        self._topic.producers.remove(producer)
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
