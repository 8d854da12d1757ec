"""Step 4 of a takeover: nothing more arrives from the lost site, and the last copy of each topic-partition is fixed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair import site_of
from interpulse.failover.reporting.reports import Report
from interpulse.failover.reporting.stored import last_reports
from interpulse.failover.steps.plain_step import PlainStep
from interpulse.failover.takeover.takeover import Takeover
from interpulse.in_turns import concurrently
from interpulse.model.errors import PulsarError, TopicNotFound
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName

_AT_ONCE: Final = 64
_TOPICS: Final = "topics"


class CloseWay(PlainStep):
    """The target refuses copies from the lost site, so that one which is half alive does not trickle.

    The last copies are stored once: a run that goes on keeps those of the first one.
    """

    name = "close way"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, takeover: Takeover) -> None:
        self._takeover = takeover

    @property
    def shown(self) -> str:
        """Name for people."""
        return f"close {self._takeover.lost.name} -> {self._takeover.operation.to}"

    async def holds(self) -> Evidence | None:
        """Return the number of topic-partitions whose last copy is stored, while the way is closed."""
        takeover = self._takeover
        rows = (takeover.before or {}).get(_TOPICS)
        if rows is None or not (await self._is_closed() or await takeover.is_begun_to_promote()):
            return None
        return Evidence(f"{len(rows)} topic-partitions", {"topics": len(rows)})

    async def _is_closed(self) -> bool:
        cluster = self._takeover.lost.cluster
        return all(role.closed_to == cluster for role in (await self._takeover.target.roles()).values())

    async def act(self) -> None:
        """Fence a site that answers, close the way, and store the last copies."""
        takeover = self._takeover
        is_promoted = await takeover.is_begun_to_promote()
        if takeover.probing.answered and not is_promoted:
            await self._fence_the_lost_one()
        await takeover.target.close_way(takeover.lost.cluster)
        body = takeover.before
        if body is not None and _TOPICS not in body:
            rows = await self._last_copies(is_promoted=is_promoted)
            takeover.incidents.write_before(takeover.operation.epoch, {**body, _TOPICS: rows})

    async def _fence_the_lost_one(self) -> None:
        """Fence the site that was given up although it answers. What hinders that is a warning."""
        takeover = self._takeover
        lost = takeover.lost
        try:
            async with asyncio.timeout(takeover.config.limits.fence_s):
                site = await site_of(lost, takeover.config.name)
                await site.fence()
        except (OperationFailed, PulsarError, TimeoutError) as error:
            reason = str(error) or "no answer in fence_s"
            takeover.warnings.append(f"{lost.name} answers and is not fenced, its clients may go on there: {reason}")

    async def _last_copies(self, *, is_promoted: bool) -> list[dict[str, Any]]:
        takeover, access = self._takeover, self._takeover.target.access
        reports = {
            topic: report for topic, report in (await self._reports()).items() if report.site == takeover.lost.name
        }
        topics = sorted({*await access.topics(), *reports}, key=str)

        async def row(topic: TopicName) -> dict[str, Any]:
            try:
                copied, end = await access.last_copied(topic), await access.end(topic)
            except TopicNotFound:  # the lost site has it, and nothing of it arrived
                copied, end = EARLIEST, EARLIEST
            places = {"copied": _shown(copied), "end": _shown(reports[topic].end if topic in reports else EARLIEST)}
            return {"topic": str(topic), **places, "promoted": None if is_promoted else _shown(end)}

        return await concurrently(row, topics, limit=_AT_ONCE)

    async def _reports(self) -> Mapping[TopicName, Report]:
        try:
            return await last_reports(self._takeover.target.access, self._takeover.config)
        except ValueError:  # shown by the step before
            return {}

    async def revert(self) -> None:
        """Take copies again, and close the incident."""
        takeover = self._takeover
        await takeover.target.open_way()
        takeover.incidents.close(takeover.operation.epoch, {"outcome": Outcome.TAKEN_BACK.name})


def _shown(position: Position) -> str | None:
    """Return a position; None for that of a log without entries."""
    return None if position.entry < 0 else str(position)
