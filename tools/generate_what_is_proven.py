"""Writes ``docs/reference/what-is-proven.md`` from the simulated world: its properties, scenarios, bugs and figures.

    python -m tools.generate_what_is_proven

Nothing is played: `make sim-proof` and `python -m tests.simulation.play --figures` measure the figures.
"""

# ruff: noqa: E501 - the page is prose, wrapped by hand

from __future__ import annotations

import ast
import re
import statistics
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.simulation.bugs.planted import PLANTS, Plant
from tests.simulation.cases import FOUND
from tests.simulation.figures import PlantFigures, SeedFigures, read_plants, read_seeds
from tests.simulation.properties import PROPERTIES, SUBJECTS
from tests.simulation.runs import SCENARIOS
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.test_seeds import FAST, FIXED_SLOW, NEW_SEEDS

_ROOT: Final = Path(__file__).parents[1]
PAGE: Final = _ROOT / "docs" / "reference" / "what-is-proven.md"
_SIMULATION: Final = _ROOT / "tests" / "simulation"
_SILENT: Final = ("properties.py", "test_seeds.py")
"""Modules of the simulation that name properties without judging them."""

_HEAD: Final = """# What is proven

Written by `tools/generate_what_is_proven.py`; do not edit.

This page lists what Interpulse promises and how each promise is tried. Trials show faults, never their absence.
*Proven* means that the trials below find the bugs that we plant, and nothing else that is not fixed.

## What is not proven

* **Kernels, file systems and disks.** We simulate a disk that loses, tears or zeroes everything that was not synced.
  A disk that loses what it reported as synced loses messages.
* **Sockets and TLS.** In the simulation bytes arrive late, in pieces or not at all, but always unchanged. Tests with
  real programs use one machine and its loopback network. No test runs between machines or data centres.
* **SQLite.** A simulated broker keeps its metadata in memory, where a commit is stored as a whole or not at all. Only
  tests with real processes use SQLite.
* **The inside of ZooKeeper and BookKeeper.** Simulated brokers talk to servers that we wrote, by the same protocols.
  Bugs of the real servers appear only in tests with the real servers, which meet few orders of events.
* **uvloop.** The simulation has an event loop of its own. Only tests with real processes run on uvloop.
* **Java and Spark.** The simulation takes the steps of the replication job in the order of Spark, but without Spark.
  Real jobs are killed a few times, not thousands of times.
* **Races within threads.** Simulated threads do one job after another. The threads of the log, of the blocking client
  and of Spark's workers run freely only in tests with real programs.
* **Speed, and long times.** No trial judges how fast a broker is, and none runs for days.

## How it is tried

| trial | content | when |
| --- | --- | --- |
"""

_PROPERTIES_HEAD: Final = """
## Properties

The third column says whether the simulation judges the property. The last one has the numbers of the
[planted bugs](#planted-bugs) that broke it and were found.
"""

_SCENARIOS_HEAD: Final = """
## Scenarios

Each seed is one run, and decides its sizes, its load, its faults and the order of events. Processes are killed and
frozen, machines lose power, connections break or fall silent, networks divide, disks fail, stall and fill up, clocks
jump.

| scenario | content | seeds | faults | hours | seeds with findings |
| --- | --- | --- | --- | --- | --- |
"""

_PLANTS_HEAD: Final = """
## Planted bugs

A judge that finds nothing proves nothing. So we plant bugs, one at a time, each in one place of the code, and play
seeds 1, 2, 3 and so on until a property is broken.

| | planted bug | scenario | found at seed | by |
| --- | --- | --- | --- | --- |
"""


def page() -> str:
    """The whole page."""
    return "".join((_HEAD, *_trials(), _PROPERTIES_HEAD, *_properties(), *_scenarios(), *_plants()))


def judged() -> set[str]:
    """The properties that modules of the simulation look for."""
    modules = [path for path in _SIMULATION.rglob("*.py") if path.name not in _SILENT]
    texts = (
        node.value
        for path in modules
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
    )
    return {text for text in texts if isinstance(text, str) and re.fullmatch("[A-Z][0-9]", text)}


