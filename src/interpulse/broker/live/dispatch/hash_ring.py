"""The hash ring of a Key_Shared subscription, and the key ranges that sticky consumers ask for. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain

from interpulse.broker.live.requests import KeyRange, KeySharing
from interpulse.model.errors import ConsumerAssignError
from interpulse.wire.hashing import STICKY_SLOTS, murmur3_hash

__all__ = ["HashRing", "check_ranges", "overlapping", "sticky_sharing", "within"]

_POINTS_PER_CONSUMER = 100
"""Points of a consumer on the ring (subscriptionKeySharedConsistentHashingReplicaPoints)."""


class HashRing:
    """The consumer that each slot belongs to.

    Consumers that take their share of all keys stand at many points of the ring, so that one joining or leaving moves
    few keys; consumers with ranges of their own (sticky) get exactly these.
    """

    def __init__(self, sharers: Iterable[str], sticky: Mapping[str, Sequence[KeyRange]]) -> None:
        """``sharers`` and the keys of ``sticky`` identify consumers."""
        self._points = sorted(chain.from_iterable(map(_points_of, sharers)))
        self._ranges = sorted((each.start, each.end, owner) for owner, ranges in sticky.items() for each in ranges)

    def arcs(self) -> Iterator[tuple[int, str | None]]:
        """The last slot of each arc of the ring, in order, and whose it is; None if no consumer takes it."""
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
        """The slots that this consumer gets; the slot 0 does not occur."""
        return list(self._ranges_by_owner.get(owner, ()))

    @cached_property
    def _ranges_by_owner(self) -> Mapping[str, list[KeyRange]]:
        """Per consumer: the slots that it gets. Statistics ask for each, and would walk round the ring every time."""
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
    """Put a range behind the others, joined with the last one if it follows without a gap."""
    if ranges and ranges[-1].end + 1 == following.start:
        ranges[-1] = KeyRange(ranges[-1].start, following.end)
    else:
        ranges.append(following)


@lru_cache(maxsize=2_000)
def _points_of(sharer: str) -> tuple[tuple[int, str], ...]:
    """Where a consumer stands on the ring, in order."""
    hashes = (murmur3_hash(f"{sharer}#{point}".encode()) for point in range(_POINTS_PER_CONSUMER))
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
