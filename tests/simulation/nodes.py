"""Nodes of a simulated world: machines that run one program, lose it, lose their power, and begin again."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from tests.simulation.disk import PowerLost, SimulatedDisk
from tests.simulation.world import Never, SimulatedLoop

if TYPE_CHECKING:
    from tests.simulation.world import World

Program = Callable[["Node"], Coroutine[Any, Any, None]]
"""The main coroutine of a node. It ends with the node, or returns when its work is done."""


class Node:
    """One machine. Its disk outlives its programs; everything else belongs to one life."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.address = f"10.0.0.{len(world.nodes) + 1}"
        self.life = 0
        self.alive = self.powerless = False
        self.skew = 0.0
        """Seconds by which the wall clock of this node is ahead, but for its drift."""
        self._drift, self._drifts_since = 0.0, 0.0
        self.disk = SimulatedDisk()
        self.disk_stalled_until = 0.0
        self.job_seconds_max: dict[str, float] = {}
        """The longest times of most jobs, by the name of their worker; 3 ms without one."""
        self.frozen_until = 0.0
        self.turn_seconds = 0.0
        """Time that each turn takes; above 0 on a slow machine."""
        self.deaths: list[float] = []
        """The seconds of the world at which lives ended."""
        self.unhandled_errors: list[str] = []
        self.watchers: list[Callable[[Node], None]] = []
        """Called after each turn."""
        self.on_terminate: Callable[[], None] | None = None
        """The handler of SIGTERM in this life. A program with one ends its process when it returns."""
        self.program: random.Random
        self.loop: SimulatedLoop
        self.main: asyncio.Task[None]
        self._fatal: tuple[str, Callable[[], None]] | None = None
        self._free_at = 0.0
        self._workers: list[SimulatedWorker] = []
        self._past: list[object] = []  # loops and tasks of earlier lives: a collected coroutine would run its `finally`
        world.nodes.append(self)

    def start(self, program: Program) -> None:
        """Begin a life with this program."""
        assert not self.alive, f"{self.name} runs"
        self.life += 1
        self.alive, self.powerless = True, False
        self._free_at = self.frozen_until = 0.0
        self.on_terminate = self._fatal = None
        self.program = self.world.stream(f"program/{self.name}/{self.life}")
        self.loop = SimulatedLoop(self)
        self.world.note("start", self.name, self.life)
        self.main = self.loop.create_task(program(self))
        self.main.add_done_callback(self._ended)

    def kill(self) -> None:
        """End the process as SIGKILL does. Written bytes stay, connections are closed by the system."""
        self._end("kill", power=False)
        self.disk = self.disk.healthy()

    def power_off(self) -> None:
        """Take the machine's power. Bytes that were not synced may be lost, and peers learn nothing."""
        self._end("power off", power=True)
        self.powerless = True
        self.disk = self.disk.after_power_loss(self.world.stream("disk"))

    def terminate(self) -> None:
        """Ask the program to end, as SIGTERM does. Before it has a handler it is killed."""
        self.world.note("terminate", self.name, self.life)
        if self.on_terminate is None:
            self.kill()
        else:
            self.loop.call_soon(self.on_terminate)

    def freeze(self, seconds: float) -> None:
        """Give the process no turn for so long, and then all that it has missed."""
        self.world.note("freeze", self.name, seconds)
        self.frozen_until = self.world.now + seconds

    def end_at(self, step: str, end: Callable[[], None]) -> None:
        """Call ``end``, which ends this life, once the program reaches this step. Another call replaces it."""
        self._fatal = (step, end)

    async def reached(self, step: str) -> None:
        """Pass a step of the program, or end there; see `end_at`."""
        if self._fatal is not None and self._fatal[0] == step:
            end, self._fatal = self._fatal[1], None
            self.world.after(0, end)
            await self.loop.create_future()

    def drift(self, rate: float) -> None:
        """Let the wall clock run faster by so many seconds a second from now on."""
        self.skew = self.ahead()
        self._drift, self._drifts_since = rate, self.world.now

    def ahead(self) -> float:
        """Return the seconds by which the wall clock is ahead now."""
        return self.skew + self._drift * (self.world.now - self._drifts_since)

    def due(self) -> float:
        """Return the moment of the next turn."""
        if not self.alive:
            return Never
        due = self.loop.due()
        if due < self._free_at:
            due = self._free_at
        return due if due > self.frozen_until else self.frozen_until

    def turn(self) -> None:
        """Run one round of the event loop."""
        self.loop.turn()
        self._free_at = self.world.now + self.turn_seconds
        for watcher in self.watchers:
            watcher(self)

    def worker(self, name: str) -> SimulatedWorker:
        """Start a worker of this life; see `StartWorker`."""
        worker = SimulatedWorker(self, self.job_seconds_max.get(name, 3e-3))
        self._workers.append(worker)
        return worker

    def unhandled(self, context: dict[str, Any]) -> None:
        """Note an error that no one handled: property G1."""
        error = context.get("exception")
        at = traceback.extract_tb(error.__traceback__)[-1:] if error is not None else ()
        where = "".join(f" in {frame.filename}:{frame.lineno}" for frame in at)
        self.unhandled_errors.append(f"{self.world.seconds:.3f} {context.get('message')}: {error!r}{where}")

    def _end(self, how: str, *, power: bool) -> None:
        self.world.note(how, self.name, self.life)
        self.alive = False
        self.deaths.append(self.world.seconds)
        self.world.network.end_of(self, power=power)
        for worker in self._workers:
            worker.die()
        self._workers.clear()
        self._past += [self.loop, asyncio.all_tasks(self.loop), self.main]

    def _ended(self, main: asyncio.Task[None]) -> None:
        if not main.cancelled() and main.exception() is not None and self.alive:
            self.unhandled({"message": "the program failed", "exception": main.exception()})
        elif self.on_terminate is not None and self.alive:
            self._end("exit", power=False)
            self.disk = self.disk.healthy()


class SimulatedWorker:
    """A `Worker` whose jobs happen at later moments of the world's clock, one after the other."""

    def __init__(self, node: Node, seconds_max: float) -> None:
        self._node = node
        self._seconds_max = seconds_max
        self._chance = node.world.stream("disk")
        self._jobs: deque[Callable[[], None]] = deque()
        self._busy = self._dead = False

    def put(self, job: Callable[[], None]) -> None:
        self._jobs.append(job)
        if not self._busy:
            self._begin()

    def stop(self) -> None:
        while self._jobs:
            self._jobs.popleft()()
        self._dead = True

    def die(self) -> None:
        """End in the middle of a job: it has happened, or up to some step of it, or not at all."""
        if self._jobs and self._busy and self._chance.random() < 0.7:
            self._node.disk.die_after(self._chance.randrange(5), self._chance)
            try:
                self._jobs[0]()
            except PowerLost:
                self._node.world.note("job torn", self._node.name)
        self._dead = True

    def _begin(self) -> None:
        self._busy = True
        chance, world = self._chance, self._node.world
        seconds = chance.uniform(0.01, 0.4) if chance.random() < 0.03 else chance.uniform(0.1e-3, self._seconds_max)
        world.at(max(world.now + seconds, self._node.disk_stalled_until), self._finish)

    def _finish(self) -> None:
        if self._dead:
            return
        if self._node.disk_stalled_until > self._node.world.now:
            self._node.world.at(self._node.disk_stalled_until, self._finish)
            return
        job = self._jobs.popleft()
        self._node.world.in_turn_of(self._node, job)
        if self._jobs:
            self._begin()
        else:
            self._busy = False
