"""Step 2 of a switch: the origin serves, and the preflight finds no error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import Outcome
from interpulse.failover.preflight.findings import CheckKind, Finding
from interpulse.failover.preflight.gathering import preflight
from interpulse.failover.steps.plain_step import PlainStep, some
from interpulse.failover.switch import Switch
from interpulse.model.adjustments import Severity
from interpulse.rules.failover_role import Role

_OF_THE_NEXT_STEP: Final = (CheckKind.NOT_COPIED, CheckKind.WAY_BACK_MISSING)
"""Findings that the next step waits for."""


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
        self._problems = await self._problems_of_roles()
        if self._problems:
            return None
        result = await preflight(
            switch.config, switch.origin.access, switch.target.access, accepted=(*switch.accepted, *_OF_THE_NEXT_STEP)
        )
        self._problems = [_sentence(each) for each in result.refusing]
        if self._problems:
            return None
        noticed = [
            each
            for each in result.findings
            if each.severity is not Severity.INFO and each.kind not in _OF_THE_NEXT_STEP
        ]
        warnings = [_sentence(each) for each in noticed]
        switch.warnings += warnings
        return Evidence(_summary(noticed), {"warnings": warnings})

    async def _problems_of_roles(self) -> list[str]:
        origin = self._switch.origin
        return [
            f"{origin.access.name} does not serve {name}, its role is {role}: look at interpulse failover status"
            for name, role in (await origin.roles()).items()
            if role.role is not Role.ACTIVE
        ]

    def waits_for(self) -> Sequence[str]:
        """Return the errors."""
        return some(self._problems)


def _sentence(finding: Finding) -> str:
    return f"{finding.kind} at {finding.site}: {finding.subject}: {finding.what}. {finding.remedy}"


def _summary(findings: Sequence[Finding]) -> str:
    counts = Counter(str(each.kind) for each in findings)
    kinds = ", ".join(f"{kind} ({count})" for kind, count in counts.items())
    return f"{len(findings)} warnings: {kinds}" if findings else "no warnings"
