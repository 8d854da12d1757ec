"""Worlds for the tests of the simulation itself, with the clock of the machine left as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.simulation.network import Network
from tests.simulation.nodes import Node
from tests.simulation.world import SimulatedLoop, World

_TURNS_TO_END = 20
"""Enough for cancelled tasks, and those that wait for them."""


@pytest.fixture
def new_world() -> Iterator[Callable[..., World]]:
    """Create worlds, and close the loops of their nodes at the end: no coroutine is left to be collected."""
    worlds: list[World] = []

    def create(*arguments: Any, **options: Any) -> World:
        world = World(*arguments, **options)
        world.network = Network(world)
        worlds.append(world)
        return world

    yield create
    for world in worlds:
        for node in world.nodes:
            for loop in _loops(node):
                _close(loop)


@pytest.fixture
def world(new_world: Callable[..., World]) -> World:
    return new_world(1)


def _loops(node: Node) -> list[SimulatedLoop]:
    return [each for each in (*node._past, getattr(node, "loop", None)) if isinstance(each, SimulatedLoop)]


def _close(loop: SimulatedLoop) -> None:
    for _ in range(_TURNS_TO_END):
        for task in asyncio.all_tasks(loop):
            task.cancel()
        if loop.due() == 0:
            loop.turn()
    loop.close()
