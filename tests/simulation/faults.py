"""Faults of a simulated world: planned as a list before the run, so that a list can be shortened and played again."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from tests.simulation.broker_states import states_of

if TYPE_CHECKING:
    from tests.simulation.network import SimulatedTransport
    from tests.simulation.nodes import Node, Program
    from tests.simulation.world import World

AIM_SECONDS_MAX: Final = 7.0
"""The longest wait of a fault for a state: a session ends within it, and another broker takes over."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its moment, kind and targets. What the numbers mean depends on the kind; see `_KINDS`."""

    at: float
    """Seconds after the beginning of the faults."""
    kind: str
    node: str
    """The name of a node, or a role such as owner: the node that plays it at that moment."""
    seconds: float = 0.0
    """Its duration: of a downtime, stall, freeze or block."""
    other: str = ""
    """The second node of a fault of a link, or the step of a program."""
    amount: float = 0.0
    state: str = ""
    """A state of brokers, for which the fault waits; see `broker_states`.

    It hits the first broker in this state, or its node if that is no broker, or if none is in it within some seconds.
    """

    def ends(self) -> float:
        """Return the moment at which nothing of it is left but its consequences."""
        return self.at + self.seconds + (AIM_SECONDS_MAX if self.state else 0)


@dataclass(frozen=True, slots=True)
class Targets:
    """Names of the nodes that faults may hit, by their part."""

    servers: Sequence[str]
    """Nodes with disks, that are killed and lose their power."""
    clients: Sequence[str] = ()
    metadata: Sequence[str] = ()
    """Nodes with the metadata of a cluster, from which servers may be cut off; see "cut off"."""
    without: Collection[str] = ("bit flips",)
    """Kinds of faults that the judge of the scenario does not know, such as flipped bits, which lose messages."""
    brokers: Sequence[str] = ()
    """The nodes that are brokers, for faults that wait for a state of one of them."""
    disks: Sequence[str] = ()
    """The nodes whose disks have the entries, for faults of disks that wait for a state of a broker."""
    owner: str = ""
    """The broker that has the topic, or a role."""
    states: Sequence[str] = ()
    """The states that faults wait for; see `broker_states`."""
    steps: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Steps of the programs of nodes, by name, at which faults may end them."""


FAMILIES: Final = ("node", "connection", "network", "disk", "clock")
_FAMILIES_OF_CLUSTERS: Final = (*FAMILIES, "metadata")
_SINGLE: Final = {
    "node": ("kill", "power off", "freeze", "slow node"),
    "connection": ("cut", "half open", "stall link", "storm", "refuse", "accept and close", "silence"),
    "network": ("partition", "slow network", "cut off"),
    "disk": ("stall disk", "sync fails", "write fails", "disk full", "reads fail", "directory sync fails", "bit flips"),
    "clock": ("jump", "skew", "drift"),
    "metadata": ("answer lost", "request lost", "report lost"),
}
_OF_CLUSTERS: Final = ("cut off", *_SINGLE["metadata"])
_AIMED: Final = 0.45
"""The part of the faults that wait for a state of a broker, where there are such states."""
_LEADS_TO: Final = {
    "loading": ("kill", "power off"),
    "recovering": ("kill", "power off"),
    "taking over": ("kill", "power off"),
    "fenced": ("cut off", "write fails", "sync fails"),
    "rolling": (),
}
"""Faults of the owner of a topic after which a broker enters a state."""
PATTERNS: Final = (
    ("stall disk", "cut", "kill"),
    ("kill", "power off"),
    ("stall disk", "cut"),
    ("freeze", "cut"),
    ("write fails", "kill"),
    ("power off", "power off"),
    ("stall disk", "power off"),
    ("kill", "reads fail"),
    ("reads fail", "sync fails", "sync fails"),
    ("directory sync fails", "power off"),
    ("kill", "sync fails"),
    ("cut off", "freeze"),
    ("cut off", "cut"),
    ("answer lost", "cut off"),
    ("request lost", "answer lost"),
    ("answer lost", "kill"),
)
"""Faults that follow one another within a second: pairs find what single faults do not."""


def plan(chance: random.Random, targets: Targets, seconds: float, *, mean_pause: float = 1.5) -> list[Fault]:
    """Draw the faults of one run. Most families are off in each run, so that those that are on meet more often."""
    all_families = _FAMILIES_OF_CLUSTERS if targets.metadata else FAMILIES
    families = [family for family in all_families if chance.random() < 0.4] or [chance.choice(all_families)]
    without = {*targets.without, *(() if targets.metadata else _OF_CLUSTERS)}
    patterns = [pattern for pattern in PATTERNS if not set(pattern) & without]
    faults: list[Fault] = []
    moment = chance.expovariate(1 / mean_pause)
    while moment < seconds:
        if targets.steps and chance.random() < 0.3:
            faults += _ended_at_a_step(chance, moment, targets)
        elif chance.random() < 0.3:
            victim = chance.choice(targets.servers)
            for kind in chance.choice(patterns):
                faults.append(_draw(chance, kind, moment, targets, victim))
                moment += chance.choice([chance.uniform(0.001, 0.05), chance.uniform(0.01, 0.7)])
        elif targets.states and chance.random() < _AIMED:
            faults += _aimed(chance, moment, targets, without)
        elif len(targets.servers) > 1 and chance.random() < 0.05:
            kind = chance.choice(["kill", "power off"])
            victims = chance.sample(targets.servers, chance.choice([2, len(targets.servers)]))
            faults += [_draw(chance, kind, moment, targets, victim) for victim in victims]
        else:
            kinds = _SINGLE[chance.choice(families)]
            kind = chance.choice([kind for kind in kinds if kind not in without])
            faults.append(_draw(chance, kind, moment, targets, chance.choice(targets.servers)))
        moment += chance.expovariate(1 / mean_pause)
    return [fault for fault in faults if fault.at < seconds]


def _aimed(chance: random.Random, moment: float, targets: Targets, without: Collection[str]) -> Iterator[Fault]:
    """Draw a fault of any kind that waits for a state, and mostly one before it that leads to this state."""
    state = chance.choice(targets.states)
    leading = [kind for kind in _LEADS_TO[state] if kind not in without]
    if leading and chance.random() < 0.7:
        yield _draw(chance, chance.choice(leading), moment, targets, targets.owner)
    kind = chance.choice([kind for kinds in _SINGLE.values() for kind in kinds if kind not in without])
    victims = targets.disks if kind in _SINGLE["disk"] else targets.brokers
    yield replace(_draw(chance, kind, moment + 0.001, targets, chance.choice(victims)), state=state)


def _ended_at_a_step(chance: random.Random, moment: float, targets: Targets) -> Iterator[Fault]:
    """Draw the end of a program at one of its steps, and mostly the end of another one soon after it."""
    name = chance.choice(list(targets.steps))
    step = chance.choice(targets.steps[name])
    yield replace(_draw(chance, "end at step", moment, targets, name), other=step)
    if chance.random() < 0.6:
        kind = chance.choice(["kill", "power off"])
        yield _draw(chance, kind, moment + chance.uniform(0.01, 1), targets, chance.choice(targets.servers))


def _draw(chance: random.Random, kind: str, moment: float, targets: Targets, server: str) -> Fault:
    others = [name for name in (*targets.servers, *targets.clients) if name != server]
    other = chance.choice(others or [server])
    if kind in ("freeze", "slow node", "skew", "jump", "drift") and targets.clients and chance.random() < 0.3:
        server = chance.choice(targets.clients)
    seconds, amount = _SIZES[kind](chance)
    named = {"stall link": other, "cut off": ",".join(targets.metadata)}
    return Fault(round(moment, 6), kind, server, round(seconds, 6), named.get(kind, ""), round(amount, 6))


_FOR_GOOD: Final = 60.0
"""A downtime that only the end of the faults ends."""


def _downtime(chance: random.Random) -> float:
    return chance.choice(
        [0.01, 0.01, chance.uniform(0.05, 1), chance.uniform(0.05, 1), chance.uniform(1, 6), _FOR_GOOD]
    )


_SIZES: Final[dict[str, Callable[[random.Random], tuple[float, float]]]] = {
    "kill": lambda chance: (_downtime(chance), 0),
    "power off": lambda chance: (_downtime(chance), 0),
    "end at step": lambda chance: (_downtime(chance), chance.choice([0, 1])),
    "freeze": lambda chance: (chance.choice([chance.uniform(0.1, 2), chance.uniform(2, 20)]), 0),
    "slow node": lambda chance: (chance.uniform(0.5, 3), chance.uniform(0.001, 0.02)),
    "cut": lambda chance: (0, 0),
    "half open": lambda chance: (0, 0),
    "stall link": lambda chance: (chance.choice([chance.uniform(0, 2), chance.uniform(2, 15)]), 0),
    "storm": lambda chance: (1, 5),
    "refuse": lambda chance: (chance.uniform(0.1, 5), 0),
    "accept and close": lambda chance: (chance.uniform(0.1, 5), 0),
    "silence": lambda chance: (0, chance.choice([0, 1, 1, 2])),
    "partition": lambda chance: (chance.choice([chance.uniform(0, 2), chance.uniform(2, 20)]), chance.choice([0, 1])),
    "cut off": lambda chance: (chance.uniform(1, 15), 0),
    "slow network": lambda chance: (chance.uniform(0.5, 4), chance.choice([10, 100])),
    "stall disk": lambda chance: (chance.uniform(0.5, 5), 0),
    "sync fails": lambda chance: (0, 0),
    "write fails": lambda chance: (0, 0),
    "disk full": lambda chance: (chance.uniform(0.5, 4), 0),
    "reads fail": lambda chance: (0, chance.randint(1, 3)),
    "directory sync fails": lambda chance: (0, 0),
    "bit flips": lambda chance: (0, 0),
    "jump": lambda chance: (0, chance.uniform(-3600, 3600)),
    "skew": lambda chance: (0, chance.uniform(-2, 2)),
    "drift": lambda chance: (0, chance.uniform(-0.1, 0.1)),
    "answer lost": lambda chance: (0, chance.randint(1, 3)),
    "request lost": lambda chance: (0, chance.randint(1, 3)),
    "report lost": lambda chance: (0, chance.randint(1, 3)),
}


class Injector:
    """Brings the faults of a list about in a world, each at its moment."""

    def __init__(
        self,
        world: World,
        programs: dict[str, Program],
        brokers: Collection[str] = (),
        roles: Mapping[str, Callable[[], str]] = {},
        own: Mapping[str, Callable[[Fault], None]] = {},
    ) -> None:
        """``programs`` start nodes again after they were killed or lost their power.

        ``brokers`` are the nodes whose states count, ``roles`` return the node that plays a role, and ``own`` has the
        faults that only one scenario knows.
        """
        self._world = world
        self._programs = programs
        self._brokers = brokers
        self._roles = roles
        self._own = own
        self._ended = False

    def schedule(self, faults: Sequence[Fault]) -> None:
        """Begin the time of faults now."""
        for fault in faults:
            self._world.after(fault.at, lambda fault=fault: self._act(fault))  # type: ignore[misc]

    def end_all(self) -> None:
        """Bring everything back: links, disks, clocks, nodes."""
        self._ended = True
        world = self._world
        world.network.heal()
        world.network.slowness = 1.0
        for node in world.nodes:
            node.disk_stalled_until = node.frozen_until = node.turn_seconds = 0.0
            node.disk.fails_next, node.disk.capacity, node.disk.reads_failing = "", None, 0
            self._start(node, node.life)

    def connections_of(self, node: Node) -> list[SimulatedTransport]:
        """Return the open connections of a node, in the order in which they were opened."""
        return [each for each in self._world.network.connections if each.node is node and not each.gone]

    def _act(self, fault: Fault) -> None:
        if fault.state:
            self._act_in_state(fault)
        else:
            self._hit(self._node(fault.node), fault)

    def _act_in_state(self, fault: Fault) -> None:
        """Hit the first broker that is in the state after one of its turns, or the node that the fault names."""
        brokers = list(map(self._node, self._brokers))

        def look(broker: Node) -> None:
            if fault.state in states_of(broker):
                self._world.after(0, lambda: hit(broker if fault.node in self._brokers else self._node(fault.node)))

        def hit(node: Node) -> None:
            if look in brokers[0].watchers:
                for broker in brokers:
                    broker.watchers.remove(look)
                self._hit(node, fault)

        for broker in brokers:
            broker.watchers.append(look)
        self._world.after(AIM_SECONDS_MAX, lambda: hit(self._node(fault.node)))

    def _hit(self, node: Node, fault: Fault) -> None:
        if self._ended:
            return
        self._world.met.update((fault.kind, state) for state in self._states_met(node))
        self._world.note("fault", fault.kind, node.name, fault.other, fault.seconds, fault.amount)
        if fault.kind in self._own:
            self._own[fault.kind](fault)
        else:
            _ACTIONS[fault.kind](self, node, fault)

    def _node(self, name: str) -> Node:
        node = self._world.node(self._roles[name]() if name in self._roles else name)
        assert node is not None, name
        return node

    def _states_met(self, node: Node) -> set[str]:
        """Return the states of the node, or of the brokers that it serves."""
        if not self._brokers or node.name in self._brokers:
            return states_of(node)
        states = {state for name in self._brokers for state in states_of(self._node(name))}
        return states - {"idle", "down"} or {"idle"}

    def _stop(self, node: Node, fault: Fault) -> None:
        if not node.alive:
            return
        node.kill() if fault.kind == "kill" else node.power_off()
        life = node.life
        self._world.after(fault.seconds, lambda: self._start(node, life))

    def _end_at_step(self, node: Node, fault: Fault) -> None:
        kind = "power off" if fault.amount else "kill"
        node.end_at(fault.other, lambda: self._stop(node, replace(fault, kind=kind)))

    def _terminate(self, node: Node, fault: Fault) -> None:
        """Let a process end in order, and start it again after its downtime."""
        if not node.alive:
            return
        life, main = node.life, node.main
        main.add_done_callback(lambda _: self._world.after(fault.seconds, lambda: self._start(node, life)))
        node.terminate()
        if not node.alive:
            self._world.after(fault.seconds, lambda: self._start(node, life))

    def _start(self, node: Node, after_life: int) -> None:
        if not node.alive and node.life == after_life:
            node.start(self._programs[node.name])

    def _freeze(self, node: Node, fault: Fault) -> None:
        node.freeze(fault.seconds)

    def _slow_node(self, node: Node, fault: Fault) -> None:
        node.turn_seconds = fault.amount
        self._world.after(fault.seconds, lambda: setattr(node, "turn_seconds", 0.0))

    def _cut(self, node: Node, fault: Fault) -> None:
        chosen = self._drawn_end(node)
        if chosen is not None:
            self._world.network.cut(chosen, one_side=fault.kind == "half open")

    def _drawn_end(self, node: Node) -> SimulatedTransport | None:
        """Draw an end of one of the connections of a node."""
        own, chance = self.connections_of(node), self._world.stream("network")
        if not own:
            return None
        chosen = own[int(chance.random() * len(own))]
        return chosen if chance.random() < 0.5 else chosen.peer

    def _storm(self, node: Node, fault: Fault) -> None:
        for number in range(int(fault.amount)):
            self._world.after(fault.seconds * number / fault.amount, lambda: self._cut(node, fault))

    def _stall_link(self, node: Node, fault: Fault) -> None:
        self._world.network.block(node.name, self._node(fault.other).name, fault.seconds)

    def _turn_away(self, node: Node, fault: Fault) -> None:
        network = self._world.network
        network.unwilling[node.name] = (network.world.now + fault.seconds, fault.kind == "refuse")

    def _silence(self, node: Node, fault: Fault) -> None:
        chosen = self._drawn_end(node)
        if chosen is not None:
            chosen.chunks_left = int(fault.amount)

    def _partition(self, node: Node, fault: Fault) -> None:
        """Block all links of a node. They heal at the same time, or one after the other (amount 1)."""
        others = [each for each in self._world.nodes if each is not node]
        for number, other in enumerate(others, 1):
            seconds = fault.seconds * (number / len(others) if fault.amount else 1)
            self._world.network.block(node.name, other.name, seconds)
            self._world.network.block(other.name, node.name, seconds)

    def _cut_off(self, node: Node, fault: Fault) -> None:
        for other in fault.other.split(","):
            self._world.network.block(node.name, other, fault.seconds)
            self._world.network.block(other, node.name, fault.seconds)

    def _slow_network(self, node: Node, fault: Fault) -> None:
        self._world.network.slowness = fault.amount
        self._world.after(fault.seconds, lambda: setattr(self._world.network, "slowness", 1.0))

    def _stall_disk(self, node: Node, fault: Fault) -> None:
        node.disk_stalled_until = max(node.disk_stalled_until, self._world.now + fault.seconds)

    def _fail_next(self, node: Node, fault: Fault) -> None:
        node.disk.fails_next = _FAILING_STEPS[fault.kind]

    def _fail_reads(self, node: Node, fault: Fault) -> None:
        node.disk.reads_failing = int(fault.amount)

    def _flip_bit(self, node: Node, fault: Fault) -> None:
        node.disk.flip_bit(self._world.stream("disk"))

    def _fill_disk(self, node: Node, fault: Fault) -> None:
        disk = node.disk
        disk.capacity = disk.used + 100
        self._world.after(fault.seconds, lambda: setattr(disk, "capacity", None))

    def _set_clock(self, node: Node, fault: Fault) -> None:
        if fault.kind == "drift":
            node.drift(fault.amount)
        else:
            node.skew = fault.amount


_FAILING_STEPS: Final = {"sync fails": "sync", "write fails": "write", "directory sync fails": "sync_directory"}
_ACTIONS: Final[dict[str, Callable[[Injector, Node, Fault], None]]] = {
    "kill": Injector._stop,
    "power off": Injector._stop,
    "end at step": Injector._end_at_step,
    "terminate": Injector._terminate,
    "freeze": Injector._freeze,
    "slow node": Injector._slow_node,
    "cut": Injector._cut,
    "half open": Injector._cut,
    "storm": Injector._storm,
    "refuse": Injector._turn_away,
    "accept and close": Injector._turn_away,
    "silence": Injector._silence,
    "stall link": Injector._stall_link,
    "partition": Injector._partition,
    "cut off": Injector._cut_off,
    "slow network": Injector._slow_network,
    "stall disk": Injector._stall_disk,
    "sync fails": Injector._fail_next,
    "write fails": Injector._fail_next,
    "directory sync fails": Injector._fail_next,
    "reads fail": Injector._fail_reads,
    "bit flips": Injector._flip_bit,
    "disk full": Injector._fill_disk,
    "jump": Injector._set_clock,
    "skew": Injector._set_clock,
    "drift": Injector._set_clock,
}
