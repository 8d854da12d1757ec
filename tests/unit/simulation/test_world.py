"""The order of events, turns and timers, and the streams of randomness."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable

import pytest

from tests.simulation.nodes import Node
from tests.simulation.world import CountedFuture, Deadlock, Reductions, SimulatedLoop, World
from tests.support.simulated import settle


def test_callbacks_when_ready_then_they_run_in_their_order(world: World) -> None:
    seen: list[int] = []

    async def program(node: Node) -> None:
        for number in range(10):
            node.loop.call_soon(seen.append, number)

    Node(world, "one").start(program)
    settle(world)
    assert seen == list(range(10))


def test_callback_when_added_in_a_turn_then_it_waits_for_the_next_one(world: World) -> None:
    turns: list[int] = []

    async def program(node: Node) -> None:
        turns.append(world.turns)
        node.loop.call_soon(lambda: turns.append(world.turns))

    Node(world, "one").start(program)
    settle(world)
    assert turns[1] == turns[0] + 1


def test_timers_when_set_then_they_fire_by_their_moments_on_the_clock_of_the_world(world: World) -> None:
    seen: list[tuple[str, float]] = []

    async def sleeping(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((name, round(world.seconds, 2)))

    async def program(node: Node) -> None:
        await asyncio.gather(sleeping("late", 3600), sleeping("early", 0.5), sleeping("middle", 60))

    Node(world, "one").start(program)
    settle(world)
    assert seen == [("early", 0.5), ("middle", 60.0), ("late", 3600.0)]


def test_timeout_when_over_then_it_raises(world: World) -> None:
    seen: list[float] = []

    async def program(node: Node) -> None:
        try:
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append(round(world.seconds, 2))

    Node(world, "one").start(program)
    settle(world)
    assert seen == [5.0]


def test_run_when_the_time_is_over_then_it_returns_false_and_goes_on_later(world: World) -> None:
    seen: list[str] = []
    world.after(5, lambda: seen.append("event"))
    assert not world.run(lambda: False, 4)
    assert seen == []
    assert world.run(lambda: bool(seen), 4)


def test_run_when_nothing_is_due_then_it_is_a_deadlock(world: World) -> None:
    async def program(node: Node) -> None:
        await asyncio.Event().wait()

    Node(world, "one").start(program)
    with pytest.raises(Deadlock):
        world.run(lambda: False, 10)


def test_functions_when_run_in_an_executor_then_their_results_come_later(world: World) -> None:
    seen: list[object] = []

    async def program(node: Node) -> None:
        before = world.now
        seen.append(await asyncio.to_thread(lambda: "done"))
        seen.append(world.now > before)
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)
        seen.append("raised")

    Node(world, "one").start(program)
    settle(world)
    assert seen == ["done", True, "raised"]


def test_streams_when_one_is_drawn_from_then_the_others_stay_as_they_are() -> None:
    first, second = World(7), World(7)
    first.stream("network").random()
    assert first.stream("disk").random() == second.stream("disk").random()
    assert first.stream("network").random() != second.stream("network").random()


def test_streams_when_plain_then_every_draw_is_the_middle() -> None:
    plain = World(7, reductions=Reductions(plain=("network",)))
    assert plain.stream("network").uniform(2, 4) == 3
    assert plain.stream("disk").uniform(2, 4) == World(7).stream("disk").uniform(2, 4)


def test_futures_and_tasks_when_hashed_then_by_their_number(world: World) -> None:
    hashes: list[int] = []

    async def program(node: Node) -> None:
        task = asyncio.create_task(asyncio.sleep(0))
        hashes.extend([hash(node.loop.create_future()), hash(node.loop.create_future()), hash(task)])
        await task

    node = Node(world, "one")
    node.start(program)
    settle(world)
    assert isinstance(node.loop, SimulatedLoop)
    assert isinstance(node.loop.create_future(), CountedFuture)
    assert hashes[1] == hashes[0] + 1
    assert hashes[2] == hashes[0] - 1


def test_traces_when_a_world_is_played_again_then_they_are_equal(new_world: Callable[..., World]) -> None:
    def play(seed: int) -> tuple[str, str]:
        lines = io.StringIO()
        world = new_world(seed, lines)

        async def program(node: Node) -> None:
            for _ in range(20):
                await asyncio.sleep(0.1)
                world.note(node.name, "awake")

        for name in ("one", "two", "three"):
            Node(world, name).start(program)
        settle(world)
        return lines.getvalue(), world.trace_hash

    assert play(3) == play(3)
    assert play(3) != play(4)


def test_clocks_when_a_node_is_skewed_then_its_wall_time_is_ahead_and_no_other(world: World) -> None:
    one, two = Node(world, "one"), Node(world, "two")
    one.skew = 2.0
    walls: list[int] = []
    for node in (one, two):
        world.in_turn_of(node, lambda: walls.append(world.wall_ns()))
    assert walls[0] - walls[1] == 2_000_000_000
