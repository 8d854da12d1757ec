"""The consumer selector of Key_Shared: each key goes to one consumer at a time, in order.

A key is known by its slot. Invariants, unless the subscription allows any order:

* all unacknowledged entries of a slot are with one consumer, its *holder*;
* entries go to the slot's owner only, the consumer that the hash ring names;
* a slot whose holder is not its owner, because a consumer joined or left, is *draining*: no consumer gets anything of
  it until its holder has acknowledged or given back what it has (PIP-379);
* while entries of a slot wait among the replays, new ones of it wait behind them.

Replays wait in one queue per owner, so that an owner without permits costs the others nothing; those of a draining slot
wait apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.dispatch.consumer_selector import Assignments, Selection
from interpulse.broker.live.dispatch.replays import Replays
from interpulse.broker.live.dispatch.sticky_keys import StickyKeys
from interpulse.broker.live.entry_metadata import sticky_slot_of
from interpulse.model.ids import Position

__all__ = ["KeySelector"]


class _Slot:
    """A slot of which a consumer holds entries, or entries wait."""

    __slots__ = ("holder", "number", "out", "owner", "replays", "waiting")

    def __init__(self, number: int, owner: Consumer | None, replays: Replays) -> None:
        self.number = number
        self.owner = owner
        self.holder: Consumer | None = None
        """Who has its unacknowledged entries; None while there are none, so that no consumer that left is kept."""
        self.out = 0
        """How many these are."""
        self.replays = replays
        """Where its replays lie."""
        self.waiting = 0
        """How many these are."""


class KeySelector:
    """See the module."""

    def __init__(self, *, ordered: bool = True) -> None:
        """Not ``ordered``: the owner of a slot gets its entries whatever others still hold of it."""
        self._ordered = ordered
        self._sticky_keys = StickyKeys()
        self._slots: dict[int, _Slot] = {}
        self._slot_of: dict[Position, _Slot] = {}
        """Of every entry that a consumer holds, or that waits and was seen."""
        self._draining: dict[_Slot, int] = {}
        """With how many times an entry of it was refused since then."""
        self._drained: Counter[Consumer] = Counter()
        """Per consumer: how many of its slots have been drained."""
        self._waiting = 0
        """How many entries are among the replays and were seen."""
        self._queues: dict[Consumer | None, Replays] = {}
        """Per owner: what waits of its slots, without those that are draining."""
        self._unseen = Replays()
        """Replays whose key is not known before they are read."""

    # --- entries

    @property
    def waiting(self) -> int:
        return self._waiting + len(self._unseen)

    def select(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> Selection:
        budgets: dict[Consumer | None, int] = {each: each.permits for each in ready}
        shares: dict[Consumer | None, list[Delivery]] = {each: [] for each in ready}
        held: list[Delivery] = []
        slots, slot_of = self._slots, self._slot_of
        for delivery in batch:
            number = sticky_slot_of(delivery.entry)
            slot = slots.get(number) or self._new_slot(number)
            slot_of[delivery.position] = slot
            if (slot.waiting and self._ordered) or not self._takes(slot, delivery, budgets):
                slot.waiting += 1
                slot.replays.add(delivery.position)
                held.append(delivery)
            else:
                shares[slot.owner].append(delivery)
        self._waiting += len(held)
        return Selection(_parts(shares), held)

    def select_replays(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> Selection:
        budgets: dict[Consumer | None, int] = {each: each.permits for each in ready}
        shares: dict[Consumer | None, list[Delivery]] = {each: [] for each in ready}
        filed: list[Delivery] = []
        slot_of = self._slot_of
        for delivery in batch:
            slot = slot_of.get(delivery.position)
            unseen = slot is None
            if slot is None:
                slot = self._file(delivery)
            if self._takes(slot, delivery, budgets):
                slot.waiting -= 1
                shares[slot.owner].append(delivery)
            elif unseen:
                filed.append(delivery)
        assignments = _parts(shares)
        for taker, part in assignments:
            self._waiting -= len(part)
            self._queues[taker].discard_all([delivery.position for delivery in part])
        return Selection(assignments, filed)

    def next_replays(self, ready: Sequence[Consumer], entries_max: int) -> list[Position]:
        wanted = self._unseen.first(entries_max)
        for consumer in ready:
            queue = self._queues.get(consumer)
            if queue:
                wanted += queue.first(min(consumer.permits, entries_max))
        wanted.sort()
        return wanted[:entries_max]

    def await_turn(self, positions: Iterable[Position]) -> None:
        self._unseen.add_all(positions)

    def give_back(self, positions: Sequence[Position]) -> None:
        for position in positions:
            slot = self._slot_of.get(position)
            if slot is None:
                self._unseen.add(position)
            else:
                self._hold(position, slot)
                self._release(slot)

    def acknowledged(self, position: Position, *, held: bool) -> bool:
        slot = self._slot_of.pop(position, None)
        if slot is None:
            self._unseen.discard(position)
            return False
        if held:
            return self._release(slot) and slot.waiting > 0
        slot.replays.discard(position)
        self._count_out(slot)
        return False

    def acknowledged_all(self, positions: Iterable[Position]) -> bool:
        pop, playable = self._slot_of.pop, False
        for position in positions:
            slot = pop(position, None)
            if slot is not None and self._release(slot) and slot.waiting:
                playable = True
        return playable

    def forget_upto(self, position: Position) -> None:
        self._unseen.pop_upto(position)
        for queue in self._all_queues():
            for each in queue.pop_upto(position):
                self._count_out(self._slot_of.pop(each))

    def reset(self) -> None:
        for state in (self._slots, self._slot_of, self._draining, self._queues, self._unseen):
            state.clear()
        self._waiting = 0

    # --- consumers

    def joined(self, consumer: Consumer) -> None:
        self._sticky_keys.join(consumer)
        self._regroup()

    def left(self, consumer: Consumer) -> None:
        self._sticky_keys.leave(consumer)
        self._drained.pop(consumer, None)
        self._regroup()

    def _regroup(self) -> None:
        """Slots have other owners now."""
        waiting = sorted(chain.from_iterable(self._all_queues()))
        self._queues.clear()
        attempts, self._draining = self._draining, {}
        for slot in self._slots.values():
            slot.owner = self._sticky_keys.owner(slot.number)
            if self._ordered and slot.out and slot.holder is not slot.owner:
                self._draining[slot] = attempts.get(slot, 0)
                slot.replays = Replays()
            else:
                slot.replays = self._queue(slot.owner)
        for position in waiting:
            self._slot_of[position].replays.add(position)

    # --- statistics

    def stats(self) -> dict[str, Any]:
        return {
            "allowOutOfOrderDelivery": not self._ordered,
            "keySharedMode": self._sticky_keys.mode,
            "drainingHashesCount": len(self._draining),
            "drainingHashesClearedTotal": self._drained.total(),
            "drainingHashesUnackedMessages": sum(slot.out for slot in self._draining),
        }

    def consumer_stats(self, consumer: Consumer) -> dict[str, Any]:
        mine = sorted((slot for slot in self._draining if slot.holder is consumer), key=attrgetter("number"))
        draining = [
            {"hash": slot.number, "unackMsgs": slot.out, "blockedAttempts": self._draining[slot]} for slot in mine
        ]
        return {
            "drainingHashesCount": len(draining),
            "drainingHashesClearedTotal": self._drained[consumer],
            "drainingHashesUnackedMessages": sum(slot.out for slot in mine),
            "drainingHashes": draining,
            "keyHashRangeArrays": [list(each) for each in self._sticky_keys.ranges_of(consumer)],
        }

    # --- parts

    def _new_slot(self, number: int) -> _Slot:
        owner = self._sticky_keys.owner(number)
        slot = self._slots[number] = _Slot(number, owner, self._queue(owner))
        return slot

    def _takes(self, slot: _Slot, delivery: Delivery, budgets: dict[Consumer | None, int]) -> bool:
        """Whether the owner of this slot can take an entry of it now: then it is charged, and holds the entry."""
        if slot in self._draining:
            self._draining[slot] += 1
            return False
        owner = slot.owner
        if budgets.get(owner, 0) <= 0:
            return False
        budgets[owner] -= delivery.message_count
        slot.holder = owner
        slot.out += 1
        return True

    def _release(self, slot: _Slot) -> bool:
        """One entry less is with the slot's holder; True if that ended its draining."""
        slot.out -= 1
        if slot.out:
            return False
        holder, slot.holder = slot.holder, None
        if slot not in self._draining:
            self._forget_unused(slot)
            return False
        del self._draining[slot]
        if holder is not None and holder in self._sticky_keys:
            self._drained[holder] += 1
        parked, slot.replays = slot.replays, self._queue(slot.owner)
        slot.replays.add_all(parked)
        self._forget_unused(slot)
        return True

    def _queue(self, owner: Consumer | None) -> Replays:
        queue = self._queues.get(owner)
        if queue is None:
            queue = self._queues[owner] = Replays()
        return queue

    def _all_queues(self) -> list[Replays]:
        return [*self._queues.values(), *(slot.replays for slot in self._draining)]

    def _file(self, delivery: Delivery) -> _Slot:
        """A replay was read for the first time: it goes to the others of its slot."""
        number = sticky_slot_of(delivery.entry)
        slot = self._slot_of[delivery.position] = self._slots.get(number) or self._new_slot(number)
        self._unseen.discard(delivery.position)
        self._hold(delivery.position, slot)
        return slot

    def _hold(self, position: Position, slot: _Slot) -> None:
        slot.waiting += 1
        self._waiting += 1
        slot.replays.add(position)

    def _count_out(self, slot: _Slot) -> None:
        """One entry less waits."""
        slot.waiting -= 1
        self._waiting -= 1
        self._forget_unused(slot)

    def _forget_unused(self, slot: _Slot) -> None:
        if not slot.waiting and not slot.out:
            del self._slots[slot.number]


def _parts(shares: dict[Consumer | None, list[Delivery]]) -> Assignments:
    return [(taker, part) for taker, part in shares.items() if taker is not None and part]
