"""The consumer selector of Key_Shared: each key goes to one consumer at a time, in order.

A key is identified by its slot. Invariants, unless the subscription allows any order:

* one consumer, the *holder*, has all unacknowledged entries of a slot;
* entries go to the slot's owner only, the consumer that the hash ring names;
* a slot whose holder is not its owner, because a consumer joined or left, is *draining*: no consumer gets its entries
until its holder has acknowledged or returned the ones it has (PIP-379);
* while replays wait for an owner, new entries of its slots wait behind them.

Only draining slots have a record: until then a slot's holder is its owner. Replays wait in one queue per owner, so that
an owner without permits does not slow the others; those of a draining slot wait separately.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch.consumer import Consumer, covered_by
from interpulse.broker.live.dispatch.consumer_selector import Assignments, Replays, Selection
from interpulse.broker.live.dispatch.sticky_keys import SeenSlots, StickyKeys
from interpulse.broker.live.entry_metadata import sticky_slots_of
from interpulse.model.ids import Position

_position, _entry = itemgetter(0), itemgetter(1)
T = TypeVar("T")


class _Holding(NamedTuple):
    """The entries that a consumer holds of a slot."""

    holder: Consumer | None
    entry_count: int


class _DrainingSlot:
    """A slot whose entries are held by an earlier owner."""

    __slots__ = ("blocked", "holder", "number", "out", "replays")

    def __init__(self, number: int, held: _Holding, blocked: int) -> None:
        self.number = number
        self.holder, self.out = held
        """The holder, and the number of its entries."""
        self.blocked = blocked
        """The number of entries refused since the slot began to drain."""
        self.replays = Replays()


class KeySelector:
    """The selector for Key_Shared subscriptions."""

    def __init__(self, *, ordered: bool) -> None:
        """Without ``ordered``, the owner of a slot gets its entries even if other consumers hold some of it."""
        self._ordered = ordered
        self._sticky_keys = StickyKeys()
        self._slots = SeenSlots()
        """Slots of all held entries, of seen replays, and of some acknowledged entries."""
        self._draining: dict[int, _DrainingSlot] = {}
        self._drained: Counter[Consumer] = Counter()
        """The number of drained slots, per consumer."""
        self._waiting = 0
        """The number of seen replays."""
        self._queues: defaultdict[Consumer | None, Replays] = defaultdict(Replays)
        """Replays of slots that are not draining, per owner."""
        self._unseen = Replays()
        """Replays whose key is unknown until they are read."""

    # --- entries

    @property
    def waiting(self) -> int:
        return self._waiting + len(self._unseen)

    def replays(self) -> list[Position]:
        """Return the entries that wait to be sent again, or for their key."""
        return list(chain(self._unseen, *self._all_queues()))

    def entries_wanted(self, ready: Sequence[Consumer]) -> int:
        """Return how many new entries to read. Each consumer gets only its share: fewer receivers need more of them."""
        return sum(consumer.permits for consumer in ready) * len(self._sticky_keys.consumers) // len(ready)

    def select(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> Selection:
        """Select consumers for entries from the log; held ones become replays."""
        budgets: dict[Consumer | None, int] = {consumer: consumer.permits for consumer in ready}
        assignments: Assignments = []
        held: list[Delivery] = []
        for owner, part in self._seen(batch, held).items():
            queue = self._queues[owner]
            count = 0 if queue and self._ordered else covered_by(part, budgets.get(owner, 0))
            if count and owner is not None:
                assignments.append((owner, part[:count]))
            if count < len(part):
                rest = part[count:]
                queue.add_all(list(map(_position, rest)))
                self._waiting += len(rest)
                held += rest
        return Selection(assignments, held)

    def select_replays(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> Selection:
        """Select consumers for replays, which then leave; ``held`` ones were read and stay."""
        budgets: dict[Consumer | None, int] = {consumer: consumer.permits for consumer in ready}
        assignments: Assignments = []
        filed = self._file_unseen(batch) if self._unseen else []
        if filed and self._draining:
            batch = [delivery for delivery in batch if self._slots.of(delivery.position) not in self._draining]
        able = [consumer for consumer in ready if self._queues.get(consumer)]
        parts: Mapping[Consumer | None, Sequence[Delivery]]
        if not filed and len(able) == 1:  # usually one consumer has new permits, and owns all replays
            parts = {able[0]: batch}
        else:
            parts = self._dealt(self._slots.of_all(map(_position, batch)), batch)
        for owner, part in parts.items():
            count = covered_by(part, budgets.get(owner, 0))
            if count and owner is not None:
                assignments.append((owner, list(part[:count])))
                self._queues[owner].discard_all(list(map(_position, part[:count])))
                self._waiting -= count
        if filed:
            taken = set(map(_position, chain.from_iterable(part for _, part in assignments)))
            filed = [delivery for delivery in filed if delivery.position not in taken]
        return Selection(assignments, filed)

    def next_replays(self, ready: Sequence[Consumer], entries_max: int) -> list[Position]:
        """Return the next replays that these receivers may be able to take, oldest first."""
        wanted = self._unseen.first(entries_max)
        for consumer in ready:
            queue = self._queues.get(consumer)
            if queue:
                wanted += queue.first(min(consumer.permits, entries_max))
        wanted.sort()
        return wanted[:entries_max]

    def await_turn(self, positions: Iterable[Position]) -> None:
        """Add entries that no consumer had yet to the replays."""
        self._unseen.add_all(sorted(positions))

    def give_back(self, positions: Sequence[Position]) -> None:
        """Move entries, in order, from their consumer to the replays."""
        slots = self._slots.of_all(positions)
        self._queue(slots, positions)
        if self._draining:
            self._release(slots)

    def acknowledged(self, position: Position, *, held: bool) -> bool:
        """Drop an entry that a consumer ``held``, or a possible replay. Return True if a replay may be sent now."""
        slot = self._slots.of(position)
        if not slot:
            self._unseen.discard(position)
            return False
        if held:
            return self._release([slot])
        draining = self._draining.get(slot)
        queue = self._queues[self._sticky_keys.owner(slot)] if draining is None else draining.replays
        self._waiting -= queue.discard(position)
        return False

    def acknowledged_all(self, positions: Iterable[Position]) -> bool:
        return bool(self._draining) and self._release(self._slots.of_all(positions))

    def forget_upto(self, position: Position) -> None:
        self._unseen.pop_upto(position)
        for queue in self._all_queues():
            self._waiting -= len(queue.pop_upto(position))

    def reset(self) -> None:
        for state in (self._slots, self._draining, self._queues, self._unseen):
            state.clear()
        self._waiting = 0

    # --- consumers

    def joined(self, consumer: Consumer) -> None:
        """Add a consumer. Raise ConsumerAssignError if its key ranges are taken."""
        held = self._held()
        self._sticky_keys.join(consumer)
        self._regroup(held)

    def left(self, consumer: Consumer) -> None:
        """Remove a consumer. The caller then returns the entries that it holds."""
        held = self._held()
        self._sticky_keys.leave(consumer)
        self._drained.pop(consumer, None)
        self._regroup(held)

    def _held(self) -> dict[int, _Holding]:
        """Count the held entries per slot and holder, unless order does not matter."""
        if not self._ordered:
            return {}
        out = Counter(self._slots.of_all(self._held_positions()))
        holdings = dict(zip(out, map(_Holding, self._sticky_keys.owners(out), out.values()), strict=True))
        return holdings | {slot.number: _Holding(slot.holder, slot.out) for slot in self._draining.values()}

    def _regroup(self, held: Mapping[int, _Holding]) -> None:
        """Reassign slots after the owners changed."""
        waiting = sorted(chain.from_iterable(self._all_queues()))
        before, self._draining = self._draining, {}
        self._queues.clear()
        self._waiting = 0
        for (number, holding), owner in zip(held.items(), self._sticky_keys.owners(held), strict=True):
            if holding.holder is not owner:
                blocked = before[number].blocked if number in before else 0
                self._draining[number] = _DrainingSlot(number, holding, blocked)
        self._queue(self._slots.of_all(waiting), waiting)

    # --- statistics

    def stats(self) -> dict[str, Any]:
        return {
            "allowOutOfOrderDelivery": not self._ordered,
            "keySharedMode": self._sticky_keys.mode,
            "drainingHashesCount": len(self._draining),
            "drainingHashesClearedTotal": self._drained.total(),
            "drainingHashesUnackedMessages": sum(slot.out for slot in self._draining.values()),
        }

    def consumer_stats(self, consumer: Consumer) -> dict[str, Any]:
        mine = [slot for slot in self._draining.values() if slot.holder is consumer]
        draining = [
            {"hash": slot.number, "unackMsgs": slot.out, "blockedAttempts": slot.blocked}
            for slot in sorted(mine, key=attrgetter("number"))
        ]
        return {
            "drainingHashesCount": len(draining),
            "drainingHashesClearedTotal": self._drained[consumer],
            "drainingHashesUnackedMessages": sum(slot.out for slot in mine),
            "drainingHashes": draining,
            "keyHashRangeArrays": [list(key_range) for key_range in self._sticky_keys.ranges_of(consumer)],
        }

    # --- parts

    def _seen(self, batch: Sequence[Delivery], blocked: list[Delivery]) -> dict[Consumer | None, list[Delivery]]:
        """Group new entries by the owners of their slots. Entries of draining slots wait, and go to ``blocked``."""
        slots: Sequence[int] = sticky_slots_of(list(map(_entry, batch)))
        if self._slots.full:
            self._slots.keep_only(chain(self._held_positions(), *self._all_queues()))
        self._slots.note(list(map(_position, batch)), slots)
        if self._draining and not self._draining.keys().isdisjoint(slots):
            free = [slot not in self._draining for slot in slots]
            blocked += [delivery for delivery, is_free in zip(batch, free, strict=True) if not is_free]
            for delivery in blocked:  # only the first one of each slot counts as refused
                draining = self._draining[self._slots.of(delivery.position)]
                draining.blocked += not draining.replays
                draining.replays.add(delivery.position)
            self._waiting += len(blocked)
            batch, slots = list(compress(batch, free)), list(compress(slots, free))
        return self._dealt(slots, batch)

    def _file_unseen(self, batch: Sequence[Delivery]) -> list[Delivery]:
        """Move replays that were read for the first time to the queues of their owners."""
        filed = [delivery for delivery in batch if not self._slots.of(delivery.position)]
        self._unseen.discard_all(list(map(_position, filed)))
        for owner, part in self._seen(filed, []).items():
            self._queues[owner].add_all(list(map(_position, part)))
            self._waiting += len(part)
        return filed

    def _queue(self, slots: Iterable[int], positions: Sequence[Position]) -> None:
        """Queue entries of these slots, which are in order."""
        self._waiting += len(positions)
        if self._draining:
            free = []
            for slot, position in zip(slots, positions, strict=True):
                if slot in self._draining:
                    self._draining[slot].replays.add(position)
                else:
                    free.append(position)
            slots, positions = self._slots.of_all(free), free
        for owner, part in self._dealt(slots, positions).items():
            self._queues[owner].add_all(part)

    def _dealt(self, slots: Iterable[int], rows: Iterable[T]) -> dict[Consumer | None, list[T]]:
        dealt: defaultdict[Consumer | None, list[T]] = defaultdict(list)
        for owner, row in zip(self._sticky_keys.owners(slots), rows, strict=True):
            dealt[owner].append(row)
        return dealt

    def _release(self, slots: Iterable[int]) -> bool:
        """Remove one entry of each slot from its holder; return True if entries wait that may go now."""
        playable = False
        for number in slots:
            slot = self._draining.get(number)
            if slot is not None:
                slot.out -= 1
                if not slot.out:
                    del self._draining[number]
                    if slot.holder is not None and slot.holder in self._sticky_keys:
                        self._drained[slot.holder] += 1
                    self._queues[self._sticky_keys.owner(number)].add_all(list(slot.replays))
                    playable |= bool(slot.replays)
        return playable

    def _held_positions(self) -> Iterator[Position]:
        return chain.from_iterable(consumer.pending for consumer in self._sticky_keys.consumers)

    def _all_queues(self) -> list[Replays]:
        return [*self._queues.values(), *(slot.replays for slot in self._draining.values())]
