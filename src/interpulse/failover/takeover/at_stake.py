"""Step 3 of a takeover: what is at stake is shown, confirmed and stored."""

from __future__ import annotations

from typing import Final

from interpulse.clock import iso_time, now_ms
from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.reporting.reports import AtStake
from interpulse.failover.reporting.stored import stake_of
from interpulse.failover.steps.plain_step import PlainStep
from interpulse.failover.takeover.takeover import Confirm, Known, Takeover
from interpulse.in_turns import concurrently

_AT_ONCE: Final = 64


class AtStakeShown(PlainStep):
    """The last report about the lost site, or that there is none. It is shown once, and stored when it is confirmed."""

    name = "at stake"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, takeover: Takeover, confirm: Confirm) -> None:
        self._takeover = takeover
        self._confirm = confirm

    async def holds(self) -> Evidence | None:
        """Return the number of messages; None until it is stored."""
        body = self._takeover.before
        if body is None:
            return None
        report = body["report"]
        text = "not known, there is no report" if report is None else f"{report['messages']} messages are known"
        return Evidence(text, {"messages": None if report is None else report["messages"]})

    async def act(self) -> None:
        """Show it, and store it. Raise OperationFailed if it is not confirmed."""
        takeover = self._takeover
        known = await self._known()
        if not await self._confirm(known):
            raise OperationFailed("it was not confirmed: no role was changed", Outcome.REFUSED)
        operation = takeover.operation
        takeover.incidents.write_before(
            operation.epoch,
            {
                "epoch": operation.epoch,
                "to": operation.to,
                "lost": takeover.lost.name,
                "at": iso_time(now_ms()),
                "sites": {name: address.cluster for name, address in takeover.config.addresses.items()},
                "report": None if known.report is None else _report(known.report),
            },
        )

    async def _known(self) -> Known:
        takeover, survivor = self._takeover, self._takeover.target.access
        lost = takeover.lost.name
        problem = f"no report about {lost}; interpulse failover watch makes them"
        try:
            report = await stake_of(lost, survivor, takeover.config)
        except ValueError as error:
            report, problem = None, str(error)
        if report is not None:
            return Known(lost, report, {})
        topics = await survivor.topics()
        copied = await concurrently(survivor.last_copied, topics, limit=_AT_ONCE)
        return Known(lost, None, dict(zip(topics, copied, strict=True)), problem)


def _report(report: AtStake) -> dict[str, object]:
    return {**report.to_json(), "reportedAtTime": iso_time(report.reported_ms)}
