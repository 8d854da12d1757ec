"""Exclusive and Failover: one consumer at a time gets everything, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from interpulse.broker.live.api import Delivery, KeyRange, SubType
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.dispatch.consumer import Consumer, covered_by
from interpulse.broker.live.dispatch.delayed_entries import DelayedEntries
from interpulse.broker.live.dispatch.dispatch_limits import DispatchGate
from interpulse.broker.live.dispatch.entry_feed import EntryFeed, FeedSource
from interpulse.broker.live.dispatch.sticky_keys import check_ranges
from interpulse.model.errors import ConsumerBusy
from interpulse.model.ids import Position


class SingleActiveDispatch:
    """The dispatch to the active consumer. A new one starts after the mark-delete position."""

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

    @property
    def read_position(self) -> Position:
        """The position up to which everything was sent."""
        return self.feed.after

    @property
    def replaying(self) -> int:
        """The number of entries to send again."""
        return 0

    @property
    def drained(self) -> bool:
        """True if every entry that was read was sent."""
        return True

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
        """Send as many entries as permits allow."""
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
        """Restart after the mark-delete position."""
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

    def stats(self) -> dict[str, Any]:
        """Return the dispatch's fields for the statistics of the subscription."""
        return {"activeConsumerName": self.active.name} if self.active is not None else {}

    def consumer_stats(self, consumer: Consumer) -> dict[str, Any]:
        """Return the dispatch's fields for the statistics of a consumer."""
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
        self.feed.rewind(self._cursor.mark_delete)
        self.pump()

    def _ranges_of(self, consumer: Consumer) -> Sequence[KeyRange]:
        """Return the consumer's key ranges: a reader with ranges (keyHashRange) is exclusive, and skips other keys."""
        return consumer.request.key_sharing.sticky_ranges if self.sub_type is SubType.EXCLUSIVE else ()
