"""Faults of determinism: the same seed takes another course in another process."""

from __future__ import annotations

from tests.simulation import patches
from tests.simulation.faults import Injector
from tests.simulation.network import SimulatedTransport
from tests.simulation.nodes import Node
from tests.simulation.world import World


def order_of_addresses() -> None:
    """901: the connections of a node come from a set, in the order of their addresses in memory."""
    connections_of = Injector.connections_of

    def unordered(self: Injector, node: Node) -> list[SimulatedTransport]:
        return list(set(connections_of(self, node)))

    Injector.connections_of = unordered  # type: ignore[method-assign]


def clock_of_the_machine() -> None:
    """902: the clock was imported by name before it was replaced, and tells the time of the machine."""
    World.wall_ns = lambda self: patches.real_time_ns()  # type: ignore[method-assign]


def order_of_hashes() -> None:
    """903: the connections of a node come from a set of their names, in the order of their hashes."""
    connections_of = Injector.connections_of

    def unordered(self: Injector, node: Node) -> list[SimulatedTransport]:
        named = {str(each.get_extra_info("peername")): each for each in connections_of(self, node)}
        return [named[name] for name in set(named)]

    Injector.connections_of = unordered  # type: ignore[method-assign]
