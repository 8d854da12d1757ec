"""Step 10 of a switch: its report."""

from __future__ import annotations

from dataclasses import asdict

from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import Outcome
from interpulse.failover.steps.plain_step import PlainStep
from interpulse.failover.switch import Switch


class Report(PlainStep):
    """The result of the switch beside its journal: who switched where, how long producers had no site, warnings."""

    name = "report"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._is_written = False

    async def holds(self) -> Evidence | None:
        """Return the time without a site; None until this run has written the report."""
        if not self._is_written:
            return None
        seconds = outage_s(self._switch)
        text = "written" if seconds is None else f"producers had no site for {seconds:.1f} s"
        return Evidence(text, {"outageSeconds": seconds})

    async def act(self) -> None:
        """Write the report."""
        switch = self._switch
        seconds = outage_s(switch)
        row = {**asdict(switch.operation), "outageSeconds": seconds, "warnings": switch.warnings}
        switch.journal.write_evidence(self.name, [row])
        self._is_written = True


def outage_s(switch: Switch) -> float | None:
    """Return the seconds from the fence to the promotion; None if an earlier run did one of them."""
    if switch.fenced_at is None or switch.promoted_at is None:
        return None
    return round(switch.promoted_at - switch.fenced_at, 3)
