"""The hash ring that names the consumer of each key in a Key_Shared subscription, and the slots of its entries."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, repeat

from interpulse.broker.live.api import KeyRange
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.model.errors import ConsumerAssignError
from interpulse.model.ids import Position
from interpulse.wire.hashing import STICKY_SLOTS, murmur3_hash

_POINTS_PER_CONSUMER = 100
"""Points of a consumer on the ring (subscriptionKeySharedConsistentHashingReplicaPoints)."""

PAGES_MAX = 512
"""Pages above which a clean-up is due, or twice the pages needed at the last one if that is more."""

_PAGE_BITS = 8
_PAGE_ENTRIES = 1 << _PAGE_BITS
_WITHIN = _PAGE_ENTRIES - 1
_NOTHING_SEEN = bytes(2 * _PAGE_ENTRIES)


class HashRing:
    """The mapping of slots to consumers.

    Consumers that share all keys have many points on the ring, so that few keys move when one joins or leaves. Sticky
    consumers get exactly their own ranges.
    """

    def __init__(self, sharers: Iterable[str], sticky: Mapping[str, Sequence[KeyRange]]) -> None:
        """``sharers`` and the keys of ``sticky`` identify consumers."""
        self._points = sorted(chain.from_iterable(map(_points_of, sharers)))
        self._ranges = sorted(
            (key_range.start, key_range.end, owner) for owner, ranges in sticky.items() for key_range in ranges
        )

    def arcs(self) -> Iterator[tuple[int, str | None]]:
        """Return the last slot of each arc of the ring, in order, and its owner; None if no consumer takes it."""
        end, rest = -1, None
        for start, last, owner in self._ranges:
            if start > end + 1:
                yield start - 1, None
            yield last, owner
            end = last
        if not self._ranges and self._points:
            yield from self._points
            rest = self._points[0][1]
        yield STICKY_SLOTS, rest

    @cached_property
    def ranges_by_owner(self) -> Mapping[str, list[KeyRange]]:
        """The slot ranges per consumer, without the slot 0; cached, as statistics read them for each consumer."""
        ranges: dict[str, list[KeyRange]] = defaultdict(list)
        for start, end, owner in self._ranges:
            ranges[owner].append(KeyRange(start, end))
        start = 1
        for point, sharer in [*self._points, *((STICKY_SLOTS - 1, sharer) for _, sharer in self._points[:1])]:
            if point >= start:
                own = ranges[sharer]
                if own and own[-1].end + 1 == start:
                    own[-1] = KeyRange(own[-1].start, point)
                else:
                    own.append(KeyRange(start, point))
                start = point + 1
        return ranges


@lru_cache(maxsize=2_000)
def _points_of(sharer: str) -> tuple[tuple[int, str], ...]:
    hashes = (murmur3_hash(f"{sharer}#{point}".encode()) for point in range(_POINTS_PER_CONSUMER))
    return tuple(sorted((point % STICKY_SLOTS, sharer) for point in hashes))


def overlapping(one: KeyRange, other: KeyRange) -> bool:
    """Return True if two ranges share a slot."""
    return one.start <= other.end and other.start <= one.end


def within(ranges: Iterable[KeyRange], slot: int) -> bool:
    """Return True if a slot is in one of the ranges."""
    return any(start <= slot <= end for start, end in ranges)


def check_ranges(wanted: Sequence[KeyRange], taken: Mapping[str, Sequence[KeyRange]]) -> None:
    """Raise ConsumerAssignError unless the ranges are valid and free; ``taken`` holds ranges by consumer name."""
    for number, key_range in enumerate(wanted):
        if key_range.start > key_range.end:
            raise ConsumerAssignError(f"Fixed hash range start > end for range: {_text(key_range)}")
        if not 0 <= key_range.start <= key_range.end < STICKY_SLOTS:
            raise ConsumerAssignError(f"Fixed hash range {_text(key_range)} is not within [0,{STICKY_SLOTS - 1}]")
        for own in wanted[:number]:
            if overlapping(key_range, own):
                raise ConsumerAssignError(
                    f"Consumer's own ranges conflict: {_text(own)} overlaps with {_text(key_range)}"
                )
        for name, ranges in taken.items():
            for other in ranges:
                if overlapping(key_range, other):
                    raise ConsumerAssignError(
                        f"Range conflict with consumer {name}: {_text(key_range)} overlaps with {_text(other)}"
                    )


def _text(key_range: KeyRange) -> str:
    return f"[{key_range.start},{key_range.end}]"


class SeenSlots:
    """Slots by entry. No entry has the slot 0.

    Two bytes per entry, in pages of neighbours: slots noted in the order of the log cost nearly nothing, and an
    acknowledgement changes nothing here. So slots of unneeded entries stay until `keep_only` drops their pages.
    """

    __slots__ = ("_pages", "_pages_max")

    def __init__(self) -> None:
        self._pages: dict[tuple[int, int], array[int]] = {}
        """Pages by ledger and number."""
        self._pages_max = PAGES_MAX

    @property
    def full(self) -> bool:
        """True if `keep_only` should be called."""
        return len(self._pages) > self._pages_max

    def note(self, positions: Sequence[Position], slots: Sequence[int]) -> None:
        """Store the slots of these entries, which are in order."""
        if not positions:
            return
        (ledger, first), last = positions[0], positions[-1]
        if last != (ledger, first + len(positions) - 1):
            for (ledger, entry), slot in zip(positions, slots, strict=True):
                self._page(ledger, entry >> _PAGE_BITS)[entry & _WITHIN] = slot
            return
        run, done = array("H", slots), 0
        while done < len(run):
            number, begin = divmod(first + done, _PAGE_ENTRIES)
            part = run[done : done + _PAGE_ENTRIES - begin]
            self._page(ledger, number)[begin : begin + len(part)] = part
            done += len(part)

    def of(self, position: Position) -> int:
        """Return the slot of an entry; 0 = it was not seen."""
        ledger, entry = position
        page = self._pages.get((ledger, entry >> _PAGE_BITS))
        return page[entry & _WITHIN] if page is not None else 0

    def of_all(self, positions: Iterable[Position]) -> list[int]:
        """Return the slots of entries that were seen."""
        pages = self._pages
        return [pages[ledger, entry >> _PAGE_BITS][entry & _WITHIN] for ledger, entry in positions]

    def keep_only(self, needed: Iterable[Position]) -> None:
        """Drop pages without any of these entries; no other entry may be looked up later."""
        numbers = {(ledger, entry >> _PAGE_BITS) for ledger, entry in needed}
        self._pages = {number: page for number, page in self._pages.items() if number in numbers}
        self._pages_max = max(PAGES_MAX, 2 * len(self._pages))

    def clear(self) -> None:
        self._pages.clear()
        self._pages_max = PAGES_MAX

    def _page(self, ledger: int, number: int) -> array[int]:
        page = self._pages.get((ledger, number))
        if page is None:
            page = self._pages[ledger, number] = array("H", _NOTHING_SEEN)
        return page


class StickyKeys:
    """The hash ring of joining and leaving consumers."""

    def __init__(self) -> None:
        self._consumers: dict[str, Consumer] = {}
        """Consumers by name; a duplicate name gets a number as suffix."""
        self._ring: HashRing | None = None
        """The ring, built on demand: many consumers often come and go together."""
        self._arc_ends: list[int] = []
        self._owners: list[Consumer | None] = []
        """The owner of each arc of the ring, looked up once per entry."""

    def __contains__(self, consumer: Consumer) -> bool:
        return consumer in self._consumers.values()

    @property
    def consumers(self) -> Collection[Consumer]:
        return self._consumers.values()

    @property
    def mode(self) -> str:
        return next((consumer.request.key_sharing.mode for consumer in self._consumers.values()), "AUTO_SPLIT")

    def join(self, consumer: Consumer) -> None:
        """Add a consumer. Raise ConsumerAssignError if its ranges are invalid or taken."""
        check_ranges(_ranges(consumer), {label: _ranges(member) for label, member in self._consumers.items()})
        label, number = consumer.name, 0
        while label in self._consumers:
            number += 1
            label = f"{consumer.name}~{number}"
        self._consumers[label] = consumer
        self._changed()

    def leave(self, consumer: Consumer) -> None:
        self._consumers = {label: member for label, member in self._consumers.items() if member is not consumer}
        self._changed()

    def owner(self, slot: int) -> Consumer | None:
        """Return the owner of a slot, None if no consumer takes it."""
        return next(self.owners([slot]))

    def owners(self, slots: Iterable[int]) -> Iterator[Consumer | None]:
        if self._ring is None:
            self._build()
        return map(self._owners.__getitem__, map(bisect_left, repeat(self._arc_ends), slots))

    def ranges_of(self, consumer: Consumer) -> list[KeyRange]:
        """Return the slot ranges of a consumer, which has joined."""
        label = next(label for label, member in self._consumers.items() if member is consumer)
        return list((self._ring or self._build()).ranges_by_owner.get(label, ()))

    def _changed(self) -> None:
        self._ring = None
        self._owners = []

    def _build(self) -> HashRing:
        sticky = {label: _ranges(member) for label, member in self._consumers.items() if _ranges(member)}
        ring = self._ring = HashRing((label for label in self._consumers if label not in sticky), sticky)
        arcs = list(ring.arcs())
        self._arc_ends = [end for end, _ in arcs]
        self._owners = [self._consumers.get(label or "") for _, label in arcs]
        return ring


def _ranges(consumer: Consumer) -> tuple[KeyRange, ...]:
    return consumer.request.key_sharing.sticky_ranges
