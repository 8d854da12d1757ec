"""Step 4 of a switch: the origin takes no more messages from its own clients."""

from __future__ import annotations

from interpulse.failover.operation import Evidence
from interpulse.failover.steps.plain_step import PlainStep
from interpulse.failover.switch import Switch
from interpulse.rules.failover_role import Role


class FenceOrigin(PlainStep):
    """The fence, with the position of each topic-partition behind which nothing is published at the origin.

    The act is repeated by every run, so the positions are those of the brokers and not those of a journal.
    """

    name = "fence"

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self.limit_s = switch.config.limits.fence_s

    @property
    def shown(self) -> str:
        """Name for people."""
        return f"fence {self._switch.origin.access.name}"

    async def holds(self) -> Evidence | None:
        """Return the fence of this run, or note that the target was promoted."""
        switch = self._switch
        if await switch.is_begun_to_promote():
            return Evidence("was done before")
        fence = switch.fence
        if fence is None or any(role.role is not Role.FENCED for role in (await switch.origin.roles()).values()):
            return None
        text = "; ".join([f"{fence.closed_producers} producers closed", *fence.gaps])
        return Evidence(text, {"closedProducers": fence.closed_producers, "gaps": list(fence.gaps)})

    async def act(self) -> None:
        """Fence the origin and store the positions."""
        switch = self._switch
        if switch.fenced_at is None:
            switch.fenced_at = switch.seconds()
        switch.fence = await switch.origin.fence()
        switch.warnings += switch.fence.gaps
        rows = ({"topic": topic, "position": str(place)} for topic, place in switch.fence.positions.items())
        switch.journal.write_evidence(self.name, rows)

    async def revert(self) -> None:
        """Let the origin serve its clients again."""
        await self._switch.origin.release()
