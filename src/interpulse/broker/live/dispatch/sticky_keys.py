"""The mapping of key slots to the consumers of a Key_Shared subscription."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from itertools import repeat

from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.dispatch.hash_ring import HashRing, check_ranges
from interpulse.broker.live.requests import KeyRange


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
        """The mode in Pulsar's spelling, for statistics."""
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
        """Return the owners of many slots."""
        if self._ring is None:
            self._build()
        return map(self._owners.__getitem__, map(bisect_left, repeat(self._arc_ends), slots))

    def ranges_of(self, consumer: Consumer) -> list[KeyRange]:
        """Return the slot ranges of a consumer, which has joined."""
        label = next(label for label, member in self._consumers.items() if member is consumer)
        return (self._ring or self._build()).ranges_of(label)

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
