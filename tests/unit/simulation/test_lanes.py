"""The parts of a simulated replication query: its disk, its executors, and the source that it plans from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from interpulse.model.errors import NotConnected
from interpulse.model.ids import Position
from interpulse.spark.lanes import LaneState
from interpulse.spark.reading.planner import TopicEnd
from interpulse.spark.state_files import LaneFiles
from tests.simulation.lanes.disk import NodeDisk
from tests.simulation.lanes.executors import Executors, execute
from tests.simulation.lanes.view import RememberedView
from tests.simulation.nodes import Node
from tests.simulation.world import World
from tests.support.simulated import let_pass

STATE = {"t": LaneState(7, Position(1, 2))}


def test_lane_file_when_the_driver_loses_its_power_after_the_commit_then_is_there(
    new_world: Callable[..., World],
) -> None:
    for seed in range(20):
        node = Node(new_world(seed), "driver")
        node.start(execute)
        files = LaneFiles("/state", NodeDisk(node))
        files.commit(0, STATE)
        node.power_off()
        assert files.newest() == (0, STATE)


class Driver:
    """A driver that runs one task, with its results."""

    def __init__(self, world: World, work: Callable[[], Any]) -> None:
        self.executors = [Node(world, name) for name in ("one", "two")]
        for executor in self.executors:
            executor.start(execute)
        self.results: list[bytes] = []
        self.node = Node(world, "driver")
        self._work = work
        self.node.start(self._run)

    async def _run(self, node: Node) -> None:
        self.tasks = Executors(self.executors, node.world.stream("lanes"))
        self.results.append(await self.tasks.run(node, self._work))


def test_task_when_its_executor_ends_then_is_run_again(world: World) -> None:
    runs: list[float] = []

    async def work() -> bytes:
        runs.append(world.seconds)
        await asyncio.sleep(1)
        return b"done"

    driver = Driver(world, work)
    let_pass(world, 0.5)
    for executor in driver.executors:
        executor.kill()
        executor.start(execute)
    let_pass(world, 5)
    assert (driver.results, len(runs)) == ([b"done"], 2)


def test_executors_when_a_task_was_given_up_then_are_idle_once_it_is_over(world: World) -> None:
    async def work() -> bytes:
        await asyncio.sleep(5)
        return b"done"

    driver = Driver(world, work)
    let_pass(world, 1)
    driver.node.kill()
    assert not driver.tasks.are_idle([driver.node])
    assert driver.tasks.are_idle([])
    let_pass(world, 5)
    assert driver.tasks.are_idle([driver.node])


def test_task_when_it_fails_then_is_run_again_up_to_four_times(world: World) -> None:
    runs: list[float] = []

    async def work() -> bytes:
        runs.append(world.seconds)
        raise NotConnected("no route")

    driver = Driver(world, work)
    let_pass(world, 10)
    assert (driver.results, len(runs)) == ([], 4)
    assert "no route" in driver.node.unhandled_errors[0]


class Source:
    """A source that counts the questions, and answers the first one with an error."""

    def __init__(self) -> None:
        self.asked = 0

    async def ends_in_loop(self, topics: Any) -> Any:
        self.asked += 1
        if self.asked == 1:
            raise NotConnected("no route")
        return {topic: TopicEnd(Position(1, self.asked)) for topic in topics}


async def test_view_when_a_step_asks_then_it_is_repeated_with_the_answer() -> None:
    source = Source()
    view = RememberedView(cast("Any", source))
    with pytest.raises(NotConnected):
        await view.answered(lambda: view.ends(["t"]))
    for number in (2, 3):
        assert await view.answered(lambda: view.ends(["t"])) == {"t": TopicEnd(Position(1, number))}
