"""The target of a switch or a takeover serves. There is no way back from here but another switch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from interpulse.failover.journal import Operation
from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import Outcome
from interpulse.failover.site import Site
from interpulse.failover.steps.plain_step import PlainStep


class Promotion(Protocol):
    """The interface of a switch or a takeover for this step."""

    promoted_at: float | None

    @property
    def seconds(self) -> Callable[[], float]: ...

    @property
    def target(self) -> Site: ...

    @property
    def operation(self) -> Operation: ...

    async def is_promoted(self) -> bool:
        """Return True if the target serves under the epoch of the operation."""


class Promote(PlainStep):
    """The role of the target, under the epoch of the operation."""

    name = "promote"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, switch: Promotion) -> None:
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