def _trials() -> Iterator[str]:
    fast = ", ".join(f"{seeds} of `{name}`" for name, seeds in FAST.items())
    fixed = f"fixed seeds ({fast}, {FIXED_SLOW} of each other scenario)"
    cases = len(list(FOUND.glob("*.toml")))
    yield from (
        "| simulation | brokers, clients, proxies and servers in one process, with a simulated clock, network and disks "
        f"| every push: {fixed}, {NEW_SEEDS} new seeds, {cases} cases of earlier findings; `make soak`: new seeds by the thousand |\n",
        "| planted bugs | the simulation with a bug that it must find | before a release, by `make sim-proof` |\n",
        "| real kills | processes of brokers, jobs and servers are killed and paused under load "
        "| every push; `make soak`: for longer |\n",
        "| interop | official Python, Java and Go clients use our broker; our client, command line and jobs use a real Pulsar "
        "| every push |\n",
        "| rolling replacement | under load, real brokers of a cluster are replaced by ours and back | `make soak` |\n",
        "| linearizability | porcupine judges histories of metadata on a real ZooKeeper | every push |\n",
        "| models | TLC visits every state of two [models](../models/README.md) | every push |\n",
        "| fuzzing | hostile bytes for every parser, guided by coverage "
        "| every push: seconds for each; `make soak`: a minute for each |\n",
    )
    yield "\nThe same seed gives the same run to the byte, which a second process checks.\n"


def _properties() -> Iterator[str]:
    looked_for = judged()
    for subject in SUBJECTS:
        yield f"\n### {subject.title}\n\n| | property | judged | found |\n| --- | --- | --- | --- |\n"
        for number, promise in subject.properties.items():
            found = ", ".join(str(plant.number) for plant in PLANTS.values() if number in _found_by(plant))
            yield f"| {number} | {promise} | {'yes' if number in looked_for else 'no'} | {found} |\n"
        yield f"\n{textwrap.fill(f'With real programs and models: {subject.elsewhere}', 120, break_on_hyphens=False)}\n"


def _scenarios() -> Iterator[str]:
    yield _SCENARIOS_HEAD
    figures = [each for each in read_seeds().values() if each.scenario in SCENARIOS]
    for name, scenario in SCENARIOS.items():
        runs = [each for each in figures if each.scenario == name]
        yield f"| `{name}` | {_content(scenario)} | {_seeds(runs) if runs else '| | |'} |\n"
    cpu_minutes = sum(each.cpu_seconds for each in figures) / 60
    codecs = " and ".join(sorted({each.codec for each in figures}))
    yield f"| all | | {_seeds(figures)} |\n\n"
    yield f"Hours are those of the simulated clock; they took {cpu_minutes:.0f} minutes of processor time (codec: {codecs}).\n"


def _content(scenario: type[Scenario]) -> str:
    """The first sentence of a scenario's module, with names in place of numbers in the specification."""
    names = {_sentence(each)[:2]: f"`{name}`" for name, each in SCENARIOS.items() if _sentence(each)[2:3] == ":"}
    text = re.sub(r"^S[0-9][^:]*: ", "", _sentence(scenario)).rstrip(".")
    return re.sub(r"\bS[0-9]\b", lambda number: names.get(number[0], number[0]), text[:1].lower() + text[1:])


def _sentence(scenario: type[Scenario]) -> str:
    return (sys.modules[scenario.__module__].__doc__ or "").partition("\n")[0]


def _seeds(runs: list[SeedFigures]) -> str:
    hours = sum(each.world_seconds for each in runs) / 3600
    counts = (sum(each.seeds for each in runs), sum(each.faults for each in runs))
    return " | ".join((*(f"{count:,}" for count in counts), f"{hours:.1f}", f"{sum(each.failed for each in runs):,}"))


def _plants() -> Iterator[str]:
    yield _PLANTS_HEAD
    for plant in PLANTS.values():
        figures = _figures(plant)
        seed = "not played yet" if figures is None else "not found" if figures.seed is None else figures.seed
        yield f"| {plant.number} | {plant.text} | `{plant.scenario}` | {seed} | {' '.join(_found_by(plant))} |\n"
    all_figures = [figures for plant in PLANTS.values() if (figures := _figures(plant))]
    seeds = [each.seed for each in all_figures if each.seed is not None]
    cpu_minutes = sum(each.cpu_seconds for each in all_figures) / 60
    yield f"\nFound: {len(seeds)} of {len(PLANTS)}. Median of the seeds needed: {statistics.median(seeds):g}. "
    yield f"Processor time: {cpu_minutes:.0f} minutes.\n"


def _found_by(plant: Plant) -> list[str]:
    figures = _figures(plant)
    return [number for number in PROPERTIES if figures and number in figures.properties]


def _figures(plant: Plant) -> PlantFigures | None:
    """The figures of a plant, unless it has moved to another scenario since."""
    figures = read_plants().get(plant.number)
    return figures if figures and figures.scenario == plant.scenario else None


if __name__ == "__main__":
    PAGE.write_text(page())
