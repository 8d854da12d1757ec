"""The producers of one topic: a new producer is opened, waits, is refused, or fences the others out.

Names are unique per topic. A producer that reconnects with a generated name and a higher epoch replaces its
predecessor; other producers of the name are refused while its holder is alive. Access modes: an exclusive producer
excludes all others, and the next exclusive one waits, is refused, or fences it out. Every new exclusive owner raises
the epoch of the topic, and a producer that reconnects with an older epoch is refused for good.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from interpulse.broker.live.api import AccessMode, ProducerRequest, ProducerSink, TopicHost
from interpulse.broker.live.metrics import TrafficMetrics, sum_of
from interpulse.broker.live.producing.producer import Producer, ProducerOwner
from interpulse.model.errors import NotAllowed, ProducerBusy, ProducerFenced, PulsarError
from interpulse.model.numbers import LONG_MAX
from interpulse.model.topics import TopicMeasure
from interpulse.rules.limits import check_producers

_EPOCH_MAX = LONG_MAX
"""The largest epoch of a request: a higher one would leave no number for the next owner."""


class ProducerSet:
    """The producers of one topic."""

    def __init__(
        self,
        topic: str,
        host: TopicHost,
        epoch: int | None = None,
        store_epoch: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        """``store_epoch`` stores the epoch of a persistent topic."""
        self.epoch = epoch
        self.limit = 0
        """Limit for open producers without replicators; 0 = no limit."""
        self.by_name: dict[str, Producer] = {}
        self.waiting: list[Producer] = []
        self.exclusive: Producer | None = None
        self.published = TrafficMetrics()
        """The traffic of closed producers."""
        self._topic = topic
        self._host = host
        self._store_epoch = store_epoch

    async def add(
        self,
        owner: ProducerOwner,
        request: ProducerRequest,
        sink: ProducerSink,
        check: Callable[[ProducerRequest], None] = lambda request: None,
    ) -> Producer:
        """Open a producer; one that waits is not `ready` yet. Raises ProducerBusy, ProducerFenced.

        ``check`` raises to refuse the request. It is called again after each wait.
        """
        name = request.name or self._host.generate_producer_name()
        await self._free_name(name, request, sink)
        check(request)
        if self.limit and request.remote_cluster is None:
            count = sum(producer.request.remote_cluster is None for producer in self.by_name.values())
            check_producers(self._topic, count, self.limit)
        producer = Producer(owner, request, name, sink)
        if request.access_mode is AccessMode.SHARED:
            self._check_no_exclusive(ProducerBusy)
            self.by_name[name] = producer
            return producer
        self._check_epoch(request)
        if request.access_mode is AccessMode.WAIT_FOR_EXCLUSIVE and (self.by_name or self.waiting):
            producer.ready = False
            self.waiting.append(producer)
            return producer
        if request.access_mode is AccessMode.EXCLUSIVE_WITH_FENCING:
            self._fence_out()
        self._check_no_exclusive(ProducerFenced)
        if self.by_name:
            raise ProducerFenced("Topic has existing shared producers")
        await self._make_exclusive(producer, check)
        return producer

    def remove(self, producer: Producer) -> None:
        """Remove a closed producer; the next waiting one becomes the owner."""
        if self.by_name.get(producer.name) is producer:
            del self.by_name[producer.name]
        if producer in self.waiting:
            self.waiting.remove(producer)
        if self.exclusive is producer:
            self.exclusive = None
        if self.waiting and not self.by_name:
            next_owner = self.waiting.pop(0)
            # immediately, so that no other producer comes first
            self.by_name[next_owner.name] = self.exclusive = next_owner
            self._host.spawn(self._promote(next_owner))
        self.published.absorb(producer.published)

    def leave(self) -> None:
        """Stop answering before the topic is unloaded; :meth:`close_by_broker` follows."""
        for producer in self.by_name.values():
            producer.leave()

    def leave_some(self, leaves: Callable[[ProducerRequest], bool]) -> list[Producer]:
        """Stop answering those producers for which this is True, and return them. The caller closes them."""
        leaving = [producer for producer in (*self.by_name.values(), *self.waiting) if leaves(producer.request)]
        self.waiting = [producer for producer in self.waiting if producer not in leaving]
        for producer in leaving:
            producer.leave()
        return leaving

    def close_by_broker(self) -> None:
        """Close all producers; their clients open them again."""
        waiting, self.waiting = self.waiting, []
        for producer in [*self.by_name.values(), *waiting]:
            producer.close_by_broker()

    # --- statistics

    def sorted_by_name(self) -> list[Producer]:
        return sorted(self.by_name.values(), key=lambda producer: producer.name)

    @property
    def published_by_all(self) -> TrafficMetrics:
        return sum_of(self.published, *(producer.published for producer in self.by_name.values()))

    def stats(self, throttled_count: int, created_ms: int) -> dict[str, Any]:
        """Return the producer fields of ``TopicStats``; replicators are left out of the list."""
        published = self.published_by_all
        return {
            "msgRateIn": published.message_rate,
            "msgThroughputIn": published.byte_rate,
            "bytesInCounter": published.bytes,
            "msgInCounter": published.messages,
            "publishRateLimitedTimes": throttled_count,
            "publishers": [
                producer.stats() for producer in self.sorted_by_name() if producer.request.remote_cluster is None
            ],
            "waitingPublishers": len(self.waiting),
            "topicCreationTimeStamp": created_ms,
        }

    def measure(self) -> TopicMeasure:
        published = self.published_by_all if self.by_name else self.published
        return TopicMeasure(
            producers=len(self.by_name),
            rate_in=published.message_rate,
            throughput_in=published.byte_rate,
            messages_in=published.messages,
            bytes_in=published.bytes,
        )

    def tick(self, seconds: float) -> None:
        for producer in self.by_name.values():
            producer.published.tick(seconds)

    # --- parts

    async def _free_name(self, name: str, request: ProducerRequest, sink: ProducerSink) -> None:
        while (holder := self.by_name.get(name)) is not None:
            generated = not request.user_provided_name and not holder.request.user_provided_name
            returns = generated or (holder.sink is sink and holder.producer_id == request.producer_id)
            if not (returns and request.epoch > holder.request.epoch) and await holder.sink.is_alive():
                raise ProducerBusy(f"Producer with name '{name}' is already connected to topic '{self._topic}'")
            holder.close()

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
        waiting, self.waiting = self.waiting, []
        for producer in waiting:
            producer.closed = True
            producer.sink.producer_refused(producer.producer_id, ProducerFenced("Fenced out"))
        for producer in list(self.by_name.values()):
            producer.close_by_broker()

    async def _make_exclusive(
        self, producer: Producer, check: Callable[[ProducerRequest], None] = lambda request: None
    ) -> None:
        """Make this producer the owner, at once: no other may come first while the epoch is stored."""
        self.by_name[producer.name] = self.exclusive = producer
        wanted = producer.request.topic_epoch
        epoch = wanted if wanted is not None else (-1 if self.epoch is None else self.epoch) + 1
        try:
            if self._store_epoch is not None:
                await self._store_epoch(epoch)
        except BaseException:
            producer.close()
            raise
        self.epoch = epoch if self.epoch is None else max(self.epoch, epoch)
        if producer.closed:
            check(producer.request)
            raise ProducerFenced("Fenced out")

    async def _promote(self, producer: Producer) -> None:
        if producer.closed:
            return  # closed while it waited
        try:
            await self._make_exclusive(producer)
        except PulsarError as error:
            producer.sink.producer_refused(producer.producer_id, error)
            return
        if not producer.closed and self.epoch is not None:
            producer.ready = True
            producer.sink.producer_ready(producer.producer_id, self.epoch)
