"""Writes ``docs/reference/what-is-proven.md``: each promise, how it is tried, and the figures of the last proof.

The figures come from ``tests/simulation/figures.toml``, which ``make sim-proof`` writes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "reference" / "what-is-proven.md"
FIGURES: Final = ROOT / "tests" / "simulation" / "figures.toml"

_HEAD: Final = """# What is proven

Written by `tools/generate_what_is_proven.py`; do not edit.

This page lists what Interpulse promises about your messages, and how each promise is tried. None of this is a mathematical proof of the
program: it says which faults were tried, how often, and what was compared afterwards.

* **Simulation**: brokers, clients, proxies, ZooKeeper, bookies and replication run in one process with a simulated clock, network and disks
  ([decision 0030](../decisions/0030-simulated-world.md)). A seed decides the faults and the moment of each, so that a failure can be played again.
* **Processes**: real brokers are killed with SIGKILL, paused and cut off, on real disks.
* **Official clients**: Pulsar's clients for Java, Go, Node.js and Python, and a real Apache Pulsar, with the same checks.
* **Fuzzing**: arbitrary bytes for every parser.

## Promises

"""

_LIMITS: Final = """
## What this does not cover

* The simulation does not try kernels, sockets, SQLite, real ZooKeeper and BookKeeper, uvloop, Java, Spark, and races inside threads. Suites with real
  processes try these, at fewer moments.
* A disk that answers a sync with success and has not stored the bytes loses messages, as with any store.
* Two copies of the same data directory, or clocks that differ by more than the session timeout of ZooKeeper allows, are outside of what is tried.
"""


class Promise(NamedTuple):
    """A row of the page: the letters of its properties, the promise, and the files or scenarios that try it."""

    letters: str
    text: str
    scenarios: Sequence[str]
    suites: Sequence[str] = ()


PROMISES: Final = (
    Promise(
        "L1, L5, L7",
        "A message with a receipt is stored, under the position of its receipt, after any crash",
        ("single", "proxied"),
        ("tests/durability/test_broker_kill.py", "tests/durability/test_log_faults.py"),
    ),
)


def page() -> str:
    """Return the whole page."""
    figures = tomllib.loads(FIGURES.read_text())
    return "".join((_HEAD, *_promises(), *_seeds(figures), *_plants(figures), _LIMITS))


def _promises() -> Iterator[str]:
    yield "| property | promise | scenarios of the simulation | suites |\n| --- | --- | --- | --- |\n"
    for promise in PROMISES:
        suites = ", ".join(f"`{suite}`" for suite in promise.suites)
        yield f"| {promise.letters} | {promise.text} | {', '.join(promise.scenarios)} | {suites} |\n"


def _seeds(figures: dict[str, Any]) -> Iterator[str]:
    yield f"\n## Seeds\n\nPlayed without a finding on {figures['date']}, by `{figures['command']}`:\n\n"
    yield "| scenario | seeds | seconds of the world | faults |\n| --- | --- | --- | --- |\n"
    for name, scenario in figures["scenarios"].items():
        yield f"| {name} | {scenario['seeds']:,} | {scenario['seconds']:,} | {scenario['faults']:,} |\n"


def _plants(figures: dict[str, Any]) -> Iterator[str]:
    yield "\n## Planted bugs\n\nA judge that finds nothing may be blind. `make sim-proof` plants bugs, one at a time, and plays seeds until each is\n"
    yield "found.\n\n| bug | scenario | first seed | property |\n| --- | --- | --- | --- |\n"
    for plant in figures["plants"]:
        yield f"| {plant['name']} | {plant['scenario']} | {plant['seed']} | {plant['property']} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
