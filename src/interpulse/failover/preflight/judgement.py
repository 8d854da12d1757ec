"""All rules of the preflight over the facts of a pair, and the decision that follows from their findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from interpulse.failover.preflight import clients, policies, sites, ways
from interpulse.failover.preflight.audit import (
    differences,
    differing_topics,
    findings_of_differences,
    missing_namespaces,
)
from interpulse.failover.preflight.facts import PairFacts
from interpulse.failover.preflight.findings import Finding
from interpulse.model.adjustments import Severity

_RULES: Final = (*ways.RULES, *clients.RULES, *policies.RULES, *sites.RULES)
_ORDER: Final = tuple(Severity)

READY: Final = 0
WARNED: Final = 1
REFUSED: Final = 3


@dataclass(frozen=True, slots=True)
class Preflight:
    """Result of a preflight: the findings, errors first. Errors of ``accepted`` kinds do not refuse."""

    findings: tuple[Finding, ...]
    accepted: frozenset[str] = frozenset()

    @property
    def refusing(self) -> list[Finding]:
        """Errors that stop a switch."""
        return [
            each for each in self.findings if each.severity is Severity.ERROR and str(each.kind) not in self.accepted
        ]

    @property
    def exit_code(self) -> int:
        """Exit code: 0 ready, 1 with warnings or accepted errors, 3 refused."""
        if self.refusing:
            return REFUSED
        return WARNED if any(each.severity is not Severity.INFO for each in self.findings) else READY

    def to_json(self) -> dict[str, Any]:
        return {
            "ready": not self.refusing,
            "accepted": sorted(self.accepted),
            "findings": [each.to_json() for each in self.findings],
        }


def judge(pair: PairFacts, accepted: Collection[str] = ()) -> Preflight:
    """Return the findings of all rules. ``accepted`` are kinds whose errors the operator accepts."""
    found = differences(pair)
    left_out = differing_topics(found)
    own = [*missing_namespaces(pair), *ways.not_copied(pair, left_out), *ways.way_back_missing(pair, left_out)]
    for rule in _RULES:
        own += rule(pair)
    return Preflight(_sorted([*own, *findings_of_differences(pair, found, own)]), frozenset(accepted))


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda each: (_ORDER.index(each.severity), str(each.kind), each.subjects)))
