"""How many loads run at once, and who is next."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.broker.live.registry.executors import LoadPermits


class Loads:
    """Work that runs until it is told to end."""

    def __init__(self, permits: LoadPermits) -> None:
        self.permits = permits
        self.running: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, *names: str) -> None:
        for name in names:
            self.ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._run(name))
        await turns()

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await self.tasks[name]
        await turns()

    async def _run(self, name: str) -> None:
        async with self.permits:
            self.running.append(name)
            await self.ends[name].wait()
            self.running.remove(name)


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_loads_when_at_the_limit_then_one_above_waits_for_its_turn() -> None:
    loads = Loads(LoadPermits(lambda: 2))
    await loads.begin("a", "b", "c", "d")
    assert (loads.running, loads.permits.taken) == (["a", "b"], 2)
    await loads.end("a")
    assert loads.running == ["b", "c"]
    await loads.end("b")
    await loads.end("c")
    await loads.end("d")
    assert loads.permits.taken == 0


@pytest.mark.parametrize("at_its_turn", [False, True], ids=["while it waits", "in the moment of its turn"])
async def test_loads_when_one_that_waits_is_cancelled_then_the_next_has_its_turn(at_its_turn: bool) -> None:
    permits = LoadPermits(lambda: 1)
    loads = Loads(permits)
    await permits.__aenter__()
    await loads.begin("b", "c")
    if at_its_turn:
        await permits.__aexit__(None, None, None)
    loads.tasks["b"].cancel()
    await asyncio.wait([loads.tasks["b"]])
    if not at_its_turn:
        await permits.__aexit__(None, None, None)
    await turns()
    assert (loads.running, permits.taken) == (["c"], 1)
    await loads.end("c")


async def test_loads_when_one_fails_then_its_permit_is_free() -> None:
    permits = LoadPermits(lambda: 1)
    with pytest.raises(ValueError, match="broken"):
        async with permits:
            raise ValueError("broken")
    assert permits.taken == 0


async def test_loads_when_the_limit_is_raised_then_more_of_them_go_on() -> None:
    limit: Any = {"now": 1}
    loads = Loads(LoadPermits(lambda: limit["now"]))
    await loads.begin("a", "b", "c")
    limit["now"] = 3
    await loads.end("a")
    assert loads.running == ["b", "c"]
    await loads.end("b")
    await loads.end("c")
