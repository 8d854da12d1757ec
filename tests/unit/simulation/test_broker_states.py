"""States of brokers, by the coroutines that their tasks are in."""

from __future__ import annotations

import asyncio
from collections import Counter

from tests.simulation import broker_states
from tests.simulation.broker_states import render, states_of
from tests.simulation.nodes import Node
from tests.simulation.world import World
from tests.support.simulated import let_pass


async def _inner() -> None:
    await asyncio.Event().wait()


async def _outer(node: Node) -> None:
    await _inner()


def test_states_when_a_task_awaits_a_coroutine_then_it_counts_however_deep(world: World, monkeypatch) -> None:
    monkeypatch.setattr(broker_states, "STATES", {_inner.__code__: "rolling"})
    node = Node(world, "broker")
    node.start(_outer)
    assert states_of(node) == {"idle"}
    let_pass(world, 1)
    assert states_of(node) == {"rolling"}
    node.kill()
    assert states_of(node) == {"down"}


def test_table_when_rendered_then_each_kind_has_a_line() -> None:
    lines = render(Counter({("kill", "rolling"): 3, ("cut", "idle"): 12})).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["cut", "kill"]
    assert lines[2].split() == ["kill", "0", "3", "0", "0", "0", "0", "0"]
