"""Lives of nodes: their ends by a kill and by a loss of power, and freezes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from tests.simulation.nodes import Node
from tests.simulation.world import World
from tests.support.simulated import let_pass

FILE = Path("/data/file")


async def _forever(node: Node) -> None:
    await asyncio.get_running_loop().create_future()


def test_kill_when_a_program_runs_then_no_finally_of_it_does(world: World) -> None:
    seen: list[str] = []

    async def program(node: Node) -> None:
        try:
            await asyncio.sleep(3)
        finally:
            seen.append("tidied up")

    node = Node(world, "one")
    node.start(program)
    let_pass(world, 1)
    node.kill()
    let_pass(world, 10)
    assert seen == []
    assert not node.alive


def test_kill_when_bytes_are_written_then_they_stay(world: World) -> None:
    node = Node(world, "one")
    node.start(_forever)
    file = node.disk.create(FILE)
    file.write(b"written")
    node.kill()
    assert node.disk.content(FILE) == b"written"


def test_power_off_when_bytes_are_not_synced_then_some_seed_loses_them(new_world: Callable[..., World]) -> None:
    contents = set()
    for seed in range(20):
        node = Node(new_world(seed), "one")
        node.start(_forever)
        file = node.disk.create(FILE)
        file.write_durably(b"synced")
        node.disk.sync_directory(FILE.parent)
        file.write(b" rest")
        node.power_off()
        contents.add(bytes(node.disk.content(FILE)))
    assert all(content.startswith(b"synced") for content in contents)
    assert {b"synced", b"synced rest"} < contents


def test_worker_when_a_node_ends_then_its_waiting_jobs_never_happen(world: World) -> None:
    seen: list[int] = []
    node = Node(world, "one")
    node.start(_forever)
    worker = node.worker("log")
    for number in range(10):
        worker.put(lambda number=number: seen.append(number))  # type: ignore[misc]
    node.kill()
    let_pass(world, 10)
    assert seen in ([], [0])  # the one that was under way may have happened


def test_worker_when_jobs_are_put_then_they_happen_one_after_the_other(world: World) -> None:
    seen: list[tuple[int, float]] = []
    node = Node(world, "one")
    node.start(_forever)
    worker = node.worker("log")
    for number in range(5):
        worker.put(lambda number=number: seen.append((number, world.now)))  # type: ignore[misc]
    let_pass(world, 10)
    assert [number for number, _ in seen] == list(range(5))
    assert len({at for _, at in seen}) == 5


def test_worker_when_the_disk_stalls_then_no_job_ends_before_it_is_over(world: World) -> None:
    seen: list[float] = []
    node = Node(world, "one")
    node.start(_forever)
    node.disk_stalled_until = world.now + 3
    node.worker("log").put(lambda: seen.append(world.seconds))
    let_pass(world, 10)
    assert seen
    assert seen[0] >= 3


def test_freeze_when_over_then_the_program_goes_on_with_what_it_missed(world: World) -> None:
    seen: list[float] = []

    async def program(node: Node) -> None:
        node.loop.call_later(1, lambda: seen.append(world.seconds))
        node.loop.call_later(2, lambda: seen.append(world.seconds))
        await _forever(node)

    node = Node(world, "one")
    node.start(program)
    let_pass(world, 0.5)
    node.freeze(10)
    let_pass(world, 20)
    assert len(seen) == 2
    assert all(round(at, 1) == 10.5 for at in seen)


def test_start_when_a_node_was_killed_then_a_new_life_begins_with_a_new_loop(world: World) -> None:
    lives: list[int] = []

    async def program(node: Node) -> None:
        lives.append(node.life)
        await _forever(node)

    node = Node(world, "one")
    node.start(program)
    let_pass(world, 1)
    first = node.loop
    node.kill()
    node.start(program)
    let_pass(world, 1)
    assert lives == [1, 2]
    assert node.loop is not first


def test_program_when_it_fails_then_the_error_is_noted(world: World) -> None:
    async def program(node: Node) -> None:
        raise ValueError("broken")

    node = Node(world, "one")
    node.start(program)
    let_pass(world, 1)
    assert "ValueError('broken')" in node.unhandled_errors[0]
