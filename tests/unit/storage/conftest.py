"""A fault in a callback or in the writer's thread ends the test, which would wait for an answer that never comes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.interop.real_pulsar.zookeeper import real_zookeeper
from tests.support.scripted_zookeeper import scripted_zookeeper


@pytest.fixture(autouse=True)
async def faults_end_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancels the test when the loop or a thread has an exception that no caller gets."""
    loop = asyncio.get_running_loop()

    def end_test() -> None:
        for task in asyncio.all_tasks(loop):
            task.cancel("a callback or a thread failed; its exception is in the log")

    def on_loop(at: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        at.default_exception_handler(context)
        end_test()

    def on_thread(fault: threading.ExceptHookArgs) -> None:
        threading.__excepthook__(fault)
        loop.call_soon_threadsafe(end_test)

    loop.set_exception_handler(on_loop)
    monkeypatch.setattr(threading, "excepthook", on_thread)


@pytest.fixture(scope="session")
def real_zookeeper_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real ZooKeeper, started once per run: tests have a path of their own below its root."""
    with real_zookeeper(tmp_path_factory.mktemp("zookeeper")) as zookeeper:
        yield zookeeper.address


@pytest.fixture(params=["scripted", pytest.param("real", marks=[pytest.mark.slow, pytest.mark.interop])])
async def zookeeper_address(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A ZooKeeper of either kind."""
    if request.param == "real":
        yield request.getfixturevalue("real_zookeeper_address")
        return
    async with scripted_zookeeper() as zookeeper:
        yield await zookeeper.listen()
