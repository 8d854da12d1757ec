"""The dispatch of a subscription: to one active consumer (Exclusive, Failover), or shared (`shared`).

The first consumer decides, and further ones must fit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from interpulse.broker.live.api import Delivery, KeyRange, SubscribeRequest, SubType, TopicSettings
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.dispatch.consumer import Consumer, choose_active, covered_by
from interpulse.broker.live.dispatch.consumer_selector import RoundRobinSelector
from interpulse.broker.live.dispatch.delayed_entries import DelayedEntries
from interpulse.broker.live.dispatch.dispatch_limits import DispatchGate
from interpulse.broker.live.dispatch.entry_feed import EntryFeed, FeedSource
from interpulse.broker.live.dispatch.key_selector import KeySelector
from interpulse.broker.live.dispatch.shared import SharedDispatch
from interpulse.broker.live.dispatch.sticky_keys import check_ranges, overlapping
from interpulse.model.errors import ConsumerBusy
from interpulse.model.ids import Position
from interpulse.model.names import TopicName


class SingleActiveDispatch:
    """The dispatch to the active consumer. A new one starts after the mark-delete position."""

    replaying = 0  # nothing is sent again
    drained = True  # every entry that was read was sent

    def __init__(
        self,
        sub_type: SubType,
        source: FeedSource,
        cursor: Cursor,
        wake: Callable[[], None],
        choose: Callable[[Sequence[Consumer]], Consumer | None],
    ) -> None:
        """``wake`` is the subscription's `pump`, which also checks for the end of the topic.

        ``choose`` returns the active one of all consumers.
        """
        self.sub_type = sub_type
        self.consumers: list[Consumer] = []
        self.active: Consumer | None = None
        self.feed = EntryFeed(source, cursor, wake)
        self.delayed: DelayedEntries | None = None
        """None: these types ignore delays."""
        self.gate: DispatchGate | None = None
        """The gate of dispatch rates; None without one."""
        self._cursor = cursor
        self._choose = choose

    def add(self, consumer: Consumer) -> None:
        """Add a consumer. Raise ConsumerBusy beside an exclusive one, ConsumerAssignError for invalid ranges."""
        if self.sub_type is SubType.EXCLUSIVE and self.consumers:
            raise ConsumerBusy("Exclusive consumer is already connected")
        check_ranges(self._ranges_of(consumer), {})
        self.consumers.append(consumer)
        self._choose_again()
        if self.sub_type is SubType.FAILOVER and self.active is not consumer:
            consumer.sink.active_changed(consumer.consumer_id, False)

    def remove(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        self._choose_again()

    def offer(self, fresh: Sequence[Delivery], previous: Position) -> None:
        """Accept entries that follow ``previous`` and became durable; none of them is a marker."""
        active = self.active
        if (
            active is not None
            and self.feed.after == previous
            and active.permits >= len(fresh)
            and not self.feed.reading
            and active.sink.writable
            and covered_by(fresh, active.permits) == len(fresh)
            and self.gate is None
            and not self.feed.key_ranges
        ):
            self.feed.after = fresh[-1].position
            active.deliver(fresh)
        else:
            self.pump()

    def pump(self) -> None:
        active, gate = self.active, self.gate
        while active is not None and active.permits > 0 and active.sink.writable:
            room = active.permits if gate is None else min(active.permits, gate.room())
            batch = self.feed.peek(room) if room else []
            number = covered_by(batch, active.permits)
            if gate is not None:
                number = gate.admitted(batch[:number])
            if not number:
                return
            self.feed.consumed(batch, number)
            part = batch if number == len(batch) else batch[:number]
            active.deliver(part)
            if gate is not None:
                gate.sent(part)

    def redeliver(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        """Send everything unacknowledged again, regardless of the named entries."""
        if consumer is self.active:
            self.rewind()

    def rewind(self) -> None:
        self.feed.rewind(self._cursor.mark_delete)
        self.pump()

    def skipped(self) -> None:
        """Continue after the mark-delete position, to which the cursor was moved."""
        if self.feed.after < self._cursor.mark_delete:
            self.feed.rewind(self._cursor.mark_delete)

    def put_away(self) -> None:
        """Stop: another dispatch takes over."""

    def released(self, consumer: Consumer, position: Position, messages_left: int) -> None:
        """Process an acknowledgement; there is no state per entry."""

    def released_all(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        """Process acknowledgements of whole entries."""

    def acknowledged_elsewhere(self, parts: Sequence[Position]) -> None:
        """Process acknowledgements that no consumer sent; there is no state per entry."""

    def stats(self) -> dict[str, Any]:
        return {"activeConsumerName": self.active.name} if self.active is not None else {}

    def consumer_stats(self, consumer: Consumer) -> dict[str, Any]:
        return {}

    def _choose_again(self) -> None:
        chosen = self._choose(self.consumers)
        if chosen is self.active:
            return
        self.active = chosen
        if self.sub_type is SubType.FAILOVER:
            for consumer in self.consumers:
                consumer.sink.active_changed(consumer.consumer_id, consumer is chosen)
        if chosen is not None:
            self.feed.read_compacted = chosen.request.read_compacted
            self.feed.key_ranges = self._ranges_of(chosen)
            self.feed.markers_delivered = chosen.request.copied_cursor is not None
        self.feed.rewind(self._cursor.mark_delete)
        self.pump()

    def _ranges_of(self, consumer: Consumer) -> Sequence[KeyRange]:
        """Return the consumer's key ranges: a reader with ranges (keyHashRange) is exclusive, and skips other keys."""
        return consumer.request.key_sharing.sticky_ranges if self.sub_type is SubType.EXCLUSIVE else ()


