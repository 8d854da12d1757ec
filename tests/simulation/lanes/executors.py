"""Executors of a simulated Spark: nodes that run the tasks of a batch, some of them more than once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final

from tests.simulation.nodes import Node

Work = Callable[[], Coroutine[Any, Any, bytes]]
_ATTEMPTS: Final = 4
_LOST_SECONDS: Final = 15.0
"""The time after which an executor without news counts as lost, whatever it still does."""
_LOOK_SECONDS: Final = 0.5
_WRITTEN: Final = "written"
EXECUTOR_STEPS: Final = (_WRITTEN,)


class TaskLost(Exception):
    """An executor that ended, or gave no news for too long."""


async def execute(node: Node) -> None:
    """Wait for tasks: the program of an executor."""
    await asyncio.get_running_loop().create_future()


class Executors:
    """The executors of all drivers."""

    def __init__(self, nodes: Sequence[Node], chance: random.Random) -> None:
        self._nodes = nodes
        self._chance = chance
        self._attempts: list[_Attempt] = []

    def are_idle(self, drivers: Collection[Node]) -> bool:
        """Return True if no attempt of a task of these drivers runs, not even one that was given up."""
        self._attempts = [attempt for attempt in self._attempts if not attempt.is_over]
        return not any(attempt.driver in drivers for attempt in self._attempts)

    async def run(self, driver: Node, work: Work) -> bytes:
        """Return the result of a task, from its first attempt that succeeds. Raise the error of the last one."""
        for _ in range(_ATTEMPTS - 1):
            with suppress(Exception):  # the next attempt may succeed
                return await self._attempt(driver, work)
            await asyncio.sleep(self._chance.uniform(0.01, 0.5))
        return await self._attempt(driver, work)

    async def _attempt(self, driver: Node, work: Work) -> bytes:
        executor = self._chance.choice(self._nodes)
        attempt = _Attempt(driver, executor, work)
        self._attempts.append(attempt)
        deadline = driver.loop.time() + _LOST_SECONDS
        try:
            while not attempt.result.done():
                if attempt.is_lost or driver.loop.time() > deadline:
                    raise TaskLost(executor.name)
                await asyncio.wait([attempt.result], timeout=_LOOK_SECONDS)
            return attempt.result.result()
        finally:
            attempt.result.cancel()


class _Attempt:
    """One attempt of a task. Its beginning and its result cross the network; the driver may end, or give it up."""

    def __init__(self, driver: Node, executor: Node, work: Work) -> None:
        self.result: asyncio.Future[bytes] = driver.loop.create_future()
        self.driver = driver
        self._executor, self._work = executor, work
        self._task: asyncio.Task[bytes] | None = None
        self._life, self._loop = executor.life, driver.loop
        self._world = driver.world
        self._world.at(self._world.network.arrival(driver, executor), self._begin)

    @property
    def is_lost(self) -> bool:
        """True if the executor has ended."""
        return not self._executor.alive or self._executor.life != self._life

    @property
    def is_over(self) -> bool:
        """True if the executor does nothing for it any more."""
        return self.is_lost or (self._task is not None and self._task.done())

    def _begin(self) -> None:
        if not self.is_lost:
            self._task = self._executor.loop.create_task(self._run())
            self._task.add_done_callback(self._report)

    async def _run(self) -> bytes:
        result = await self._work()
        await self._executor.reached(_WRITTEN)
        return result

    def _report(self, task: asyncio.Task[bytes]) -> None:
        if not task.cancelled():
            error = task.exception()
            arrival = self._world.network.arrival(self._executor, self.driver)
            self._world.at(arrival, lambda: self._receive(error, task))

    def _receive(self, error: BaseException | None, task: asyncio.Task[bytes]) -> None:
        if self.driver.loop is self._loop and self.driver.alive and not self.result.done():
            settle = self.result.set_result if error is None else self.result.set_exception
            self._loop.call_soon(self._settle, settle, task.result() if error is None else error)

    def _settle(self, settle: Callable[[Any], None], outcome: object) -> None:
        if not self.result.done():
            settle(outcome)
