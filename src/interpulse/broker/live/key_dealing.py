"""Key_Shared: each key goes to one consumer at a time, in order. Pure but for the consumers it names.

A key is known by its slot. Invariants, unless the subscription allows any order:

* all unacknowledged entries of a slot are with one consumer, its *holder*;
* entries go to the slot's owner only, the consumer that the ring of keys names;
* a slot whose holder is not its owner, because somebody joined or left, is *draining*: nobody gets anything of it until
  its holder has acknowledged or given back what it has (PIP-379);
* while entries of a slot wait among the replays, new ones of it wait behind them.

Replays lie in one lane per owner, so that one which cannot take more costs the others nothing; those of a draining slot
are parked beside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.consumer import Consumer
from interpulse.broker.live.dealing import Dealt
from interpulse.broker.live.entries import sticky_slot_of
from interpulse.broker.live.key_owners import KeyOwners
from interpulse.broker.live.replays import Replays
from interpulse.model.ids import Position

__all__ = ["KeyDealing"]


class KeyDealing:
    """See the module."""

    def __init__(self, *, ordered: bool = True) -> None:
        """Not ``ordered``: the owner of a slot gets its entries whatever others still hold of it."""
        self._ordered = ordered
        self._owners = KeyOwners()
        self._owner = self._owners.owner
        self._slots: dict[Position, int] = {}
        """Of every entry that a consumer holds, or that waits and was seen."""
        self._holders: dict[int, tuple[Consumer, int]] = {}
        """Per slot: who has unacknowledged entries, and how many."""
        self._draining: dict[int, int] = {}
        """Per draining slot: how many times an entry of it was turned away."""
        self._drained: Counter[Consumer] = Counter()
        """Per consumer: how many of its slots have been drained."""
        self._held: Counter[int] = Counter()
        """Per slot: how many entries are among the replays."""
        self._held_total = 0
        self._lanes: dict[Consumer | None, Replays] = {}
        self._parked: dict[int, Replays] = {}
        self._unseen = Replays()
        """Replays whose key is not known before they are read."""

    # --- entries

    @property
    def waiting(self) -> int:
        return self._held_total + len(self._unseen)

    def deal(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> Dealt:
        budgets = {each: each.permits for each in ready}
        shares: dict[Consumer, list[Delivery]] = {}
        held: list[Delivery] = []
        for delivery in batch:
            slot = self._slots[delivery[0]] = sticky_slot_of(delivery[1])
            behind = self._ordered and slot in self._held
            taker = None if behind else self._taker(slot, budgets)
            if taker is None:
                self._hold(delivery[0], slot)
                held.append(delivery)
            else:
                self._hand_over(delivery, slot, taker, budgets)
                shares.setdefault(taker, []).append(delivery)
        return Dealt(list(shares.items()), held)

    def deal_again(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> Dealt:
        budgets = {each: each.permits for each in ready}
        shares: dict[Consumer, list[Delivery]] = {}
        filed: list[Delivery] = []
        for delivery in batch:
            position = delivery[0]
            slot = self._slots.get(position)
            unseen = slot is None
            if slot is None:
                slot = self._file(delivery)
            taker = self._taker(slot, budgets)
            if taker is not None:
                self._unhold(position, slot)
                self._hand_over(delivery, slot, taker, budgets)
                shares.setdefault(taker, []).append(delivery)
            elif unseen:
                filed.append(delivery)
        return Dealt(list(shares.items()), filed)

    def next_replays(self, ready: Sequence[Consumer], entries_max: int) -> list[Position]:
        wanted = self._unseen.first(entries_max)
        for consumer in ready:
            lane = self._lanes.get(consumer)
            if lane:
                wanted += lane.first(min(consumer.permits, entries_max))
        wanted.sort()
        return wanted[:entries_max]

    def await_turn(self, positions: Iterable[Position]) -> None:
        self._unseen.add_all(positions)

    def give_back(self, positions: Sequence[Position]) -> None:
        for position in positions:
            slot = self._slots.get(position)
            if slot is None:
                self._unseen.add(position)
            else:
                self._release(slot)
                self._hold(position, slot)

    def acknowledged(self, position: Position, *, held: bool) -> bool:
        slot = self._slots.pop(position, None)
        if slot is None:
            self._unseen.discard(position)
            return False
        if held:
            return self._release(slot) and slot in self._held
        self._unhold(position, slot)
        return False

    def forget_upto(self, position: Position) -> None:
        self._unseen.pop_upto(position)
        for lane in [*self._lanes.values(), *self._parked.values()]:
            for each in lane.pop_upto(position):
                self._count_out(self._slots.pop(each))

    def reset(self) -> None:
        for state in (self._slots, self._holders, self._draining, self._held, self._lanes, self._parked, self._unseen):
            state.clear()
        self._held_total = 0

    # --- consumers

    def joined(self, consumer: Consumer) -> None:
        self._owners.join(consumer)
        self._regroup()

    def left(self, consumer: Consumer) -> None:
        self._owners.leave(consumer)
        self._drained.pop(consumer, None)
        self._regroup()

    def _regroup(self) -> None:
        """Slots have other owners now."""
        if self._ordered:
            before = self._draining
            self._draining = {
                slot: before.get(slot, 0)
                for slot, (holder, _) in self._holders.items()
                if self._owner(slot) is not holder
            }
        waiting = sorted(each for lane in (*self._lanes.values(), *self._parked.values()) for each in lane)
        self._lanes.clear()
        self._parked.clear()
        for position in waiting:
            self._lane(self._slots[position]).add(position)

    # --- statistics

    def stats(self) -> dict[str, Any]:
        return {
            "allowOutOfOrderDelivery": not self._ordered,
            "keySharedMode": self._owners.mode,
            "drainingHashesCount": len(self._draining),
            "drainingHashesClearedTotal": self._drained.total(),
            "drainingHashesUnackedMessages": sum(self._holders[slot][1] for slot in self._draining),
        }

    def consumer_stats(self, consumer: Consumer) -> dict[str, Any]:
        draining = [
            {"hash": slot, "unackMsgs": self._holders[slot][1], "blockedAttempts": attempts}
            for slot, attempts in sorted(self._draining.items())
            if self._holders[slot][0] is consumer
        ]
        return {
            "drainingHashesCount": len(draining),
            "drainingHashesClearedTotal": self._drained[consumer],
            "drainingHashesUnackedMessages": sum(each["unackMsgs"] for each in draining),
            "drainingHashes": draining,
            "keyHashRangeArrays": [list(each) for each in self._owners.ranges_of(consumer)],
        }

    # --- parts

    def _taker(self, slot: int, budgets: dict[Consumer, int]) -> Consumer | None:
        """Who may get an entry of this slot now."""
        if slot in self._draining:
            self._draining[slot] += 1
            return None
        owner = self._owner(slot)
        return owner if owner is not None and budgets.get(owner, 0) > 0 else None

    def _hand_over(self, delivery: Delivery, slot: int, taker: Consumer, budgets: dict[Consumer, int]) -> None:
        budgets[taker] -= delivery[4]
        holder = self._holders.get(slot)
        self._holders[slot] = (taker, 1 if holder is None else holder[1] + 1)

    def _release(self, slot: int) -> bool:
        """One entry less is with the slot's holder; True if that ended its draining."""
        holder, count = self._holders[slot]
        if count > 1:
            self._holders[slot] = (holder, count - 1)
            return False
        del self._holders[slot]
        if slot not in self._draining:
            return False
        del self._draining[slot]
        if holder in self._owners:
            self._drained[holder] += 1
        parked = self._parked.pop(slot, None)
        if parked:
            self._lane(slot).add_all(parked)
        return True

    def _lane(self, slot: int) -> Replays:
        """Where replays of this slot lie."""
        if slot in self._draining:
            return self._parked.setdefault(slot, Replays())
        return self._lanes.setdefault(self._owner(slot), Replays())

    def _file(self, delivery: Delivery) -> int:
        """A replay was read for the first time: it goes to the others of its slot."""
        slot = self._slots[delivery[0]] = sticky_slot_of(delivery[1])
        self._unseen.discard(delivery[0])
        self._hold(delivery[0], slot)
        return slot

    def _hold(self, position: Position, slot: int) -> None:
        self._held[slot] += 1
        self._held_total += 1
        self._lane(slot).add(position)

    def _unhold(self, position: Position, slot: int) -> None:
        self._lane(slot).discard(position)
        self._count_out(slot)

    def _count_out(self, slot: int) -> None:
        self._held_total -= 1
        if self._held[slot] <= 1:
            del self._held[slot]
        else:
            self._held[slot] -= 1
