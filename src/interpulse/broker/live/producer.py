"""The producers of one topic: who may open, and what one does with each entry.

Names are unique per topic. A producer that comes back with a generated name and a higher epoch replaces its former
self; anybody else is refused while the holder of the name is alive. Access modes: an exclusive producer tolerates no
other, the next one of its kind has to wait, to be refused, or to fence it out; every new exclusive owner raises the
topic's epoch, and whoever comes back with an older one is refused for good.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, NamedTuple, Protocol

from interpulse.broker.live.api import AccessMode, ProducerRequest, ProducerSink
from interpulse.broker.live.deduplication import Deduplication, SequenceState, Verdict
from interpulse.broker.live.entries import MARKER, EntryFacts, facts_of, last_sequence_id_of, metadata_of
from interpulse.broker.live.publish_limits import PublishLimits
from interpulse.broker.live.stamps import Stamper
from interpulse.broker.live.stats import TrafficMeter, iso_time
from interpulse.model.errors import NotAllowed, PersistenceError, ProducerBusy, ProducerFenced, PulsarError
from interpulse.model.ids import EARLIEST, Position
from interpulse.rules.limits import check_producers
from interpulse.wire.ids import signed

__all__ = ["PendingPublish", "Producer", "ProducerOwner", "ProducerSet"]

_REPEAT = EARLIEST
"""The position that tells a producer its entry was stored before."""

_new = tuple.__new__
_EPOCH_MAX = (1 << 63) - 1
"""A client that names a higher one would leave no room for the next owner of the topic."""
_MODE_LABELS = ("Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing")


class PendingPublish(NamedTuple):
    """An answer that waits for the log. ``entry`` None = nothing was appended, only the answer must keep its turn."""

    position: Position
    producer: Producer
    sequence_id: int
    highest_sequence_id: int
    entry: bytes | None
    message_count: int
    sequence: SequenceState | None = None
    sequence_last: int = -1
    error: PulsarError | None = None


class ProducerOwner(Protocol):
    """What a producer needs of its topic."""

    @property
    def now_ms(self) -> Callable[[], int]: ...

    @property
    def deduplication(self) -> Deduplication | None: ...

    @property
    def topic_epoch(self) -> int | None: ...

    @property
    def publish_limits(self) -> PublishLimits | None:
        """None if the policies of the topic demand nothing of single entries."""

    @property
    def stamper(self) -> Stamper | None:
        """None if entries are stored as they come; the same as long as the topic is loaded."""

    def append(self, entry: bytes, facts: EntryFacts | None) -> Position:
        """Raises TopicTerminated, PersistenceError."""

    def await_durable(self, publish: PendingPublish) -> None:
        """Answer when everything up to the position is durable."""

    def last_appended(self) -> Position: ...

    def remove_producer(self, producer: Producer) -> None: ...


class Producer:
    """See `interpulse.broker.live.api.LiveProducer`."""

    def __init__(self, owner: ProducerOwner, request: ProducerRequest, name: str, sink: ProducerSink) -> None:
        self.request = request
        self.producer_id = request.producer_id
        self.name = name
        self.sink = sink
        self.ready = True
        self.closed = False
        self.leaving = False
        self.pending_count = 0
        self.published = TrafficMeter()
        self._owner = owner
        self._stamper = owner.stamper
        self._connected_ms = owner.now_ms()
        self._sequence: SequenceState | None = None
        self._deduplication: Deduplication | None = None

    @property
    def topic_epoch(self) -> int | None:
        return self._owner.topic_epoch if self.ready else None

    @property
    def last_sequence_id(self) -> int:
        deduplication = self._owner.deduplication
        return deduplication.last_sequence_id(self.name) if deduplication else -1

    @property
    def exclusive(self) -> bool:
        return self.request.access_mode is not AccessMode.SHARED

    def publish(
        self,
        sequence_id: int,
        highest_sequence_id: int,
        num_messages: int,
        entry: bytes | memoryview,
        is_chunk: bool = False,
        marker: bool = False,
    ) -> None:
        owner, stamper = self._owner, self._stamper
        stored = entry = bytes(entry)  # copied here only if it is a view
        sequence, last = None, -1
        facts = None
        limits = owner.publish_limits
        try:
            if self.closed or not self.ready:
                raise ProducerFenced(f"Producer {self.name} is closed, or waits for exclusivity")
            if limits is not None:
                limits.check(entry, is_chunk=is_chunk, is_marker=marker)
            if num_messages != 1 or is_chunk or marker:
                facts = _published_facts(num_messages, entry, is_chunk, marker)
            if owner.deduplication is not None and (facts is None or facts.ends_message):
                sequence, last = self._sequence_of(entry, sequence_id, highest_sequence_id, num_messages)
                if not self._is_new(sequence, last):
                    return self._answer(sequence_id, highest_sequence_id, None)
            if stamper is not None:
                stored = stamper.stamp(entry, facts)
            position = owner.append(stored, facts)
        except PulsarError as error:
            if self.leaving:
                return None
            return self._answer(sequence_id, highest_sequence_id, error)
        self.pending_count += 1
        published = self.published
        published.messages += num_messages
        published.bytes += len(entry)
        row = (position, self, sequence_id, highest_sequence_id, stored, num_messages, sequence, last, None)
        owner.await_durable(_new(PendingPublish, row))
        if limits is not None and (wait_ms := limits.charge(num_messages, len(entry), owner.now_ms())):
            self.sink.throttle(wait_ms)
        return None

    def answered(self, publishes: Iterable[PendingPublish]) -> None:
        """The log came to the positions of these publishes."""
        receipts: list[tuple[int, int, int, int]] = []
        for position, _, sequence_id, highest_sequence_id, entry, _, sequence, last, error in publishes:
            self.pending_count -= 1
            if sequence is not None:
                sequence.confirm(last)
            if error is None:
                ledger, number = _REPEAT if entry is None else position
                receipts.append((sequence_id, highest_sequence_id, ledger, number))
            elif not self.closed:
                if receipts:
                    self.sink.receipts(self.producer_id, receipts)
                    receipts = []
                self.sink.send_failed(self.producer_id, max(sequence_id, highest_sequence_id), error)
        if receipts and not self.closed:
            self.sink.receipts(self.producer_id, receipts)

    def failed(self, publish: PendingPublish, error: PulsarError) -> None:
        """The entry will not become durable."""
        self.pending_count -= 1
        if not self.closed:
            highest = max(publish.sequence_id, publish.highest_sequence_id)
            self.sink.send_failed(self.producer_id, highest, error)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._owner.remove_producer(self)

    def leave(self) -> None:
        """Take nothing more and say nothing of it: the client is sent away soon, and sends it again elsewhere."""
        self.leaving = True
        self.ready = False

    def close_by_broker(self) -> None:
        """Tell the client to come back."""
        if not self.closed:
            self.close()
            self.sink.producer_closed(self.producer_id)

    def _answer(self, sequence_id: int, highest_sequence_id: int, error: PulsarError | None) -> None:
        """Answer without having appended, but not before the answers of earlier publishes."""
        position = self._owner.last_appended()
        publish = PendingPublish(position, self, sequence_id, highest_sequence_id, None, 0, error=error)
        self.pending_count += 1
        if self.pending_count == 1:
            self.answered((publish,))
        else:
            self._owner.await_durable(publish)

    def _sequence_of(
        self, entry: bytes, sequence_id: int, highest_sequence_id: int, num_messages: int
    ) -> tuple[SequenceState, int]:
        """Whose sequence ids count, and the last one of the entry.

        A replicator of another cluster passes on what many producers wrote: there the name in the entry counts, as it
        does when the state is rebuilt from the log.
        """
        deduplication = self._owner.deduplication
        assert deduplication is not None
        if self.request.remote:
            metadata = metadata_of(entry)
            return deduplication.state(metadata.producer_name), last_sequence_id_of(metadata)
        if self._sequence is None or self._deduplication is not deduplication:
            self._deduplication = deduplication
            self._sequence = deduplication.state(self.name)
        if num_messages != 1:
            return self._sequence, last_sequence_id_of(metadata_of(entry))
        return self._sequence, max(signed(sequence_id), signed(highest_sequence_id))

    def _is_new(self, sequence: SequenceState, last: int) -> bool:
        """False for a repeat; raises PersistenceError if that is not known yet."""
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

    def tick(self, seconds: float) -> None:
        """Compute the rates of the last period."""
        self.published.tick(seconds)


class ProducerSet:
    """Who publishes to one topic; see the module."""

    def __init__(
        self,
        topic: str,
        epoch: int | None,
        generate_name: Callable[[], str],
        store_epoch: Callable[[int], Awaitable[None]],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.epoch = epoch
        self.limit = 0
        """How many may be open at once, replicators not counted; 0 = any number."""
        self.by_name: dict[str, Producer] = {}
        self.waiting: deque[Producer] = deque()
        self.exclusive: Producer | None = None
        self._topic = topic
        self._generate_name = generate_name
        self._store_epoch = store_epoch
        self._spawn = spawn

    async def add(self, owner: ProducerOwner, request: ProducerRequest, sink: ProducerSink) -> Producer:
        """Raises ProducerBusy, ProducerFenced. A producer that has to wait is not `ready` yet."""
        name = request.name or self._generate_name()
        await self._free_name(name, request, sink)
        self._check_limit(request)
        producer = Producer(owner, request, name, sink)
        if request.access_mode is AccessMode.SHARED:
            self._check_no_exclusive(ProducerBusy)
            self.by_name[name] = producer
            return producer
        self._check_epoch(request)
        if request.access_mode is AccessMode.WAIT_FOR_EXCLUSIVE and self._occupied:
            producer.ready = False
            self.waiting.append(producer)
            return producer
        if request.access_mode is AccessMode.EXCLUSIVE_WITH_FENCING:
            self._fence_out()
        self._check_no_exclusive(ProducerFenced)
        if self.by_name:
            raise ProducerFenced("Topic has existing shared producers")
        await self._make_exclusive(producer)
        return producer

    def remove(self, producer: Producer) -> None:
        """The producer is closed; the next one that waits may have its turn."""
        if self.by_name.get(producer.name) is producer:
            del self.by_name[producer.name]
        if producer in self.waiting:
            self.waiting.remove(producer)
        if self.exclusive is producer:
            self.exclusive = None
        if self.waiting and not self.by_name:
            heir = self.waiting.popleft()
            self.by_name[heir.name] = self.exclusive = heir  # at once, so that nobody slips in
            self._spawn(self._promote(heir))

    def leave(self) -> None:
        """The topic is being unloaded: answer what was taken, then :meth:`close_by_broker`."""
        for producer in self.by_name.values():
            producer.leave()

    def close_by_broker(self) -> None:
        """Close all; their clients come back."""
        waiting, self.waiting = list(self.waiting), deque()
        for producer in [*self.by_name.values(), *waiting]:
            producer.close_by_broker()

    @property
    def _occupied(self) -> bool:
        return bool(self.by_name or self.waiting)

    async def _free_name(self, name: str, request: ProducerRequest, sink: ProducerSink) -> None:
        while (holder := self.by_name.get(name)) is not None:
            generated = not request.user_provided_name and not holder.request.user_provided_name
            returns = generated or (holder.sink is sink and holder.producer_id == request.producer_id)
            if not (returns and request.epoch > holder.request.epoch) and await holder.sink.is_alive():
                raise ProducerBusy(f"Producer with name '{name}' is already connected to topic '{self._topic}'")
            holder.close()

    def _check_limit(self, request: ProducerRequest) -> None:
        if self.limit and not request.remote:
            check_producers(self._topic, sum(not each.request.remote for each in self.by_name.values()), self.limit)

    def _check_no_exclusive(self, refusal: type[PulsarError]) -> None:
        if self.exclusive or self.waiting:
            name = self.exclusive.name if self.exclusive else None
            raise refusal(f"Topic has an existing exclusive producer: {name}")

    def _check_epoch(self, request: ProducerRequest) -> None:
        if request.topic_epoch is not None and request.topic_epoch > _EPOCH_MAX:
            raise NotAllowed(f"Not an epoch of a topic: {request.topic_epoch}")
        if request.topic_epoch is not None and self.epoch is not None and request.topic_epoch < self.epoch:
            raise ProducerFenced(
                f"Topic epoch has already moved. Current epoch: {self.epoch}, Producer epoch: {request.topic_epoch}"
            )

    def _fence_out(self) -> None:
        waiting, self.waiting = list(self.waiting), deque()
        for producer in waiting:
            producer.closed = True
            producer.sink.producer_refused(producer.producer_id, ProducerFenced("Fenced out"))
        for producer in list(self.by_name.values()):
            producer.close_by_broker()

    async def _make_exclusive(self, producer: Producer) -> None:
        """Own the topic at once, so that nobody slips in while the epoch is being stored."""
        self.by_name[producer.name] = self.exclusive = producer
        wanted = producer.request.topic_epoch
        epoch = wanted if wanted is not None else (-1 if self.epoch is None else self.epoch) + 1
        try:
            await self._store_epoch(epoch)
        except BaseException:
            producer.close()
            raise
        self.epoch = epoch if self.epoch is None else max(self.epoch, epoch)
        if producer.closed:
            raise ProducerFenced("Fenced out")

    async def _promote(self, producer: Producer) -> None:
        if producer.closed:
            return  # before its turn came
        try:
            await self._make_exclusive(producer)
        except PulsarError as error:
            producer.sink.producer_refused(producer.producer_id, error)
            return
        if not producer.closed and self.epoch is not None:
            producer.ready = True
            producer.sink.producer_ready(producer.producer_id, self.epoch)


def _published_facts(num_messages: int, entry: bytes, is_chunk: bool, marker: bool) -> EntryFacts:
    """What a SEND command says of its entry; of a chunk the entry itself knows more."""
    if marker:
        return MARKER
    return facts_of(entry) if is_chunk else EntryFacts(num_messages)
