"""Step 2 of a takeover: the other site does not answer."""

from __future__ import annotations

from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import Outcome
from interpulse.failover.steps.plain_step import PlainStep
from interpulse.failover.takeover.takeover import Takeover


class SiteLost(PlainStep):
    """The probes, which the command made before it took the lease: a site that answers is refused without a trace."""

    name = "lost"
    overdue = Outcome.REFUSED

    def __init__(self, takeover: Takeover) -> None:
        self._takeover = takeover

    @property
    def shown(self) -> str:
        """Name for people."""
        return f"{self._takeover.lost.name} lost"

    async def holds(self) -> Evidence | None:
        """Return the number of probes without an answer, or the address that answered."""
        probing = self._takeover.probing
        text = (
            f"{probing.answered} answers, which is accepted" if probing.answered else f"{probing.probes} probes failed"
        )
        return Evidence(text, {"probes": probing.probes, "answered": probing.answered or None})
