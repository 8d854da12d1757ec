"""Who gets which entries. Pure: it counts permits and names receivers, and sends nothing.

One permit is one message. An entry goes to a receiver that has at least one permit left, so a batch may overdraw.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Protocol, TypeVar

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.requests import KeyRange, KeySharing
from interpulse.model.errors import ConsumerAssignError
from interpulse.wire.hashing import STICKY_SLOTS, murmur3_hash

__all__ = [
    "KeyRing",
    "Receiver",
    "check_ranges",
    "choose_active",
    "covered_by",
    "message_total",
    "overlapping",
    "share_out",
    "sticky_sharing",
    "within",
]

TURN_ENTRIES_MAX = 20
"""Entries a receiver gets before it is the next one's turn (dispatcherMaxRoundRobinBatchSize)."""

_POINTS_PER_RECEIVER = 100
"""Points of a receiver on the ring of keys (subscriptionKeySharedConsistentHashingReplicaPoints)."""

_message_count = itemgetter(4)


class Receiver(Protocol):
    """What the choice looks at."""

    @property
    def name(self) -> str: ...

    @property
    def permits(self) -> int: ...

    @property
    def priority_level(self) -> int: ...


R = TypeVar("R", bound=Receiver)


def message_total(batch: Iterable[Delivery]) -> int:
    """How many permits these entries cost together."""
    return sum(map(_message_count, batch))


def covered_by(batch: Sequence[Delivery], permits: int) -> int:
    """How many entries from the beginning of ``batch`` may be sent for ``permits``; the last may overdraw."""
    if permits <= 0:
        return 0
    if message_total(batch) <= permits:
        return len(batch)
    for number, delivery in enumerate(batch, 1):
        permits -= delivery.message_count
        if permits <= 0:
            return number
    return len(batch)


def choose_active(receivers: Sequence[R], topic: str, partition_index: int) -> R | None:
    """The one that gets the entries of a Failover subscription.

    Among the lowest priority level, the partitions of a topic are dealt out in the order of consumer names. For a
    topic without partitions the choice depends on the topic's name, so that many topics spread over the consumers, and
    it changes only when the chosen one leaves or a newcomer outbids it.
    """
    if not receivers:
        return None
    level = min(map(attrgetter("priority_level"), receivers))
    candidates = sorted((each for each in receivers if each.priority_level == level), key=attrgetter("name"))
    if partition_index >= 0:
        return candidates[partition_index % len(candidates)]
    return max(candidates, key=lambda each: murmur3_hash(f"{each.name}@{topic}".encode()))


def share_out(
    batch: Sequence[Delivery], receivers: Sequence[R], budgets: list[int], turn: int
) -> tuple[list[tuple[R, list[Delivery]]], int]:
    """Deal entries out among receivers, lowest priority level first, some entries each in turn.

    ``budgets`` are the permits of each receiver; they are charged. Gives the parts, and the turn to begin the next
    round with. What nobody has permits for is in no part; it is always the end of the batch.
    """
    parts: list[list[Delivery]] = [[] for _ in receivers]
    done = 0
    while done < len(batch):
        index = _next_in_turn(receivers, budgets, turn)
        if index < 0:
            break
        turn = index + 1
        piece = batch[done : done + TURN_ENTRIES_MAX]
        number = covered_by(piece, budgets[index])
        taken = piece[:number]
        parts[index] += taken
        budgets[index] -= message_total(taken)
        done += number
    return [(each, part) for each, part in zip(receivers, parts, strict=True) if part], turn


def _next_in_turn(receivers: Sequence[R], budgets: Sequence[int], turn: int) -> int:
    """The index of the next receiver with permits, of the lowest level that has any; -1 = none."""
    best = -1
    count = len(receivers)
    for step in range(count):
        index = (turn + step) % count
        if budgets[index] <= 0:
            continue
        if best < 0 or receivers[index].priority_level < receivers[best].priority_level:
            best = index
    return best


