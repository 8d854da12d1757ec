"""One subscription of a persistent topic: its cursor, its consumers, and its dispatch.

Slow changes (creating, seeking, deleting) exclude each other and new consumers through `changing`; after waiting for
it, the holder checks `deleted` first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from interpulse.broker.live.api import ConsumerSink, Delivery, SubscribeRequest, SubType
from interpulse.broker.live.compaction.log_positions import LogPositions
from interpulse.broker.live.cursor import Acknowledgements, Cursor
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.dispatch.dispatch import Dispatch, DispatchOwner, delays_of, fits, make_way, new_dispatch
from interpulse.broker.live.dispatch.dispatch_limits import DispatchGate
from interpulse.broker.live.dispatch.shared import SharedDispatch
from interpulse.broker.live.log_search import bytes_after
from interpulse.broker.live.metrics import TrafficMetrics
from interpulse.broker.live.topic.topic_clients import TopicLimits
from interpulse.model.errors import MetadataError, NotAllowed, PreconditionFailed
from interpulse.model.ids import MessageId, Position
from interpulse.storage.cursors import CursorRecord
from interpulse.wire.cursor_promise import HELD_S
from interpulse.wire.ids import mask_of

_NO_NUMBERS: Final[Mapping[str, int]] = {}


class CursorPromises:
    """Promises to tasks that copy from a replication cursor. The topic's previous broker may have given the first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._now = clock
        self._until = clock() + HELD_S
        self._settled_at = 0.0
        self._given = asyncio.Event()

    def give(self) -> None:
        """Note that a task receives the mark-delete position."""
        self._until = self._now() + HELD_S
        self._given.set()

    async def in_force_within(self, seconds: float) -> bool:
        """Return True once a task copies from the cursor, False if none comes within this time."""
        if self._now() >= self._until:
            self._given.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._given.wait()
        return self._now() < self._until

    def cursor_moved(self) -> None:
        """Note that the cursor moved. Tasks may send the entries that it passed until the current promises end."""
        self._settled_at = self._until

    @property
    def seconds_left(self) -> float:
        """The time until no task sends entries that the cursor has passed."""
        return max(0.0, self._settled_at - self._now())

    async def settled(self) -> None:
        """Return when no task sends entries that the cursor passed before this call."""
        await asyncio.sleep(self.seconds_left)


class SubscriptionOwner(DispatchOwner, Protocol):
    """The interface of the topic for its subscriptions."""

    limits: TopicLimits
    positions: LogPositions

    @property
    def consumer_count(self) -> int: ...
    def remote_of(self, subscription: str) -> str | None: ...
    def check_open(self) -> None: ...

    def cursors_changed(self) -> None:
        """Schedule the storing of cursors, and of sequence ids that are due."""

    async def store_cursor(self, subscription: Subscription) -> None: ...

    def cursor_placed(self, subscription: Subscription) -> None:
        """Pass the markers after the position at which a cursor was placed."""

    def forget_subscription(self, subscription: Subscription) -> None:
        """Forget a non-durable subscription that lost its last consumer."""

    async def drop_subscription(self, subscription: Subscription) -> None:
        """Forget the subscription and its stored cursor."""


