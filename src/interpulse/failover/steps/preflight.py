"""Step 2 of a switch: the roles permit it, and the target has every topic."""

from __future__ import annotations

from collections.abc import Sequence

from interpulse.failover.client_warnings import warnings_of_clients
from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import Outcome
from interpulse.failover.steps.plain_step import PlainStep, some
from interpulse.failover.switch import Switch
from interpulse.rules.failover_role import Role


class Preflight(PlainStep):
    """Refusals before anything is changed. A switch that is under way is not judged again."""

    name = "preflight"
    limit_s = 0
    overdue = Outcome.REFUSED

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._problems: list[str] = []

    async def holds(self) -> Evidence | None:
        """Return the warnings; None if there is an error."""
        switch = self._switch
        if await switch.is_under_way():
            return Evidence("was done before")
        self._problems = [*await self._problems_of_roles(), *await self._missing_topics()]
        if self._problems:
            return None
        warnings = warnings_of_clients(await switch.origin.access.stats(await switch.origin.access.topics()))
        switch.warnings += warnings
        return Evidence(f"{len(warnings)} warnings" if warnings else "no warnings", {"warnings": warnings})

    async def _problems_of_roles(self) -> list[str]:
        origin, target = self._switch.origin, self._switch.target
        here, there = await origin.roles(), await target.roles()
        problems = [
            f"{origin.access.name} does not serve {name}, its role is {role}: look at interpulse failover status"
            for name, role in here.items()
            if role.role is not Role.ACTIVE
        ]
        contradictions = [
            f"{target.access.name} is {there[name]} and {origin.access.name} is {here[name]} for {name}: two sites "
            "serve, or an older one does; set the role that is wrong with interpulse-admin namespaces set-failover-role"
            for name, role in there.items()
            if role.role is Role.ACTIVE and role.epoch >= max(1, here[name].epoch)
        ]
        return problems + contradictions

    async def _missing_topics(self) -> list[str]:
        origin, target = self._switch.origin.access, self._switch.target.access
        missing = sorted(set(map(str, await origin.topics())) - set(map(str, await target.topics())))
        return [f"{topic} is missing at {target.name}: replicate it, or create it there" for topic in missing]

    def waits_for(self) -> Sequence[str]:
        """Return the errors."""
        return some(self._problems)
