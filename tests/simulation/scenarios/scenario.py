"""A scenario: the nodes of one run, the time of its faults, and the quiet time after them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from tests.simulation.faults import Fault, Injector, Targets, plan
from tests.simulation.judge import Finding, Interval
from tests.simulation.network import Network
from tests.simulation.nodes import Node, Program
from tests.simulation.workload import KEEP_ALIVE_MS
from tests.simulation.world import World

QUIET_SECONDS_MAX: Final = 120.0
"""The time in which everything must come right once the faults have ended."""
_NOTICED_SECONDS: Final = 2.5 * KEEP_ALIVE_MS / 1000
"""The time in which a client notices that its connection is dead."""
_FLUSH_SECONDS: Final = 5.0
"""The time in which an acknowledgement reaches the metadata, slow disks included."""


class Scenario(Protocol):
    """A class with the nodes and programs of one kind of run, created in a new world."""

    def __init__(self, world: World) -> None: ...

    def plan(self) -> list[Fault]:
        """Draw the faults of this seed."""

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        """Run with these faults, and judge. Called once."""

    def events_of(self, findings: Sequence[Finding]) -> list[str]:
        """Return the history of what the first finding is about."""


class Course:
    """The course of a run: nodes start, faults happen, everything is brought back, and becomes quiet."""

    def __init__(self, world: World, targets: Targets, seconds: float) -> None:
        """``seconds`` is the time of the faults."""
        world.network = Network(world)
        self.world = world
        self.programs: dict[str, Program] = {}
        self.findings: list[Finding] = []
        self._targets = targets
        self._seconds = seconds
        self._begin = 0.0
        self._faults: Sequence[Fault] = ()

    def add(self, name: str, program: Program) -> Node:
        """Add a node with the program that it runs in each life."""
        self.programs[name] = program
        return Node(self.world, name)

    def plan(self) -> list[Fault]:
        """Draw the faults of this seed."""
        return plan(self.world.stream("faults"), self._targets, self._seconds)

    def start(self) -> None:
        """Start all nodes, in the order in which they were added."""
        for node in self.world.nodes:
            node.start(self.programs[node.name])

    def faults(self, faults: Sequence[Fault]) -> None:
        """Let the faults happen, and end them."""
        injector = Injector(self.world, self.programs)
        self._begin, self._faults = self.world.seconds, faults
        injector.schedule(faults)
        self.world.run(lambda: False, self._seconds)
        injector.end_all()

    def quiet(self, reached: Callable[[], bool], when: str, *, letter: str = "S1") -> None:
        """Wait until this is reached. It is a finding if that takes too long."""
        if not self.world.run(reached, QUIET_SECONDS_MAX):
            self.findings.append(Finding(letter, f"not reached within {QUIET_SECONDS_MAX:.0f} s: {when}"))

    def restart(self, *nodes: Node) -> None:
        """Take the power of these nodes, and start them again."""
        for node in nodes:
            node.power_off()
        for node in nodes:
            node.start(self.programs[node.name])

    def excuses(self, harmless: Collection[str] = ()) -> list[Interval]:
        """Return the times in which acknowledgements may be lost. ``harmless`` are kinds of faults without effect."""
        return [
            Interval(
                self._begin + fault.at - _FLUSH_SECONDS,
                self._begin + fault.ends() + _NOTICED_SECONDS + _FLUSH_SECONDS,
            )
            for fault in self._faults
            if fault.kind not in harmless
        ]

    def unhandled(self) -> list[Finding]:
        """Return the errors that no one handled, of all nodes."""
        return [Finding("G1", f"{node.name}: {error}") for node in self.world.nodes for error in node.unhandled_errors]
