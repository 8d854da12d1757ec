"""Step 3 of a switch: every topic is copied, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import Outcome
from interpulse.failover.site import Site
from interpulse.failover.steps.plain_step import PlainStep, some
from interpulse.failover.switch import Switch

_LIMIT_S: Final = 10


class WaysOpen(PlainStep):
    """Ways of copies, by the reports of jobs and the statistics of replicators."""

    name = "ways open"
    limit_s = _LIMIT_S
    overdue = Outcome.REFUSED

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._closed: list[str] = []

    async def holds(self) -> Evidence | None:
        """Return the number of topic-partitions; None while one of them is not copied."""
        switch = self._switch
        if await switch.is_under_way():
            return Evidence("was done before")
        forth = await switch.origin.closed_ways(switch.target.access.cluster)
        back = await switch.target.closed_ways(switch.origin.access.cluster)
        self._closed = [_sentence(switch.origin, switch.target, *row) for row in forth.items()]
        self._closed += [_sentence(switch.target, switch.origin, *row) for row in back.items()]
        count = len(await switch.origin.access.topics())
        return None if self._closed else Evidence(f"{count} topic-partitions each way", {"topics": count})

    def waits_for(self) -> Sequence[str]:
        """Return the ways that are closed."""
        return some(self._closed)


def _sentence(source: Site, target: Site, topic: str, reason: str) -> str:
    return f"{topic} is not copied from {source.access.name} to {target.access.name}: {reason}"
