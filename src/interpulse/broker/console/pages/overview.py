"""The first page: is the broker well, and if not, where."""

from __future__ import annotations

from dataclasses import dataclass

from interpulse.broker.console.visit import Visit

__all__ = ["OverviewModel", "build"]


@dataclass(frozen=True, slots=True)
class OverviewModel:
    version: str
    healthy: bool
    problem: str


async def build(visit: Visit) -> OverviewModel:
    health = await visit.attempt("/readyz")
    version = await visit.attempt("/admin/v2/brokers/version")
    return OverviewModel(version.value or "", health.value == "ok", health.refusal)
