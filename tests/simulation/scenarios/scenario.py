"""A scenario: the nodes of one run, the time of its faults, and the quiet time after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from tests.simulation.faults import Fault, Injector, Targets, plan
from tests.simulation.judge import Finding, History, Interval
from tests.simulation.network import Network
from tests.simulation.nodes import Node, Program
from tests.simulation.workload import KEEP_ALIVE_MS, Workload
from tests.simulation.world import World

QUIET_SECONDS_MAX: Final = 120.0
"""The time in which everything must come right once the faults have ended."""
_NOTICED_SECONDS: Final = 2.5 * KEEP_ALIVE_MS / 1000
"""The time in which a client notices that its connection is dead."""
_FLUSH_SECONDS: Final = 5.0
"""The time in which an acknowledgement reaches the metadata, slow disks included."""

_KEPT_BY_CHECKSUMS: Final = ("L2", "L3", "L4", "G1")


_STILL_SECONDS: Final = 20.0
"""The time before and after the last restart, in which every acknowledgement becomes firm."""
_DISK_FAULTS: Final = {"sync fails", "write fails", "disk full", "directory sync fails"}
UNREACHABLE: Final = {
    *("kill", "power off", "freeze", "slow node", "cut", "half open", "stall link", "storm", "refuse"),
    *("accept and close", "silence", "partition", "slow network", "cut off"),
}
"""Faults by which a node cannot reach another for a while."""
EXCUSED_ERRORS: Final = {
    "log write failed": _DISK_FAULTS,
    "topic fenced": {*_DISK_FAULTS, "bit flips"},
    "no room left, producers are refused until there is": {"disk full"},
    "read failed": {"reads fail", "bit flips"},
    "stop timed out": {"stall disk"},
    "log is damaged": {"bit flips"},
    "log records of unknown ledgers are lost": {"bit flips"},
}
"""Events that programs log as errors, each with the kinds of faults that excuse it."""


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
        self.excused = dict(EXCUSED_ERRORS)
        """Events that programs may log as errors; a scenario may add its own."""
        self.roles: dict[str, Callable[[], str]] = {}
        """Roles that faults may hit, with the nodes that play them now."""
        self.own_faults: dict[str, Callable[[Fault], None]] = {}
        """Kinds of faults that only this scenario knows."""
        self._targets = targets
        self._seconds = min(seconds, world.reductions.fault_seconds)
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
        """Start all nodes that do not run yet, in the order in which they were added."""
        for node in (node for node in self.world.nodes if not node.alive):
            node.start(self.programs[node.name])

    def faults(self, faults: Sequence[Fault]) -> None:
        """Let the faults happen, and end them."""
        injector = Injector(self.world, self.programs, self._targets.brokers, self.roles, self.own_faults)
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

    def times(self) -> list[Interval]:
        """Return the time of each fault."""
        return [
            Interval(self._begin + fault.at, self._begin + min(fault.ends(), self._seconds)) for fault in self._faults
        ]

    def excuses(self, faults: Sequence[Fault] | None = None) -> list[Interval]:
        """Return the times in which acknowledgements may be lost, and answers fail; by default of all faults."""
        return [
            Interval(
                self._begin + fault.at - _FLUSH_SECONDS,
                self._begin + min(fault.ends(), self._seconds) + _NOTICED_SECONDS + _FLUSH_SECONDS,
            )
            for fault in (self._faults if faults is None else faults)
        ]

    def verdict(self, history: History) -> list[Finding]:
        """Return all findings. After a bit has flipped, messages may be lost, but no other may take their place."""
        findings = self.findings + history.judge(self.excuses()) + self.unhandled()
        flipped = any(fault.kind == "bit flips" for fault in self._faults)
        return [each for each in findings if not flipped or each.property in _KEPT_BY_CHECKSUMS]

    def unhandled(self) -> list[Finding]:
        """Return the errors that no one handled, and those in the logs that no fault excuses."""
        kinds = {fault.kind for fault in self._faults}
        return [
            *(Finding("G1", f"{node.name}: {error}") for node in self.world.nodes for error in node.unhandled_errors),
            *(
                Finding("G1", f"{error.node} logged at {error.seconds:.3f}: {error.text}")
                for error in self.world.errors
                if not kinds & self.excused.get(error.event, set())
            ),
        ]


def play_messages(
    course: Course,
    workload: Workload,
    faults: Sequence[Fault],
    *,
    restarted: Sequence[Node],
    in_quiet: Callable[[], None] = lambda: None,
) -> list[Finding]:
    """Run a topic through faults, a quiet time and a loss of power of the ``restarted`` nodes, and judge it.

    ``in_quiet`` is called before the topic is read at the end.
    """
    course.start()
    course.faults(faults)
    workload.sending = False
    course.quiet(workload.all_delivered, "everything is sent and delivered after the faults")
    course.world.run(lambda: False, _STILL_SECONDS)
    course.restart(*restarted)
    course.quiet(workload.all_delivered, "everything is delivered after the last restart")
    course.world.run(lambda: False, _STILL_SECONDS)
    in_quiet()
    reader = course.add("reader", workload.read)
    reader.start(workload.read)
    course.quiet(reader.main.done, "the topic is read from its beginning to its end", letter="L7")
    return course.verdict(workload.history)
