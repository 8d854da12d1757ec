"""Play seeds of the simulated world; see docs/decisions/0030-simulated-world.md.

``python -m tests.simulation.play SEED`` plays one seed, ``FIRST-LAST`` several, each in a process of its own. A finding
makes the command fail, and its report says how to play it again.
"""

from __future__ import annotations

from tests.simulation import patches

patches.install()

import sys  # noqa: E402 - the patches come before anything that may hold the machine's clock

import click  # noqa: E402

from tests.simulation.bugs.planted import PLANTS  # noqa: E402
from tests.simulation.runs import SCENARIOS, Order, play_all  # noqa: E402


@click.command(help=__doc__)
@click.argument("seeds")
@click.option("--scenario", type=click.Choice([*SCENARIOS, "all"]), default="all", show_default=True)
@click.option("--bug", type=click.IntRange(0, max(PLANTS)), default=0, help="Number of a planted bug; 0 = none.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes at a time.")
@click.option("--twice", is_flag=True, help="Play each seed twice, and compare the traces.")
@click.option("--until-found", is_flag=True, help="Stop at the first finding.")
@click.option("--trace", type=click.Path(), help="File for the events of one seed.")
@click.option("--log", type=click.Path(), help="File for the logs of the nodes, with the time of the world.")
@click.option("--hashes", is_flag=True, help="Print the hash of each trace.")
def main(
    seeds: str,
    scenario: str,
    bug: int,
    jobs: int,
    twice: bool,
    until_found: bool,
    trace: str | None,
    log: str | None,
    hashes: bool,
) -> None:
    first, _, last = seeds.partition("-")
    names = list(SCENARIOS) if scenario == "all" else [scenario]
    orders = [
        Order(seed, names[seed % len(names)], bug, trace=trace, log=log)
        for seed in range(int(first), int(last or first) + 1)
        for _ in range(2 if twice else 1)
    ]
    seen: dict[tuple[int, str], str] = {}
    failed = played = 0
    for result in play_all(orders, jobs):
        played += 1
        key = (result.order.seed, result.order.scenario)
        if hashes:
            click.echo(f"{result.order.scenario} {result.order.seed} {result.trace_hash}")
        if seen.setdefault(key, result.trace_hash) != result.trace_hash:
            failed += 1
            click.echo(f"{result.order.scenario} {result.order.seed}: played twice, the traces differ")
        if result.findings:
            failed += 1
            click.echo(result.report())
            if until_found:
                break
    click.echo(f"{played} played, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
