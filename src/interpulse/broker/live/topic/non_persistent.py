"""Non-persistent topics: entries go straight to consumers with permits, and are lost for the others.

Nothing is stored: every entry has the id 0:0, a subscription exists while it has consumers, and acknowledgements have
no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from interpulse.broker.live.api import (
    ConsumerSink,
    Delivery,
    LastMessage,
    ProducerRequest,
    ProducerSink,
    SubscribeRequest,
    SubType,
    TopicHost,
    TopicSettings,
)
from interpulse.broker.live.compaction.log_positions import check_allowed
from interpulse.broker.live.dispatch.consumer import Consumer, choose_active, share_out
from interpulse.broker.live.dispatch.dispatch import make_way
from interpulse.broker.live.dispatch.sticky_keys import StickyKeys
from interpulse.broker.live.entry_metadata import EntryMetadata, sticky_slot_of
from interpulse.broker.live.metrics import LimitMeasure, Measured, TrafficMetrics, sum_of, summed
from interpulse.broker.live.producing.producer import PendingPublish, Producer, PublishLimits, check_encrypted
from interpulse.broker.live.producing.producer_set import ProducerSet
from interpulse.broker.live.topic.failover_gate import FailoverGate
from interpulse.broker.live.topic.topic_clients import TopicClients, TopicLimits
from interpulse.broker.live.topic_state import BrokerEntryInterceptor
from interpulse.model.errors import (
    ConsumerBusy,
    MetadataError,
    NotAllowed,
    PulsarError,
    ServiceNotReady,
    SubscriptionNotFound,
)
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.model.topics import SubscriptionMeasure

_NOWHERE = Position(0, 0)

_NOTHING_STORED: Final[dict[str, Any]] = {
    "averageMsgSize": 0.0,
    "msgChunkPublished": False,
    "storageSize": 0,
    "backlogSize": 0,
    "earliestMsgPublishTimeInBacklogs": 0,
    "offloadedStorageSize": 0,
    "nonContiguousDeletedMessagesRanges": 0,
    "nonContiguousDeletedMessagesRangesSerializedSize": 0,
    "compaction": {
        "lastCompactionRemovedEventCount": 0,
        "lastCompactionSucceedTimestamp": 0,
        "lastCompactionFailedTimestamp": 0,
        "lastCompactionDurationTimeInMills": 0,
    },
    "lastPublishTimeStamp": 0,
}
_NOTHING_WAITS: Final[dict[str, Any]] = {
    "msgRateRedeliver": 0.0,
    "messageAckRate": 0.0,
    "chunkedMessageRate": 0.0,
    "msgBacklog": 0,
    "backlogSize": 0,
    "earliestMsgPublishTimeInBacklog": 0,
    "oldestBacklogMessageAgeSeconds": -1,
    "msgBacklogNoDelayed": 0,
    "blockedSubscriptionOnUnackedMsgs": False,
    "msgDelayed": 0,
    "msgInReplay": 0,
    "unackedMessages": 0,
    "msgRateExpired": 0.0,
    "msgExpired": 0,
    "totalMsgExpired": 0,
    "lastExpireTimestamp": 0,
    "lastAckedTimestamp": 0,
    "lastMarkDeleteAdvancedTimestamp": 0,
    "isDurable": False,
    "isReplicated": False,
    "allowOutOfOrderDelivery": False,
    "consumersAfterMarkDeletePosition": {},
    "nonContiguousDeletedMessagesRanges": 0,
    "nonContiguousDeletedMessagesRangesSerializedSize": 0,
    "subscriptionProperties": {},
    "durable": False,
    "replicated": False,
}
_NO_CURSOR: Final[dict[str, Any]] = {
    "waitingReadOp": False,
    "pendingReadOps": 0,
    "messagesConsumedCounter": 0,
    "cursorLedger": 0,
    "cursorLedgerLastEntry": 0,
    "active": False,
    "numberOfEntriesSinceFirstNotAckedMessage": 0,
    "totalNonContiguousDeletedMessagesRange": 0,
    "subscriptionHavePendingRead": False,
    "subscriptionHavePendingReplayRead": False,
}


class NonPersistentSubscription:
    """The consumers of one subscription, and the choice of the next one."""

    drained = True
    replicate_state = False

    def __init__(self, topic: NonPersistentTopic, name: str, sub_type: SubType) -> None:
        self.name = name
        self.sub_type = sub_type
        self.consumers: list[Consumer] = []
        self.now_ms = topic.now_ms
        self.dropped = TrafficMetrics()
        self._topic = topic
        self._turn = 0
        self._active: Consumer | None = None
        self._keys = StickyKeys()
        self._given_up = TrafficMetrics()

    async def add(self, request: SubscribeRequest, sink: ConsumerSink) -> Consumer:
        """Add a consumer; raise ConsumerBusy if it does not fit the others."""
        await make_way(request, self.consumers)
        if request.sub_type is SubType.EXCLUSIVE and self.consumers:
            raise ConsumerBusy("Exclusive consumer is already connected")
        self._topic.limits.check_consumers(self._topic.consumer_count, len(self.consumers))
        self.sub_type = request.sub_type
        consumer = Consumer(self, request, sink)
        if request.sub_type is SubType.KEY_SHARED:
            self._keys.join(consumer)
        self.consumers.append(consumer)
        self._choose_active()
        return consumer

    def send(self, delivery: Delivery) -> None:
        """Send an entry to one consumer, or drop it."""
        receiver = self._receiver(delivery)
        if receiver is None or receiver.permits <= 0 or not receiver.sink.writable:
            self.dropped.messages += delivery.message_count
            return
        receiver.deliver([delivery])

    def _receiver(self, delivery: Delivery) -> Consumer | None:
        if self.sub_type in (SubType.EXCLUSIVE, SubType.FAILOVER):
            return self._active
        if self.sub_type is SubType.KEY_SHARED:
            return self._keys.owner(sticky_slot_of(delivery.entry))
        ready = [consumer for consumer in self.consumers if consumer.sink.writable]
        assignments, self._turn = share_out([delivery], ready, [consumer.permits for consumer in ready], self._turn)
        return assignments[0][0] if assignments else None

    def _choose_active(self) -> None:
        name = self._topic.name
        chosen = choose_active(self.consumers, str(name), name.partition_index)
        if chosen is self._active:
            return
        self._active = chosen
        if self.sub_type is SubType.FAILOVER:
            for consumer in self.consumers:
                consumer.sink.active_changed(consumer.consumer_id, consumer is chosen)

    # --- what a consumer asks

    def flow_granted(self, *_: object) -> None:
        """Do nothing: no entries wait, and none are kept."""

    acknowledge = acknowledge_upto = redeliver = flow_granted

    async def store_acknowledgements(self) -> None:
        """Do nothing: none are kept."""

    def remove(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        self._keys.leave(consumer)
        self._given_up.absorb(consumer.out)
        self._choose_active()
        if not self.consumers:
            self._topic.forget(self)

    async def seek(self, *_: object) -> None:
        """Do nothing: entries are not kept. Clients get a success, as from Pulsar."""

    seek_to_time = seek

    async def unsubscribe(self, consumer: Consumer, *, force: bool) -> None:
        if len(self.consumers) > 1 and not force:
            raise MetadataError("Unconnected or shared consumer attempting to unsubscribe")
        consumer.close()
        self.close_consumers()

    def close_consumers(self) -> None:
        for consumer in list(self.consumers):
            consumer.close_by_broker()

    def tick(self, seconds: float) -> None:
        self.dropped.tick(seconds)
        for consumer in self.consumers:
            consumer.tick(seconds)

    def stats(self) -> dict[str, Any]:
        out = self.out
        return _NOTHING_WAITS | {
            **out.sent_stats(),
            "msgDropRate": self.dropped.message_rate,
            "type": self.sub_type.label,
            "lastConsumedTimestamp": self._last_sent_ms,
            "consumers": [consumer.stats() for consumer in self.consumers],
        }

    def measure(self) -> SubscriptionMeasure:
        out = self.out
        return SubscriptionMeasure(
            backlog=0,
            unacknowledged=0,
            blocked=False,
            rate_out=out.message_rate,
            throughput_out=out.byte_rate,
            rate_redelivered=0.0,
            rate_acknowledged=0.0,
            consumers=len(self.consumers),
            expired=0,
            messages_out=out.messages,
            bytes_out=out.bytes,
            rate_dropped=self.dropped.message_rate,
            last_sent_ms=self._last_sent_ms,
        )

    @property
    def _last_sent_ms(self) -> int:
        return max((consumer.last_sent_ms for consumer in self.consumers), default=0)

    @property
    def out(self) -> TrafficMetrics:
        """The traffic to all consumers, closed ones included."""
        return sum_of(self._given_up, *(consumer.out for consumer in self.consumers))


class NonPersistentTopic:
    """A non-persistent topic, with the methods of `Topic` that make sense without a log."""

    broker_entry_interceptor: BrokerEntryInterceptor | None = None
    broker_entry_metadata_possible = False
    deduplication = None
    last_appended = _NOWHERE

    def __init__(self, name: TopicName, host: TopicHost, settings: TopicSettings) -> None:
        self.name = name
        self.settings = settings
        self.subscriptions: dict[str, NonPersistentSubscription] = {}
        self.now_ms: Callable[[], int] = host.now_ms
        self.gone = TrafficMetrics()
        """The traffic of deleted subscriptions."""
        self.entries_added = 0
        self.created_ms = self.active_ms = host.now_ms()
        self.producers = ProducerSet(str(name), host)
        self.clients = TopicClients(name, self.producers, self.subscriptions)
        self.limits = TopicLimits(name, host)
        self.failover_gate = FailoverGate(self, host)
        self.publish_limits: PublishLimits | None = None
        self._serving = host.serving
        self._use_limits()

    # --- producing

    async def add_producer(self, request: ProducerRequest, sink: ProducerSink) -> Producer:
        self.clients.check_open()
        self.failover_gate.check_producer(request)
        check_encrypted(self.name, self.limits.settings, encrypted=request.encrypted)
        producer = await self.producers.add(self, request, sink, self.failover_gate.check_producer)
        if self.clients.refusal is not None:
            producer.close()
            raise self.clients.refusal
        return producer

    @property
    def topic_epoch(self) -> int | None:
        return self.producers.epoch

    def append(self, entries: Sequence[bytes], metadata: EntryMetadata | None) -> Position:
        """Store nothing; `answer` sends the entries."""
        if self.clients.refusal is not None:
            raise self.clients.refusal
        if self._serving is not None and not self._serving():
            raise ServiceNotReady(
                f"Topic {self.name} may belong to another broker and takes no entries until this is certain"
            )
        self.entries_added += len(entries)
        return _NOWHERE

    def answer(self, publish: PendingPublish) -> None:
        """Answer immediately, and send the entries."""
        if not publish.entries:
            publish.producer.answered((publish,))
        for sequence_id, entry in zip(publish.sequence_ids, publish.entries, strict=False):
            publish.producer.answered((publish._replace(sequence_ids=(sequence_id,), entries=(entry,)),))
            delivery = Delivery(_NOWHERE, entry, 0, (), publish.message_count)
            for subscription in list(self.subscriptions.values()):
                subscription.send(delivery)

    def remove_producer(self, producer: Producer) -> None:
        self.producers.remove(producer)
        self.active_ms = self.now_ms()

    # --- subscribing

    async def subscribe(self, request: SubscribeRequest, sink: ConsumerSink) -> Consumer:
        self.clients.check_open()
        check_allowed(request, is_persistent=False)
        self.failover_gate.check_consumer(request)
        subscription = self.subscriptions.get(request.subscription)
        if subscription is None:
            subscription = NonPersistentSubscription(self, request.subscription, request.sub_type)
            self.subscriptions[request.subscription] = subscription
        try:
            consumer = await subscription.add(request, sink)
        except PulsarError:
            if not subscription.consumers:
                self.forget(subscription)
            raise
        if self.clients.refusal is not None:
            consumer.close()
            raise self.clients.refusal
        self.subscriptions[request.subscription] = subscription  # it may have lost its last consumer meanwhile
        return self.failover_gate.admitted(consumer)

    @property
    def consumer_count(self) -> int:
        return sum(len(subscription.consumers) for subscription in self.subscriptions.values())

    def forget(self, subscription: NonPersistentSubscription) -> None:
        """Forget a subscription whose last consumer left."""
        if self.subscriptions.get(subscription.name) is subscription:
            del self.subscriptions[subscription.name]
            self.gone.absorb(subscription.out)
        self.active_ms = self.now_ms()

    async def create_subscription(self, subscription: str, **options: Any) -> None:
        raise NotAllowed("Create subscription on non-persistent topic is not supported")

    async def delete_subscription(self, subscription: str, *, force: bool = False) -> None:
        deleted = self.subscriptions.get(subscription)
        if deleted is None:
            raise SubscriptionNotFound(f"Subscription {subscription} not found for topic {self.name}")
        deleted.close_consumers()  # forced or not, as in Pulsar: nothing is stored

    def subscription_names(self) -> list[str]:
        return sorted(self.subscriptions)

    async def last_message(self, *, read_compacted: bool = False) -> LastMessage:
        raise NotAllowed("A non-persistent topic has no last message")

    def mark_delete_position(self, subscription: str) -> Position:
        return EARLIEST

    def promised_position(self, cursor: str) -> None:
        return None

    # --- upkeep and ending; the same calls as on a persistent topic

    async def apply(self, settings: TopicSettings) -> None:
        self.settings = settings
        self._use_limits()
        await self.failover_gate.use(settings)

    async def settle(self) -> None:
        """Do nothing: every publish is answered immediately."""

    def _use_limits(self) -> None:
        self.limits.use(self.settings, self.producers)
        self.publish_limits = self.limits.publish

    async def flush(self) -> None:
        """Do nothing: nothing is stored."""

    def tick(self, seconds: float) -> None:
        self.producers.tick(seconds)
        for subscription in self.subscriptions.values():
            subscription.tick(seconds)

    async def close(self) -> None:
        self.clients.refuse_while_unloading()
        self.clients.disconnect()

    async def abandon(self) -> None:
        self.clients.retire()

    def forsake(self) -> None:
        """Disconnect the clients: another broker may have the topic."""
        self.clients.refuse_elsewhere()

    async def depart(self) -> None:
        """Do nothing: there is no log to close."""

    # --- statistics

    def stats(self) -> dict[str, Any]:
        shown = {name: self.subscriptions[name].stats() for name in sorted(self.subscriptions)}
        return _NOTHING_STORED | {
            **self.producers.stats(self.limits.publish_throttled, self.created_ms),
            "msgRateOut": float(sum(subscription["msgRateOut"] for subscription in shown.values())),
            "msgThroughputOut": float(sum(subscription["msgThroughputOut"] for subscription in shown.values())),
            "bytesOutCounter": self.gone.bytes
            + sum(subscription["bytesOutCounter"] for subscription in shown.values()),
            "msgOutCounter": self.gone.messages + sum(subscription["msgOutCounter"] for subscription in shown.values()),
            "msgDropRate": float(sum(subscription["msgDropRate"] for subscription in shown.values())),
            "subscriptions": shown,
            "replication": {},
        }

    def measure(self) -> Measured:
        subscriptions = {name: subscription.measure() for name, subscription in self.subscriptions.items()}
        limits = LimitMeasure(self.limits.publish_throttled) if self.limits.publish else None
        return Measured(summed(self.producers.measure(), subscriptions), subscriptions, {}, limits)

    def internal_stats(self) -> dict[str, Any]:
        """Return `PersistentTopicInternalStats` of a topic that stores nothing."""
        return {
            "entriesAddedCounter": self.entries_added,
            "numberOfEntries": 0,
            "totalSize": 0,
            "currentLedgerEntries": 0,
            "currentLedgerSize": 0,
            "waitingCursorsCount": 0,
            "pendingAddEntriesCount": 0,
            "cursors": {name: dict(_NO_CURSOR) for name in sorted(self.subscriptions)},
        }
