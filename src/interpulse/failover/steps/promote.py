"""Step 7 of a switch: the target serves. There is no way back from here but another switch."""

from __future__ import annotations

from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import Outcome
from interpulse.failover.steps.plain_step import PlainStep
from interpulse.failover.switch import Switch


class Promote(PlainStep):
    """The role of the target, under the epoch of the switch."""

    name = "promote"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, switch: Switch) -> None:
        self._switch = switch

    @property
    def shown(self) -> str:
        """Name for people."""
        return f"promote {self._switch.target.access.name}"

    async def holds(self) -> Evidence | None:
        """Return the epoch, read back from the target."""
        if not await self._switch.is_promoted():
            return None
        return Evidence(f"epoch {self._switch.operation.epoch}", {"epoch": self._switch.operation.epoch})

    async def act(self) -> None:
        """Promote the target."""
        await self._switch.target.promote(self._switch.operation.epoch)
        self._switch.promoted_at = self._switch.seconds()
