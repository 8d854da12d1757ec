"""One simulated world: a clock, nodes with an event loop each, and the events between them.

The world gives turns: to the event that is due first, or to the node whose event loop is. A turn of a node is one round
of its loop, so callbacks keep the order that asyncio promises. Every choice comes from a stream of randomness of its
own, drawn from the seed of the world: the same seed gives the same course of events.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import logging
import random
import socket
import threading
from asyncio import events
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

if TYPE_CHECKING:
    from tests.simulation.network import Network
    from tests.simulation.nodes import Node

Never: Final = float("inf")
_TURN_SECONDS_MAX: Final = 20e-6
_FIRST_MOMENT: Final = 1_000.0
"""The monotonic time at the beginning, in seconds. Above 0, as on a machine that runs for a while."""
_EPOCH_NS: Final = 1_790_000_000 * 10**9

_hashes = count(1)


class Deadlock(Exception):
    """Nothing is due any more, although the scenario has not ended."""


class CountedFuture(asyncio.Future[Any]):
    """A future whose place in a set does not depend on its address."""

    def __init__(self, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._hash = next(_hashes)

    def __hash__(self) -> int:
        return self._hash


class CountedTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        self._hash = next(_hashes)
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._hash


class _NoSelector:
    """A selector without sockets. It never waits, because the world sets the clock."""

    def select(self, timeout: float | None) -> list[object]:
        return []


class SimulatedLoop(asyncio.BaseEventLoop):
    """The event loop of one life of a node. It runs only in the turns that the world gives."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node
        self._selector = _NoSelector()
        self.set_task_factory(lambda loop, coroutine, **options: CountedTask(coroutine, loop=loop, **options))
        self.set_exception_handler(lambda loop, context: node.unhandled(context))

    def time(self) -> float:
        return self.node.world.now

    def due(self) -> float:
        """Return the moment of the next turn; `Never` if nothing is to do."""
        if self._ready:  # type: ignore[attr-defined]
            return 0
        scheduled = self._scheduled  # type: ignore[attr-defined]
        return scheduled[0].when() if scheduled else Never

    def turn(self) -> None:
        """Run one round of callbacks."""
        events._set_running_loop(self)
        self._thread_id = threading.get_ident()
        try:
            self._run_once()  # type: ignore[attr-defined]
        finally:
            self._thread_id = None  # type: ignore[assignment]
            events._set_running_loop(None)

    def create_future(self) -> asyncio.Future[Any]:
        return CountedFuture(loop=self)

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        return await self.node.world.network.connect(self.node, protocol_factory, host, port)

    async def create_server(
        self, protocol_factory: Any, host: Any = None, port: Any = None, *, sock: Any = None, **_: Any
    ) -> Any:
        name, number = (host, port) if sock is None else sock.getsockname()
        return self.node.world.network.listen(self.node, protocol_factory, name, number)

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        node = self.node.world.node(host)
        if node is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (node.address, port))]

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run the function a moment later: the simulation has no threads."""
        result = self.create_future()

        def run() -> None:
            if result.done():
                return
            try:
                result.set_result(func(*args))
            except Exception as error:  # noqa: BLE001 - the caller raises it
                result.set_exception(error)

        self.call_later(self.node.world.stream("disk").uniform(50e-6, 2e-3), run)
        return result

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no sockets."""

    def _write_to_self(self) -> None:
        """Nothing sleeps that would have to be woken."""


class LoggedError(NamedTuple):
    """A record of level ERROR that a program logged."""

    seconds: float
    node: str
    event: str
    """The constant beginning of the message, which names the event."""
    text: str


