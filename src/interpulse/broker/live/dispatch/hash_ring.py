"""The hash ring of a Key_Shared subscription, and the key ranges of sticky consumers. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain

from interpulse.broker.live.requests import KeyRange, KeySharing
from interpulse.model.errors import ConsumerAssignError
from interpulse.wire.hashing import STICKY_SLOTS, murmur3_hash

_POINTS_PER_CONSUMER = 100
"""Points of a consumer on the ring (subscriptionKeySharedConsistentHashingReplicaPoints)."""


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

    def ranges_of(self, owner: str) -> list[KeyRange]:
        """Return the slot ranges of this consumer; the slot 0 does not occur."""
        return list(self._ranges_by_owner.get(owner, ()))

    @cached_property
    def _ranges_by_owner(self) -> Mapping[str, list[KeyRange]]:
        """The slot ranges per consumer, cached: statistics read them for each, which would walk the ring every time."""
        ranges: dict[str, list[KeyRange]] = defaultdict(list)
        for start, end, owner in self._ranges:
            ranges[owner].append(KeyRange(start, end))
        start = 1
        for point, sharer in [*self._points, *((STICKY_SLOTS - 1, sharer) for _, sharer in self._points[:1])]:
            if point >= start:
                _append_range(ranges[sharer], KeyRange(start, point))
                start = point + 1
        return ranges


def _append_range(ranges: list[KeyRange], following: KeyRange) -> None:
    if ranges and ranges[-1].end + 1 == following.start:
        ranges[-1] = KeyRange(ranges[-1].start, following.end)
    else:
        ranges.append(following)


@lru_cache(maxsize=2_000)
def _points_of(sharer: str) -> tuple[tuple[int, str], ...]:
    """Return the points of a consumer on the ring, in order."""
    hashes = (murmur3_hash(f"{sharer}#{point}".encode()) for point in range(_POINTS_PER_CONSUMER))
    return tuple(sorted((point % STICKY_SLOTS, sharer) for point in hashes))


def overlapping(one: KeyRange, other: KeyRange) -> bool:
    """Return True if two ranges share a slot."""
    return one.start <= other.end and other.start <= one.end


def within(ranges: Iterable[KeyRange], slot: int) -> bool:
    """Return True if a slot is in one of the ranges."""
    return any(start <= slot <= end for start, end in ranges)


def sticky_sharing(ranges: tuple[KeyRange, ...], out_of_order_allowed: bool) -> KeySharing:
    """Return the key sharing of a sticky consumer; raise ConsumerAssignError if it names no ranges."""
    if not ranges:
        raise ConsumerAssignError("Ranges for KeyShared policy must not be empty.")
    return KeySharing(ranges, out_of_order_allowed)


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
