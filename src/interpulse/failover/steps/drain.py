"""Step 5 of a switch: the target has every entry up to the fence that has to be copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from interpulse.failover.operation import NO_LIMIT, Evidence
from interpulse.failover.steps.plain_step import PlainStep, some
from interpulse.failover.switch import Switch
from interpulse.in_turns import concurrently
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName

_AT_ONCE: Final = 64


class Drain(PlainStep):
    """Copies, as the ends of the target's topic-partitions show them. A lag of 0 proves nothing."""

    name = "drain"

    def __init__(self, switch: Switch, *, waits: bool) -> None:
        self._switch = switch
        self.limit_s = NO_LIMIT if waits else switch.config.limits.drain_s
        self._missing: dict[str, Position] = {}
        """First entry that is known to be missing at the target, by topic-partition."""
        self._drained: set[str] = set()
        self._reasons: dict[str, str] = {}
        self._last = ""

    async def holds(self) -> Evidence | None:
        """Return the last topic-partition that arrived; None while one of them is missing entries."""
        switch = self._switch
        if await switch.is_begun_to_promote():
            return Evidence("was done before")
        if switch.fence is None:
            return None
        await self._renew()
        waiting = [topic for topic in switch.fence.positions if topic not in self._drained]
        await concurrently(self._look, waiting, limit=_AT_ONCE)
        if len(self._drained) < len(switch.fence.positions) or switch.fence.open_topics:
            self._reasons = await switch.origin.closed_ways(switch.target.access.cluster)
            return None
        return Evidence(f"{len(self._drained)} topic-partitions{self._last}", {"topics": len(self._drained)})

    async def _renew(self) -> None:
        """Look again at the topic-partitions whose fence had a gap."""
        switch, before = self._switch, self._switch.fence
        renewed = await switch.origin.renewed_fence()
        if renewed is None or before is None:
            return
        switch.fence = renewed
        switch.warnings += [gap for gap in renewed.gaps if gap not in switch.warnings]
        moved = {topic for topic, place in renewed.positions.items() if before.positions.get(topic) != place}
        self._drained -= moved
        self._drained &= renewed.positions.keys()

    async def _look(self, topic: str) -> None:
        assert self._switch.fence is not None
        name, fenced_at = TopicName.parse(topic), self._switch.fence.positions[topic]
        copied = EARLIEST if fenced_at.entry < 0 else await self._switch.target.access.last_copied(name)
        if topic in self._missing and copied < self._missing[topic]:
            return
        first = await self._switch.origin.access.first_to_copy(name, copied, fenced_at)
        if first is not None:
            self._missing[topic] = first
            return
        if self._missing.pop(topic, None) is not None:
            self._last = f"; last: {topic} at {copied}"
        self._drained.add(topic)

    def waits_for(self) -> Sequence[str]:
        """Return the topic-partitions that have not drained, and the reasons."""
        target, fence = self._switch.target.access.name, self._switch.fence
        open_topics = () if fence is None else fence.open_topics
        missing = [
            f"{topic} has not arrived at {target} from {place} on: {self._reasons.get(topic, 'it is being copied')}"
            for topic, place in sorted(self._missing.items())
        ]
        return some([*(f"{topic} is not fenced at present" for topic in open_topics), *missing])
