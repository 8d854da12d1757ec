"""Work that one broker of a cluster does."""

from __future__ import annotations

import asyncio

from interpulse.broker.ownership.sole_task import SoleTask
from interpulse.storage.api import Versioned
from tests.support.memory_storage import MemoryMetadataStore, MemoryTree
from tests.support.waiting import eventually


class PausedStore(MemoryMetadataStore):
    """Does not answer while it is told not to."""

    silent = False
    waiting = False

    async def get(self, key: str) -> Versioned | None:
        self.waiting = self.silent
        while self.silent:  # noqa: ASYNC110  # as a server that does not answer
            await asyncio.sleep(0)
        self.waiting = False
        return await super().get(key)


class Worker:
    """A broker that may be chosen. Its work ends at once, or when ``end`` is set."""

    def __init__(self, tree: MemoryTree, name: str) -> None:
        self.store = PausedStore(tree)
        self.told: list[str] = []
        self.end: asyncio.Event | None = None
        self.task = SoleTask(self.store, "x", name, begin=self._begin, end=self._end)

    async def _begin(self) -> None:
        self.told.append("begin")

    async def _end(self) -> None:
        if self.end is not None:
            self.told.append("to end")
            await self.end.wait()
        self.told.append("end")


async def test_task_when_two_are_there_then_one_works_and_the_other_follows_it() -> None:
    tree = MemoryTree()
    first, second = Worker(tree, "1"), Worker(tree, "2")
    first.task.start()
    await eventually(lambda: first.task.chosen)
    second.task.start()
    await first.task.stop()
    await eventually(lambda: second.task.chosen)
    await second.task.stop()
    assert (first.told, second.told) == (["begin", "end"], ["begin", "end"])
    assert not tree.values


async def test_task_when_the_session_may_be_over_then_ends_before_another_begins() -> None:
    tree = MemoryTree()
    first, second = Worker(tree, "1"), Worker(tree, "2")
    first.task.start()
    await eventually(lambda: first.task.chosen)
    second.task.start()
    first.store.cut_off()
    await eventually(lambda: first.told == ["begin", "end"])
    assert not second.task.chosen
    first.store.expire_unseen()
    await eventually(lambda: second.task.chosen)
    first.store.reconnect()
    await first.task.stop()
    await second.task.stop()
    assert first.told == ["begin", "end"]


async def test_task_when_the_key_is_of_an_earlier_life_then_is_taken_over() -> None:
    tree = MemoryTree()
    earlier, now = Worker(tree, "1"), Worker(tree, "1")
    earlier.task.start()
    await eventually(lambda: earlier.task.chosen)
    earlier.store.cut_off()
    now.task.start()
    await eventually(lambda: now.task.chosen)
    await earlier.task.stop()
    assert now.task.chosen
    await now.task.stop()


async def test_task_when_the_session_ends_while_nothing_answers_then_ends_too() -> None:
    worker = Worker(MemoryTree(), "1")
    worker.task.start()
    await eventually(lambda: worker.task.chosen)
    worker.store.silent = True
    await eventually(lambda: worker.store.waiting)
    worker.store.session.lose()
    await eventually(lambda: worker.told == ["begin", "end"])
    assert worker.store.waiting
    await worker.task.stop()
    assert worker.told == ["begin", "end"]


async def test_stop_when_the_work_is_just_ending_then_waits_for_that() -> None:
    worker = Worker(MemoryTree(), "1")
    worker.end = asyncio.Event()
    worker.task.start()
    await eventually(lambda: worker.task.chosen)
    worker.store.cut_off()
    await eventually(lambda: worker.told == ["begin", "to end"])
    stopping = asyncio.create_task(worker.task.stop())
    await eventually(lambda: worker.told == ["begin", "to end", "to end"])
    assert not stopping.done()
    worker.end.set()
    await stopping
    assert worker.told == ["begin", "to end", "to end", "end"]
