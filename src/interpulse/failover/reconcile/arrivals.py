"""Arrival of entries at the other site, up to given ends of logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from interpulse.failover.site import Site
from interpulse.failover.steps.plain_step import some
from interpulse.failover.tail.reading import end_of
from interpulse.in_turns import concurrently
from interpulse.model.errors import TopicNotFound
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName

_AT_ONCE: Final = 64


class Arrivals:
    """Copies from one site to the other, as the newest copies there show them."""

    def __init__(
        self,
        source: Site,
        target: Site,
        ends: Mapping[str, Position],
        begins: Mapping[str, Position],
        *,
        even_if_trimmed: bool = False,
    ) -> None:
        """Wait for entries up to ``ends``. Those up to ``begins`` are not looked for.

        ``even_if_trimmed``: a log at the target of which nothing is left does not show its copies, and has them all.
        """
        self._source = source
        self._target = target
        self._ends = ends
        self._begins = begins
        self._is_even_if_trimmed = even_if_trimmed
        self._arrived: set[str] = set()
        self._missing: dict[str, Position] = {}
        self._reasons: Mapping[str, str] = {}

    async def are_complete(self) -> bool:
        """Return True if every entry that has to be copied is at the other site."""
        waiting = [topic for topic in self._ends if topic not in self._arrived]
        await concurrently(self._look, waiting, limit=_AT_ONCE)
        if len(self._arrived) == len(self._ends):
            return True
        self._reasons = await self._source.closed_ways(self._target.access.cluster)
        return False

    async def _look(self, topic: str) -> None:
        name, end = TopicName.parse(topic), self._ends[topic]
        copied = max(await self._target.access.last_copied(name), self._begins.get(topic, EARLIEST))
        if topic in self._missing and copied < self._missing[topic]:
            return
        first = await self._first_to_copy(name, copied, end)
        if first is None or (self._is_even_if_trimmed and await self._is_trimmed(name)):
            self._missing.pop(topic, None)
            self._arrived.add(topic)
        else:
            self._missing[topic] = first

    async def _first_to_copy(self, name: TopicName, copied: Position, end: Position) -> Position | None:
        try:
            return await self._source.access.first_to_copy(name, copied, end)
        except TopicNotFound:  # it was deleted, or the site has lost it
            return None

    async def _is_trimmed(self, name: TopicName) -> bool:
        """Return True if the log at the target has had entries, and has none now."""
        access = self._target.access
        try:
            return (await access.end(name)).entry < 0 <= (await end_of(access, name)).entry
        except TopicNotFound:
            return False

    def waits_for(self) -> Sequence[str]:
        """Return sentences about topic-partitions with entries that have not arrived."""
        target = self._target.access.name
        return some(
            [
                f"{topic} has not arrived at {target} from {place} on: {self._reasons.get(topic, 'it is being copied')}"
                for topic, place in sorted(self._missing.items())
            ]
        )
