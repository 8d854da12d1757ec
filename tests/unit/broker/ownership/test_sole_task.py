"""Work that one broker of a cluster does."""

from __future__ import annotations

from interpulse.broker.ownership.sole_task import SoleTask
from interpulse.storage.memory import MemoryMetadataStore, MemoryTree
from tests.support.waiting import eventually


class Worker:
    """A broker that may be chosen."""

    def __init__(self, tree: MemoryTree, name: str) -> None:
        self.store = MemoryMetadataStore(tree)
        self.told: list[str] = []
        self.task = SoleTask(self.store, "x", name, begin=self._begin, end=self._end)

    async def _begin(self) -> None:
        self.told.append("begin")

    async def _end(self) -> None:
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
    now.task.start()
    await eventually(lambda: now.task.chosen)
    earlier.store.cut_off()
    await earlier.task.stop()
    assert now.task.chosen
    await now.task.stop()
