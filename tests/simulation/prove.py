"""Prove the judge: every planted bug is found by its scenario within the first seeds."""

from __future__ import annotations

from tests.simulation import patches

patches.install()

import statistics  # noqa: E402 - the patches come before anything that may hold the machine's clock
import sys  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from pathlib import Path  # noqa: E402

import click  # noqa: E402

from tests.simulation.bugs.planted import PLANTS, Plant  # noqa: E402
from tests.simulation.figures import PlantFigures, update_plants  # noqa: E402
from tests.simulation.runs import Order, Result, play_all  # noqa: E402


@click.command(help=__doc__)
@click.option(
    "--bug", "bugs", type=click.Choice([*map(str, PLANTS)]), multiple=True, help="Number of a bug; default: all."
)
@click.option(
    "--seeds", "seeds_max", type=click.IntRange(1), default=200, show_default=True, help="Seeds for each bug."
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes at a time.")
@click.option("--figures", type=click.Path(path_type=Path), help="File in which to update the figures of these bugs.")
def main(bugs: Sequence[str], seeds_max: int, jobs: int, figures: Path | None) -> None:
    proven: list[PlantFigures] = []
    for number in map(int, bugs or PLANTS):
        proven.append(PlantFigures.of(PLANTS[number], _played(PLANTS[number], seeds_max, jobs)))
        click.echo(_line(proven[-1]))
        if figures is not None:
            update_plants(figures, proven)
    needed = [each.seed for each in proven if each.seed is not None]
    if needed:
        click.echo(f"median of the seeds needed: {statistics.median(needed):g}")
    sys.exit(0 if len(needed) == len(proven) else 1)


def _line(figures: PlantFigures) -> str:
    outcome = "not found" if figures.seed is None else f"seed {figures.seed:3}  {' '.join(figures.properties)}"
    return f"{figures.number:3} {PLANTS[figures.number].name:45} {figures.scenario:13} {outcome}"


def _played(plant: Plant, seeds_max: int, jobs: int) -> list[Result]:
    """Return the results of the seeds up to the first one that finds the bug."""
    played: list[Result] = []
    for first in range(1, seeds_max + 1, jobs):
        seeds = range(first, min(first + jobs, seeds_max + 1))
        played += play_all([Order(seed, plant.scenario, plant.number) for seed in seeds], jobs)
        if any(result.findings for result in played[-jobs:]):
            break
    return played


if __name__ == "__main__":
    main()
