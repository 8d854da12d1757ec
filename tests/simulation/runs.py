"""Runs of seeds, each in a process that is forked for it, so that nothing of one is left in the next."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Final

from interpulse.wire.codec import codec
from tests.simulation import patches, web
from tests.simulation.bugs.planted import ALL
from tests.simulation.faults import Fault
from tests.simulation.judge import Finding
from tests.simulation.scenarios.admin import Administration
from tests.simulation.scenarios.imports import Imports
from tests.simulation.scenarios.lanes import Lanes
from tests.simulation.scenarios.lifecycle import Lifecycle
from tests.simulation.scenarios.lookups import Lookups
from tests.simulation.scenarios.mesh import Mesh
from tests.simulation.scenarios.orderly_stop import OrderlyStops
from tests.simulation.scenarios.proxied import ProxiedBroker
from tests.simulation.scenarios.proxied_cluster import ProxiedCluster
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.shared import SharedCluster
from tests.simulation.scenarios.single import SingleBroker
from tests.simulation.scenarios.subscriptions import Subscriptions
from tests.simulation.world import Deadlock, ErrorLog, Reductions, World

SCENARIOS: Final[dict[str, type[Scenario]]] = {
    "single": SingleBroker,
    "proxied": ProxiedBroker,
    "lifecycle": Lifecycle,
    "admin": Administration,
    "subscriptions": Subscriptions,
    "stops": OrderlyStops,
    "imports": Imports,
    "lookups": Lookups,
    "shared": SharedCluster,
    "proxied_cluster": ProxiedCluster,
    "lanes": Lanes,
    "mesh": Mesh,
}
_SHOWN_MAX: Final = 5
_fork = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Order:
    """A seed to play."""

    seed: int
    scenario: str
    bug: int = 0
    faults: Sequence[Fault] | None = None
    """The faults in place of those that the seed draws."""
    reductions: Reductions = field(default_factory=Reductions)
    trace: str | None = None
    log: str | None = None
    stop_at: float | None = None
    """The second of the world at which a debugger opens."""
    file: str | None = None
    """The file that holds this order."""

    @property
    def command(self) -> str:
        """The command that plays it again."""
        bug = f" --bug {self.bug}" if self.bug or self.file else ""
        what = self.file or f"{self.seed} --scenario {self.scenario}"
        return f"python -m tests.simulation.play {what}{bug}"


@dataclass(slots=True)
class Result:
    """What came of it."""

    order: Order
    codec: str = ""
    """The name of the frame codec of its programs."""
    trace_hash: str = ""
    findings: list[Finding] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    """The history of the first finding's message."""
    faults: list[Fault] = field(default_factory=list)
    seconds: float = 0.0
    """Seconds of the world."""
    cpu_seconds: float = 0.0
    turns: int = 0
    met: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often a kind of fault met a state of a broker."""

    @property
    def properties(self) -> list[str]:
        """The broken properties, beginning with the one that tells most: of a message, if there is one."""
        ordered = sorted(self.findings, key=lambda finding: not finding.payload)
        return list(dict.fromkeys(finding.property for finding in ordered))

    def report(self) -> str:
        """Return the lines to print for a finding."""
        run = f"{self.order.scenario} {self.order.seed}, {self.codec} codec"
        lines = [f"{run}: broken {' '.join(self.properties)}; again: {self.order.command}"]
        lines += [f"  {finding}" for finding in self.findings[:_SHOWN_MAX]]
        lines += [f"    {event}" for event in self.events[-10:]]
        lines += [f"  {fault}" for fault in self.faults]
        return "\n".join(lines)


def play_all(orders: Iterable[Order], jobs: int) -> Iterator[Result]:
    """Play all orders, so many at a time, and yield each result when it is there."""
    waiting = iter(orders)
    running: dict[Connection, ForkProcess] = {}
    try:
        while True:
            while len(running) < jobs and (order := next(waiting, None)) is not None:
                ours, theirs = _fork.Pipe(duplex=False)
                process = _fork.Process(target=_play_and_send, args=(order, theirs))
                process.start()
                theirs.close()
                running[ours] = process
            if not running:
                return
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                try:
                    yield ready.recv()
                except EOFError:
                    raise RuntimeError("a run ended before it had a result, for the reason above") from None
                ready.close()
                running.pop(ready).join()
    finally:
        for process in running.values():
            process.kill()


def _play_and_send(order: Order, results: Connection) -> None:
    try:
        results.send(play(order))
    finally:
        results.close()
        os._exit(0)  # nothing of the world may run any more


def play(order: Order) -> Result:
    """Play in this process, which must not play another one."""
    gc.disable()
    result = Result(order)
    began = patches.real_process_time()
    if order.bug:
        ALL[order.bug].plant()
    with open(order.trace or os.devnull, "w") as trace:
        world = World(order.seed, trace if order.trace else None, order.reductions)
        os.environ.setdefault("INTERPULSE_CODEC", world.stream("codec").choice(("", "python")))
        result.codec = codec().name
        patches.enter(world)
        web.use_simulated_network()
        _log_to(order.log, world)
        if order.stop_at is not None:
            world.at_second(order.stop_at, breakpoint)
        scenario = SCENARIOS[order.scenario](world)
        result.faults = list(scenario.plan() if order.faults is None else order.faults)
        try:
            result.findings = scenario.run(result.faults)
            result.events = scenario.events_of(result.findings)
        except Deadlock as deadlock:
            result.findings = [Finding("G1", str(deadlock))]
        except Exception:  # noqa: BLE001 - it is reported with the seed, like a finding
            result.findings = [Finding("G1", traceback.format_exc())]
    result.met = world.met
    result.trace_hash, result.turns, result.seconds = world.trace_hash, world.turns, world.seconds
    result.cpu_seconds = patches.real_process_time() - began
    return result


def _log_to(path: str | None, world: World) -> None:
    root = logging.getLogger()
    root.handlers[:] = [ErrorLog(world)]
    if path is not None:
        handler = logging.FileHandler(path, mode="w")
        handler.setFormatter(logging.Formatter("%(world)s %(levelname)s %(name)s %(message)s"))
        handler.addFilter(lambda record: _place(record, world))
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)


def _place(record: logging.LogRecord, world: World) -> bool:
    """Give a record the time of the world and the node that it comes from."""
    record.world = f"{world.seconds:.6f} {world.running.name if world.running is not None else '-'}"
    return True