class Subscription:
    """A subscription of a persistent topic."""

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
        self.numbers: Mapping[str, int] = _NO_NUMBERS
        """Numbers in the record of the compaction cursor; see `CursorRecord`."""
        self.by_policy = False
        """True if policies opened this replication cursor; see `CursorRecord`."""
        self.changing = asyncio.Lock()
        self.stored = False
        self.deleted = False
        self.idle_since_ms = owner.now_ms()
        """The start of the time without a consumer; while there is one, the last such start."""
        self.dispatch: Dispatch | None = None
        """The dispatch; None before the first consumer."""
        self.out, self.redelivered, self.acknowledged = TrafficMetrics(), TrafficMetrics(), TrafficMetrics()
        """The counts of closed consumers."""
        self.replicated = TrafficMetrics()
        """The traffic of the replication job.

        It reads through readers, so no consumer here counts it. A batch counts once, as with Pulsar's replicators, and
        bytes come from the average entry of each ledger.
        """
        self.expired = TrafficMetrics()
        self.last_acknowledged_ms = self.last_moved_ms = self.last_flow_ms = self.last_expired_ms = 0
        self.now_ms = owner.now_ms
        self._owner = owner
        self._gate: DispatchGate | None = None
        self._made_for: SubscribeRequest | None = None
        """The request of this dispatch's first consumer."""
        self._stored_changes = -1
        self.promises = CursorPromises() if owner.remote_of(name) is not None else None
        """Promises of a replication cursor, else None."""

    # --- consumers

    @property
    def consumers(self) -> Sequence[Consumer]:
        return self.dispatch.consumers if self.dispatch else ()

    @property
    def sub_type(self) -> SubType | None:
        return self.dispatch.sub_type if self.dispatch else None

    async def add(self, request: SubscribeRequest, sink: ConsumerSink) -> Consumer:
        """Open a consumer; the caller holds `changing`. Raises ConsumerBusy, ConsumerAssignError."""
        await make_way(request, self.consumers)
        if self.dispatch is None or self._made_for is None or not fits(request, self._made_for):
            if self.dispatch is not None:
                self.dispatch.put_away()
            self.dispatch = new_dispatch(request, self._owner, self.cursor, self.pump)
            self._made_for = request
            self._limit_dispatch()
        if self._owner.remote_of(self.name) is None:
            self._owner.limits.check_consumers(self._owner.consumer_count, len(self.consumers))
        consumer = Consumer(self, request, sink)
        consumer.hold_at_most(self._owner.limits.settings.max_unacked_per_consumer)
        self.dispatch.add(consumer)
        self._use_changed()
        return consumer

    def policies_changed(self, *, delays: bool) -> None:
        """Apply the new settings of the topic. ``delays``: those of delayed delivery changed."""
        for consumer in self.consumers:
            consumer.hold_at_most(self._owner.limits.settings.max_unacked_per_consumer)
        if self.dispatch is not None:
            self._limit_dispatch()
            self.pump()
        if delays and isinstance(self.dispatch, SharedDispatch):
            self.dispatch.honour_delays(delays_of(self._owner, self.pump))

    def follow(self, publish_messages: float, publish_bytes: float) -> None:
        if self._gate is not None and self._gate.own_limit is not None:
            self._gate.own_limit.follow(publish_messages, publish_bytes, self.now_ms())

    def _limit_dispatch(self) -> None:
        dispatch, limits = self.dispatch, self._owner.limits
        if dispatch is None or self._owner.remote_of(self.name) is not None:
            return
        dispatch.gate = self._gate = limits.gate(self._gate, self.pump)
        if isinstance(dispatch, SharedDispatch):
            dispatch.unacknowledged_max = limits.settings.max_unacked_per_subscription

    def remove(self, consumer: Consumer) -> None:
        assert self.dispatch is not None
        self.dispatch.remove(consumer)
        self.out.absorb(consumer.out)
        self.redelivered.absorb(consumer.redelivered)
        self.acknowledged.absorb(consumer.acknowledged)
        if not self.consumers:
            self.idle_since_ms = self.now_ms()
            self._use_changed()
            if not self.durable and not self.changing.locked():
                self._owner.forget_subscription(self)

    def _use_changed(self) -> None:
        """Store the time of the last consumer where subscriptions expire, for use after a restart."""
        if self.durable and self._owner.limits.settings.subscription_expiration_minutes:
            self.cursor.changes += 1
            self._owner.cursors_changed()

    def close_consumers(self) -> None:
        """Close all consumers; their clients reconnect."""
        for consumer in list(self.consumers):
            consumer.close_by_broker()

    def let_go(self) -> None:
        """Stop all deliveries of the closed topic, and release the objects that they use."""
        if self.dispatch is not None:
            self.dispatch.put_away()
        self.dispatch = self._gate = None

    # --- entries

    def offer(self, fresh: Sequence[Delivery], previous: Position) -> None:
        """Accept entries that follow ``previous`` and became durable; none of them is a marker."""
        if self.dispatch is not None and self.dispatch.consumers:
            self.dispatch.offer(fresh, previous)

    def flow_granted(self) -> None:
        """Send to a consumer that has new permits, or is writable again."""
        self.last_flow_ms = self.now_ms()
        self.pump()

    def pump(self) -> None:
        if self.dispatch is None:
            return
        self.dispatch.pump()
        at_end = self._owner.log.terminated and self.dispatch.feed.after >= self._owner.positions.durable
        if at_end and self.dispatch.drained:
            for consumer in self.consumers:
                if not consumer.end_reported:
                    consumer.end_reported = True
                    consumer.sink.end_of_topic(consumer.consumer_id)

    def redeliver(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        assert self.dispatch is not None
        self.dispatch.redeliver(consumer, positions)

    # --- acknowledgements

    def acknowledge(self, consumer: Consumer, positions: Sequence[Position], ack_set: Sequence[int]) -> None:
        """Acknowledge entries, or some messages of a single one. Positions that do not exist are ignored."""
        dispatch, durable = self.dispatch, self._owner.positions.durable
        assert dispatch is not None
        if len(positions) == 1:  # a run of one takes 1.5 to 7 times as long: 4.5 us instead of 0.6
            position = positions[0]
            if position > durable:
                return
            left = 0
            if not ack_set:
                self.cursor.acknowledge(position)
            elif not self.cursor.acknowledge_part(position, mask_of(ack_set)):
                mask = self.cursor.waiting_mask(position)
                left = mask.bit_count() if mask > 0 else 0  # without bits beyond the size of the batch
            dispatch.released(consumer, position, left)
        else:
            existing = [position for position in positions if position <= durable]
            if not existing:
                return
            self.cursor.acknowledge_all(existing)
            dispatch.released_all(consumer, existing)
        self._changed()

    def acknowledge_upto(self, position: Position, ack_set: Sequence[int]) -> None:
        """Acknowledge everything before this entry, and the entry itself or the messages that ``ack_set`` names."""
        if self.sub_type in (SubType.SHARED, SubType.KEY_SHARED):
            raise NotAllowed(f"Cumulative acknowledgement is not allowed on a {self.sub_type.label} subscription")
        if position > self._owner.positions.durable:
            return
        before, ledgers = self.cursor.mark_delete, self._owner.log.ledgers
        if position > before and self._owner.remote_of(self.name) is not None:
            self.replicated.messages += self.cursor.backlog(position)
            self.replicated.bytes += bytes_after(ledgers, before) - bytes_after(ledgers, position)
        if ack_set:
            self.cursor.acknowledge_upto(Position(position.ledger, position.entry - 1))
            self.cursor.acknowledge_part(position, mask_of(ack_set))
        else:
            self.cursor.acknowledge_upto(position)
        self._changed()

    def _changed(self) -> None:
        self.last_acknowledged_ms = self.now_ms()
        if self.durable:
            self._owner.cursors_changed()

    def acknowledge_from_elsewhere(self, acknowledgements: Acknowledgements) -> int:
        """Acknowledge what consumers acknowledged on another cluster. Consumers here stay, of any type.

        Return the number of entries of which something is new. The positions must be known to the log.
        """
        last, changes = self._owner.positions.durable, self.cursor.changes
        before = self.cursor.backlog(last)
        parts = self.cursor.acknowledge_also(acknowledgements)
        if self.cursor.changes == changes:
            return 0
        self.last_moved_ms = self.now_ms()
        if self.dispatch:
            self.dispatch.skipped()
            self.dispatch.acknowledged_elsewhere(parts)
            self.pump()
        self._changed()
        return before - self.cursor.backlog(last) + len(parts)

    def pass_markers(self, markers: Collection[Position]) -> None:
        """Acknowledge these markers, which no consumer gets.

        Markers after a message that still waits are stored with the next change, so that they cost no write each.
        """
        before = self.cursor.mark_delete
        self.cursor.acknowledge_all(markers)
        if self.durable and self.cursor.mark_delete != before:
            self.last_moved_ms = self.now_ms()
            self._owner.cursors_changed()

    @property
    def drained(self) -> bool:
        """True if the subscription has no backlog."""
        return self.cursor.backlog(self._owner.positions.durable) == 0

    async def store_acknowledgements(self) -> None:
        """Store the acknowledgements of a durable subscription; raise ServiceNotReady if the topic is closed."""
        if self.dirty:
            await self._owner.store_cursor(self)

    # --- moving the cursor

    async def seek(self, position: MessageId, ack_set: Sequence[int] = ()) -> None:
        """Close the consumers, and make ``position`` the next one, of a batch only what ``ack_set`` leaves."""
        async with self.changing:
            compacted = any(consumer.request.read_compacted for consumer in self.consumers)
            self.close_consumers()
            self._reset(self._owner.positions.before(position, compacted=compacted))
            if ack_set and position.ledger >= 0:
                self.cursor.acknowledge_part(position.position, mask_of(ack_set))
            self._owner.cursor_placed(self)
            await self._owner.store_cursor(self)

    async def seek_to_time(self, publish_time_ms: int) -> None:
        """Close the consumers, and make the first entry published at or after this time the next one."""
        async with self.changing:
            compacted = any(consumer.request.read_compacted for consumer in self.consumers)
            self.close_consumers()
            self._reset(await self._owner.positions.before_time(publish_time_ms, compacted=compacted))
            self._owner.cursor_placed(self)
            await self._owner.store_cursor(self)

    async def reset_from_elsewhere(self, mark_delete: Position, resets: int) -> None:
        """Close the consumers, and move back as the subscription was on another cluster; the caller holds `changing`.

        ``resets`` is the number of resets there.
        """
        self.close_consumers()
        self._reset(mark_delete)
        self.cursor.resets = resets
        self._owner.cursor_placed(self)
        await self._owner.store_cursor(self)

    def _reset(self, mark_delete: Position) -> None:
        self.cursor.reset(mark_delete)
        self._owner.cursors_changed()
        if self.promises is not None:
            self.promises.cursor_moved()
        if self.dispatch:
            self.dispatch.rewind()

    def skip_to(self, position: Position) -> int:
        """Acknowledge everything up to here, and return the number of entries. Consumers stay."""
        last = self._owner.positions.durable
        before = self.cursor.backlog(last)
        if not self.cursor.acknowledge_upto(min(position, last)):
            return 0
        self.last_moved_ms = self.now_ms()
        if self.promises is not None:
            self.promises.cursor_moved()
        if self.dispatch:
            self.dispatch.skipped()
            self.pump()  # the skipped entries may have held up the others
        self._changed()
        return before - self.cursor.backlog(last)

    def expire_upto(self, position: Position) -> int:
        """Acknowledge expired entries; see `skip_to`."""
        count = self.skip_to(position)
        self.expired.messages += count
        self.last_expired_ms = self.now_ms()
        return count

    async def settled(self) -> None:
        """Return when the cursor is durable, and entries that it has passed are no longer copied to another cluster."""
        await self._owner.store_cursor(self)
        if self.promises is not None:
            await self.promises.settled()

    async def unsubscribe(self, consumer: Consumer, *, force: bool) -> None:
        """Delete the subscription for one of its consumers; raise MetadataError if there are others."""
        async with self.changing:
            if self.deleted:
                return
            if len(self.consumers) > 1 and not force:
                raise MetadataError("Unconnected or shared consumer attempting to unsubscribe")
            consumer.close()
            self.close_consumers()
            await self._owner.drop_subscription(self)

    async def delete(self, *, force: bool) -> None:
        """Delete the subscription; raise PreconditionFailed if a consumer is connected and it is not forced."""
        async with self.changing:
            if self.deleted:
                return
            if self.consumers and not force:
                raise PreconditionFailed("Subscription has active connected consumers")
            self.close_consumers()
            await self._owner.drop_subscription(self)

    async def delete_if_idle(self, limit_ms: int) -> bool:
        """Delete the subscription if it is without a consumer for longer than this; return True if it did."""
        async with self.changing:
            idle = not self.deleted and not self.consumers and self.now_ms() - self.idle_since_ms > limit_ms
            if idle:
                await self._owner.drop_subscription(self)
            return idle

    # --- durable form

    @property
    def dirty(self) -> bool:
        """True if the stored record is out of date."""
        return self.durable and not self.deleted and self._stored_changes != self.cursor.changes

    def take_record(self) -> tuple[CursorRecord, int]:
        """Return the record to store, and the number for `stored_as` afterwards."""
        record = self.cursor.record(
            properties=self.properties,
            replicate_state=self.replicate_state,
            by_policy=self.by_policy,
            last_active_ms=None if self.consumers else self.idle_since_ms,
            numbers=self.numbers,
        )
        return record, self.cursor.changes

    def stored_as(self, changes: int) -> None:
        self.stored = True
        self._stored_changes = changes

    def properties_changed(self, properties: Mapping[str, str]) -> None:
        """Replace the properties; stored with the cursor."""
        self.properties = dict(properties)
        self.cursor.changes += 1
        self._owner.cursors_changed()

    def replicate_state_changed(self, replicated: bool) -> None:
        """Mark the subscription as replicated, or unmark it; stored with the cursor."""
        self.replicate_state = replicated
        self.cursor.changes += 1
        self._owner.cursors_changed()

    # --- statistics

    def tick(self, seconds: float) -> None:
        self.expired.tick(seconds)
        self.replicated.tick(seconds)
        for consumer in self.consumers:
            consumer.tick(seconds)

    @property
    def throttled(self) -> Mapping[str, int] | None:
        """Return how often each dispatch rate held entries back; None without one."""
        return self._gate.throttled if self._gate is not None else None
