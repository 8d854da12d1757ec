"""The same runs in a process with other hashes of text and other addresses: their traces must not differ."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from tests.simulation.runs import Order

_HASH_SEED = "20"
"""`make sim` plays under 0."""


def hashes_elsewhere(orders: Sequence[Order], jobs: int) -> dict[tuple[str, int], str]:
    """Play orders, and return the hash of each trace by scenario and seed."""
    hashes: dict[tuple[str, int], str] = {}
    for scenario, bug in dict.fromkeys((order.scenario, order.bug) for order in orders):
        chosen = [order for order in orders if (order.scenario, order.bug) == (scenario, bug)]
        runs = [order.file or str(order.seed) for order in chosen]
        options = [f"--scenario={scenario}", f"--bug={bug}", f"--jobs={jobs}", "--hashes"]
        command = [*_fixed_addresses(), sys.executable, "-m", "tests.simulation.play", *runs, *options]
        environment = {**os.environ, "PYTHONHASHSEED": _HASH_SEED}
        played = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        hashes.update(_hashes(played.stdout))
    return hashes


def hash_line(order: Order, trace_hash: str) -> str:
    """Return the line that `hashes_elsewhere` reads."""
    return f"trace {order.scenario} {order.seed} {trace_hash}"


def _hashes(lines: str) -> dict[tuple[str, int], str]:
    words = [line.split() for line in lines.splitlines() if line.startswith("trace ")]
    return {(scenario, int(seed)): trace_hash for _, scenario, seed, trace_hash in words}


def _fixed_addresses() -> list[str]:
    """Return the beginning of a command that runs without random addresses, where the system allows it."""
    command = ["setarch", "-R"]
    if shutil.which("setarch") is None:
        return []
    return command if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0 else []
