"""Shared and Key_Shared: each entry goes to one consumer, is acknowledged by itself, and is sent again if returned.

*Replays* are entries to be sent outside the order of the log: returned by a consumer, held because their key is busy,
or due after a delay. Replays go before new entries. An entry is in one state at a time: unread, delayed, a replay,
pending with one consumer, or acknowledged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

from interpulse.broker.live.api import Delivery, SubType
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.dispatch.consumer_selector import Assignments, RoundRobinSelector
from interpulse.broker.live.dispatch.delayed_entries import DelayedEntries, deliver_at_of
from interpulse.broker.live.dispatch.dispatch_limits import DispatchGate
from interpulse.broker.live.dispatch.entry_feed import READ_ENTRIES_MAX, EntryFeed, FeedSource, ReplayReads
from interpulse.broker.live.dispatch.key_selector import KeySelector
from interpulse.broker.live.entry_metadata import waiting_in
from interpulse.model.ids import Position
from interpulse.rules.limits import subscription_blocked
from interpulse.wire.ids import words_of

_new = tuple.__new__
_position = itemgetter(0)

REPLAYS_MAX = 10_000
"""Replays above which no new entries are read."""

PUT_ASIDE_AT_ONCE = 2_000
"""Delayed entries after which the dispatch yields to other work, which waited 25 ms."""


class SharedDispatch:
    """The dispatch of Shared and Key_Shared subscriptions."""

    def __init__(
        self,
        sub_type: SubType,
        source: FeedSource,
        cursor: Cursor,
        selector: RoundRobinSelector | KeySelector,
        now_ms: Callable[[], int],
        wake: Callable[[], None],
    ) -> None:
        """``wake`` is the subscription's `pump`, which also checks for the end of the topic."""
        self.sub_type = sub_type
        self.consumers: list[Consumer] = []
        self.feed = EntryFeed(source, cursor, wake)
        self.delayed: DelayedEntries | None = None
        """Delayed entries; None while delays are off."""
        self.gate: DispatchGate | None = None
        """The gate of dispatch rates; None without one."""
        self.unacknowledged_max = 0
        """Limit for the messages that all consumers hold; dispatch then pauses until half of it. 0 = no limit."""
        self.blocked = False
        self.selector = selector
        self._source = source
        self._cursor = cursor
        self._now_ms = now_ms
        self._wake = wake
        self._redeliveries: Counter[Position] = Counter()
        self._replays = ReplayReads(source, cursor, self._deliveries, self._forget_replays, wake)
        self._put_aside = 0
        """The number of entries put aside for a delay since the last turn of other work."""

    @property
    def replaying(self) -> int:
        return self.selector.waiting

    @property
    def drained(self) -> bool:
        """True if every entry that was read was sent."""
        return not self.selector.waiting and not self.delayed

    def add(self, consumer: Consumer) -> None:
        """Add a consumer. Raise ConsumerAssignError if its key ranges are taken."""
        self.selector.joined(consumer)
        if not self.consumers:
            self._start_again()
        self.consumers.append(consumer)
        self.consumers.sort(key=lambda consumer: consumer.priority_level)

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer. Others get its entries; after the last one everything is forgotten."""
        self.consumers.remove(consumer)
        self.selector.left(consumer)
        if self.consumers:
            self._give_back(consumer, list(consumer.pending))
        else:
            consumer.forget_held()
            self._forget_sent()
            if self.delayed is not None:
                self.delayed.sleep()
        self._wake()

    def offer(self, fresh: Sequence[Delivery], previous: Position) -> None:
        """Accept entries that follow ``previous`` and became durable; none of them is a marker."""
        if self.feed.after != previous or self.selector.waiting or self.feed.reading or self._full:
            self.pump()
            return
        ready = self._ready()
        if not ready:
            return
        done = self._dispatch_new(fresh, ready)
        if done:
            self.feed.after = fresh[done - 1].position
        if done < len(fresh):
            self.pump()

    def pump(self) -> None:
        """Send what permits allow, replays first."""
        while ready := self._ready():
            if self.delayed and (room := REPLAYS_MAX - self.selector.waiting) > 0:
                due = self.delayed.due(room)
                self.selector.await_turn(position for position in due if not self._cursor.is_acknowledged(position))
            if self.selector.waiting and self._pump_replays(ready):
                continue
            if self._replays.reading or self.selector.waiting > REPLAYS_MAX or self._full or not self._pump_new(ready):
                return
            if self._put_aside >= PUT_ASIDE_AT_ONCE:
                self._put_aside = 0
                self._source.spawn(self._pump_later())
                return

    def redeliver(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        """Send entries of this consumer again: these, or all."""
        pending, before = consumer.pending, consumer.unacknowledged
        held = [fromkey for fromkey in dict.fromkeys(positions) if fromkey in pending] if positions else list(pending)
        self._redeliveries.update(held)
        self._give_back(consumer, held)
        consumer.redelivered.messages += before - consumer.unacknowledged
        self._wake()

    def rewind(self) -> None:
        """Restart after the mark-delete position, as if nothing had been sent."""
        for consumer in self.consumers:
            consumer.forget_held()
        self._start_again()
        self.pump()

    def put_away(self) -> None:
        """Stop: another dispatch takes over."""
        self.honour_delays(None)

    def skipped(self) -> None:
        """Forget everything up to the mark-delete position, to which the cursor was moved."""
        mark_delete = self._cursor.mark_delete
        self.selector.forget_upto(mark_delete)
        self._replays.forget_upto(mark_delete)
        self._redeliveries = Counter(
            {position: count for position, count in self._redeliveries.items() if position > mark_delete}
        )
        if self.delayed is not None:
            self.delayed.forget_upto(mark_delete)
        if self.feed.after < mark_delete:
            self.feed.rewind(mark_delete)

    def released(self, consumer: Consumer, position: Position, messages_left: int) -> None:
        """Process an acknowledgement by ``consumer``, which usually but not always holds the entry."""
        holder: Consumer | None = consumer
        if position not in consumer.pending:
            holder = next((other for other in self.consumers if position in other.pending), None)
        was_blocked = holder is not None and holder.blocked
        if holder is not None:
            holder.release(position, messages_left)
        if self._redeliveries:
            self._redeliveries.pop(position, None)  # a consumer that acknowledges part of a batch can process it
        playable = not messages_left and self.selector.acknowledged(position, held=holder is not None)
        if holder is None:
            self._replays.take_out([position])
        if playable or self.blocked or (was_blocked and holder is not None and not holder.blocked):
            self._wake()

    def released_all(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        """Process acknowledgements of whole entries by ``consumer``."""
        was_blocked = consumer.blocked
        held = consumer.release_all(positions)
        if self._redeliveries:
            for position in held:
                self._redeliveries.pop(position, None)
        playable = self.selector.acknowledged_all(held)
        if len(held) < len(positions):
            held_here = set(held)
            for position in positions:
                if position not in held_here:
                    self.released(consumer, position, 0)
        if playable or self.blocked or (was_blocked and not consumer.blocked):
            self._wake()

    def acknowledged_elsewhere(self, parts: Sequence[Position]) -> None:
        """Drop entries that were acknowledged without a consumer; consumers hold less. `pump` follows.

        ``parts`` are batches of which some messages were acknowledged.
        """
        is_acknowledged = self._cursor.is_acknowledged
        replays = [position for position in self.selector.replays() if is_acknowledged(position)]
        for position in replays:
            self.selector.acknowledged(position, held=False)
            self._redeliveries.pop(position, None)
        self._replays.take_out([*replays, *parts])  # parts are read again, with their new masks
        for consumer in self.consumers:
            for position in parts:
                left = self._cursor.waiting_mask(position).bit_count()
                consumer.release(position, min(left, consumer.pending.get(position, 0)))
            held = [position for position in consumer.pending if is_acknowledged(position)]
            if held:
                self.released_all(consumer, held)

    def stats(self) -> dict[str, Any]:
        return self.selector.stats()

    def consumer_stats(self, consumer: Consumer) -> dict[str, Any]:
        return self.selector.consumer_stats(consumer)

    # --- delays

    def honour_delays(self, delayed: DelayedEntries | None) -> None:
        """Turn delays on or off. Waiting entries move to ``delayed``; with None they are sent."""
        before, self.delayed = self.delayed, delayed
        if before is None:
            return
        waiting = before.take_all()
        if delayed is None:
            self.selector.await_turn(position for position, _ in waiting)
            self.pump()
        else:
            for position, deliver_at_ms in waiting:
                delayed.add(position, deliver_at_ms)

    @property
    def _full(self) -> bool:
        return self.delayed is not None and self.delayed.full

    def _dispatch_new(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> int:
        """Dispatch new entries of which some may have to wait for their time; see `_dispatch`."""
        delayed = self.delayed
        late = [] if delayed is None else [(row, at) for row in batch if (at := deliver_at_of(row[1]))]
        if delayed is None or not late:
            return self._dispatch(batch, ready)
        now = self._now_ms()
        waiting = {row[0]: at for row, at in late if at > now}
        rest = [position for position in batch if position[0] not in waiting]
        done = self._dispatch(rest, ready) if rest else 0
        end = len(batch) if done == len(rest) else batch.index(rest[done])
        for delivery in batch[:end]:
            if delivery[0] in waiting:
                delayed.add(delivery[0], waiting[delivery[0]])
        self._put_aside += end - done
        return end

    async def _pump_later(self) -> None:
        self._wake()

    # --- parts

    def _forget_sent(self) -> None:
        """Forget everything that was read, except delayed entries."""
        self._redeliveries.clear()
        self._replays.forget_all()
        self.selector.reset()

    def _start_again(self) -> None:
        self._forget_sent()
        if self.delayed is not None:
            self.delayed.clear()
        self.feed.rewind(self._cursor.mark_delete)

    def _ready(self) -> list[Consumer]:
        if self.blocked:
            self._count_unacknowledged()
        ready = [
            consumer
            for consumer in self.consumers
            if consumer.permits > 0 and not self.blocked and consumer.sink.writable
        ]
        return ready if self.gate is None or not ready or self.gate.room() else []

    def _count_unacknowledged(self) -> None:
        limit, held = self.unacknowledged_max, sum(consumer.unacknowledged for consumer in self.consumers)
        self.blocked = limit > 0 and subscription_blocked(held, limit, before=self.blocked)

    def _give_back(self, consumer: Consumer, positions: list[Position]) -> None:
        positions.sort()
        consumer.give_up(positions)
        replays = self._cursor.unacknowledged_of(positions)
        if len(replays) < len(positions):  # the missing ones expired, or an operator skipped them
            for position in set(positions).difference(replays):
                self.selector.acknowledged(position, held=True)
        self.selector.give_back(replays)

    def _pump_new(self, ready: Sequence[Consumer]) -> bool:
        wanted = self.selector.entries_wanted(ready)
        batch = self.feed.peek(wanted if self.gate is None else min(wanted, self.gate.room()))
        if not batch:
            return False
        done = self._dispatch_new(batch, ready)
        self.feed.consumed(batch, done)
        return done > 0

    def _dispatch(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> int:
        """Send what can be sent; return how many entries from the beginning of the batch are sent or held."""
        if self.gate is not None:
            batch = batch[: self.gate.admitted(batch)]
        selection = self.selector.select(batch, ready)
        self._replays.keep(selection.held)
        self._send(selection.assignments)
        return selection.entry_count

    def _send(self, assignments: Assignments) -> None:
        for consumer, part in assignments:
            consumer.hold(part)
        for consumer, part in assignments:
            consumer.deliver(part)
            if self.gate is not None:
                self.gate.sent(part)
        if self.unacknowledged_max:
            self._count_unacknowledged()

    # --- replays

    def _pump_replays(self, ready: Sequence[Consumer]) -> bool:
        if self._replays.reading:
            return False
        taken = self._replays.take(self.selector.next_replays(ready, READ_ENTRIES_MAX))
        batch = taken if self.gate is None else taken[: self.gate.admitted(taken)]
        if not batch:
            self._replays.keep(taken)
            return False
        selection = self.selector.select_replays(batch, ready)
        if len(taken) > sum(len(part) for _, part in selection.assignments):
            sent = set(map(_position, chain.from_iterable(part for _, part in selection.assignments)))
            self._replays.keep([delivery for delivery in taken if delivery[0] not in sent])
        self._send(selection.assignments)
        return selection.entry_count > 0

    def _forget_replays(self, gone: Collection[Position]) -> None:
        for position in gone:
            self.selector.acknowledged(position, held=False)

    def _deliveries(self, positions: Sequence[Position], entries: Sequence[bytes]) -> list[Delivery]:
        """Return the replays at these positions, which are in order, as deliveries."""
        counts: Iterable[int] = map(self._redeliveries.__getitem__, positions) if self._redeliveries else repeat(0)
        metadata = self._source.entry_metadata
        if not self._cursor.has_parts and metadata.all_ordinary_since(positions[0]):
            rows = zip(positions, entries, counts, repeat(()), repeat(1), strict=False)
            return list(map(_new, repeat(Delivery), rows))
        return list(map(self._delivery, positions, entries, counts))

    def _delivery(self, position: Position, entry: bytes, redelivery_count: int) -> Delivery:
        mask = self._cursor.waiting_mask(position)
        if mask and (waiting := waiting_in(entry, mask)):
            return Delivery(position, entry, redelivery_count, words_of(waiting), waiting.bit_count())
        messages = self._source.entry_metadata.get(position, entry).message_count
        return Delivery(position, entry, redelivery_count, (), messages)
