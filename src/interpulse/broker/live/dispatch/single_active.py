"""Exclusive and Failover: one consumer at a time gets everything, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.dispatch.consumer_choice import covered_by
from interpulse.broker.live.dispatch.delayed_entries import DelayedEntries
from interpulse.broker.live.dispatch.dispatch_limits import DispatchGate
from interpulse.broker.live.dispatch.entry_feed import EntryFeed, FeedSource
from interpulse.broker.live.dispatch.hash_ring import check_ranges
from interpulse.broker.live.requests import KeyRange, SubType
from interpulse.model.errors import ConsumerBusy
from interpulse.model.ids import Position

__all__ = ["SingleActiveDispatch"]


class SingleActiveDispatch:
    """Sends everything to the active consumer, starting behind the mark-delete position whenever that one changes."""

    def __init__(
        self,
        sub_type: SubType,
        source: FeedSource,
        cursor: Cursor,
        wake: Callable[[], None],
        choose: Callable[[Sequence[Consumer]], Consumer | None],
    ) -> None:
        """``wake`` is the subscription's `pump`, which also looks whether the end of the topic is reached.

        ``choose`` names the active one of all consumers.
        """
        self.sub_type = sub_type
        self.consumers: list[Consumer] = []
        self.active: Consumer | None = None
        self.feed = EntryFeed(source, cursor, wake)
        self.delayed: DelayedEntries | None = None
        """Nothing waits for its time here: these types deliver at once."""
        self.gate: DispatchGate | None = None
        """None while no dispatch rate holds anything back."""
        self._cursor = cursor
        self._choose = choose

    @property
    def read_position(self) -> Position:
        """Everything up to here was sent."""
        return self.feed.after

    @property
    def replaying(self) -> int:
        """Entries that wait to be sent again."""
        return 0

    @property
    def drained(self) -> bool:
        """Of what was read nothing waits to be sent."""
        return True

    def add(self, consumer: Consumer) -> None:
        """Raises ConsumerBusy beside an exclusive consumer, ConsumerAssignError for ranges that are none."""
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
        """Entries that follow ``previous`` became durable; none of them is a marker."""
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
        """Send what permits allow."""
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
        """Everything that is not acknowledged is sent again, whatever was named."""
        if consumer is self.active:
            self.rewind()

    def rewind(self) -> None:
        """Begin again behind the mark-delete position."""
        self.feed.rewind(self._cursor.mark_delete)
        self.pump()

    def skipped(self) -> None:
        """The cursor was moved past entries that consumers have not acknowledged."""
        if self.feed.after < self._cursor.mark_delete:
            self.feed.rewind(self._cursor.mark_delete)

    def put_away(self) -> None:
        """Another dispatch takes over."""

    def released(self, consumer: Consumer, position: Position, messages_left: int) -> None:
        """An acknowledgement; nothing is kept per entry here."""

    def released_all(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        """Acknowledgements of whole entries."""

    def stats(self) -> dict[str, Any]:
        """What this adds to the statistics of the subscription."""
        return {"activeConsumerName": self.active.name} if self.active is not None else {}

    def consumer_stats(self, consumer: Consumer) -> dict[str, Any]:
        """What this adds to the statistics of a consumer."""
        return {}

    def _choose_again(self) -> None:
        chosen = self._choose(self.consumers)
        if chosen is self.active:
            return
        self.active = chosen
        if self.sub_type is SubType.FAILOVER:
            for each in self.consumers:
                each.sink.active_changed(each.consumer_id, each is chosen)
        if chosen is not None:
            self.feed.read_compacted = chosen.read_compacted
            self.feed.key_ranges = self._ranges_of(chosen)
        self.feed.rewind(self._cursor.mark_delete)
        self.pump()

    def _ranges_of(self, consumer: Consumer) -> Sequence[KeyRange]:
        """The keys it wants: a reader with ranges (keyHashRange) is exclusive, and leaves the others out."""
        return consumer.request.key_sharing.sticky_ranges if self.sub_type is SubType.EXCLUSIVE else ()
