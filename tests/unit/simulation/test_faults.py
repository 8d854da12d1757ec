"""Plans of faults, and the faults that network, disk and clock know."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from tests.simulation import broker_states, faults
from tests.simulation.faults import Fault, Injector, Targets, plan
from tests.simulation.nodes import Node
from tests.simulation.world import World
from tests.support.simulated import let_pass

TARGETS = Targets(("one", "two", "three"), ("client",), metadata=("one",), without=(), steps={"two": ("written",)})
STATES = ("loading", "rolling", "recovering", "fenced", "taking over")
CLUSTER = replace(TARGETS, brokers=("one", "two"), disks=("three",), owner="two", states=STATES)
SECONDS = 30.0


def _plans() -> list[list[Fault]]:
    return [plan(random.Random(seed), TARGETS, SECONDS) for seed in range(200)]


def test_plan_when_drawn_from_the_same_seed_then_it_is_the_same() -> None:
    assert _plans() == _plans()


def test_plans_when_drawn_from_many_seeds_then_every_kind_occurs_within_the_time() -> None:
    drawn = [fault for each in _plans() for fault in each]
    assert {fault.kind for fault in drawn} == set(faults._SIZES)
    assert all(0 < fault.at < SECONDS for fault in drawn)
    assert {fault.node for fault in drawn} == {"one", "two", "three", "client"}


def test_plans_when_there_are_several_servers_then_some_end_together() -> None:
    ends = [[(fault.at, fault.kind) for fault in each if fault.kind in ("kill", "power off")] for each in _plans()]
    assert any(moments.count(moment) == 3 for moments in ends for moment in moments)


def test_plans_when_brokers_share_a_cluster_then_every_kind_waits_for_every_state() -> None:
    drawn = [fault for seed in range(2000) for fault in plan(random.Random(seed), CLUSTER, SECONDS) if fault.state]
    kinds = set(faults._SIZES) - {"end at step"}
    assert {(fault.kind, fault.state) for fault in drawn} == {(kind, state) for kind in kinds for state in STATES}


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


@pytest.mark.parametrize("power_lost", [0, 1])
def test_injector_when_a_program_reaches_its_last_step_then_it_ends_there(world: World, power_lost: int) -> None:
    passed: list[str] = []

    async def program(node: Node) -> None:
        for step in ("planned", "written", "marked"):
            await asyncio.sleep(1)
            await node.reached(step)
            passed.append(step)

    node = Node(world, "one")
    injector = Injector(world, {"one": _forever})
    node.start(program)
    injector.schedule([Fault(0.1, "end at step", "one", seconds=2.0, other="written", amount=power_lost)])
    let_pass(world, 3)
    assert (passed, node.alive, node.powerless) == (["planned"], False, bool(power_lost))
    let_pass(world, 2)
    assert node.alive


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


def test_injector_when_a_fault_names_a_role_then_the_node_that_plays_it_is_hit(world: World) -> None:
    nodes = [Node(world, name) for name in ("one", "two")]
    for node in nodes:
        node.start(_forever)
    playing = iter(("two", "one"))
    injector = Injector(world, {}, roles={"owner": lambda: next(playing)})
    injector.schedule([Fault(moment, "skew", "owner", amount=moment) for moment in (1.0, 2.0)])
    let_pass(world, 3)
    assert [node.skew for node in nodes] == [2.0, 1.0]


async def _rolling() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(("begins", "hit"), [(2.0, "two"), (60.0, "one")], ids=["in time", "too late"])
def test_injector_when_a_fault_waits_for_a_state_then_the_broker_in_it_is_hit(
    world: World, monkeypatch: pytest.MonkeyPatch, begins: float, hit: str
) -> None:
    monkeypatch.setattr(broker_states, "STATES", {_rolling.__code__: "rolling"})
    nodes = {name: Node(world, name) for name in ("one", "two")}

    async def roll(node: Node) -> None:
        await asyncio.sleep(begins)
        await _rolling()

    nodes["one"].start(_forever)
    nodes["two"].start(roll)
    Injector(world, {}, tuple(nodes)).schedule([Fault(1.0, "skew", "one", amount=5.0, state="rolling")])
    let_pass(world, begins - 0.5 if begins < 60 else 1.0 + faults.AIM_SECONDS_MAX - 0.5)
    assert {node.skew for node in nodes.values()} == {0.0}
    let_pass(world, 1)
    assert [name for name, node in nodes.items() if node.skew] == [hit]


def test_injector_when_the_faults_have_ended_then_one_that_still_waits_does_not_happen(world: World) -> None:
    node = Node(world, "one")
    node.start(_forever)
    injector = Injector(world, {}, ("one",))
    injector.schedule([Fault(1.0, "skew", "one", amount=5.0, state="rolling")])
    let_pass(world, 2)
    injector.end_all()
    let_pass(world, 20)
    assert node.skew == 0


def test_injector_when_a_scenario_knows_a_fault_then_it_brings_it_about(world: World) -> None:
    Node(world, "one").start(_forever)
    lost: list[Fault] = []
    fault = Fault(1.0, "answer lost", "one", amount=2.0)
    Injector(world, {}, own={"answer lost": lost.append}).schedule([fault])
    let_pass(world, 2)
    assert lost == [fault]
