"""Plans of faults, and the faults that network, disk and clock know."""

from __future__ import annotations

import random

import pytest

from tests.simulation import faults
from tests.simulation.faults import Fault, Injector, Targets, plan
from tests.simulation.nodes import Node
from tests.simulation.world import World
from tests.support.simulated import let_pass

TARGETS = Targets(("one", "two", "three"), ("client",), metadata=("one",), without=())
SECONDS = 30.0


def _plans() -> list[list[Fault]]:
    return [plan(random.Random(seed), TARGETS, SECONDS) for seed in range(200)]


def test_plan_when_drawn_from_the_same_seed_then_it_is_the_same() -> None:
    assert _plans() == _plans()


def test_plans_when_drawn_from_many_seeds_then_every_kind_occurs_within_the_time() -> None:
    drawn = [fault for each in _plans() for fault in each]
    by_scenarios = {"terminate"}
    assert {fault.kind for fault in drawn} == set(faults._ACTIONS) - by_scenarios
    assert all(0 < fault.at < SECONDS for fault in drawn)
    assert {fault.node for fault in drawn} == {"one", "two", "three", "client"}


def test_plans_when_there_are_several_servers_then_some_end_together() -> None:
    ends = [[(fault.at, fault.kind) for fault in each if fault.kind in ("kill", "power off")] for each in _plans()]
    assert any(moments.count(moment) == 3 for moments in ends for moment in moments)


def test_clients_when_faults_are_planned_then_they_keep_their_processes() -> None:
    hit = {fault.kind for each in _plans() for fault in each if fault.node == "client"}
    assert hit == {"freeze", "slow node", "skew", "jump", "drift"}


@pytest.mark.parametrize("kind", ["kill", "power off"])
def test_injector_when_a_node_ends_then_it_begins_again_after_its_downtime(world: World, kind: str) -> None:
    node = Node(world, "one")
    injector = Injector(world, {"one": _forever})
    node.start(_forever)
    injector.schedule([Fault(1.0, kind, "one", seconds=2.0)])
    let_pass(world, 2)
    assert not node.alive
    let_pass(world, 2)
    assert node.alive
    assert node.life == 2


def test_injector_when_faults_end_then_nodes_are_back_and_disks_are_sound(world: World) -> None:
    node = Node(world, "one")
    injector = Injector(world, {"one": _forever})
    node.start(_forever)
    injector.schedule([Fault(1.0, "kill", "one", seconds=60.0), Fault(1.1, "reads fail", "one", amount=3)])
    let_pass(world, 2)
    assert not node.alive
    assert node.disk.reads_failing == 3
    injector.end_all()
    assert node.alive
    assert node.disk.reads_failing == 0


def test_injector_when_a_clock_drifts_then_only_its_wall_time_does(world: World) -> None:
    node = Node(world, "one")
    node.start(_forever)
    Injector(world, {"one": _forever}).schedule(
        [Fault(0.0, "skew", "one", amount=1.0), Fault(1.0, "drift", "one", amount=0.1)]
    )
    let_pass(world, 11)
    assert node.ahead() == pytest.approx(2.0)
    assert world.seconds == pytest.approx(11.0)


async def _forever(node: Node) -> None:
    await node.loop.create_future()
