"""Play runs of the simulated world; see docs/decisions/0030-simulated-world.md.

Each of RUNS is the number of a seed, several as in ``1-20,50``, or the file of a case. Each run has a process of its
own. A finding makes the command fail, and its report says how to play it again.
"""

from __future__ import annotations

from tests.simulation import patches

patches.install()

import sys  # noqa: E402 - the patches come before anything that may hold the machine's clock
from collections import Counter, defaultdict  # noqa: E402
from collections.abc import Iterable, Iterator, Mapping, Sequence  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402

import click  # noqa: E402

from tests.simulation.broker_states import render  # noqa: E402
from tests.simulation.bugs.planted import ALL  # noqa: E402
from tests.simulation.cases import Case, read_case, render_case  # noqa: E402
from tests.simulation.elsewhere import hash_line, hashes_elsewhere  # noqa: E402
from tests.simulation.figures import SeedFigures, update_seeds  # noqa: E402
from tests.simulation.minimise import SECONDS_MAX, Trials, minimise  # noqa: E402
from tests.simulation.runs import SCENARIOS, Order, Result, play, play_all  # noqa: E402


@click.command(help=__doc__)
@click.argument("runs", nargs=-1, required=True)
@click.option("--scenario", type=click.Choice([*SCENARIOS, "all"]), default="all", show_default=True)
@click.option(
    "--bug", type=click.IntRange(0, max(ALL)), help="Number of a planted bug; 0 = none; by default that of the case."
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes at a time.")
@click.option(
    "--twice",
    is_flag=False,
    flag_value=1,
    type=click.IntRange(1),
    metavar="[=N]",
    help="Play each run, or each Nth of a scenario, again in a process with other hashes and addresses, and compare.",
)
@click.option("--until-found", is_flag=True, help="Stop at the first finding.")
@click.option("--minimise", "minimising", type=click.Path(), help="File for the smallest case with the first finding.")
@click.option("--trace", type=click.Path(), help="File for the events of one run.")
@click.option("--log", type=click.Path(), help="File for the logs of the nodes of one run, with the world's time.")
@click.option("--stop-at", type=float, help="Second of the world at which a debugger opens.")
@click.option("--hashes", is_flag=True, help="Print the hash of each trace.")
@click.option("--coverage", is_flag=True, help="Print how often each kind of fault met each state of a broker.")
@click.option(
    "--figures", type=click.Path(path_type=Path), help="File in which to update the figures of the scenarios."
)
def main(
    runs: Sequence[str],
    scenario: str,
    bug: int | None,
    jobs: int,
    twice: int | None,
    until_found: bool,
    minimising: str | None,
    trace: str | None,
    log: str | None,
    stop_at: float | None,
    hashes: bool,
    coverage: bool,
    figures: Path | None,
) -> None:
    orders = [replace(order, trace=trace, log=log, stop_at=stop_at) for order in _orders(runs, scenario, bug)]
    # a debugger needs the terminal, which a process of its own does not have
    results = (play(order) for order in orders[:1]) if stop_at is not None else play_all(orders, jobs)
    failed = 0
    played: dict[tuple[str, str], list[Result]] = defaultdict(list)
    """Results by scenario and codec."""
    hash_of: dict[Order, str] = {}
    met: Counter[tuple[str, str]] = Counter()
    for result in results:
        played[result.order.scenario, result.codec].append(result)
        hash_of[result.order] = result.trace_hash
        met.update(result.met)
        if hashes:
            click.echo(hash_line(result.order, result.trace_hash))
        if result.findings:
            failed += 1
            click.echo(result.report())
            if minimising is not None:
                _minimise(result, jobs, Path(minimising))
            if until_found or minimising is not None:
                break
    if twice is not None:
        failed += _compare({order: hash_of[order] for order in _every_nth(hash_of, twice)}, jobs)
    if coverage:
        click.echo(render(met))
    if figures is not None:
        update_seeds(figures, [SeedFigures.of(*which, results) for which, results in played.items()])
    codecs = Counter(result.codec for results in played.values() for result in results)
    click.echo("codecs: " + ", ".join(f"{name} {number}" for name, number in sorted(codecs.items())))
    click.echo(f"{codecs.total()} played, {failed} failed")
    sys.exit(1 if failed else 0)


def _orders(runs: Sequence[str], scenario: str, bug: int | None) -> Iterator[Order]:
    names = list(SCENARIOS) if scenario == "all" else [scenario]
    for run in runs:
        if run.endswith(".toml"):
            order = read_case(Path(run)).order
            yield order if bug is None else replace(order, bug=bug)
        else:
            yield from (Order(seed, names[seed % len(names)], bug or 0) for seed in _seeds(run))


def _seeds(ranges: str) -> Iterator[int]:
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _every_nth(orders: Iterable[Order], n: int) -> Iterator[Order]:
    """Yield each Nth order of each scenario, by their seeds."""
    numbers: Counter[str] = Counter()
    for order in sorted(orders, key=lambda order: order.seed):
        numbers[order.scenario] += 1
        if numbers[order.scenario] % n == 0:
            yield order


def _compare(hash_of: Mapping[Order, str], jobs: int) -> int:
    """Report the runs whose traces differ elsewhere, and return their number."""
    elsewhere = hashes_elsewhere(list(hash_of), jobs)
    differing = [order for order in hash_of if elsewhere[order.scenario, order.seed] != hash_of[order]]
    for order in differing:
        click.echo(f"{order.scenario} {order.seed}: played twice, the traces differ; again: {order.command} --twice")
    return len(differing)


def _minimise(result: Result, jobs: int, path: Path) -> None:
    """Write the smallest case of a result into a file."""
    began = patches.real_monotonic()
    broken = result.properties[0]
    trials = Trials(broken, jobs, until=began + SECONDS_MAX)
    smallest = minimise(result.order, result.faults, trials.first_broken)
    path.write_text(render_case(Case(smallest, broken)))
    seconds = patches.real_monotonic() - began
    click.echo(f"{broken} with {len(smallest.faults or ())} of {len(result.faults)} faults: {path}")
    click.echo(f"{trials.count} runs in {seconds:.0f} s; again: python -m tests.simulation.play {path}")


if __name__ == "__main__":
    main()