class KeyRing:
    """Which consumer of a Key_Shared subscription a slot belongs to.

    Consumers that take their share of all keys stand at many points of the ring, so that one joining or leaving moves
    few keys; consumers with ranges of their own (sticky) get exactly these.
    """

    def __init__(self, sharers: Iterable[str], sticky: Mapping[str, Sequence[KeyRange]]) -> None:
        """``sharers`` and the keys of ``sticky`` identify consumers."""
        self._points = sorted(chain.from_iterable(map(_points_of, sharers)))
        self._ranges = sorted((each.start, each.end, owner) for owner, ranges in sticky.items() for each in ranges)

    def owner(self, slot: int) -> str | None:
        """None if no consumer takes this slot."""
        for start, end, owner in self._ranges:
            if start <= slot <= end:
                return owner
        if not self._points:
            return None
        return self._points[bisect_left(self._points, (slot, "")) % len(self._points)][1]

    def ranges_of(self, owner: str) -> list[KeyRange]:
        """The slots that this consumer gets; the slot 0 does not occur."""
        return list(self._parts.get(owner, ()))

    @cached_property
    def _parts(self) -> Mapping[str, list[KeyRange]]:
        """Per consumer: the slots that it gets. Statistics ask for each, and would walk round the ring every time."""
        parts: dict[str, list[KeyRange]] = defaultdict(list)
        for start, end, owner in self._ranges:
            parts[owner].append(KeyRange(start, end))
        start = 1
        for point, sharer in [*self._points, *((STICKY_SLOTS - 1, sharer) for _, sharer in self._points[:1])]:
            if point >= start:
                _append_range(parts[sharer], KeyRange(start, point))
                start = point + 1
        return parts


def _append_range(ranges: list[KeyRange], following: KeyRange) -> None:
    """Put a range behind the others, joined with the last one if it follows without a gap."""
    if ranges and ranges[-1].end + 1 == following.start:
        ranges[-1] = KeyRange(ranges[-1].start, following.end)
    else:
        ranges.append(following)


@lru_cache(maxsize=2_000)
def _points_of(sharer: str) -> tuple[tuple[int, str], ...]:
    """Where a consumer stands on the ring, in order."""
    hashes = (murmur3_hash(f"{sharer}#{point}".encode()) for point in range(_POINTS_PER_RECEIVER))
    return tuple(sorted((each % STICKY_SLOTS, sharer) for each in hashes))


def overlapping(one: KeyRange, other: KeyRange) -> bool:
    """Whether two ranges share a slot."""
    return one.start <= other.end and other.start <= one.end


def within(ranges: Iterable[KeyRange], slot: int) -> bool:
    """Whether a slot is in one of the ranges."""
    return any(start <= slot <= end for start, end in ranges)


def sticky_sharing(ranges: tuple[KeyRange, ...], out_of_order_allowed: bool) -> KeySharing:
    """What a consumer asks for that names its ranges; raises ConsumerAssignError if it names none."""
    if not ranges:
        raise ConsumerAssignError("Ranges for KeyShared policy must not be empty.")
    return KeySharing(ranges, out_of_order_allowed)


def check_ranges(wanted: Sequence[KeyRange], taken: Mapping[str, Sequence[KeyRange]]) -> None:
    """Raises ConsumerAssignError unless the wanted ranges are valid and free; ``taken`` by consumers' names."""
    for number, each in enumerate(wanted):
        if each.start > each.end:
            raise ConsumerAssignError(f"Fixed hash range start > end for range: {_text(each)}")
        if not 0 <= each.start <= each.end < STICKY_SLOTS:
            raise ConsumerAssignError(f"Fixed hash range {_text(each)} is not within [0,{STICKY_SLOTS - 1}]")
        for own in wanted[:number]:
            if overlapping(each, own):
                raise ConsumerAssignError(f"Consumer's own ranges conflict: {_text(own)} overlaps with {_text(each)}")
        for name, ranges in taken.items():
            for other in ranges:
                if overlapping(each, other):
                    raise ConsumerAssignError(
                        f"Range conflict with consumer {name}: {_text(each)} overlaps with {_text(other)}"
                    )


def _text(each: KeyRange) -> str:
    return f"[{each.start},{each.end}]"
