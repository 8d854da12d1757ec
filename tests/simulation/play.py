"""Play seeds of the simulation: ``python -m tests.simulation.play SEED``."""

from __future__ import annotations

from tests.simulation import patches

patches.install()

import gc  # noqa: E402
import multiprocessing  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402

import click  # noqa: E402

from tests.simulation.scenarios.single import SingleBroker  # noqa: E402
from tests.simulation.world import World  # noqa: E402


def play(seed: int) -> None:
    gc.disable()
    world = World(seed, sys.stdout if os.environ.get("T") else None)
    patches.enter(world)
    began = patches.real_process_time()
    scenario = SingleBroker(world)
    faults = scenario.plan()
    for fault in faults:
        print(fault)
    findings = scenario.run(faults)
    h = scenario.history
    print(seed, world.trace_hash[:12], f"{world.seconds:.1f} s", world.turns, "turns", patches.real_process_time() - began, len(h.sent), len(h.receipts), len(h.deliveries), len(h.stored))
    for finding in findings[:20]:
        print("   ", finding)


if __name__ == "__main__":
    for seed in map(int, sys.argv[1:]):
        pid = os.fork()
        if pid == 0:
            try:
                play(seed)
            except BaseException:
                import traceback
                traceback.print_exc()
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(pid, 0)
