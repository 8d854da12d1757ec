"""A producer of a topic: each entry from its SEND to its receipt, and the limits that policies set for it.

A topic without such policies has no `PublishLimits`. An entry that violates a limit is refused. An entry above the
publish rate is stored, and reading from its client pauses until the rate allows more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, Final, NamedTuple, Protocol

from interpulse.broker.live.api import ProducerRequest, ProducerSink, TopicSettings
from interpulse.broker.live.dispatch.delayed_entries import check_delay
from interpulse.broker.live.dispatch.dispatch_limits import PAUSE_MS_MIN, RateLimit
from interpulse.broker.live.entry_metadata import (
    MARKER,
    EntryMetadata,
    entry_metadata_of,
    last_sequence_id_of,
    message_metadata_of,
)
from interpulse.broker.live.metrics import TrafficMetrics
from interpulse.broker.live.producing.deduplication import Deduplication, SequenceState, Verdict, source_number
from interpulse.broker.live.topic_state import BrokerEntryInterceptor
from interpulse.clock import iso_time
from interpulse.model.errors import MetadataError, NotAllowed, PersistenceError, ProducerFenced, PulsarError
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import PublishRate
from interpulse.rules.failover_role import FailoverRole
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.codec import codec
from interpulse.wire.ids import signed
from interpulse.wire.stamps import source_positions

_new = tuple.__new__
_DUPLICATE = EARLIEST
"""The position in the receipt of a duplicate."""

_REPLICATION_MARKERS: Final = (
    pb.REPLICATED_SUBSCRIPTION_SNAPSHOT_REQUEST,
    pb.REPLICATED_SUBSCRIPTION_SNAPSHOT_RESPONSE,
    pb.REPLICATED_SUBSCRIPTION_SNAPSHOT,
    pb.REPLICATED_SUBSCRIPTION_UPDATE,
)

_MARKER_RECEIPT: Final = 1 << 63
"""The highest sequence id in the receipt of a replication marker: -2^63, as the wire has it."""

_MODE_LABELS = ("Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing")


class PublishLimits:
    """The limits of one topic; `of` makes new ones whenever the settings of the topic change."""

    __slots__ = (
        "_delay_ms_max",
        "_encryption_required",
        "_message_bytes_max",
        "_rate",
        "_rate_limit",
        "throttled_count",
    )

    def __init__(self, settings: TopicSettings, now_ms: int) -> None:
        self._message_bytes_max = settings.max_message_size
        self._encryption_required = settings.encryption_required
        self._delay_ms_max = _delay_ms_max(settings)
        self._rate: PublishRate | None = settings.publish_rate
        self._rate_limit = _rate_limit(settings.publish_rate, now_ms)
        self.throttled_count = 0
        """The number of times that a client was throttled."""

    @classmethod
    def of(cls, settings: TopicSettings, before: PublishLimits | None, now_ms: int) -> PublishLimits | None:
        """Return the limits of these settings, None if there are none. An unchanged rate keeps its tokens."""
        demanding = settings.publish_rate or settings.max_message_size > 0 or settings.encryption_required
        if not demanding and not _delay_ms_max(settings):
            return None
        limits = cls(settings, now_ms)
        if before is not None:
            limits.throttled_count = before.throttled_count
            if before._rate == settings.publish_rate:
                limits._rate_limit = before._rate_limit
        return limits

    def check(self, entry: bytes, *, is_chunk: bool, is_marker: bool) -> None:
        """Check an entry. Raise NotAllowed for its size or delay, MetadataError if it must be encrypted."""
        limit = self._message_bytes_max
        if 0 < limit < len(entry) and not is_chunk:
            raise NotAllowed(f"Exceed maximum message size: {len(entry)} bytes (maxMessageSize={limit})")
        if self._encryption_required and not is_marker and not message_metadata_of(entry).encryption_keys:
            raise MetadataError("Messages must be encrypted (encryptionRequired=true)")
        if self._delay_ms_max and not is_marker:
            check_delay(entry, self._delay_ms_max)

    def charge(self, messages: int, size: int, now_ms: int) -> int:
        """Charge a stored entry, and return the ms for which its client must not be read."""
        if self._rate_limit is None:
            return 0
        self._rate_limit.spend(messages, size, now_ms)
        wait_ms = self._rate_limit.wait_ms(now_ms)
        if wait_ms:
            self.throttled_count += 1
            wait_ms = max(wait_ms, PAUSE_MS_MIN)
        return wait_ms


def check_encrypted(topic: TopicName, settings: TopicSettings, *, encrypted: bool) -> None:
    """Raise MetadataError for a producer without encryption where it is required."""
    if settings.encryption_required and not encrypted:
        raise MetadataError(f"Encryption is required in {topic} (encryptionRequired=true)")


def _delay_ms_max(settings: TopicSettings) -> int:
    """Return the longest delay that messages may ask for; 0 = any."""
    delays = settings.delayed_delivery
    return max(delays.max_delay_millis, 0) if delays is not None and delays.active else 0


def _rate_limit(rate: PublishRate | None, now_ms: int) -> RateLimit | None:
    return RateLimit(rate.messages, rate.bytes, 1, now_ms) if rate is not None and rate.limited else None


class CopySource(NamedTuple):
    """The source of a replicated entry, and the content of its receipt (feature flag 6)."""

    receipt: tuple[int, int]
    """Sequence id and highest sequence id."""
    number: int = -1
    """The position on the source cluster as a `source_number`; None for a marker."""


class PendingPublish(NamedTuple):
    """Consecutive entries up to ``position``, answered once all of them are durable.

    Without entries it is an answer in its turn: to a duplicate, or with ``error``.
    """

    position: Position
    producer: Producer
    sequence_ids: Sequence[int]
    """The sequence id of each receipt."""
    entries: Sequence[bytes]
    highest_sequence_id: int = -1
    """The highest sequence id of each receipt; -1 where the client sent none."""
    message_count: int = 1
    """The messages of each entry."""
    sequence: SequenceState | None = None
    sequence_last: int = -1
    error: PulsarError | None = None


class ProducerOwner(Protocol):
    """The interface of the topic for its producers."""

    now_ms: Callable[[], int]
    publish_limits: PublishLimits | None
    """The limits on single entries; None without policies that set some."""

    broker_entry_interceptor: BrokerEntryInterceptor | None
    """The source of broker entry metadata, constant while the topic is loaded; None if entries get none."""

    @property
    def deduplication(self) -> Deduplication | None: ...
    @property
    def topic_epoch(self) -> int | None: ...
    @property
    def last_appended(self) -> Position: ...

    def append(self, entries: Sequence[bytes], metadata: EntryMetadata | None) -> Position:
        """Append entries, and return the position of the last one; ``metadata`` None = ordinary entries.

        Raises TopicTerminated, PersistenceError; then nothing is appended. Each success is followed by `answer`.
        """

    def answer(self, publish: PendingPublish) -> None:
        """Answer this publish once everything up to its position is durable."""

    def remove_producer(self, producer: Producer) -> None: ...


class Producer:
    """An open producer."""

    def __init__(self, owner: ProducerOwner, request: ProducerRequest, name: str, sink: ProducerSink) -> None:
        self.request = request
        self.producer_id = request.producer_id
        self.name = name
        self.sink = sink
        self.ready = True
        """False while the producer waits for exclusivity; then :meth:`ProducerSink.producer_ready` follows."""
        self.closed = False
        self.leaving = False
        self.pending_count = 0
        self.published = TrafficMetrics()
        self._owner = owner
        self._interceptor = owner.broker_entry_interceptor
        self._by_source_position = request.by_source_position
        self._connected_ms = owner.now_ms()
        self._sequence: SequenceState | None = None
        self._deduplication: Deduplication | None = None

    @property
    def topic_epoch(self) -> int | None:
        """The topic's epoch of exclusive producers; None before the first one, and while this one waits."""
        return self._owner.topic_epoch if self.ready else None

    @property
    def last_sequence_id(self) -> int:
        """The highest sequence id stored under this name according to de-duplication, else -1."""
        deduplication = self._owner.deduplication
        return deduplication.last_sequence_id(self.name) if deduplication else -1

    def takes_run(self, sequence_ids: Sequence[int], entries: Sequence[bytes]) -> bool:
        """Return True if these entries, each one whole message, can be published by one call.

        Entries that need a check or an answer of their own cannot.
        """
        owner = self._owner
        if self.closed or not self.ready or self._interceptor is not None:
            return False
        if owner.publish_limits is not None or self._by_source_position:
            return False
        deduplication = owner.deduplication
        return deduplication is None or self._is_new_run(deduplication, sequence_ids, entries)

    def publish(
        self,
        sequence_ids: Sequence[int],
        entries: Sequence[bytes],
        *,
        highest_sequence_id: int = -1,
        num_messages: int = 1,
        is_chunk: bool = False,
        marker: bool = False,
    ) -> None:
        """Append one stored entry (checksum part first), or several that `takes_run` accepts.

        The sink gets a receipt or a failure for each, in call order. ``highest_sequence_id`` is -1 if the client sent
        none. A copy by a replicator that names its source position is identified by it, if the producer was opened so:
        its receipt has the ledger as sequence id and the entry as the highest one; that of a replication marker has
        2^63, which the wire reads as -2^63.
        """
        owner, interceptor = self._owner, self._interceptor
        entry = entries[-1]  # represents a run, whose entries are all ordinary
        count = len(entries)
        size = len(entry) if count == 1 else sum(map(len, entries))
        sequence, last = None, -1
        source = metadata = None
        limits = owner.publish_limits
        if self._by_source_position and (source := _copy_source(entry, sequence_ids[0], marker=marker)):
            sequence_ids, highest_sequence_id = source.receipt[:1], source.receipt[1]
        try:
            if self.closed or not self.ready:
                raise ProducerFenced(f"Producer {self.name} is closed, or waits for exclusivity")
            if limits is not None:
                limits.check(entry, is_chunk=is_chunk, is_marker=marker)
            if num_messages != 1 or is_chunk or marker:
                metadata = MARKER if marker else entry_metadata_of(entry) if is_chunk else EntryMetadata(num_messages)
            if owner.deduplication is not None and (metadata is None or _is_judged(metadata, source)):
                sequence, last = self._sequence_of(entry, sequence_ids[-1], highest_sequence_id, source)
                if not self._is_new(sequence, last):
                    self._answer(sequence_ids[-1], highest_sequence_id, None)
                    return
            if interceptor is not None:
                entries = (interceptor.intercept(entry, metadata),)
            position = owner.append(entries, metadata)
        except PulsarError as error:
            self._refuse(sequence_ids, highest_sequence_id, error)
            return
        row = (position, self, sequence_ids, entries, highest_sequence_id, num_messages, sequence, last, None)
        owner.answer(_new(PendingPublish, row))
        messages = num_messages * count
        self.pending_count += count
        published = self.published
        published.messages += messages
        published.bytes += size
        if limits is not None and (wait_ms := limits.charge(messages, size, owner.now_ms())):
            self.sink.throttle(wait_ms)

    def answered(self, publishes: Iterable[PendingPublish]) -> None:
        receipts: list[tuple[int, int, int, int]] = []
        for position, _, sequence_ids, entries, highest_sequence_id, _, sequence, last, error in publishes:
            self.pending_count -= len(sequence_ids)
            if sequence is not None:
                sequence.confirm(last)
            if error is None:
                ledger, number = position if entries else _DUPLICATE
                if len(sequence_ids) == 1:  # half the time of the iterators
                    receipts.append((sequence_ids[0], highest_sequence_id, ledger, number))
                    continue
                numbers = range(number + 1 - len(sequence_ids), number + 1)
                receipts += zip(sequence_ids, repeat(highest_sequence_id), repeat(ledger), numbers, strict=False)
            elif not self.closed:
                if receipts:
                    self.sink.receipts(self.producer_id, receipts)
                    receipts = []
                self._send_failed(sequence_ids, highest_sequence_id, error)
        if receipts and not self.closed:
            self.sink.receipts(self.producer_id, receipts)

    def failed(self, publish: PendingPublish, error: PulsarError) -> None:
        """Answer with ``error``: the entries will not become durable."""
        self.pending_count -= len(publish.sequence_ids)
        if not self.closed:
            self._send_failed(publish.sequence_ids, publish.highest_sequence_id, error)

    def _send_failed(self, sequence_ids: Sequence[int], highest_sequence_id: int, error: PulsarError) -> None:
        for sequence_id in sequence_ids:
            self.sink.send_failed(self.producer_id, max(sequence_id, highest_sequence_id), error)

    def close(self) -> None:
        """Close the producer after its client left. Pending entries are still stored, without a receipt."""
        if not self.closed:
            self.closed = True
            self._owner.remove_producer(self)

    def leave(self) -> None:
        """Stop answering: the producer closes soon, and its client sends pending entries again."""
        self.leaving = True
        self.ready = False

    def close_by_broker(self) -> None:
        """Close the producer; its client opens it again."""
        if not self.closed:
            self.close()
            self.sink.producer_closed(self.producer_id)

    def redirect(self, moved: FailoverRole) -> None:
        """Close the producer; its client opens it again at another cluster."""
        if not self.closed:
            self.close()
            self.sink.producer_moved(self.producer_id, moved)

    def _answer(self, sequence_id: int, highest_sequence_id: int, error: PulsarError | None) -> None:
        """Answer a publish without an append, after the answers of earlier publishes."""
        self.pending_count += 1
        after = self._owner.last_appended
        publish = PendingPublish(after, self, (sequence_id,), (), highest_sequence_id, error=error)
        if self.pending_count == 1:
            self.answered((publish,))
        else:
            self._owner.answer(publish)

    def _refuse(self, sequence_ids: Sequence[int], highest_sequence_id: int, error: PulsarError) -> None:
        if not self.leaving:
            for sequence_id in sequence_ids:
                self._answer(sequence_id, highest_sequence_id, error)

    def _sequence_of(
        self, entry: bytes, sequence_id: int, highest_sequence_id: int, source: CopySource | None
    ) -> tuple[SequenceState, int]:
        """Return the sequence ids that count for the entry, and its highest one.

        A replicator of another cluster forwards the messages of many producers: there the source position counts, or
        else the name in the entry, as when the state is rebuilt from the log.
        """
        deduplication = self._owner.deduplication
        assert deduplication is not None
        if source is not None:
            return deduplication.sources[self.name], source.number
        if self.request.remote:
            metadata = message_metadata_of(entry)
            return deduplication.states[metadata.producer_name], last_sequence_id_of(metadata)
        return self._own_sequence(deduplication), max(signed(sequence_id), signed(highest_sequence_id))

    def _is_new_run(self, deduplication: Deduplication, sequence_ids: Sequence[int], entries: Sequence[bytes]) -> bool:
        if not self.request.remote:
            return self._own_sequence(deduplication).is_new(sequence_ids)
        names = codec().last_sequences(entries)
        return names is not None and names[1] == sequence_ids and deduplication.states[names[0]].is_new(sequence_ids)

    def _own_sequence(self, deduplication: Deduplication) -> SequenceState:
        if self._sequence is None or self._deduplication is not deduplication:
            self._deduplication = deduplication
            self._sequence = deduplication.states[self.name]
        return self._sequence

    def _is_new(self, sequence: SequenceState, last: int) -> bool:
        """Return False for a duplicate; raise PersistenceError while that is undecided."""
        verdict = sequence.judge(last)
        if verdict is Verdict.IN_FLIGHT:
            raise PersistenceError("Cannot determine whether the message is a duplicate at this time")
        return verdict is Verdict.NEW

    # --- statistics

    def stats(self) -> dict[str, Any]:
        request = self.request
        return {
            "accessMode": _MODE_LABELS[request.access_mode],
            "msgRateIn": self.published.message_rate,
            "msgThroughputIn": self.published.byte_rate,
            "averageMsgSize": self.published.average_bytes,
            "chunkedMessageRate": 0.0,
            "producerId": self.producer_id,
            "supportsPartialProducer": False,
            "producerName": self.name,
            "address": request.address,
            "connectedSince": iso_time(self._connected_ms),
            "clientVersion": request.client_version,
            "metadata": dict(request.metadata),
        }


def _is_judged(metadata: EntryMetadata, source: CopySource | None) -> bool:
    """Return True if the entry has a number of its own: every chunk has its source position."""
    return metadata.ends_message if source is None else not metadata.is_marker


def _copy_source(entry: bytes | memoryview, sequence_id: int, *, marker: bool) -> CopySource | None:
    """Return the source of a replicator's entry, None if it names none.

    The receipt has the first position, the only one that the replicator reads, although the last one is its own.
    """
    try:
        metadata = message_metadata_of(entry)
    except PersistenceError:
        return None
    if marker:
        is_replication = metadata.marker_type in _REPLICATION_MARKERS
        return CopySource((sequence_id, _MARKER_RECEIPT)) if is_replication else None
    positions = source_positions(metadata)
    return CopySource(positions[0], source_number(positions[-1])) if positions else None
