"""One subscription of a persistent topic: its cursor, its consumers, and who gets what next.

Changes that take time (creating, seeking, deleting) exclude each other and new consumers through `changing`; anybody
who waited for it looks again whether the subscription still exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from interpulse.broker.live.api import ConsumerSink, Delivery, SubscribeRequest, SubType
from interpulse.broker.live.consumer import Consumer
from interpulse.broker.live.cursor import Cursor, CursorRecord, mask_of
from interpulse.broker.live.dealing import KeySharing, RoundRobin
from interpulse.broker.live.dispatch import choose_active
from interpulse.broker.live.feed import FeedSource
from interpulse.broker.live.measures import SubscriptionMeasure
from interpulse.broker.live.shared import SharedDispatch
from interpulse.broker.live.single_active import SingleActiveDispatch
from interpulse.broker.live.stats import TrafficMeter
from interpulse.model.errors import ConsumerBusy, MetadataError, NotAllowed, PreconditionFailed
from interpulse.model.ids import MessageId, Position
from interpulse.model.names import TopicName

__all__ = ["Subscription", "SubscriptionOwner"]

Dispatch = SingleActiveDispatch | SharedDispatch


class SubscriptionOwner(FeedSource, Protocol):
    """What a subscription needs of its topic."""

    @property
    def name(self) -> TopicName: ...

    @property
    def now_ms(self) -> Callable[[], int]: ...

    def last_durable(self) -> Position: ...

    def end_reached(self, position: Position) -> bool:
        """The topic is terminated and there is nothing after this position."""

    def position_before(self, target: MessageId) -> Position:
        """Where a cursor stands so that ``target`` comes next; within the log."""

    def before_first(self) -> Position:
        """Where a cursor stands so that the first entry comes next."""

    async def position_before_time(self, publish_time_ms: int) -> Position:
        """Where a cursor stands so that the first entry published at or after this time comes next."""

    def cursor_changed(self, subscription: Subscription) -> None:
        """The cursor has to be stored, soon."""

    async def store_cursor(self, subscription: Subscription) -> None:
        """Store the cursor now."""

    def forget_subscription(self, subscription: Subscription) -> None:
        """A non-durable subscription has lost its last consumer."""

    async def drop_subscription(self, subscription: Subscription) -> None:
        """Forget the subscription and its stored cursor."""


class Subscription:
    """See the module."""

    def __init__(
        self,
        owner: SubscriptionOwner,
        name: str,
        cursor: Cursor,
        *,
        durable: bool = True,
        properties: Mapping[str, str] | None = None,
        replicate_state: bool = False,
    ) -> None:
        self.name = name
        self.cursor = cursor
        self.durable = durable
        self.properties = dict(properties or {})
        self.replicate_state = replicate_state
        self.changing = asyncio.Lock()
        self.stored = False
        self.deleted = False
        self.idle_since_ms = owner.now_ms()
        """Since when it has had no consumer."""
        self.now_ms = owner.now_ms
        self._owner = owner
        self._dispatch: Dispatch | None = None
        self._stored_changes = -1
        self._given_up = {"out": TrafficMeter(), "redelivered": TrafficMeter(), "acknowledged": TrafficMeter()}
        self._last_acknowledged_ms = self._last_moved_ms = self._last_flow_ms = 0
        self._expired = TrafficMeter()
        self._last_expired_ms = 0

    # --- consumers

    @property
    def consumers(self) -> Sequence[Consumer]:
        return self._dispatch.consumers if self._dispatch else ()

    @property
    def sub_type(self) -> SubType | None:
        """None until the first consumer came."""
        return self._dispatch.sub_type if self._dispatch else None

    async def add(self, request: SubscribeRequest, sink: ConsumerSink) -> Consumer:
        """Open a consumer; the caller holds `changing`. Raises ConsumerBusy, ConsumerAssignError."""
        if self.consumers and self.sub_type is not request.sub_type:
            raise ConsumerBusy("Subscription is of different type")
        if request.sub_type is SubType.EXCLUSIVE and self.consumers:
            await self._drop_dead_consumers()
        if self._dispatch is None or self._dispatch.sub_type is not request.sub_type:
            self._dispatch = self._new_dispatch(request.sub_type)
        consumer = Consumer(self, request, sink)
        self._dispatch.add(consumer)
        return consumer

    async def _drop_dead_consumers(self) -> None:
        """A client whose connection broke without a word comes back before the old one is found dead."""
        for consumer in list(self.consumers):
            if not await consumer.sink.is_alive():
                consumer.close()

    def _new_dispatch(self, sub_type: SubType) -> Dispatch:
        if sub_type is SubType.SHARED:
            return SharedDispatch(sub_type, self._owner, self.cursor, RoundRobin(lambda: self._owner.facts))
        if sub_type is SubType.KEY_SHARED:
            return SharedDispatch(sub_type, self._owner, self.cursor, KeySharing())
        name = self._owner.name
        return SingleActiveDispatch(
            sub_type,
            self._owner,
            self.cursor,
            lambda consumers: choose_active(consumers, str(name), name.partition_index),
        )

    def remove(self, consumer: Consumer) -> None:
        """The consumer is closed."""
        assert self._dispatch is not None
        self._dispatch.remove(consumer)
        self._given_up["out"].absorb(consumer.out)
        self._given_up["redelivered"].absorb(consumer.redelivered)
        self._given_up["acknowledged"].absorb(consumer.acknowledged)
        if not self.consumers:
            self.idle_since_ms = self.now_ms()
            if not self.durable and not self.changing.locked():
                self._owner.forget_subscription(self)

    def close_consumers(self) -> None:
        """The broker closes all consumers; their clients come back."""
        for consumer in list(self.consumers):
            consumer.close_by_broker()

    # --- entries

    def offer(self, fresh: Sequence[Delivery], previous: Position) -> None:
        """Entries became durable behind ``previous``; none of them is a marker."""
        if self._dispatch is not None and self._dispatch.consumers:
            self._dispatch.offer(fresh, previous)

    def flow_granted(self) -> None:
        """Somebody has permits, or can be written to again."""
        self._last_flow_ms = self.now_ms()
        self.pump()

    def pump(self) -> None:
        """Send what can be sent."""
        if self._dispatch is None:
            return
        self._dispatch.pump()
        if self._owner.end_reached(self._dispatch.read_position) and not self._dispatch.replaying:
            for consumer in self.consumers:
                if not consumer.end_told:
                    consumer.end_told = True
                    consumer.sink.end_of_topic(consumer.consumer_id)

    def redeliver(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        assert self._dispatch is not None
        self._dispatch.redeliver(consumer, positions)

    # --- acknowledgements

    def acknowledge(self, consumer: Consumer, position: Position, ack_set: Sequence[int]) -> None:
        """One entry, or some messages of it. Positions that do not exist are ignored."""
        if position > self._owner.last_durable():
            return
        if ack_set:
            left = 0 if self.cursor.acknowledge_part(position, mask_of(ack_set)) else self._waiting(position)
        else:
            self.cursor.acknowledge(position)
            left = 0
        assert self._dispatch is not None
        self._dispatch.released(consumer, position, left)
        self._changed()

    def _waiting(self, position: Position) -> int:
        """How many messages of a batch still wait; bits beyond its size do not count."""
        mask = self.cursor.waiting_mask(position)
        return mask.bit_count() if mask > 0 else 0

    def acknowledge_upto(self, position: Position, ack_set: Sequence[int]) -> None:
        """Everything up to this entry; of this entry itself only what ``ack_set`` says."""
        if self.sub_type in (SubType.SHARED, SubType.KEY_SHARED):
            raise NotAllowed(f"Cumulative acknowledgement is not allowed on a {self.sub_type.label} subscription")
        if position > self._owner.last_durable():
            return
        if ack_set:
            self.cursor.acknowledge_upto(Position(position.ledger, position.entry - 1))
            self.cursor.acknowledge_part(position, mask_of(ack_set))
        else:
            self.cursor.acknowledge_upto(position)
        self._changed()

    def _changed(self) -> None:
        self._last_acknowledged_ms = self.now_ms()
        if self.durable:
            self._owner.cursor_changed(self)

    # --- moving the cursor

    async def seek(self, position: MessageId, ack_set: Sequence[int] = ()) -> None:
        """Close the consumers, then let ``position`` come next."""
        async with self.changing:
            self.close_consumers()
            await self._reset(self._owner.position_before(position))
            if ack_set and position.ledger >= 0:
                self.cursor.acknowledge_part(position.position, mask_of(ack_set))

    async def seek_to_time(self, publish_time_ms: int) -> None:
        """Close the consumers, then let the first entry published at or after this time come next."""
        async with self.changing:
            self.close_consumers()
            await self._reset(await self._owner.position_before_time(publish_time_ms))

    async def _reset(self, mark_delete: Position) -> None:
        self.cursor.reset(mark_delete)
        if self._dispatch:
            self._dispatch.rewind()
        await self._owner.store_cursor(self)

    def skip_to(self, position: Position) -> int:
        """Count everything up to here as acknowledged; how many entries that were. Consumers stay."""
        last = self._owner.last_durable()
        before = self.cursor.backlog(last)
        if not self.cursor.acknowledge_upto(min(position, last)):
            return 0
        self._last_moved_ms = self.now_ms()
        if self._dispatch and self._dispatch.read_position < self.cursor.mark_delete:
            self._dispatch.feed.rewind(self.cursor.mark_delete)
        self._changed()
        return before - self.cursor.backlog(last)

    def expire_upto(self, position: Position) -> int:
        """As `skip_to`, for entries that are too old."""
        count = self.skip_to(position)
        self._expired.messages += count
        self._last_expired_ms = self.now_ms()
        return count

    async def unsubscribe(self, consumer: Consumer, *, force: bool) -> None:
        """A consumer deletes the subscription; raises MetadataError if it is not alone."""
        async with self.changing:
            if self.deleted:
                return
            if len(self.consumers) > 1 and not force:
                raise MetadataError("Unconnected or shared consumer attempting to unsubscribe")
            consumer.close()
            self.close_consumers()
            await self._owner.drop_subscription(self)

    async def delete(self, *, force: bool) -> None:
        """Delete the subscription; raises PreconditionFailed if somebody is connected and it is not forced."""
        async with self.changing:
            if self.deleted:
                return
            if self.consumers and not force:
                raise PreconditionFailed("Subscription has active connected consumers")
            self.close_consumers()
            await self._owner.drop_subscription(self)

    # --- durable form

    @property
    def dirty(self) -> bool:
        """The stored record is not the newest state."""
        return self.durable and not self.deleted and self._stored_changes != self.cursor.changes

    def take_record(self) -> tuple[CursorRecord, int]:
        """What to store, and what to tell `stored_as` when it is."""
        return self.cursor.record(self.properties, replicate_state=self.replicate_state), self.cursor.changes

    def stored_as(self, changes: int) -> None:
        self.stored = True
        self._stored_changes = changes

    def properties_changed(self, properties: Mapping[str, str]) -> None:
        """Replace the properties; stored with the cursor."""
        self.properties = dict(properties)
        self.cursor.changes += 1
        self._owner.cursor_changed(self)

    # --- statistics

    def tick(self, seconds: float) -> None:
        """Compute the rates of the last period."""
        self._expired.tick(seconds)
        for consumer in self.consumers:
            consumer.tick(seconds)

    @property
    def out(self) -> TrafficMeter:
        """What was sent to consumers, also to those that are gone."""
        return _total(self._given_up["out"], [each.out for each in self.consumers])

    def measure(self) -> SubscriptionMeasure:
        """What metrics show."""
        consumers, given_up = self.consumers, self._given_up
        out, redelivered, acknowledged = given_up["out"], given_up["redelivered"], given_up["acknowledged"]
        if consumers:
            out = self.out
            redelivered = _total(redelivered, [each.redelivered for each in consumers])
            acknowledged = _total(acknowledged, [each.acknowledged for each in consumers])
        return SubscriptionMeasure(
            self.cursor.backlog(self._owner.last_durable()),
            sum(each.unacknowledged for each in consumers),
            bool(consumers) and all(each.blocked for each in consumers),
            out.message_rate,
            out.byte_rate,
            redelivered.message_rate,
            acknowledged.message_rate,
            len(consumers),
            self._expired.messages,
            out.messages,
            out.bytes,
        )

    def stats(self) -> dict[str, Any]:
        consumers = self.consumers
        last = self._owner.last_durable()
        backlog = self.cursor.backlog(last)
        out = self.out
        redelivered = _total(self._given_up["redelivered"], [each.redelivered for each in consumers])
        acknowledged = _total(self._given_up["acknowledged"], [each.acknowledged for each in consumers])
        ranges = sum(1 for _ in self.cursor.ranges())
        body: dict[str, Any] = {
            "msgRateOut": out.message_rate,
            "msgThroughputOut": out.byte_rate,
            "bytesOutCounter": out.bytes,
            "msgOutCounter": out.messages,
            "msgRateRedeliver": redelivered.message_rate,
            "messageAckRate": acknowledged.message_rate,
            "chunkedMessageRate": 0.0,
            "msgBacklog": backlog,
            "backlogSize": 0,
            "earliestMsgPublishTimeInBacklog": 0,
            "msgBacklogNoDelayed": backlog,
            "blockedSubscriptionOnUnackedMsgs": bool(consumers) and all(each.blocked for each in consumers),
            "msgDelayed": 0,
            "msgInReplay": self._dispatch.replaying if self._dispatch else 0,
            "unackedMessages": sum(each.unacknowledged for each in consumers),
            "msgRateExpired": self._expired.message_rate,
            "msgExpired": self._expired.messages,
            "totalMsgExpired": self._expired.messages,
            "lastExpireTimestamp": self._last_expired_ms,
            "lastConsumedFlowTimestamp": self._last_flow_ms,
            "lastConsumedTimestamp": max((each.last_sent_ms for each in consumers), default=0),
            "lastAckedTimestamp": self._last_acknowledged_ms,
            "lastMarkDeleteAdvancedTimestamp": self._last_moved_ms,
            "consumers": [each.stats() for each in consumers],
            "isDurable": self.durable,
            "isReplicated": self.replicate_state,
            "allowOutOfOrderDelivery": False,
            "consumersAfterMarkDeletePosition": {},
            "nonContiguousDeletedMessagesRanges": ranges,
            "nonContiguousDeletedMessagesRangesSerializedSize": 0,
            "subscriptionProperties": self.properties,
            "durable": self.durable,
            "replicated": self.replicate_state,
        }
        if self.sub_type is not None:
            body["type"] = self.sub_type.label
        active = self._dispatch.active if self._dispatch else None
        if self.sub_type is SubType.FAILOVER and active is not None:
            body["activeConsumerName"] = active.name
        if self.sub_type is SubType.KEY_SHARED:
            sticky = any(each.request.key_sharing.sticky_ranges for each in consumers)
            body["keySharedMode"] = "STICKY" if sticky else "AUTO_SPLIT"
        return body

    def internal_stats(self) -> dict[str, Any]:
        read = self._dispatch.read_position if self._dispatch else self.cursor.mark_delete
        ranges = list(self.cursor.ranges())
        texts = [f"({ledger}:{start - 1}..{ledger}:{end}]" for ledger, start, end in ranges]
        return {
            "markDeletePosition": str(self.cursor.mark_delete),
            "readPosition": str(Position(read.ledger, read.entry + 1)),
            "waitingReadOp": bool(self.consumers),
            "pendingReadOps": 0,
            "messagesConsumedCounter": 0,
            "cursorLedger": -1,
            "cursorLedgerLastEntry": -1,
            "individuallyDeletedMessages": f"[{','.join(texts)}]",
            "state": "Open",
            "active": bool(self.consumers),
            "numberOfEntriesSinceFirstNotAckedMessage": max(0, read.entry - self.cursor.mark_delete.entry),
            "totalNonContiguousDeletedMessagesRange": len(ranges),
            "subscriptionHavePendingRead": bool(self.consumers),
            "subscriptionHavePendingReplayRead": bool(self._dispatch and self._dispatch.replaying),
            "properties": {},
        }


def _total(given_up: TrafficMeter, live: Sequence[TrafficMeter]) -> TrafficMeter:
    total = TrafficMeter()
    for meter in (given_up, *live):
        total.absorb(meter)
        total.message_rate += meter.message_rate
        total.byte_rate += meter.byte_rate
    return total