class ErrorLog(logging.Handler):
    """Keeps the errors that programs log, for the judge."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        world = self._world
        node = world.running.name if world.running is not None else ""
        event = str(record.msg).partition("=")[0].rpartition(" ")[0]
        world.errors.append(LoggedError(world.seconds, node, event, record.getMessage()))


@dataclass(frozen=True, slots=True)
class Reductions:
    """Differences from what the seed says that make a run shorter or plainer, to be read by a person."""

    fault_seconds: float = Never
    """The longest time of faults, in which programs send."""
    plain: tuple[str, ...] = ()
    """Names of the streams of which each draw is the middle of its range."""


class PlainRandom(random.Random):
    """Randomness of which each draw is the middle of its range."""

    def random(self) -> float:
        return 0.5


class World:
    """A clock, the nodes, and everything that is due. One world a process."""

    network: Network

    def __init__(self, seed: int, trace: TextIO | None = None, reductions: Reductions = Reductions()) -> None:
        """Begin at the first moment. ``trace`` receives every event as a line."""
        self.seed = seed
        self.reductions = reductions
        self.now = _FIRST_MOMENT
        self.nodes: list[Node] = []
        self.running: Node | None = None
        self.turns = 0
        self.errors: list[LoggedError] = []
        self.met: Counter[tuple[str, str]] = Counter()
        """How often a kind of fault met a state of its node; see `broker_states`."""
        self._streams: dict[str, random.Random] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._trace = trace
        self._hash = hashlib.sha256()
        self._network = self.stream("network")

    # time and randomness; see `patches.Source`

    @property
    def seconds(self) -> float:
        """The time since the beginning."""
        return self.now - _FIRST_MOMENT

    def monotonic_ns(self) -> int:
        return int(self.now * 1e9)

    def wall_ns(self) -> int:
        ahead = self.running.ahead() if self.running is not None else 0.0
        return _EPOCH_NS + int((self.now + ahead) * 1e9)

    def randomness(self) -> random.Random:
        return self.stream("world") if self.running is None else self.running.program

    def stream(self, name: str) -> random.Random:
        """Return the stream of randomness with this name. Draws from one do not change another."""
        if name not in self._streams:
            kind = PlainRandom if name in self.reductions.plain else random.Random
            self._streams[name] = kind(f"{self.seed}/{name}")
        return self._streams[name]

    # events

    def at_second(self, seconds: float, event: Callable[[], None]) -> None:
        """Call ``event`` so many seconds after the beginning."""
        self.at(_FIRST_MOMENT + seconds, event)

    def at(self, moment: float, event: Callable[[], None]) -> None:
        """Call ``event`` at this moment of the clock."""
        heapq.heappush(self._events, (max(moment, self.now), next(self._order), event))

    def after(self, seconds: float, event: Callable[[], None]) -> None:
        """Call ``event`` so many seconds from now."""
        self.at(self.now + seconds, event)

    def note(self, *parts: object) -> None:
        """Add an event to the trace, whose hash identifies the course of events."""
        line = f"{self.seconds:.6f} " + " ".join(map(str, parts))
        self._hash.update(line.encode())
        if self._trace is not None:
            self._trace.write(line + "\n")

    @property
    def trace_hash(self) -> str:
        """The hash of all events so far."""
        return self._hash.hexdigest()

    def run(self, ended: Callable[[], bool], seconds_max: float) -> bool:
        """Give turns until ``ended`` returns True. Return False if the time is over before. Raise `Deadlock`."""
        limit = self.now + seconds_max
        while not ended():
            due, node = self._next_node()
            event_at = self._events[0][0] if self._events else Never
            if min(due, event_at) > limit:
                if min(due, event_at) == Never:
                    raise Deadlock(f"nothing is due after {self.seconds:.3f} s")
                self.now = limit
                return False
            if event_at <= due:
                self.now = event_at
                heapq.heappop(self._events)[2]()
            else:
                assert node is not None
                self._give_turn(due, node)
        return True

    def node(self, name: str) -> Node | None:
        """Return the node with this host name or address."""
        return next((node for node in self.nodes if name in (node.name, node.address)), None)

    def in_turn_of(self, node: Node, action: Callable[[], None]) -> None:
        """Do something with the clock and the randomness of a node, outside its event loop."""
        before, self.running = self.running, node
        try:
            action()
        finally:
            self.running = before

    def _next_node(self) -> tuple[float, Node | None]:
        now, first = self.now, Never
        chosen: list[Node] = []
        for node in self.nodes:  # the busiest lines of a run
            due = node.due()
            if due < now:
                due = now
            if due < first:
                first, chosen = due, [node]
            elif due == first and chosen:
                chosen.append(node)
        if len(chosen) > 1:
            return first, chosen[int(self._network.random() * len(chosen))]
        return first, chosen[0] if chosen else None

    def _give_turn(self, due: float, node: Node) -> None:
        self.now = due
        self.turns += 1
        self.in_turn_of(node, node.turn)
        self.now += self._network.random() * _TURN_SECONDS_MAX
