"""Figures that the repository keeps: seeds that planted bugs needed, and seeds that were played without a bug.

The command that plays writes them; the page for users, docs/reference/what-is-proven.md, shows them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.simulation.bugs.planted import Plant
from tests.simulation.runs import Result

_DIRECTORY: Final = Path(__file__).parent / "figures"
PLANTS_FILE: Final = _DIRECTORY / "plants.json"
SEEDS_FILE: Final = _DIRECTORY / "seeds.json"


class PlantFigures(NamedTuple):
    """The search for a planted bug, from seed 1 on."""

    number: int
    scenario: str
    seed: int | None
    """The first seed that found it; None if none did."""
    properties: Sequence[str]
    cpu_seconds: float

    @classmethod
    def of(cls, plant: Plant, results: Sequence[Result]) -> PlantFigures:
        """Return the figures of the runs that were played with a plant."""
        found = min((result for result in results if result.findings), key=lambda each: each.order.seed, default=None)
        seed, properties = (found.order.seed, found.properties) if found else (None, [])
        return cls(plant.number, plant.scenario, seed, properties, _cpu_seconds(results))


class SeedFigures(NamedTuple):
    """The seeds of one scenario, with one codec and no bug."""

    scenario: str
    codec: str
    seeds: int
    failed: int
    faults: int
    world_seconds: float
    cpu_seconds: float

    @classmethod
    def of(cls, scenario: str, codec: str, results: Sequence[Result]) -> SeedFigures:
        """Return the figures of runs of this scenario with this codec."""
        return cls(
            scenario,
            codec,
            seeds=len(results),
            failed=sum(bool(result.findings) for result in results),
            faults=sum(len(result.faults) for result in results),
            world_seconds=round(sum(result.seconds for result in results)),
            cpu_seconds=_cpu_seconds(results),
        )


def _cpu_seconds(results: Iterable[Result]) -> float:
    return round(sum(result.cpu_seconds for result in results), 1)


def read_plants(path: Path = PLANTS_FILE) -> dict[int, PlantFigures]:
    """Read the figures of planted bugs, by number."""
    return {each["number"]: PlantFigures(**each) for each in _read(path)}


def read_seeds(path: Path = SEEDS_FILE) -> dict[tuple[str, str], SeedFigures]:
    """Read the figures of seeds, by scenario and codec."""
    return {(each["scenario"], each["codec"]): SeedFigures(**each) for each in _read(path)}


def update_plants(path: Path, new: Iterable[PlantFigures]) -> None:
    """Write the figures of these plants beside those of others."""
    _write(path, (read_plants(path) | {each.number: each for each in new}).values())


def update_seeds(path: Path, new: Iterable[SeedFigures]) -> None:
    """Write the figures of these scenarios beside those of others and of the other codec."""
    _write(path, (read_seeds(path) | {(each.scenario, each.codec): each for each in new}).values())


def _read(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text()) if path.exists() else []


def _write(path: Path, rows: Iterable[PlantFigures | SeedFigures]) -> None:
    lines = ",\n".join(json.dumps(row._asdict()) for row in sorted(rows, key=lambda row: row[:2]))
    path.write_text(f"[\n{lines}\n]\n")
