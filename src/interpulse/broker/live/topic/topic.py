"""A loaded persistent topic: its parts, its settings and its end.

Answers to producers and deliveries to consumers follow the order of the log, and happen only after the log has reported
an entry as durable. When the log fails, pending publishes are refused, all clients are disconnected, and the topic has
to be loaded again.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Mapping
from typing import Any
from weakref import proxy

from interpulse.broker.live.api import (
    ConsumerSink,
    InitialPosition,
    LastMessage,
    ProducerRequest,
    ProducerSink,
    SubscribeRequest,
    TopicHost,
    TopicSettings,
)
from interpulse.broker.live.compaction.compaction import Compaction
from interpulse.broker.live.compaction.log_positions import LogPositions, check_allowed
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.entry_metadata import EntryMetadataCache
from interpulse.broker.live.metrics import Measured, sum_of
from interpulse.broker.live.producing.producer import Producer, check_encrypted
from interpulse.broker.live.producing.producer_set import ProducerSet
from interpulse.broker.live.producing.sequence_keeper import SequenceKeeper
from interpulse.broker.live.shared_reads import SharedReads
from interpulse.broker.live.topic import topic_stats
from interpulse.broker.live.topic.backlog_quota import BacklogKeeper
from interpulse.broker.live.topic.failover_gate import FailoverGate
from interpulse.broker.live.topic.marker_answers import MarkerAnswers
from interpulse.broker.live.topic.publishing import Publishing, deliveries_of
from interpulse.broker.live.topic.subscription import Subscription
from interpulse.broker.live.topic.subscription_set import SubscriptionSet
from interpulse.broker.live.topic.topic_clients import TopicClients, TopicLimits
from interpulse.broker.live.topic_state import TopicBrokerEntryMetadata, TopicStateStore
from interpulse.model.errors import PersistenceError, PulsarError, ServiceNotReady, TopicTerminated
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.storage.api import FenceCause, Log, LogFenced, MetadataFull, StorageFull
from interpulse.storage.cursors import COMPACTION_CURSOR, DEDUPLICATION_CURSOR

log = logging.getLogger(__name__)


class Topic:
    """A persistent topic. Only `load_topic` creates it."""

    __slots__ = (
        "__dict__",  # stays empty: a dictionary of all attributes takes 2 kB per topic; tests replace methods
        "__weakref__",
        "_host",
        "_state",
        "_taken_over",
        "_terminating",
        "active_ms",
        "backlog_keeper",
        "broker_entry_metadata",
        "clients",
        "compaction",
        "created_ms",
        "entry_metadata",
        "failed",
        "failover_gate",
        "limits",
        "log",
        "markers",
        "name",
        "now_ms",
        "positions",
        "producers",
        "publishing",
        "reads",
        "sequences",
        "settings",
        "subscription_set",
        "subscriptions",
    )

    def __init__(
        self,
        name: TopicName,
        host: TopicHost,
        settings: TopicSettings,
        topic_log: Log,
        state: TopicStateStore,
        epoch: int | None,
        last_index: int | None,
    ) -> None:
        """``epoch`` and ``last_index`` belong to ``state``; `load_topic` restores cursors and sequence ids."""
        self.name = name
        self.settings = settings
        self.log = topic_log
        self.now_ms = host.now_ms
        self.created_ms = self.active_ms = host.now_ms()
        self.failed = False
        self._taken_over = False  # another broker owns the topic: writes are forbidden
        seen: Topic = proxy(self)  # the parts hold no reference: a closed topic is freed immediately
        self.subscription_set = SubscriptionSet(self, state, host.replicator_prefix)
        self.subscriptions = self.subscription_set.by_name
        self.positions = LogPositions(topic_log)
        last = topic_log.last_appended
        self.entry_metadata = EntryMetadataCache(Position(last.ledger, last.entry + 1))
        self.reads = SharedReads(topic_log, self.subscriptions, host.read_buffer_limiter)
        self.producers = ProducerSet(str(name), host, epoch, state.write_epoch)
        self.clients = TopicClients(name, self.producers, self.subscriptions)
        self.limits = TopicLimits(name, host)
        self.failover_gate = FailoverGate(seen, host)
        self.backlog_keeper = BacklogKeeper(seen)
        self.broker_entry_metadata = TopicBrokerEntryMetadata(topic_log, state, last_index)
        self.sequences = SequenceKeeper(seen, topic_log, state, host, settings)
        self._host = host
        self._state = state
        self._terminating = 0  # running calls
        self.publishing = Publishing(seen)
        self.compaction = Compaction(seen, host.compaction_permits)
        self.markers = MarkerAnswers(seen, host.cluster)
        self._use_limits()

    # --- called by the log

    def on_durable(self, last: Position) -> None:
        if self.failed:
            return  # the publishes were refused: a snapshot up to here would lack their sequence ids
        positions = self.positions
        previous, positions.durable = positions.durable, last
        listening = [subscription for subscription in self.subscriptions.values() if subscription.consumers]
        done = self.publishing.answer_upto(last)
        fresh = deliveries_of(done) if listening else []
        self.sequences.count(last.entry - previous.entry if last.ledger == previous.ledger else last.entry + 1)
        if self.publishing.last_marker > previous:
            self.markers.stored(self.publishing.take_markers(last))
            for subscription in listening:
                subscription.pump()
        elif fresh:
            for subscription in listening:
                subscription.offer(fresh, previous)

    def on_log_failed(self, error: Exception) -> None:
        log.error("topic fenced topic=%s error=%s", self.name, error)
        self._give_up(error)

    def read_failed(self, error: PulsarError) -> None:
        """Fail the topic: entries cannot be read, and it has to be loaded again."""
        if self.clients.refusal is not None:
            return  # the topic is being closed, with its log
        log.error("read failed topic=%s error=%s", self.name, error)
        self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        if self.failed:
            return
        self.failed = True
        self._taken_over = isinstance(error, LogFenced) and error.cause is FenceCause.OWNED_ELSEWHERE
        kind = StorageFull if isinstance(error, StorageFull | MetadataFull) else PersistenceError
        refusal = kind(f"The topic {self.name} is fenced: {error}")
        self.clients.refusal = refusal
        self.publishing.fail(refusal)
        self.clients.disconnect()
        self._host.topic_failed(self)

    # --- producing

    async def add_producer(self, request: ProducerRequest, sink: ProducerSink) -> Producer:
        """Open a producer; raises ProducerBusy, ProducerFenced, TopicTerminated, ServiceNotReady, TopicMoved."""
        self.check_open()
        self.failover_gate.check_producer(request)
        if self.log.terminated:
            raise TopicTerminated(f"Topic {self.name} was already terminated")
        if self._terminating:
            raise ServiceNotReady(f"Topic {self.name} is being terminated")
        check_encrypted(self.name, self.limits.settings, encrypted=request.encrypted)
        await self.backlog_keeper.check_producer()
        producer = await self.producers.add(self.publishing, request, sink, self.failover_gate.check_producer)
        if self.clients.refusal is not None or self._terminating or self.log.terminated:
            producer.close()
            raise ServiceNotReady(f"Topic {self.name} is temporarily unavailable")
        return producer

    @property
    def entries_added(self) -> int:
        return self.publishing.entries_added

    @property
    def broker_entry_metadata_possible(self) -> bool:
        return self.broker_entry_metadata.possible

    async def last_message(self, *, read_compacted: bool = False) -> LastMessage:
        return await self.positions.last_message(read_compacted=read_compacted)

    # --- subscribing

    async def subscribe(self, request: SubscribeRequest, sink: ConsumerSink) -> Consumer:
        """Open a consumer; raises ConsumerBusy, SubscriptionNotFound, NotAllowed, ServiceNotReady, TopicMoved."""
        check_allowed(request, is_persistent=True)
        self.failover_gate.check_consumer(request)
        creation_allowed = self.settings.auto_subscription_creation_allowed
        consumer = await self.subscription_set.subscribe(request, sink, creation_allowed=creation_allowed)
        return self.failover_gate.admitted(consumer)

    async def create_subscription(
        self,
        subscription: str,
        *,
        position: MessageId | None = None,
        initial: InitialPosition = InitialPosition.LATEST,
        properties: Mapping[str, str] | None = None,
        replicate_state: bool = False,
    ) -> None:
        """Create a durable subscription without a consumer; raises AlreadyExists."""
        self.check_open()
        await self.subscription_set.create(subscription, position, initial, properties, replicate_state=replicate_state)

    async def delete_subscription(self, subscription: str, *, force: bool = False) -> None:
        """Delete a subscription. Raise SubscriptionNotFound; PreconditionFailed if it is in use and not forced."""
        await self.subscription(subscription).delete(force=force)

    def subscription(self, name: str) -> Subscription:
        return self.subscription_set.get(name)

    def subscription_names(self) -> list[str]:
        """Return all names but those of replication cursors, sorted."""
        return sorted(name for name in self.subscriptions if self.remote_of(name) is None)

    def backlog_names(self) -> list[str]:
        """Return the subscriptions whose backlog may be cleared or expire. Compaction needs every entry."""
        return [name for name in self.subscription_names() if name != COMPACTION_CURSOR]

    def replication_cursors(self) -> list[str]:
        return sorted(name for name in self.subscriptions if self.remote_of(name) is not None)

    def mark_delete_position(self, subscription: str) -> Position:
        return self.subscription(subscription).cursor.mark_delete

    def promised_position(self, cursor: str) -> Position | None:
        """Return the mark-delete position for a task that copies from this replication cursor.

        It comes with the promise of `wire/cursor_promise.py`. None if it is no replication cursor; raises
        SubscriptionNotFound.
        """
        if self.remote_of(cursor) is None:
            return None
        source = self.subscription(cursor)
        if source.promises is not None:
            source.promises.give()
        return source.cursor.mark_delete

    def remote_of(self, subscription: str) -> str | None:
        return self.subscription_set.remote_of(subscription)

    # --- called by subscriptions

    @property
    def consumer_count(self) -> int:
        return self.subscription_set.consumer_count

    def cursors_changed(self) -> None:
        self._host.cursors_changed(self)

    async def store_cursor(self, subscription: Subscription) -> None:
        """Store the cursor now; raise ServiceNotReady if the topic was closed meanwhile."""
        await self.subscription_set.store(subscription)
        self.check_open()

    def cursor_placed(self, subscription: Subscription) -> None:
        if subscription.replicate_state or self.publishing.last_marker > EARLIEST:
            self.markers.cursor_placed(subscription)

    def forget_subscription(self, subscription: Subscription) -> None:
        self.subscription_set.forget(subscription)
        self.active_ms = self.now_ms()

    async def drop_subscription(self, subscription: Subscription) -> None:
        if subscription.name == COMPACTION_CURSOR:
            await self.compaction.forget()
        await self.subscription_set.drop(subscription)
        self.active_ms = self.now_ms()

    # --- compaction

    async def keep_for_compaction(self) -> None:
        """Retain all entries that are not compacted yet."""
        self.check_open()
        await self.subscription_set.ensure(COMPACTION_CURSOR, self.positions.before_first())

    def compacted_upto(self, horizon: Position) -> None:
        """Allow trimming up to ``horizon``, which is compacted."""
        cursor = self.subscriptions.get(COMPACTION_CURSOR)
        if cursor is not None:
            cursor.skip_to(horizon)

    # --- settings, cursors, rates

    async def flush(self, *, last: bool = False) -> None:
        """Store every cursor that changed, and sequence ids that are due, together. ``last``: the topic closes."""
        position = self.positions.durable
        due = self.sequences.snapshot_due
        snapshot = {DEDUPLICATION_CURSOR: self.sequences.snapshot(position)} if due else {}
        try:
            await self.subscription_set.flush(snapshot, last=last)
        except PulsarError as error:
            self.sequences.snapshot_due |= due  # it may be due by now
            if isinstance(error, LogFenced) and not last:
                log.error("topic fenced topic=%s error=%s", self.name, error)
                self._give_up(error)
            raise
        if due:
            self.sequences.stored(position)

    async def apply(self, settings: TopicSettings) -> None:
        """Apply new policies; on return they are in force."""
        old, self.settings = self.settings, settings
        self._use_limits()
        await self.failover_gate.use(settings)
        for subscription in self.subscriptions.values():
            subscription.policies_changed(delays=settings.delayed_delivery != old.delayed_delivery)
        self.sequences.settings = settings
        if settings.deduplication_enabled and self.sequences.deduplication is None:
            await self.sequences.begin()
        elif not settings.deduplication_enabled and self.sequences.deduplication is not None:
            await self.sequences.end()
        if settings.compaction_threshold_bytes > 0 and self.clients.refusal is None:
            await self.keep_for_compaction()
        await self.subscription_set.follow_remotes()

    def _use_limits(self) -> None:
        self.limits.use(self.settings, self.producers)
        self.publishing.publish_limits = self.limits.publish

    def tick(self, seconds: float) -> None:
        self.producers.tick(seconds)
        for subscription in self.subscriptions.values():
            subscription.tick(seconds)
        self.compaction.tick(seconds)
        self.reads.forget_unused()
        self.sequences.tick(self.now_ms())
        published = sum_of(*(producer.published for producer in self.producers.by_name.values()))
        self.limits.follow(published.message_rate, published.byte_rate)
        for subscription in self.subscriptions.values():
            subscription.follow(published.message_rate, published.byte_rate)

    # --- ending

    async def settle(self) -> None:
        """Wait until everything that was published so far has its answer; raise PersistenceError if the log fails."""
        await self.log.settle()

    async def terminate(self) -> Position:
        """Take no more entries, ever; return the last position.

        Producers are disconnected, and receive the end of the topic when they reconnect: entries that they send
        meanwhile get no answer. Go's client gives up, with the reason, only on the refused PRODUCER (wire protocol,
        5.2).
        """
        self.check_open()
        self._terminating += 1
        self.producers.leave()
        try:
            last = await self.log.terminate()
        finally:
            self._terminating -= 1
            if not self._terminating:
                self.producers.close_by_broker()
        for subscription in self.subscriptions.values():
            subscription.pump()
        return last

    async def close(self) -> None:
        """Answer pending publishes, disconnect the clients, store the cursors, close the log."""
        self.clients.refuse_while_unloading()
        self.producers.leave()
        await self.compaction.stop()
        try:
            await self.log.close()
        except LogFenced as error:
            log.warning("log failed while closing topic=%s error=%s", self.name, error)
        self.clients.disconnect()
        self.sequences.request_snapshot()
        try:
            if not self._taken_over:
                await self.flush(last=True)
        finally:  # after this, only the next load of the topic writes
            await self._state.close()
            self.subscription_set.let_go()

    async def abandon(self) -> None:
        """Disconnect the clients of a deleted topic, and never write again."""
        self.clients.retire()
        await self.compaction.stop()
        await self._state.close()
        self.subscription_set.let_go()

    def forsake(self) -> None:
        """Stop all answers, deliveries and writes: another broker may own the topic. `depart` follows.

        Clients send unanswered entries again to the next owner. If the topic is being closed, that ends at once.
        """
        self.failed = self._taken_over = True
        self.log.disown()
        self.publishing.forget()
        self._state.stop()
        self.clients.refuse_elsewhere()

    async def depart(self) -> None:
        await self.compaction.stop()
        await self.log.abandon()
        await self._state.close()
        self.subscription_set.let_go()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._host.spawn(work)

    def check_open(self) -> None:
        self.clients.check_open()

    # --- statistics

    def stats(self) -> dict[str, Any]:
        return topic_stats.stats(self)

    def internal_stats(self) -> dict[str, Any]:
        return topic_stats.internal_stats(self)

    def measure(self) -> Measured:
        return topic_stats.measure(self)
