"""How Shared and Key_Shared subscriptions deal their entries out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from interpulse.broker.live.api import Delivery, KeyRange
from interpulse.broker.live.consumer import Consumer
from interpulse.broker.live.dispatch import KeyRing, check_ranges, message_total, share_out
from interpulse.broker.live.entries import FactsCache, sticky_slot_of
from interpulse.model.ids import Position

__all__ = ["Dealing", "Dealt", "KeySharing", "RoundRobin"]

Parts = list[tuple[Consumer, list[Delivery]]]


class Dealt(NamedTuple):
    """Who gets what, and what nobody can get now though entries behind it were dealt. The rest is out of permits."""

    parts: Parts
    held: list[Delivery]

    @property
    def entry_count(self) -> int:
        """How many entries from the beginning of the batch were decided about."""
        return len(self.held) + sum(len(part) for _, part in self.parts)


class Dealing(Protocol):
    """Decides who gets which entries, and is told what becomes of them."""

    def deal(self, batch: Sequence[Delivery], ready: Sequence[Consumer], *, again: bool) -> Dealt:
        """``again``: these entries come from the replays, and stay there if they are held."""

    def playable(self, position: Position, ready: Sequence[Consumer]) -> bool:
        """Whether one of these could take this replay now, as far as is known without reading it."""

    def joined(self, consumer: Consumer) -> None:
        """Raises ConsumerAssignError if its key ranges are taken."""

    def left(self, consumer: Consumer) -> None: ...

    def given_back(self, position: Position) -> None:
        """The entry went from its consumer to the replays."""

    def acknowledged(self, position: Position, *, held: bool) -> bool:
        """Nobody needs the entry; a consumer ``held`` it, or it was a replay. True if a replay may be playable now."""

    def reset(self) -> None:
        """Every entry is forgotten."""


class RoundRobin:
    """Shared: in turn, lower priority levels first; all chunks of a message go to one consumer."""

    def __init__(self, facts: Callable[[], FactsCache]) -> None:
        self._facts = facts
        self._turn = 0
        self._chunk_owners: dict[str, Consumer] = {}

    def deal(self, batch: Sequence[Delivery], ready: Sequence[Consumer], *, again: bool) -> Dealt:
        budgets = [each.permits for each in ready]
        if not self._has_chunks(batch):
            parts, self._turn = share_out(batch, ready, budgets, self._turn)
            return Dealt(parts, [])
        return Dealt(self._deal_with_chunks(batch, ready, budgets), [])

    def playable(self, position: Position, ready: Sequence[Consumer]) -> bool:
        return True

    def joined(self, consumer: Consumer) -> None:
        """Nothing is kept per consumer but the owners of chunks."""

    def left(self, consumer: Consumer) -> None:
        self._chunk_owners = {uuid: owner for uuid, owner in self._chunk_owners.items() if owner is not consumer}

    def given_back(self, position: Position) -> None:
        """Nothing is kept per entry."""

    def acknowledged(self, position: Position, *, held: bool) -> bool:
        return False

    def reset(self) -> None:
        self._chunk_owners.clear()

    def _has_chunks(self, batch: Sequence[Delivery]) -> bool:
        facts = self._facts()
        if facts.all_ordinary_since(batch[0].position):
            return False
        return any(facts.facts(each.position, each.entry).chunk_uuid for each in batch)

    def _deal_with_chunks(self, batch: Sequence[Delivery], ready: Sequence[Consumer], budgets: list[int]) -> Parts:
        """One entry after the other, until there are no permits for the next."""
        shares: dict[int, tuple[Consumer, list[Delivery]]] = {}
        facts_cache = self._facts()
        for delivery in batch:
            facts = facts_cache.facts(delivery.position, delivery.entry)
            owner = self._chunk_owners.get(facts.chunk_uuid) if facts.chunk_uuid else None
            if owner is None:
                parts, self._turn = share_out([delivery], ready, budgets, self._turn)
                if not parts:
                    break
                owner = parts[0][0]
            if facts.last_chunk:
                self._chunk_owners.pop(facts.chunk_uuid, None)
            elif facts.chunk_uuid:
                self._chunk_owners[facts.chunk_uuid] = owner
            shares.setdefault(id(owner), (owner, []))[1].append(delivery)
        return list(shares.values())


class KeySharing:
    """Key_Shared: each key goes to one consumer at a time, in order.

    While a consumer holds unacknowledged entries of a key, nobody else gets that key, also when the ring says so since
    somebody joined or left; the entries of the key are held until it has acknowledged them, or left.
    """

    def __init__(self) -> None:
        self._consumers: dict[str, Consumer] = {}
        self._ring = KeyRing((), {})
        self._slots: dict[Position, int] = {}
        """Of every entry that a consumer holds or that is held."""
        self._holders: dict[int, tuple[Consumer, int]] = {}
        """Per slot: who has unacknowledged entries, and how many."""
        self._held: Counter[int] = Counter()
        """Per slot: how many entries are among the replays."""

    def deal(self, batch: Sequence[Delivery], ready: Sequence[Consumer], *, again: bool) -> Dealt:
        budgets = {id(each): each.permits for each in ready}
        shares: dict[int, tuple[Consumer, list[Delivery]]] = {}
        held: list[Delivery] = []
        blocked: set[int] = set()
        for delivery in batch:
            slot = self._slot(delivery)
            taker = None if slot in blocked or (not again and self._held[slot]) else self._taker(slot, budgets)
            if taker is None:
                blocked.add(slot)
                held.append(delivery)
                if not again:
                    self._held[slot] += 1
                continue
            budgets[id(taker)] -= message_total([delivery])
            shares.setdefault(id(taker), (taker, []))[1].append(delivery)
            self._holders[slot] = (taker, self._holders.get(slot, (taker, 0))[1] + 1)
            if again:
                self._unhold(slot)
        return Dealt(list(shares.values()), held)

    def playable(self, position: Position, ready: Sequence[Consumer]) -> bool:
        slot = self._slots.get(position)
        return slot is None or self._taker(slot, None) in ready

    def joined(self, consumer: Consumer) -> None:
        taken = [each for other in self._consumers.values() for each in _ranges(other)]
        check_ranges(_ranges(consumer), taken)
        label, number = consumer.name, 0
        while label in self._consumers:
            number += 1
            label = f"{consumer.name}~{number}"
        self._consumers[label] = consumer
        self._build_ring()

    def left(self, consumer: Consumer) -> None:
        self._consumers = {label: each for label, each in self._consumers.items() if each is not consumer}
        self._build_ring()

    def given_back(self, position: Position) -> None:
        slot = self._slots.get(position)
        if slot is not None:
            self._held[slot] += 1
            self._release(slot)

    def acknowledged(self, position: Position, *, held: bool) -> bool:
        slot = self._slots.pop(position, None)
        if slot is None:
            return False
        if held:
            self._release(slot)
        else:
            self._unhold(slot)
        return slot not in self._holders and self._held[slot] > 0

    def reset(self) -> None:
        self._slots.clear()
        self._holders.clear()
        self._held.clear()

    def _slot(self, delivery: Delivery) -> int:
        slot = self._slots.get(delivery.position)
        if slot is None:
            slot = self._slots[delivery.position] = sticky_slot_of(delivery.entry)
        return slot

    def _taker(self, slot: int, budgets: dict[int, int] | None) -> Consumer | None:
        """Who may get an entry of this slot now."""
        owner = self._consumers.get(self._ring.owner(slot) or "")
        holder = self._holders.get(slot)
        if owner is None or (holder is not None and holder[0] is not owner):
            return None
        permits = owner.permits if budgets is None else budgets.get(id(owner), 0)
        return owner if permits > 0 else None

    def _release(self, slot: int) -> None:
        holder = self._holders.get(slot)
        if holder is None:
            return
        if holder[1] <= 1:
            del self._holders[slot]
        else:
            self._holders[slot] = (holder[0], holder[1] - 1)

    def _unhold(self, slot: int) -> None:
        if self._held[slot] <= 1:
            del self._held[slot]
        else:
            self._held[slot] -= 1

    def _build_ring(self) -> None:
        sticky = {label: _ranges(each) for label, each in self._consumers.items() if _ranges(each)}
        self._ring = KeyRing((label for label in self._consumers if label not in sticky), sticky)


def _ranges(consumer: Consumer) -> tuple[KeyRange, ...]:
    return consumer.request.key_sharing.sticky_ranges
