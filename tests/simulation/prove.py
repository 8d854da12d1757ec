"""Prove the judge: every planted bug is found by its scenario within the first seeds."""

from __future__ import annotations

from tests.simulation import patches

patches.install()

import statistics  # noqa: E402 - the patches come before anything that may hold the machine's clock
import sys  # noqa: E402

import click  # noqa: E402

from tests.simulation.bugs.planted import PLANTS, Plant  # noqa: E402
from tests.simulation.runs import Order, Result, play_all  # noqa: E402


@click.command(help=__doc__)
@click.option(
    "--seeds", "seeds_max", type=click.IntRange(1), default=200, show_default=True, help="Seeds for each bug."
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes at a time.")
def main(seeds_max: int, jobs: int) -> None:
    needed: list[int] = []
    missed = 0
    for plant in PLANTS.values():
        found = _first_found(plant, seeds_max, jobs)
        if found is None:
            missed += 1
            click.echo(f"{plant.number:3} {plant.name:45} {plant.scenario:10} not found")
        else:
            needed.append(found.order.seed)
            line = f"{plant.number:3} {plant.name:45} {plant.scenario:10} seed {found.order.seed:3}"
            click.echo(f"{line}  {' '.join(found.properties)}")
    if needed:
        click.echo(f"median of the seeds needed: {statistics.median(needed):g}")
    sys.exit(1 if missed else 0)


def _first_found(plant: Plant, seeds_max: int, jobs: int) -> Result | None:
    """Return the result of the first seed that finds the bug."""
    for first in range(1, seeds_max + 1, jobs):
        seeds = range(first, min(first + jobs, seeds_max + 1))
        results = list(play_all([Order(seed, plant.scenario, plant.number) for seed in seeds], jobs))
        found = [result for result in results if result.findings]
        if found:
            return min(found, key=lambda result: result.order.seed)
    return None


if __name__ == "__main__":
    main()