Dispatch = SingleActiveDispatch | SharedDispatch


class DispatchOwner(FeedSource, Protocol):
    """The interface of the topic for a dispatch."""

    name: TopicName
    now_ms: Callable[[], int]
    settings: TopicSettings


def new_dispatch(request: SubscribeRequest, owner: DispatchOwner, cursor: Cursor, wake: Callable[[], None]) -> Dispatch:
    """Create the dispatch for a first consumer. ``wake`` is called when there may be something to send."""
    sub_type, name = request.sub_type, owner.name
    if sub_type in (SubType.EXCLUSIVE, SubType.FAILOVER):
        return SingleActiveDispatch(
            sub_type, owner, cursor, wake, lambda consumers: choose_active(consumers, str(name), name.partition_index)
        )
    selector: RoundRobinSelector | KeySelector = RoundRobinSelector(lambda: owner.entry_metadata)
    if sub_type is SubType.KEY_SHARED:
        selector = KeySelector(ordered=not request.key_sharing.out_of_order_allowed)
    dispatch = SharedDispatch(sub_type, owner, cursor, selector, owner.now_ms, wake)
    dispatch.honour_delays(delays_of(owner, wake))
    return dispatch


def delays_of(owner: DispatchOwner, wake: Callable[[], None]) -> DelayedEntries | None:
    """Return the store of delayed entries; None if the policies allow no delays."""
    policy = owner.settings.delayed_delivery
    if policy is None or not policy.active:
        return None
    return DelayedEntries(
        policy.tick_millis,
        owner.now_ms,
        lambda seconds, callback: asyncio.get_running_loop().call_later(seconds, callback),
        wake,
    )


def fits(request: SubscribeRequest, first: SubscribeRequest) -> bool:
    """Return True if a consumer can share the dispatch that was made for another one."""
    return not _difference(request, first)


async def make_way(request: SubscribeRequest, consumers: Sequence[Consumer]) -> None:
    """Close consumers in the way whose client is gone; raise ConsumerBusy for one that does not fit the others.

    A client may reconnect before its broken connection is detected. An Exclusive consumer, and one whose key ranges are
    taken, can join only after others leave.
    """
    if consumers and (difference := _difference(request, consumers[0].request)):
        raise ConsumerBusy(f"Subscription is of different type. Active subscription {difference}.")
    taken = [sticky_range for other in consumers for sticky_range in other.request.key_sharing.sticky_ranges]
    wanted = request.key_sharing.sticky_ranges if request.sub_type is SubType.KEY_SHARED else ()
    if request.sub_type is SubType.EXCLUSIVE or any(overlapping(mine, other) for mine in wanted for other in taken):
        for consumer in list(consumers):
            if not await consumer.sink.is_alive():
                consumer.close()


def _difference(request: SubscribeRequest, first: SubscribeRequest) -> str:
    """Return the difference that keeps two consumers from sharing a subscription; "" = none."""
    if request.sub_type is not first.sub_type:
        return (
            f"type of '{first.sub_type.label}' is different than the connecting consumer's type "
            f"'{request.sub_type.label}'"
        )
    if request.sub_type is not SubType.KEY_SHARED:
        return ""
    mine, theirs = request.key_sharing, first.key_sharing
    if mine.mode != theirs.mode:
        return (
            f"key_shared mode of '{theirs.mode}' is different than the connecting consumer's key_shared mode "
            f"'{mine.mode}'"
        )
    if mine.out_of_order_allowed == theirs.out_of_order_allowed:
        return ""
    if theirs.out_of_order_allowed:
        return "allows out of order delivery while the connecting consumer does not allow it"
    return "does not allow out of order delivery while the connecting consumer allows it"
